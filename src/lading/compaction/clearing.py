"""Clear used tool results: the call stays, the result becomes a short note with a pointer."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from lading.compaction import Pressure
from lading.history.log import Draft
from lading.history.view import Item, View
from lading.messages import Message, Part, Text, ToolResult

NOTE_TOKENS = 30
"""Approximate tokens of a note; a result must have well more to be worth clearing."""
MOST_NAME_CHARS = 64
"""A longer name of a tool is left out of notes."""


def label_tool(tool: str) -> str:
    """Return a tool's name for a note, or … if it is too long: part of a name would name no tool."""
    return tool if len(tool) <= MOST_NAME_CHARS else "…"


def clear(view: View, items: Iterable[Item], *, reason: str, pressure: Pressure) -> list[Draft]:
    """Draft an edit for each entry whose results are worth clearing and get shorter by it."""
    entries = dict.fromkeys(item.entry for item in items if is_worth_clearing(item))
    drafts = [_clear_entry(view, entry, reason, pressure) for entry in entries]
    return [draft for draft in drafts if draft is not None]


def is_worth_clearing(item: Item) -> bool:
    """Return whether clearing frees at least as many tokens as the note adds."""
    return item.clearable_tokens >= 2 * NOTE_TOKENS * len(item.message.results) > 0


def stays_whole(result: ToolResult, message: Message, *, pressure: Pressure) -> bool:
    """Return whether a result beside larger ones in its message has too few tokens to be shortened."""
    if len(message.results) == 1 or any(not isinstance(part, Text) for part in result.parts):
        return False
    return pressure.count_text(result.text) < 2 * NOTE_TOKENS


def _clear_entry(view: View, entry: int, reason: str, pressure: Pressure) -> Draft | None:
    last = view.last_shown(entry)
    pointer = pressure.address_of(entry, last)
    start, end = view.span(entry, entry)
    shown: list[Message] = []
    saved = 0
    for item in view.items[start:end]:
        message = _replace_results(item, pointer, pressure) if is_worth_clearing(item) else item.message
        saved += item.tokens - pressure.count(message) if message is not item.message else 0
        shown.append(message)
    return Draft("cleared", entry, last, tuple(shown), reason, (pointer,)) if saved > 0 else None


def _replace_results(item: Item, pointer: str, pressure: Pressure) -> Message:
    several = len(item.message.results) > 1
    parts: list[Part] = []
    for part in item.message.parts:
        if isinstance(part, ToolResult) and not stays_whole(part, item.message, pressure=pressure):
            of = f" of {label_tool(part.name)}" if part.name else ""
            size = "" if several else f" ({item.clearable_tokens:,} tokens)"
            part = replace(part, parts=(Text(f"[Result{of} removed after use{size}. Original: {pointer}]"),))
        parts.append(part)
    return item.message.with_parts(tuple(parts))
