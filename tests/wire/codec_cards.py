"""Cards for tests of the codecs: only their conduct matters there."""

from __future__ import annotations

from typing import Any

from lading.models.card import Card, Conduct, Limits, Prices, TokenFacts


def card(**conduct: Any) -> Card:
    """A card with this conduct."""
    return Card(
        name="model",
        provider="maker",
        tier="mid",
        limits=Limits(100_000, 4_000),
        tokens=TokenFacts("cl100k"),
        prices=Prices(1.0),
        conduct=Conduct(**conduct),
    )


PLAIN = card()
