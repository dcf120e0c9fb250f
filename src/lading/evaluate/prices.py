"""Prices of a model's tokens in USD, from its card."""

from __future__ import annotations

from msgspec import Struct

from lading.economics import Rates, Usage, rates_for
from lading.models.card import Card

UNPRICED = "unknown"
"""Provider of the card that stands in for a model without one; its price is a unit, not a price."""


class Price(Struct, frozen=True):
    """USD for tokens of input by kind, and of output."""

    rates: Rates
    base_usd: float
    """Of one input token that passes uncached."""
    token_usd: float
    """Of one output token."""

    def input(self, usage: Usage) -> float:
        """Price an input."""
        return usage.cost(self.rates) * self.base_usd

    def output(self, tokens: int) -> float:
        """Price an output."""
        return tokens * self.token_usd

    def rewriting(self, tokens: int) -> float:
        """Price tokens that are written to the cache again, beyond reading them there."""
        return tokens * max(self.rates.write - self.rates.read, 0.0) * self.base_usd


def find_price(card: Card, rates: Rates | None = None) -> Price | None:
    """The price of a model, for the time its cache lives by default; ``rates`` in place of the card's own. None
    where no price in USD is known."""
    prices = card.prices
    if card.provider == UNPRICED or prices.output_usd is None:
        return None
    own = rates_for(prices.read, prices.write, ttl_s=card.cache.ttl_s)
    return Price(rates or own, prices.input_usd / 1e6, prices.output_usd / 1e6)
