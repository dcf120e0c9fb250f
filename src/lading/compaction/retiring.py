"""Large results that were used leave between folds, while little stands behind them."""

from __future__ import annotations

from lading.compaction import Pressure
from lading.compaction.clearing import consumed_before
from lading.compaction.digesting import digested_tokens
from lading.economics import due, edit_price, rent
from lading.view import Item, View

LARGE_TOKENS = 1_000
USED_ROUNDS = 3
"""So many requests show a result whole. In recorded sessions the next call used a value of 56 % of the results of
300 tokens and more, the three after it of 11, 8 and 7 %, each later one of 3 %."""


def retired(view: View, pressure: Pressure, *, start: int, most_calls: float) -> list[Item]:
    """The results from ``start`` on that pay if they become digests now, as many as together do.

    They have paid when the rent of the calls that carried them has reached the price, which must be earned back
    within ``most_calls``.
    """
    sent_tokens = view.tokens_before(min(pressure.sent_items, len(view)))
    rounds, paid, gone, inserted, paying = USED_ROUNDS, 0.0, 0, 0, 0
    found: list[Item] = []
    for position in range(consumed_before(view, rounds) - 1, start - 1, -1):
        item = view.items[position]
        rounds += item.message.role == "assistant"
        if item.clearable_tokens < LARGE_TOKENS or item.kind == "digested":
            continue
        tokens = digested_tokens(item)
        found.append(item)
        gone += item.tokens
        inserted += tokens
        paid += rent(pressure.rates, removable_tokens=item.tokens - tokens) * rounds
        cached = max(sent_tokens - view.tokens_before(position) - gone, 0)
        price = edit_price(pressure.rates, cached_suffix_tokens=cached, inserted_tokens=inserted)
        if due(paid, price) and price <= rent(pressure.rates, removable_tokens=gone - inserted) * most_calls:
            paying = len(found)
    return found[:paying]
