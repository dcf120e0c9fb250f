"""Fit an affine function from counted tokens and messages to reported tokens, by recursive least squares.

The sums of the normal equations are kept. Older observations lose weight; the prior does not, so that requests that
are alike, which cannot separate the three factors, leave the fit near it. Equal observations give equal factors
everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

_EXPECTED = (1.0, 0.0, 0.0)
_CERTAINTY = tuple(1 / (doubt * doubt) for doubt in (0.4, 20.0, 4_000.0))
"""Weights of the prior, from its standard deviations."""
_LOWEST = (0.3, 0.0, -100_000.0)
_HIGHEST = (3.0, 100.0, 100_000.0)

Row: TypeAlias = tuple[float, float, float]
"""Counted tokens, messages, and 1 if the report includes the constant, else 0."""
Sums: TypeAlias = tuple[float, float, float, float, float, float, float, float, float]
"""Upper half of the symmetric 3 x 3 matrix by rows, then the right side."""

NO_SUMS: Sums = (0.0,) * 9


class Factors(Struct, frozen=True):
    """The provider's tokens are ``per_token`` x counted + ``per_message`` x messages + ``constant``."""

    per_token: float = 1.0
    per_message: float = 0.0
    constant: float = 0.0


class Observation(Struct, frozen=True):
    """A reported figure for a row, with its standard error in tokens."""

    row: Row
    reported_tokens: float
    error_tokens: float


def add_observations(sums: Sums, observations: Sequence[Observation], *, older: float) -> Sums:
    """Return the sums with one request's observations added; earlier ones are multiplied by ``older``."""
    totals = [older * value for value in sums]
    for seen in observations:
        weight = 1 / (seen.error_tokens * seen.error_tokens)
        a, b, c = seen.row
        products = (a * a, a * b, a * c, b * b, b * c, c * c)
        right = (a * seen.reported_tokens, b * seen.reported_tokens, c * seen.reported_tokens)
        totals = [total + weight * value for total, value in zip(totals, products + right, strict=True)]
    kept = [float(f"{total:.10g}") for total in totals]
    return (kept[0], kept[1], kept[2], kept[3], kept[4], kept[5], kept[6], kept[7], kept[8])


def fit(sums: Sums) -> Factors:
    """Return the factors that fit the sums and the prior best, each within its bounds."""
    xx, xy, xz, yy, yz, zz, *right = sums
    rows = [[xx, xy, xz, right[0]], [xy, yy, yz, right[1]], [xz, yz, zz, right[2]]]
    for index, expected in enumerate(_EXPECTED):
        rows[index][index] += _CERTAINTY[index]
        rows[index][-1] += _CERTAINTY[index] * expected
    fixed: dict[int, float] = {}
    while True:
        found = fixed | _solve(rows, fixed)
        outside = next((index for index, factor in found.items() if not _is_within_bounds(index, factor)), None)
        if outside is None:
            return Factors(round(found[0], 6), round(found[1], 4), round(found[2], 2))
        fixed[outside] = min(max(found[outside], _LOWEST[outside]), _HIGHEST[outside])


def _is_within_bounds(index: int, factor: float) -> bool:
    return _LOWEST[index] <= factor <= _HIGHEST[index]


def _solve(rows: list[list[float]], fixed: dict[int, float]) -> dict[int, float]:
    """Solve the normal equations for the factors that are not fixed, by elimination and substitution."""
    free = [index for index in range(3) if index not in fixed]
    work = {index: [*rows[index][:-1], rows[index][-1] - _sum(rows[index], fixed)] for index in free}
    for pivot in free:
        top = work[pivot]
        # No pivot is smaller than its part from the prior, except by rounding.
        top[pivot] = max(top[pivot], _CERTAINTY[pivot])
        for below in free[free.index(pivot) + 1 :]:
            factor = work[below][pivot] / top[pivot]
            work[below] = [value - factor * above for value, above in zip(work[below], top, strict=True)]
    found: dict[int, float] = {}
    for index in reversed(free):
        found[index] = (work[index][-1] - _sum(work[index], found)) / work[index][index]
    return found


def _sum(row: list[float], factors: dict[int, float]) -> float:
    return sum(row[index] * factor for index, factor in factors.items())
