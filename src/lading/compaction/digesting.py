"""Digests: of a large result that was used, what it was, the lines that were asked for, that the model used or that
matter by their kind, and a pointer. A large one leaves between compactions, while little stands behind it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache

from msgspec.structs import replace

from lading.compaction import Pressure
from lading.compaction.admission import terms
from lading.compaction.clearing import consumed_before, named, worth_clearing
from lading.compaction.identifiers import mentions
from lading.economics import due, edit_price, rent
from lading.history.log import Draft
from lading.history.view import Item, View
from lading.messages import Message, Part, Text, ToolResult, user_text
from lading.shrink import Wish
from lading.shrink.shrinking import reduce

LARGE_TOKENS = 1_000
USED_ROUNDS = 3
"""So many requests show a result whole. In recorded sessions the next call used a value of 56 % of the results of
300 tokens and more, the three after it of 11, 8 and 7 %, each later one of 3 %."""
DIGEST_SHARE = 0.12
"""The lines in a digest take no more than this share of the result ..."""
DIGEST_ROOT = 3
"""... and no more tokens than this times its root: what is used of a result does not grow with it."""
DIGEST_TOKENS = 60
"""About what a digest takes beside that."""
MOST_USED = 40
"""So many values that the model named after it had read a result are looked for in it, the newest first."""


def digest(view: View, items: Iterable[Item], *, reason: str, pressure: Pressure) -> list[Draft]:
    """A draft for each entry among the items whose results get shorter by a digest; digests are left alone."""
    entries = dict.fromkeys(item.entry for item in items if worth_clearing(item) and item.kind != "digested")
    drafts = (_digested(view, entry, reason, pressure) for entry in entries)
    return [draft for draft in drafts if draft is not None]


def digested_tokens(item: Item) -> int:
    """About what a message takes whose results are digests."""
    return item.tokens if item.kind == "digested" else _most_tokens(item.tokens) + DIGEST_TOKENS


def _most_tokens(tokens: int) -> int:
    return int(min(tokens * DIGEST_SHARE, math.sqrt(tokens) * DIGEST_ROOT))


def _digested(view: View, entry: int, reason: str, pressure: Pressure) -> Draft | None:
    pointer, wanted = pressure.address(str(entry)), _wanted(view, entry)
    start, end = view.span(entry, entry)
    items = view.items[start:end]
    # A digest of what the tool said tells more than one of what an earlier edit left of it.
    raw = [result.text for _, said in view.raw_between(entry, entry) for result in said.results]
    shown = [result.text for item in items for result in item.message.results]
    texts = iter(raw if len(raw) == len(shown) else shown)
    messages: list[Message] = []
    saved = 0
    for item in items:
        told = {id(result): next(texts) for result in item.message.results}
        message = item.message
        if worth_clearing(item):
            parts = (_shorter(part, told.get(id(part), ""), pointer, wanted, pressure) for part in message.parts)
            message = message.with_parts(tuple(parts))
            saved += item.tokens - pressure.count(message)
        messages.append(message)
    return Draft("digested", entry, entry, tuple(messages), reason, (pointer,)) if saved > 0 else None


def _wanted(view: View, entry: int) -> tuple[str, ...]:
    """What the model named after it had read the entry, the newest first, and the words of the requests that stand
    before it and newest."""
    after = (said for _, said in view.raw_between(entry, view.last_entry(len(view))) if said.role == "assistant")
    used = dict.fromkeys(mention.value for said in after for mention in mentions(said))
    return (*[*reversed(used)][:MOST_USED], *terms(view, entry), *terms(view))


def _shorter(part: Part, text: str, pointer: str, wanted: tuple[str, ...], pressure: Pressure) -> Part:
    if not isinstance(part, ToolResult):
        return part

    @cache
    def count(text: str) -> int:
        return pressure.count(user_text(text))

    tokens = count(text)
    of = f" of {named(part.name)}" if part.name else ""
    note = f"[Excerpt of a result{of} ({tokens:,} tokens, {len(text.splitlines()):,} lines). Original: {pointer}]"
    lines = reduce(text, Wish(_most_tokens(count(part.text)), wanted), count=count)
    return replace(part, parts=(Text(f"{note}\n{lines.text}" if lines else note),))


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
