"""The cap on a tool's output when it comes in: head, tail and a mark between them.

``compress_tool_results``: tool results that were used become a short mark, before each request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from lading.compaction import Arrival, Pressure
from lading.compaction.admission import admission_cap
from lading.compaction.basic import admit as clip_enormous
from lading.compaction.clipping import HEAD_SHARE
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import Message, Part, Text, ToolResult
from lading.presets.open_multi_agent.shortening import COMPRESSED_MARK, Shorter, address_at, may_leave, noted
from lading.presets.open_multi_agent.sizes import is_plain, result_chars
from lading.presets.open_multi_agent.turns import called_by, said, tool_of

REASON = "compress_tool_results: a used result"
MARK_CHARS = 33
"""What the mark takes beside its number."""


def excerpt(text: str, max_chars: int) -> str:
    """At most ``max_chars`` characters of a text: seven tenths of what the mark leaves from its start, the rest
    from its end; where the mark takes all of it, the start alone."""
    if len(text) <= max_chars:
        return text
    room = max_chars - MARK_CHARS - len(str(len(text)))
    if room <= 0:
        return text[:max_chars]
    head = int(room * HEAD_SHARE)
    mark = f"\n\n[...truncated {len(text) - room} characters...]\n\n"
    return f"{text[:head]}{mark}{text[len(text) - (room - head) :]}"


def capped(
    arrival: Arrival, pressure: Pressure, *, max_chars: int | None, by_tool: Mapping[str, int]
) -> Draft | None:
    """The draft that brings results of text alone down to the cap of their tool, or to ``max_chars``.

    What was restored stays. A result that takes more than its share of the window all the same is clipped.
    """
    item, view = arrival.item, arrival.view
    if not item.clearable_tokens:
        return None
    names = _names(arrival) if by_tool else {}
    pointer = pressure.address(str(item.entry))
    parts: list[Part] = []
    for part in item.message.parts:
        if isinstance(part, ToolResult):
            most = by_tool.get(tool_of(part, names), max_chars)
            part = part if most is None else _cut(part, most, pointer)
        parts.append(part)
    message = item.message.with_parts(tuple(parts))
    tokens = pressure.count(message)
    if tokens >= item.tokens or tokens > admission_cap(arrival, pressure):
        return clip_enormous(arrival, pressure)
    shown = view.with_message(item, message)
    return Draft("clipped", item.entry, item.entry, shown, "a tool's output above its cap", (pointer,))


def _cut(result: ToolResult, most: int, pointer: str) -> ToolResult:
    text = result.text
    if not is_plain(result) or len(text) <= most:
        return result
    return replace(result, parts=(Text(f"{excerpt(text, most)}\n[Original: {pointer}]"),))


def _names(arrival: Arrival) -> dict[str, str]:
    """The tools of the calls that this message may answer: those of the assistant message before it."""
    view = arrival.view
    position = view.span(arrival.item.entry, arrival.item.entry)[0]
    while position and view.items[position].message.role != "assistant":
        position -= 1
    return {call.id: call.name for call in view.items[position].message.calls}


def compressed(
    view: View, messages: Sequence[Message], *, min_chars: int, pressure: Pressure
) -> dict[int, Shorter]:
    """What becomes of the results before the newest message that carries any, by position."""
    carrying = [one.start for one in said(messages, 0) if one.has_results]
    tools = called_by(messages)
    found: dict[int, Shorter] = {}
    for position in range(view.head, carrying[-1] if carrying else 0):
        if not view.items[position].clearable_tokens:
            continue
        pointer = address_at(view, position, pressure=pressure)
        parts: list[Part] = []
        for part in messages[position].parts:
            if isinstance(part, ToolResult):
                chars = result_chars(part)
                if may_leave(part, tools[position, part.call_id], least_chars=min_chars, chars=chars):
                    part = noted(part, f"{COMPRESSED_MARK} — {chars} chars, already processed]", pointer=pointer)
            parts.append(part)
        message = messages[position].with_parts(tuple(parts))
        if pressure.count(message) < view.items[position].tokens:
            found[position] = Shorter(message, "cleared", REASON)
    return found
