"""Cap a tool's output on arrival, to its head, its tail and a mark between them; replace used results by a short
mark before each request (``compress_tool_results``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from lading.compaction import Arrival, Pressure
from lading.compaction.admission import find_admission_cap
from lading.compaction.basic import admit as clip_enormous
from lading.compaction.clipping import HEAD_SHARE
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import Message, Part, Text, ToolResult
from lading.presets.open_multi_agent.shortening import (
    COMPRESSED_MARK,
    ShortenedMessage,
    can_remove,
    find_address,
    replace_with_note,
)
from lading.presets.open_multi_agent.sizes import count_result_chars, is_text_only
from lading.presets.open_multi_agent.turns import find_tool, group_messages, map_result_tools

REASON = "compress_tool_results: a used result"
MARK_CHARS = 33
"""Length of the mark without its number."""


def excerpt(text: str, max_chars: int) -> str:
    """Cut a text to ``max_chars`` characters: of the space that the mark leaves, 70 % from its start and the
    rest from its end. If the mark does not fit, the start alone."""
    if len(text) <= max_chars:
        return text
    room = max_chars - MARK_CHARS - len(str(len(text)))
    if room <= 0:
        return text[:max_chars]
    head = int(room * HEAD_SHARE)
    mark = f"\n\n[...truncated {len(text) - room} characters...]\n\n"
    return f"{text[:head]}{mark}{text[len(text) - (room - head) :]}"


def cap_outputs(
    arrival: Arrival, pressure: Pressure, *, max_chars: int | None, by_tool: Mapping[str, int]
) -> Draft | None:
    """Draft the cut of text-only results to the limit on their tool, in ``by_tool``, or to ``max_chars``.

    Restored content stays unchanged. A result, or a call, that is above its share of the window is clipped.
    """
    item, view = arrival.item, arrival.view
    if not item.clearable_tokens:
        return clip_enormous(arrival, pressure)
    by_tool = {**by_tool, **{tool.name: tool.max_output_chars for tool in arrival.tools if tool.max_output_chars}}
    names = _find_tool_names(arrival) if by_tool else {}
    pointer = pressure.address(str(item.entry))
    parts: list[Part] = []
    for part in item.message.parts:
        if isinstance(part, ToolResult):
            most = by_tool.get(find_tool(part, names), max_chars)
            part = part if most is None else _cut_result(part, most, pointer)
        parts.append(part)
    message = item.message.with_parts(tuple(parts))
    tokens = pressure.count(message)
    if tokens >= item.tokens or tokens > find_admission_cap(arrival, pressure):
        return clip_enormous(arrival, pressure)
    shown = view.with_message(item, message)
    return Draft("clipped", item.entry, item.entry, shown, "a tool's output above its cap", (pointer,))


def _cut_result(result: ToolResult, most: int, pointer: str) -> ToolResult:
    text = result.text
    if not is_text_only(result) or len(text) <= most:
        return result
    return replace(result, parts=(Text(f"{excerpt(text, most)}\n[Original: {pointer}]"),))


def _find_tool_names(arrival: Arrival) -> dict[str, str]:
    """Return the names of the calls that this message may answer, by call id."""
    view = arrival.view
    position = view.span(arrival.item.entry, arrival.item.entry)[0]
    while position and view.items[position].message.role != "assistant":
        position -= 1
    return {call.id: call.name for call in view.items[position].message.calls}


def compress_results(
    view: View, messages: Sequence[Message], *, min_chars: int, pressure: Pressure
) -> dict[int, ShortenedMessage]:
    """Return the compressed results of more than ``min_chars`` characters before the newest message with results,
    by position."""
    carrying = [one.start for one in group_messages(messages, 0) if one.has_results]
    tools = map_result_tools(messages)
    found: dict[int, ShortenedMessage] = {}
    for position in range(view.head, carrying[-1] if carrying else 0):
        if not view.items[position].clearable_tokens:
            continue
        pointer = find_address(view, position, pressure=pressure)
        parts: list[Part] = []
        for part in messages[position].parts:
            if isinstance(part, ToolResult):
                chars = count_result_chars(part)
                if can_remove(part, tools[position, part.call_id], least_chars=min_chars + 1, chars=chars):
                    part = replace_with_note(
                        part, f"{COMPRESSED_MARK} — {chars} chars, already processed]", pointer=pointer
                    )
            parts.append(part)
        message = messages[position].with_parts(tuple(parts))
        if pressure.count(message) < view.items[position].tokens:
            found[position] = ShortenedMessage(message, "cleared", REASON)
    return found
