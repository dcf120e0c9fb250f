"""Digest a large used result: what it was, the lines that the user asked for, that the model used or that matter by
their kind, and a pointer. It is digested between compactions, while few cached tokens follow it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache

from msgspec.structs import replace

from lading.compaction import Pressure
from lading.compaction.admission import find_terms
from lading.compaction.clearing import is_worth_clearing, label_tool, stays_whole
from lading.compaction.identifiers import find_mentions
from lading.economics import edit_price, is_due, rent
from lading.history.log import Draft
from lading.history.view import Item, View
from lading.messages import Message, Text, ToolResult
from lading.shrink import Target
from lading.shrink.shrinking import reduce

USED_ROUNDS = 3
"""Requests that show a result whole. In recorded sessions the next call used a value of 56 % of the results of 300
tokens and more, the three after it of 11, 8 and 7 %, each later one of 3 %."""
DIGEST_SHARE = 0.12
"""The lines of a digest have at most this share of the tokens of the result ..."""
DIGEST_ROOT = 3
"""... and at most this times their square root: the used part of a result does not grow with it."""
DIGEST_TOKENS = 60
"""Approximate tokens of a digest beside its lines."""
MOST_USED = 40
"""Values that the model named after it had read a result; the newest N are looked for in it."""


def digest(view: View, items: Iterable[Item], *, reason: str, pressure: Pressure) -> list[Draft]:
    """Draft digests for the entries whose results get shorter by it; existing digests are left alone."""
    entries = dict.fromkeys(item.entry for item in items if is_worth_clearing(item) and item.kind != "digested")
    drafts = (_digest_entry(view, entry, reason, pressure) for entry in entries)
    return [draft for draft in drafts if draft is not None]


def estimate_digest_tokens(item: Item) -> int:
    """Estimate the tokens of a message after its results are digested."""
    return item.tokens if item.kind == "digested" else _limit_lines(item.tokens) + DIGEST_TOKENS


def _limit_lines(tokens: int) -> int:
    return int(min(tokens * DIGEST_SHARE, math.sqrt(tokens) * DIGEST_ROOT))


def _digest_entry(view: View, entry: int, reason: str, pressure: Pressure) -> Draft | None:
    last, wanted = view.last_shown(entry), _find_wanted(view, entry)
    pointer = pressure.address_of(entry, last)
    start, end = view.span(entry, entry)
    items = view.items[start:end]
    # Digest the result in the log, which has more than an earlier edit left of it.
    raw = [result.text for _, original in view.raw_between(entry, entry) for result in original.results]
    shown = [result.text for item in items for result in item.message.results]
    texts = iter(raw if len(raw) == len(shown) else shown)
    messages: list[Message] = []
    saved = 0
    for item in items:
        whole = {id(result): next(texts) for result in item.message.results}
        message = item.message
        if is_worth_clearing(item):
            parts = (
                _shorten(part, whole[id(part)], pointer, wanted, pressure)
                if isinstance(part, ToolResult) and not stays_whole(part, message, pressure=pressure)
                else part
                for part in message.parts
            )
            message = message.with_parts(tuple(parts))
            saved += item.tokens - pressure.count(message)
        messages.append(message)
    return Draft("digested", entry, last, tuple(messages), reason, (pointer,)) if saved > 0 else None


def _find_wanted(view: View, entry: int) -> tuple[str, ...]:
    """Return the values that the model named after it had read the entry, the newest first, and the words of the
    user messages before it and of the newest."""
    messages = (message for _, message in view.raw_between(entry, view.last_entry(len(view))))
    replies = (message for message in messages if message.role == "assistant")
    used = dict.fromkeys(mention.value for reply in replies for mention in find_mentions(reply))
    return (*[*reversed(used)][:MOST_USED], *find_terms(view, entry), *find_terms(view))


def _shorten(
    result: ToolResult, text: str, pointer: str, wanted: tuple[str, ...], pressure: Pressure
) -> ToolResult:
    count = cache(pressure.count_text)
    tokens = count(text)
    of = f" of {label_tool(result.name)}" if result.name else ""
    note = f"[Excerpt of a result{of} ({tokens:,} tokens, {len(text.splitlines()):,} lines). Original: {pointer}]"
    lines = reduce(text, Target(_limit_lines(count(result.text)), wanted), count=count)
    return replace(result, parts=(Text(f"{note}\n{lines.text}" if lines else note),))


def find_retired(view: View, pressure: Pressure, *, start: int, most_calls: float) -> list[Item]:
    """Return the results from ``start`` on that are worth digesting now, as many as pay together.

    They pay when the carrying cost of the calls that showed them has reached the price of the edit, and when the
    price is earned back within ``most_calls``. Only large results are read.
    """
    sent_tokens, end = (
        view.tokens_before(min(pressure.sent_items, len(view.items))),
        view.find_consumed_end(USED_ROUNDS),
    )
    paid, gone, inserted, paying = 0.0, 0, 0, 0
    found: list[Item] = []
    for position in view.list_large(start, end):
        item = view.items[position]
        if item.kind == "digested":
            continue
        rounds = USED_ROUNDS + view.replies_before(end) - view.replies_before(position)
        tokens = estimate_digest_tokens(item)
        found.append(item)
        gone += item.tokens
        inserted += tokens
        paid += rent(pressure.rates, removable_tokens=item.tokens - tokens) * rounds
        cached = max(sent_tokens - view.tokens_before(position) - gone, 0)
        price = edit_price(pressure.rates, cached_suffix_tokens=cached, inserted_tokens=inserted)
        if is_due(paid, price) and price <= rent(pressure.rates, removable_tokens=gone - inserted) * most_calls:
            paying = len(found)
    return found[:paying]
