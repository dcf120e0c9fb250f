"""The messages and turns that open-multi-agent counts.

All results of one message stand in one message of the user there; here each may be a message of its own. An
assistant message with calls and the results that follow are one turn, any other message is a turn of its own.
``sliding-window``: the newest messages stay, a notice takes the place of all others behind the head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from lading.compaction import Pressure
from lading.compaction.cutting import carried, cut_points
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import Message, ToolResult, user_text


class Said(Struct, frozen=True):
    """One message as open-multi-agent counts them: the positions ``start`` to ``end``, which is not in it."""

    start: int
    end: int
    is_assistant: bool
    has_calls: bool
    has_results: bool


def said(messages: Sequence[Message], start: int) -> list[Said]:
    """The messages from ``start`` on, as open-multi-agent counts them."""
    found: list[Said] = []
    for position in range(start, len(messages)):
        message = messages[position]
        has_results = bool(message.results)
        if has_results and found and found[-1].has_results:
            found[-1] = Said(found[-1].start, position + 1, False, False, True)
        else:
            is_assistant = message.role == "assistant"
            found.append(Said(position, position + 1, is_assistant, bool(message.calls), has_results))
    return found


def turns(rest: Sequence[Said]) -> list[tuple[int, int]]:
    """Where each turn starts, and of how many messages it is."""
    found: list[tuple[int, int]] = []
    for index, one in enumerate(rest):
        if one.has_results and index and rest[index - 1].has_calls:
            found[-1] = found[-1][0], 2
        else:
            found.append((one.start, 1))
    return found


def behind_cuts(view: View) -> int:
    """The position behind the head and what stands for messages that left before: where the rest begins."""
    position = view.head
    while position < len(view) and view.items[position].kind in ("dropped", "summarised"):
        position += 1
    return position


def legal_cut(view: View, position: int, *, pressure: Pressure) -> int | None:
    """The latest position up to this one at which the history may be cut; None where nothing would leave."""
    behind = behind_cuts(view)
    points = [point for point in cut_points(view, pressure) if behind < point <= position]
    return points[-1] if points else None


def called_by(messages: Sequence[Message]) -> Mapping[tuple[int, str], str]:
    """The tool that each result is of, by the result's position and call id."""
    names: dict[str, str] = {}
    found: dict[tuple[int, str], str] = {}
    for position, message in enumerate(messages):
        names.update((call.id, call.name) for call in message.calls)
        for result in message.results:
            found[position, result.call_id] = tool_of(result, names)
    return found


def tool_of(result: ToolResult, names: Mapping[str, str]) -> str:
    """The tool that a result is of, by the names of calls; empty where nobody says it."""
    return names.get(result.call_id) or result.name


def cut_to_window(view: View, max_turns: int, *, pressure: Pressure) -> Draft | None:
    """The draft that keeps the newest turns of ``2 * max_turns`` messages or one more; None while there are no
    more of them, and where ``max_turns`` is 0 or less."""
    rest = said(view.messages, behind_cuts(view))
    most = 2 * max_turns
    if max_turns <= 0 or len(rest) <= most:
        return None
    found = turns(rest)
    wanted, kept, older = len(view), 0, list(found)
    while kept < most:
        wanted, size = older.pop()
        kept += size
    position = legal_cut(view, wanted, pressure=pressure)
    if position is None:
        return None
    first, last = view.items[view.head].entry, view.last_entry(position)
    pointer = pressure.address(f"{first}-{last}")
    removed = sum(start < position for start, _ in found)
    notice = (
        f"[Earlier conversation history truncated — {removed} turn(s) removed] "
        f"With those before, {last - first + 1} messages, kept at {pointer}"
    )
    shown = (user_text(notice), *carried(view, position, pressure=pressure))
    return Draft("dropped", first, last, shown, f"sliding-window: more than {max_turns} turns", (pointer,))
