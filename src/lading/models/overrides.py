"""Explicit values in place of a card's: the user's word is the last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from msgspec.structs import replace

from lading.models.card import Card, Limits, TokenFacts
from lading.models.rows import check_card

V = TypeVar("V")


def with_overrides(
    card: Card,
    *,
    window_tokens: int | None = None,
    max_output_tokens: int | None = None,
    read: float | None = None,
    write: float | Mapping[int, float] | None = None,
    counter: str | None = None,
    multiplier: float | None = None,
    margin: float | None = None,
) -> Card:
    """The card with every given value in place of its own.

    ``read`` and ``write`` are relative to base input; one number for ``write`` holds for each time to live
    of the card. Another ``counter`` starts from multiplier 1.0, because a multiplier belongs to its counter.
    Raises ModelError naming the field for a value that makes no sense.
    """
    limits = Limits(
        window_tokens=_given(window_tokens, card.limits.window_tokens),
        max_output_tokens=_given(max_output_tokens, card.limits.max_output_tokens),
    )
    prior = card.tokens.multiplier if counter in (None, card.tokens.counter) else 1.0
    tokens = TokenFacts(
        counter=card.tokens.counter if counter is None else counter,
        multiplier=_given(multiplier, prior),
        margin=_given(margin, card.tokens.margin),
    )
    prices = replace(card.prices, read=_given(read, card.prices.read), write=_write_prices(card, write))
    return check_card(replace(card, limits=limits, tokens=tokens, prices=prices))


def _given(value: V | None, otherwise: V) -> V:
    return otherwise if value is None else value


def _write_prices(card: Card, write: float | Mapping[int, float] | None) -> dict[int, float]:
    if write is None:
        return card.prices.write
    if isinstance(write, Mapping):
        return dict(write)
    return dict.fromkeys(card.prices.write or {card.cache.ttl_s or 300: write}, write)
