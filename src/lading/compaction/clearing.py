"""Clearing consumed tool results: the call stays, the result becomes a short note with a pointer."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from lading.compaction import Pressure
from lading.history.log import Draft
from lading.history.view import Item, View
from lading.messages import Message, Part, Text, ToolResult

NOTE_TOKENS = 30
"""About what a note takes: a result must be well above it to be worth clearing."""
MOST_NAME_CHARS = 64
"""A longer name of a tool does not stand in notes."""


def named(tool: str) -> str:
    """A tool's name in a note: whole, or left out with … where it is longer than a note can bear. A piece of one
    would name no tool."""
    return tool if len(tool) <= MOST_NAME_CHARS else "…"


def clear(view: View, items: Iterable[Item], *, reason: str, pressure: Pressure) -> list[Draft]:
    """A draft for each entry among the items whose results are worth clearing and get shorter by it."""
    entries = dict.fromkeys(item.entry for item in items if worth_clearing(item))
    drafts = [_cleared(view, entry, reason, pressure) for entry in entries]
    return [draft for draft in drafts if draft is not None]


def worth_clearing(item: Item) -> bool:
    """Whether clearing frees at least as much as the note costs."""
    return item.clearable_tokens >= 2 * NOTE_TOKENS * len(item.message.results) > 0


def consumed_before(view: View, rounds: int = 1) -> int:
    """The position before which every result was followed by so many assistant messages."""
    position = len(view)
    while position and rounds:
        position -= 1
        rounds -= view.items[position].message.role == "assistant"
    return position


def _cleared(view: View, entry: int, reason: str, pressure: Pressure) -> Draft | None:
    pointer = pressure.address(str(entry))
    start, end = view.span(entry, entry)
    shown: list[Message] = []
    saved = 0
    for item in view.items[start:end]:
        message = _noted(item, pointer) if worth_clearing(item) else item.message
        saved += item.tokens - pressure.count(message) if message is not item.message else 0
        shown.append(message)
    return Draft("cleared", entry, entry, tuple(shown), reason, (pointer,)) if saved > 0 else None


def _noted(item: Item, pointer: str) -> Message:
    several = len(item.message.results) > 1
    parts: list[Part] = []
    for part in item.message.parts:
        if isinstance(part, ToolResult):
            of = f" of {named(part.name)}" if part.name else ""
            size = "" if several else f" ({item.clearable_tokens:,} tokens)"
            part = replace(part, parts=(Text(f"[Result{of} removed after use{size}. Original: {pointer}]"),))
        parts.append(part)
    return item.message.with_parts(tuple(parts))
