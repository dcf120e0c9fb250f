from __future__ import annotations

import pytest

from lading.errors import ModelError
from lading.models.catalog import find_card
from lading.models.overrides import with_overrides

CARD = find_card("claude-sonnet-4-5")[0]


def test_nothing_given_changes_nothing() -> None:
    assert with_overrides(CARD) == CARD


def test_each_given_value_wins() -> None:
    card = with_overrides(CARD, window_tokens=32_000, max_output_tokens=1_000, read=0.5, margin=0.0, multiplier=2.0)
    assert (card.limits.window_tokens, card.limits.max_output_tokens) == (32_000, 1_000)
    assert (card.prices.read, card.tokens.margin, card.tokens.multiplier) == (0.5, 0.0, 2.0)
    assert card.prices.write == CARD.prices.write
    assert card.conduct == CARD.conduct


def test_one_write_price_holds_for_each_lifetime() -> None:
    assert with_overrides(CARD, write=1.5).prices.write == {300: 1.5, 3600: 1.5}
    assert with_overrides(CARD, write={60: 1.1}).prices.write == {60: 1.1}
    assert with_overrides(find_card("qwen3:8b")[0], read=0.1, write=1.25).prices.write == {300: 1.25}


def test_a_multiplier_belongs_to_its_counter() -> None:
    assert CARD.tokens.multiplier > 1
    assert with_overrides(CARD, counter="cl100k").tokens.multiplier == 1.0
    assert with_overrides(CARD, counter="cl100k", multiplier=1.3).tokens.multiplier == 1.3
    assert with_overrides(CARD, counter=CARD.tokens.counter).tokens == CARD.tokens


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"window_tokens": 0}, "limits"),
        ({"read": 0.0}, r"prices\.read"),
        ({"write": 0.2}, r"prices\.write"),
        ({"margin": 1.0}, r"tokens\.margin"),
        ({"multiplier": float("nan")}, r"tokens\.multiplier"),
    ],
)
def test_a_senseless_value_is_refused(value: dict[str, float], field: str) -> None:
    with pytest.raises(ModelError, match=f"claude-sonnet-4-5.*{field}"):
        with_overrides(
            CARD,
            window_tokens=int(value["window_tokens"]) if "window_tokens" in value else None,
            read=value.get("read"),
            write=value.get("write"),
            margin=value.get("margin"),
            multiplier=value.get("multiplier"),
        )
