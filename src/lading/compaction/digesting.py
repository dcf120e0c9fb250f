"""Digests: of a large result that was used, what it was, the lines that matter, the values it named, a pointer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from msgspec.structs import replace

from lading.compaction import Draft, Pressure
from lading.compaction.admission import terms
from lading.compaction.clearing import named, worth_clearing
from lading.compaction.identifiers import mentions
from lading.compaction.ledger import Ledger
from lading.messages import Message, Part, Text, ToolResult, user_text
from lading.shrink import Wish
from lading.shrink.shrinking import reduced
from lading.view import Item, View

DIGEST_SHARE = 0.12
"""A digest takes no more than this share of its result."""
DIGEST_TOKENS = 60
"""About what a digest takes beside that."""
LINES_SHARE = 0.5
"""Of a digest, what the lines of the result take; the values it named take the rest."""


def digest(view: View, items: Iterable[Item], *, reason: str, pressure: Pressure) -> list[Draft]:
    """A draft for each entry among the items whose results get shorter by a digest; digests are left alone."""
    entries = dict.fromkeys(item.entry for item in items if worth_clearing(item) and item.kind != "digested")
    drafts = (_digested(view, entry, reason, pressure) for entry in entries)
    return [draft for draft in drafts if draft is not None]


def digested_tokens(item: Item) -> int:
    """About what a message takes whose results are digests."""
    return item.tokens if item.kind == "digested" else int(item.tokens * DIGEST_SHARE) + DIGEST_TOKENS


def _digested(view: View, entry: int, reason: str, pressure: Pressure) -> Draft | None:
    pointer, wanted = pressure.address(str(entry)), tuple(terms(view))
    start, end = view.span(entry, entry)
    shown: list[Message] = []
    saved = 0
    for item in view.items[start:end]:
        message = item.message
        if worth_clearing(item):
            message = message.with_parts(tuple(_shorter(part, pointer, wanted, pressure) for part in message.parts))
            saved += item.tokens - pressure.count(message)
        shown.append(message)
    return Draft("digested", entry, entry, tuple(shown), reason, (pointer,)) if saved > 0 else None


def _shorter(part: Part, pointer: str, wanted: tuple[str, ...], pressure: Pressure) -> Part:
    if not isinstance(part, ToolResult):
        return part
    text = part.text

    @cache
    def count(text: str) -> int:
        return pressure.count(user_text(text))

    tokens = count(text)
    of = f" of {named(part.name)}" if part.name else ""
    note = f"[Excerpt of a result{of} ({tokens:,} tokens, {len(text.splitlines()):,} lines). Original: {pointer}]"
    most_tokens = int(tokens * DIGEST_SHARE)
    lines = reduced(text, Wish(int(most_tokens * LINES_SHARE), wanted), count=count)
    told = [note, lines.text] if lines else [note]
    left = most_tokens - (count(lines.text) if lines else 0)
    return replace(part, parts=(Text("\n".join([*told, *_named(part, left, count)])),))


def _named(part: ToolResult, most_tokens: int, count: Callable[[str], int]) -> list[str]:
    ledger = Ledger()
    ledger.add(0, mentions(Message("tool", (part,))))
    return ledger.lines(ledger.ranked(most=max(most_tokens, 0)), most_tokens=most_tokens, count=count)
