from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.budget import Budget, allocate
from lading.errors import InputError
from lading.models.card import Card, Limits, Prices, TokenFacts

CARD = Card("m", "p", "mid", Limits(200_000, 64_000), TokenFacts("o200k", margin=0.05), Prices(3.0))


def test_what_is_not_given_comes_from_the_card() -> None:
    budget = allocate(CARD)
    assert budget == Budget(200_000, 50_000, 10_000)
    assert budget.room_tokens == 140_000


def test_the_default_reserve_is_the_whole_output_where_the_window_has_room_for_it() -> None:
    assert allocate(CARD, window_tokens=1_000_000).output_reserve_tokens == 64_000


def test_the_reserve_is_absolute_and_capped_by_the_longest_output() -> None:
    assert allocate(CARD, output_reserve_tokens=8_000).output_reserve_tokens == 8_000
    assert allocate(CARD, output_reserve_tokens=100_000).output_reserve_tokens == 64_000


def test_nothing_reserved_when_nothing_is_generated() -> None:
    assert allocate(CARD, window_tokens=8_000, output_reserve_tokens=0, margin_tokens=0).room_tokens == 8_000


@pytest.mark.parametrize(
    "sizes",
    [
        {"window_tokens": 0},
        {"window_tokens": -1},
        {"output_reserve_tokens": -1},
        {"margin_tokens": -1},
        {"window_tokens": 1000, "output_reserve_tokens": 600, "margin_tokens": 400},
        {"window_tokens": 1, "output_reserve_tokens": 0, "margin_tokens": 1},
    ],
)
def test_a_window_without_room_for_input_is_refused_with_advice(sizes: dict[str, int]) -> None:
    with pytest.raises(InputError, match="Give a larger window or a smaller reserve"):
        allocate(CARD, **sizes)


SIZES = st.none() | st.integers(-10, 300_000)


@given(SIZES, SIZES, SIZES)
def test_every_budget_leaves_room_and_adds_up(window: int | None, reserve: int | None, margin: int | None) -> None:
    try:
        budget = allocate(CARD, window_tokens=window, output_reserve_tokens=reserve, margin_tokens=margin)
    except InputError:
        return
    assert budget.room_tokens > 0
    assert min(budget.output_reserve_tokens, budget.margin_tokens) >= 0
    assert budget.output_reserve_tokens <= CARD.limits.max_output_tokens
    sizes = budget.room_tokens + budget.output_reserve_tokens + budget.margin_tokens
    assert sizes == budget.window_tokens == (CARD.limits.window_tokens if window is None else window)
