"""Prices of a model's tokens in USD, from its card."""

from __future__ import annotations

from msgspec import Struct

from lading.economics import Rates, Usage, rates_for
from lading.models.card import Card

UNPRICED = "unknown"
"""Provider of the fallback card for models without one; its prices are units, not USD."""


class Price(Struct, frozen=True):
    """Prices of input tokens by kind, and of output tokens, in USD."""

    rates: Rates
    base_usd: float
    """Price of one uncached input token."""
    token_usd: float
    """Price of one output token."""

    def input(self, usage: Usage) -> float:
        """Price an input."""
        return usage.cost(self.rates) * self.base_usd

    def output(self, tokens: int) -> float:
        """Price an output."""
        return tokens * self.token_usd

    def rewrite(self, tokens: int) -> float:
        """Price tokens written to the cache again, in excess of reading them."""
        return tokens * max(self.rates.write - self.rates.read, 0.0) * self.base_usd


def find_price(card: Card, rates: Rates | None = None) -> Price | None:
    """Find the prices of a model; None where no price in USD is known. ``rates`` override those of the card, which
    are for its default cache lifetime."""
    prices = card.prices
    if card.provider == UNPRICED or prices.output_usd is None:
        return None
    own = rates_for(prices.read, prices.write, ttl_s=card.cache.ttl_s)
    return Price(rates or own, prices.input_usd / 1e6, prices.output_usd / 1e6)
