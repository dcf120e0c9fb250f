"""Parts of messages that give way one by one: what stays of each, and the edits that this makes."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction import Pressure
from lading.history.log import Draft, EditKind
from lading.history.view import View
from lading.messages import Message, Text, ToolResult

DELEGATE = "delegate_to_agent"
"""Results of this tool are another agent's whole answer: no rule shortens them."""
COMPRESSED_MARK = "[Tool output compressed"
COMPACTED_MARK = "[Tool result:"
NAME_CHARS = 40
"""Of a tool's name no more is shown."""


class Shorter(Struct, frozen=True):
    """How a message is shown from now on."""

    message: Message
    kind: EditKind
    reason: str


def may_leave(result: ToolResult, tool: str, *, least_chars: int, chars: int) -> bool:
    """Whether a rule may take a result of so many characters away: no error, nothing delegated, not done yet."""
    marked = result.text.startswith((COMPRESSED_MARK, COMPACTED_MARK))
    return not (result.is_error or tool == DELEGATE or marked or chars < least_chars)


def noted(result: ToolResult, mark: str, *, pointer: str) -> ToolResult:
    """The result with a mark and a pointer in place of what it said."""
    return replace(result, parts=(Text(f"{mark} Kept at {pointer}"),))


def address_at(view: View, position: int, *, pressure: Pressure) -> str:
    """The address of what the item there stands for."""
    first, last = _entries(view, position)
    return pressure.address(str(first) if first == last else f"{first}-{last}")


def drafts(view: View, shorter: Mapping[int, Shorter], *, pressure: Pressure) -> list[Draft]:
    """One draft for each entry of which something is shown shorter."""
    found: dict[int, Draft] = {}
    for position, one in shorter.items():
        first, last = _entries(view, position)
        if first in found:
            continue
        start, end = view.span(first, first)
        shown = tuple(shorter[at].message if at in shorter else view.items[at].message for at in range(start, end))
        kinds = {shorter[at].kind for at in range(start, end) if at in shorter}
        kind: EditKind = "cleared" if "cleared" in kinds else "clipped"
        found[first] = Draft(kind, first, last, shown, one.reason, (address_at(view, position, pressure=pressure),))
    return list(found.values())


def _entries(view: View, position: int) -> tuple[int, int]:
    first = view.items[position].entry
    return first, view.last_entry(view.span(first, first)[1])
