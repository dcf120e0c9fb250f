"""Shorten parts of messages one by one, and draft the edits for the shortened messages."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction import Pressure
from lading.history.log import Draft, EditKind
from lading.history.view import View
from lading.messages import Message, Text, ToolResult

DELEGATE = "delegate_to_agent"
"""Results of this tool are another agent's whole answer; no rule shortens them."""
COMPRESSED_MARK = "[Tool output compressed"
COMPACTED_MARK = "[Tool result:"
NAME_CHARS = 40
"""Longest visible tool name in a mark."""


class ShortenedMessage(Struct, frozen=True):
    """The shortened version of a message."""

    message: Message
    kind: EditKind
    reason: str


def can_remove(result: ToolResult, tool: str, *, least_chars: int, chars: int) -> bool:
    """Return whether a rule may remove a result of that length: not an error, not delegated, not removed before."""
    marked = result.text.startswith((COMPRESSED_MARK, COMPACTED_MARK))
    return not (result.is_error or tool == DELEGATE or marked or chars < least_chars)


def replace_with_note(result: ToolResult, mark: str, *, pointer: str) -> ToolResult:
    """Return the result with a mark and a pointer as its content."""
    return replace(result, parts=(Text(f"{mark} Kept at {pointer}"),))


def find_address(view: View, position: int, *, pressure: Pressure) -> str:
    """Return the address of the content that the item at that position represents."""
    return pressure.address_of(*_find_entries(view, position))


def draft_edits(view: View, shorter: Mapping[int, ShortenedMessage], *, pressure: Pressure) -> list[Draft]:
    """Draft one edit for each entry with a shortened message."""
    found: dict[int, Draft] = {}
    for position, one in shorter.items():
        first, last = _find_entries(view, position)
        if first in found:
            continue
        start, end = view.span(first, first)
        shown = tuple(shorter[at].message if at in shorter else view.items[at].message for at in range(start, end))
        kinds = {shorter[at].kind for at in range(start, end) if at in shorter}
        kind: EditKind = "cleared" if "cleared" in kinds else "clipped"
        found[first] = Draft(
            kind, first, last, shown, one.reason, (find_address(view, position, pressure=pressure),)
        )
    return list(found.values())


def _find_entries(view: View, position: int) -> tuple[int, int]:
    first = view.items[position].entry
    return first, view.last_entry(view.span(first, first)[1])
