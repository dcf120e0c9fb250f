"""Divide the window into sections as Reactive Agents does: shares by tier that shift to the history during a run.

The document's shares include the output reserve in their 100 %, but the reserve is subtracted first; so 12 to 20 %
of the remainder belongs to no section. ``allocate_budget`` gives these numbers unchanged; with ``whole`` the
sections share all of the remainder in the same proportions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import astuple, replace

from lading.errors import InputError
from lading.models.card import Tier
from lading.models.profiles import ProfileLike, find_profile

Section: TypeAlias = Literal["system", "tool_schemas", "memory", "step_history", "rules"]
MOST_BOOST = 5
"""Percentage points that the history has gained by the last iteration."""
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
"""Percent of the tokens available after the output reserve."""
RESERVE_OUTPUT: Mapping[Tier, int] = {"local": 20, "mid": 15, "large": 15, "frontier": 12}
"""Percent of the usable window."""


class SectionBudget(Struct, frozen=True):
    """The allocated and used tokens of each section."""

    reserve_output: int
    available: int
    allocated: Sections
    used: Sections = Sections()

    @property
    def remaining(self) -> int:
        """Available tokens that are not used; negative if more were used."""
        return self.available - self.used.total

    @property
    def unallocated(self) -> int:
        """Available tokens that belong to no section."""
        return self.available - self.allocated.total


def estimate_tokens(text: str) -> int:
    """Estimate tokens as characters over four, rounded up; for section budgets only."""
    return -(-len(text) // 4)


def allocate_budget(
    total_tokens: int, profile: ProfileLike, iteration: int, max_iterations: int, *, whole: bool = False
) -> SectionBudget:
    """Allocate the budget of an iteration (from 0) for a window of ``total_tokens``.

    ``whole``: the sections share all available tokens; the rounding remainder goes to the history. An iteration
    beyond the last counts as the last. Raises InputError for negative numbers, and as ``find_profile`` does.
    """
    profile = find_profile(profile)
    if total_tokens < 0 or iteration < 0:
        raise InputError(f"A budget of {total_tokens} tokens at iteration {iteration}: give 0 or more of each.")
    usable = total_tokens * profile.context_budget_percent // 100
    reserve = usable * RESERVE_OUTPUT[profile.tier] // 100
    shares = _shift_shares(SHARES[profile.tier], iteration, max_iterations)
    available, parts = usable - reserve, shares.total if whole else 100
    allocated = Sections(*(available * share // parts for share in astuple(shares)))
    left_over = available - allocated.total if whole else 0
    allocated = replace(allocated, step_history=allocated.step_history + left_over)
    return SectionBudget(reserve, available, allocated)


def track_usage(budget: SectionBudget, section: Section, *, text: str) -> SectionBudget:
    """Return the budget with this text added to a section, by ``estimate_tokens``."""
    taken = getattr(budget.used, section) + estimate_tokens(text)
    return replace(budget, used=replace(budget.used, **{section: taken}))


def would_exceed_budget(budget: SectionBudget, section: Section, *, text: str) -> bool:
    """Return whether the section would exceed its budget with this text added."""
    taken: int = getattr(budget.used, section)
    allocated: int = getattr(budget.allocated, section)
    return taken + estimate_tokens(text) > allocated


def _shift_shares(shares: Sections, iteration: int, max_iterations: int) -> Sections:
    boost = min(MOST_BOOST * iteration // (max_iterations - 1), MOST_BOOST) if max_iterations > 1 else 0
    from_tools = boost // 2
    return replace(
        shares,
        tool_schemas=max(shares.tool_schemas - from_tools, LEAST_TOOLS),
        memory=max(shares.memory - (boost - from_tools), LEAST_MEMORY),
        step_history=shares.step_history + boost,
    )
