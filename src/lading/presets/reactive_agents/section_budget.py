"""The window by sections, as Reactive Agents divides it: shares by tier that move to the history as a run goes on.

Its shares sum to 100 with the output reserve, but the reserve is taken off first; so 12 to 20 % of what is left
belongs to no section. ``allocate_budget`` gives these numbers as they are; with ``whole`` the same proportions
share out all that is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import astuple, replace

from lading.errors import InputError
from lading.models.card import Tier
from lading.models.profiles import Profile

Section: TypeAlias = Literal["system", "tool_schemas", "memory", "step_history", "rules"]
MOST_BOOST = 5
"""At the last iteration the history has so many percentage points more than at the first."""
LEAST_TOOLS, LEAST_MEMORY = 2, 5
"""Percentage points that tools and memory keep."""


class Sections(Struct, frozen=True):
    """Tokens of each section."""

    system: int = 0
    tool_schemas: int = 0
    memory: int = 0
    step_history: int = 0
    rules: int = 0

    @property
    def total(self) -> int:
        """Tokens of all sections."""
        return sum(astuple(self))


SHARES: Mapping[Tier, Sections] = {
    "local": Sections(5, 5, 10, 55, 5),
    "mid": Sections(8, 10, 15, 47, 5),
    "large": Sections(10, 12, 18, 42, 3),
    "frontier": Sections(10, 15, 20, 40, 3),
}
"""Per cent of what is left after the output reserve."""
RESERVE_OUTPUT: Mapping[Tier, int] = {"local": 20, "mid": 15, "large": 15, "frontier": 12}
"""Per cent of what may be used of the window."""


class SectionBudget(Struct, frozen=True):
    """What each section may take and has taken, in tokens."""

    reserve_output: int
    available: int
    allocated: Sections
    used: Sections = Sections()

    @property
    def remaining(self) -> int:
        """What is left of ``available``, below zero when more was used."""
        return self.available - self.used.total

    @property
    def unallocated(self) -> int:
        """What belongs to no section."""
        return self.available - self.allocated.total


def estimate_tokens(text: str) -> int:
    """Characters over four, rounded up. For budgets of sections only: requests are counted by ``tokens``."""
    return -(-len(text) // 4)


def allocate_budget(
    total_tokens: int, profile: Profile, *, iteration: int, max_iterations: int, whole: bool = False
) -> SectionBudget:
    """The budget of an iteration (from 0) of a run, for a window of ``total_tokens``.

    ``whole``: the sections share all that is available; what rounding leaves over goes to the history. An
    iteration beyond the last counts as the last. Raises InputError for numbers below zero.
    """
    if total_tokens < 0 or iteration < 0:
        raise InputError(f"A budget of {total_tokens} tokens at iteration {iteration}: give 0 or more of each.")
    usable = total_tokens * profile.context_budget_percent // 100
    reserve = usable * RESERVE_OUTPUT[profile.tier] // 100
    shares = _shares_at(SHARES[profile.tier], iteration, max_iterations)
    available, parts = usable - reserve, shares.total if whole else 100
    allocated = Sections(*(available * share // parts for share in astuple(shares)))
    left_over = available - allocated.total if whole else 0
    allocated = replace(allocated, step_history=allocated.step_history + left_over)
    return SectionBudget(reserve, available, allocated)


def track_usage(budget: SectionBudget, section: Section, *, text: str) -> SectionBudget:
    """The budget after a section took in this text, by ``estimate_tokens``."""
    taken = getattr(budget.used, section) + estimate_tokens(text)
    return replace(budget, used=replace(budget.used, **{section: taken}))


def would_exceed_budget(budget: SectionBudget, section: Section, *, text: str) -> bool:
    """Whether the section would hold more than it may with this text beside what it took in before."""
    taken: int = getattr(budget.used, section)
    allocated: int = getattr(budget.allocated, section)
    return taken + estimate_tokens(text) > allocated


def _shares_at(shares: Sections, iteration: int, max_iterations: int) -> Sections:
    boost = min(MOST_BOOST * iteration // (max_iterations - 1), MOST_BOOST) if max_iterations > 1 else 0
    from_tools = boost // 2
    return replace(
        shares,
        tool_schemas=max(shares.tool_schemas - from_tools, LEAST_TOOLS),
        memory=max(shares.memory - (boost - from_tools), LEAST_MEMORY),
        step_history=shares.step_history + boost,
    )
