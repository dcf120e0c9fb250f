"""Messages and turns as open-multi-agent counts them.

There, all results of one message are in one user message; here each may be a message of its own. An assistant
message with calls and the results that follow are one turn, any other message is a turn by itself.
``sliding-window`` keeps the newest messages and replaces all others after the opening ones by a notice.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

from msgspec import Struct

from lading.compaction import Pressure
from lading.compaction.cutting import carry_over, carry_requests, find_cut_points
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import Message, ToolResult, user_text


class MessageGroup(Struct, frozen=True):
    """The messages from ``start`` up to ``end`` (exclusive) that open-multi-agent counts as one."""

    start: int
    end: int
    is_assistant: bool
    has_calls: bool
    has_results: bool


def group_messages(messages: Sequence[Message], start: int) -> list[MessageGroup]:
    """Group the messages from ``start`` on as open-multi-agent counts them."""
    found: list[MessageGroup] = []
    for position in range(start, len(messages)):
        message = messages[position]
        has_results = bool(message.results)
        if has_results and found and found[-1].has_results:
            found[-1] = MessageGroup(found[-1].start, position + 1, False, False, True)
        else:
            is_assistant = message.role == "assistant"
            found.append(MessageGroup(position, position + 1, is_assistant, bool(message.calls), has_results))
    return found


def find_turns(rest: Sequence[MessageGroup]) -> list[tuple[int, int]]:
    """Return the start of each turn and its number of messages."""
    found: list[tuple[int, int]] = []
    for index, one in enumerate(rest):
        if one.has_results and index and rest[index - 1].has_calls:
            found[-1] = found[-1][0], 2
        else:
            found.append((one.start, 1))
    return found


class TurnStarts:
    """The entries at which the turns of a session begin, read as they arrive."""

    def __init__(self) -> None:
        self._entries: list[int] = []
        self._upto = -1
        self._takes_results = False

    def read(self, view: View) -> None:
        """Read the new messages of a view."""
        for entry, message in view.raw_between(self._upto + 1, view.last_entry(len(view))):
            has_results = bool(message.results)
            if not (has_results and self._takes_results):
                self._entries.append(entry)
            self._upto, self._takes_results = entry, has_results or bool(message.calls)

    def count(self, first: int, last: int) -> int:
        """Count the turns that begin among the entries ``first`` to ``last``."""
        return bisect_right(self._entries, last) - bisect_left(self._entries, first)


def find_rest_start(view: View) -> int:
    """Return the position after the opening messages and the replacements of messages removed earlier."""
    position = view.head
    while position < len(view) and view.items[position].kind in ("dropped", "summarised"):
        position += 1
    return position


def find_legal_cut(view: View, position: int, *, pressure: Pressure) -> int | None:
    """Return the latest legal cut up to ``position``; None if nothing would be removed."""
    behind = find_rest_start(view)
    points = [point for point in find_cut_points(view, pressure) if behind < point <= position]
    return points[-1] if points else None


def map_result_tools(messages: Sequence[Message]) -> Mapping[tuple[int, str], str]:
    """Return the tool of each result, by the result's position and call id."""
    names: dict[str, str] = {}
    found: dict[tuple[int, str], str] = {}
    for position, message in enumerate(messages):
        names.update((call.id, call.name) for call in message.calls)
        for result in message.results:
            found[position, result.call_id] = find_tool(result, names)
    return found


def find_tool(result: ToolResult, names: Mapping[str, str]) -> str:
    """Return the tool of a result, from the names of calls or its own; empty if unknown."""
    return names.get(result.call_id) or result.name


def cut_to_window(view: View, max_turns: int, *, pressure: Pressure) -> Draft | None:
    """Draft the edit that keeps the newest turns that together have ``2 * max_turns`` messages or one more; None
    if there are no more messages than that, or ``max_turns`` is 0 or less."""
    rest = group_messages(view.messages, find_rest_start(view))
    most = 2 * max_turns
    if max_turns <= 0 or len(rest) <= most:
        return None
    found = find_turns(rest)
    wanted, kept = len(view), 0
    while kept < most:
        wanted, size = found.pop()
        kept += size
    position = find_legal_cut(view, wanted, pressure=pressure)
    if position is None:
        return None
    first, last = view.items[view.head].entry, view.last_entry(position)
    pointer = pressure.address(f"{first}-{last}")
    starts: TurnStarts = view.readings.setdefault(TurnStarts, TurnStarts())
    starts.read(view)
    # The user's newest request is shown again, so its turn is not left out.
    carried = carry_requests(view, first, last=last, pressure=pressure)
    removed = starts.count(first, last) - sum(starts.count(entry, entry) for entry in carried)
    notice = (
        f"[Earlier conversation history truncated — {removed} turn(s) removed] "
        f"{last - first + 1} messages, kept at {pointer}"
    )
    shown = (user_text(notice), *carry_over(view, position, pressure=pressure))
    return Draft("dropped", first, last, shown, f"sliding-window: more than {max_turns} turns", (pointer,))
