"""The constants of the memory's search, each chosen on two conversations of LoCoMo and measured on the third.

A constant that was fitted to these conversations alone would do worse on the one left out than its other values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import fmean
from types import ModuleType
from typing import NamedTuple

from lading.memory import neighbourhood, retrieval, scoring

Recalls = Mapping[str, tuple[float, ...]]
"""Recall by budget of each conversation."""


class Constant(NamedTuple):
    """A constant and the values that are tried for it, the shipped one among them."""

    name: str
    modules: tuple[ModuleType, ...]
    values: tuple[float, ...]

    @property
    def shipped(self) -> float:
        """Its value in the package."""
        return float(getattr(self.modules[0], self.name))


CONSTANTS = (
    Constant("MOST_GAP_S", (neighbourhood,), (600.0, 1_800.0, 7_200.0)),
    Constant("RAISE", (scoring,), (1.0, 1.25, 1.5, 2.0)),
    Constant("REACH", (neighbourhood, retrieval), (1, 2, 3)),
)


class LeftOut(NamedTuple):
    """What the other conversations choose for one, and what that gives there."""

    constant: str
    conversation: str
    chosen: float
    by_budget: tuple[float, ...]
    shipped: tuple[float, ...]
    """With the value of the package."""


@contextmanager
def changed(constant: Constant, value: float) -> Iterator[None]:
    """Give a constant another value for a while."""
    before = constant.shipped
    number = type(getattr(constant.modules[0], constant.name))
    try:
        for module in constant.modules:
            setattr(module, constant.name, number(value))
        yield
    finally:
        for module in constant.modules:
            setattr(module, constant.name, number(before))


def leave_out(constant: str, by_value: Mapping[float, Recalls], *, shipped: float) -> list[LeftOut]:
    """For each conversation choose the value that is best on the others, by their mean recall over all budgets; of
    equally good ones the first."""
    found = []
    for left in by_value[shipped]:

        def of_others(value: float, left: str = left) -> float:
            return fmean(fmean(recall) for name, recall in by_value[value].items() if name != left)

        chosen = max(by_value, key=of_others)
        found.append(LeftOut(constant, left, chosen, by_value[chosen][left], by_value[shipped][left]))
    return found


def check_constants(
    measure: Callable[[], Recalls], *, advance: Callable[[], object], constants: Sequence[Constant] = CONSTANTS
) -> list[LeftOut]:
    """Measure with each value of each constant, and leave each conversation out."""
    found = []
    for constant in constants:
        by_value: dict[float, Recalls] = {}
        for value in constant.values:
            with changed(constant, value):
                by_value[value] = measure()
            advance()
        found += leave_out(constant.name, by_value, shipped=constant.shipped)
    return found
