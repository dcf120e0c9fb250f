"""Budgets by section: the golden values of the documents, and what holds of all."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.errors import InputError
from lading.models.card import Tier
from lading.models.profiles import CONTEXT_PROFILES
from lading.presets.reactive_agents.section_budget import (
    RESERVE_OUTPUT,
    SHARES,
    Sections,
    allocate_budget,
    estimate_tokens,
    track_usage,
    would_exceed_budget,
)

TIERS = st.sampled_from(sorted(CONTEXT_PROFILES))
ITERATIONS = st.integers(0, 40)


@pytest.mark.parametrize(
    ("total", "tier", "iteration", "limit", "reserve", "available", "sections"),
    [
        (128_000, "mid", 3, 10, 15_360, 87_040, Sections(6_963, 8_704, 12_185, 41_779, 4_352)),
        (128_000, "mid", 9, 10, 15_360, 87_040, Sections(6_963, 6_963, 10_444, 45_260, 4_352)),
        (32_768, "local", 0, 8, 4_587, 18_350, Sections(917, 917, 1_835, 10_092, 917)),
        (100_000, "large", 0, 12, 12_750, 72_250, Sections(7_225, 8_670, 13_005, 30_345, 2_167)),
        (100_000, "large", 11, 12, 12_750, 72_250, Sections(7_225, 7_225, 10_837, 33_957, 2_167)),
        (200_000, "frontier", 14, 15, 21_600, 158_400, Sections(15_840, 20_592, 26_928, 71_280, 4_752)),
    ],
)
def test_golden_budgets(
    total: int, tier: Tier, iteration: int, limit: int, reserve: int, available: int, sections: Sections
) -> None:
    budget = allocate_budget(total, CONTEXT_PROFILES[tier], iteration=iteration, max_iterations=limit)
    assert (budget.reserve_output, budget.available, budget.allocated) == (reserve, available, sections)
    assert budget.remaining == available


@pytest.mark.parametrize(
    ("tier", "shares", "reserve"),
    [
        ("local", Sections(5, 5, 10, 55, 5), 20),
        ("mid", Sections(8, 10, 15, 47, 5), 15),
        ("large", Sections(10, 12, 18, 42, 3), 15),
        ("frontier", Sections(10, 15, 20, 40, 3), 12),
    ],
)
def test_golden_shares(tier: Tier, shares: Sections, reserve: int) -> None:
    """At the last iteration the history has five points more, of which tools gave two and memory three."""
    profile = msgspec.structs.replace(CONTEXT_PROFILES[tier], context_budget_percent=100)
    first, last = (allocate_budget(10_000, profile, iteration=at, max_iterations=10) for at in (0, 9))
    assert first.reserve_output == last.reserve_output == reserve * 100
    per_cent = first.available // 100
    assert first.allocated == Sections(*(share * per_cent for share in msgspec.structs.astuple(shares)))
    moved = Sections(
        shares.system, shares.tool_schemas - 2, shares.memory - 3, shares.step_history + 5, shares.rules
    )
    assert last.allocated == Sections(*(share * per_cent for share in msgspec.structs.astuple(moved)))


def test_points_move_to_the_history_as_a_run_goes_on() -> None:
    def points(iteration: int, limit: int) -> tuple[int, int, int]:
        # 10,000 available tokens of the tier: a point is 100 of them.
        found = allocate_budget(14_706, CONTEXT_PROFILES["mid"], iteration=iteration, max_iterations=limit)
        assert 9_990 <= found.available <= 10_010
        return tuple(  # type: ignore[return-value]
            round(tokens / 100)
            for tokens in (found.allocated.tool_schemas, found.allocated.memory, found.allocated.step_history)
        )

    # With 11 iterations a tenth of the way is half a point, and half of the boost, rounded down, is the tools'.
    moved = [points(iteration, 11) for iteration in range(0, 11, 2)]
    assert moved == [(10, 15, 47), (10, 14, 48), (9, 14, 49), (9, 13, 50), (8, 13, 51), (8, 12, 52)]
    assert points(3, 11) == points(2, 11)
    # A run of one iteration makes no progress.
    assert points(0, 1) == points(7, 1) == points(7, 0) == (10, 15, 47)


def test_tools_keep_2_points_and_memory_5_however_small_a_share_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SHARES, "local", Sections(0, 3, 6, 80, 0))
    budget = allocate_budget(10_000, CONTEXT_PROFILES["local"], iteration=9, max_iterations=10)
    per_cent = budget.available // 100
    assert (budget.allocated.tool_schemas, budget.allocated.memory) == (2 * per_cent, 5 * per_cent)


def test_the_share_that_belongs_to_no_section_is_told() -> None:
    budget = allocate_budget(128_000, CONTEXT_PROFILES["mid"], iteration=3, max_iterations=10)
    assert budget.unallocated == 13_057
    for tier, shares in SHARES.items():
        assert shares.total + RESERVE_OUTPUT[tier] == 100


@given(total=st.integers(0, 2_000_000), tier=TIERS, iteration=ITERATIONS, limit=st.integers(0, 20))
def test_whole_shares_out_all_that_is_available(total: int, tier: Tier, iteration: int, limit: int) -> None:
    budget = allocate_budget(total, CONTEXT_PROFILES[tier], iteration=iteration, max_iterations=limit, whole=True)
    assert budget.unallocated == 0
    assert min(getattr(budget.allocated, field) for field in Sections.__struct_fields__) >= 0


@given(total=st.integers(0, 2_000_000), tier=TIERS, iteration=ITERATIONS, limit=st.integers(0, 20))
def test_sections_and_reserve_never_exceed_the_window(total: int, tier: Tier, iteration: int, limit: int) -> None:
    budget = allocate_budget(total, CONTEXT_PROFILES[tier], iteration=iteration, max_iterations=limit)
    assert budget.allocated.total <= budget.available
    assert budget.available + budget.reserve_output <= total


def test_an_iteration_beyond_the_last_counts_as_the_last() -> None:
    profile = CONTEXT_PROFILES["local"]
    last = allocate_budget(32_768, profile, iteration=7, max_iterations=8)
    assert allocate_budget(32_768, profile, iteration=700, max_iterations=8) == last
    assert last.allocated.tool_schemas == last.available * 3 // 100


def test_the_real_window_is_divided_whatever_the_tier() -> None:
    small, large = (
        allocate_budget(n, CONTEXT_PROFILES["mid"], iteration=0, max_iterations=1) for n in (8_000, 200_000)
    )
    assert (small.available, large.available) == (5_440, 136_000)


def test_tokens_are_a_quarter_of_the_characters_rounded_up() -> None:
    assert [estimate_tokens("x" * length) for length in (0, 1, 4, 5, 8)] == [0, 1, 1, 2, 2]


def test_what_was_taken_in_counts_for_its_section() -> None:
    budget = allocate_budget(1_000, CONTEXT_PROFILES["local"], iteration=0, max_iterations=1)
    half = "x" * (budget.allocated.memory * 2)
    assert not would_exceed_budget(budget, "memory", text=half)
    once = track_usage(budget, "memory", text=half)
    assert budget.remaining - once.remaining == estimate_tokens(half)
    assert not would_exceed_budget(once, "memory", text=half)
    assert would_exceed_budget(track_usage(once, "memory", text=half), "memory", text="x")
    assert not would_exceed_budget(once, "rules", text="x")


@pytest.mark.parametrize(("total", "iteration"), [(-1, 0), (100, -1)])
def test_numbers_below_zero_are_refused(total: int, iteration: int) -> None:
    with pytest.raises(InputError):
        allocate_budget(total, CONTEXT_PROFILES["mid"], iteration=iteration, max_iterations=10)
