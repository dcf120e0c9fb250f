"""How much of a costly test ``make test`` plays, and how much only ``make test-all``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import settings


def share_of_examples(share: float, *, thorough: float | None = None) -> settings:
    """Settings that give a property this share of the profile's examples: less where one is slow, more where
    faults are rare. At least 2. ``thorough``: the share of the thousands that ``make fuzz`` plays, where it is
    another."""
    if thorough is not None and os.environ.get("HYPOTHESIS_PROFILE") == "thorough":
        share = thorough
    return settings(max_examples=max(2, round(settings().max_examples * share)))


def quick_first(values: Sequence[Any], quick: int) -> list[Any]:
    """Values of a parameter, of which ``make test`` plays the first ``quick`` and ``make test-all`` every one."""
    rows = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*row, marks=() if at < quick else pytest.mark.full) for at, row in enumerate(rows)]


def quick_diagonal(*axes: Sequence[Any]) -> list[Any]:
    """All combinations of parameters. ``make test`` plays each of all axes but the last, whose values take turns;
    ``make test-all`` plays every one."""
    places = product(*(range(len(axis)) for axis in axes))
    return [
        pytest.param(
            *(axis[at] for axis, at in zip(axes, place, strict=True)),
            marks=() if sum(place[:-1]) % len(axes[-1]) == place[-1] else pytest.mark.full,
        )
        for place in places
    ]
