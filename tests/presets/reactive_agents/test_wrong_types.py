from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from lading.errors import InputError
from lading.presets import build_context, synthesis

WRONG: Any = {"synthesis": "fast"}


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda: synthesis(WRONG), r"resolve_synthesis_config_for_strategy\(options, strategy\)"),
        (lambda: build_context(cast(Any, "the task")), r"build_context\(task=\.\.\., \.\.\.\)"),
    ],
)
def test_what_is_of_another_type_is_refused_with_what_to_give(call: Callable[[], object], advice: str) -> None:
    with pytest.raises(InputError, match=advice):
        call()
