from __future__ import annotations

import math
from typing import Any

import pytest

from lading.sources.times import parse_time


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1763681630, 1763681630.0),
        (1763681630793, 1763681630.793),
        (1763681630.5, 1763681630.5),
        ("2025-11-20T23:33:50.793Z", 1763681630.793),
        ("2025-11-21T00:33:50.793+01:00", 1763681630.793),
        ("2025-11-20T23:33:50.793", 1763681630.793),
    ],
)
def test_points_in_time(value: Any, expected: float) -> None:
    assert parse_time(value) == expected


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -5, math.nan, math.inf, 10**400, "yesterday", "", [], {}, "0001-01-01T00:00:00+23:59"],
)
def test_anything_else_is_no_time(value: Any) -> None:
    found = parse_time(value)
    assert found is None or math.isfinite(found)
    assert not isinstance(value, int | float) or found is None
