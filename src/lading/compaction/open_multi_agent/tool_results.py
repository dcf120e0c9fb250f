"""``compress_tool_results``: tool results that were used become a short mark, before each request."""

from __future__ import annotations

from collections.abc import Sequence

from lading.compaction import Pressure
from lading.compaction.open_multi_agent.shortening import COMPRESSED_MARK, Shorter, address_at, may_leave, noted
from lading.compaction.open_multi_agent.sizes import result_chars
from lading.compaction.open_multi_agent.turns import called_by, said
from lading.messages import Message, Part, ToolResult
from lading.view import View

REASON = "compress_tool_results: a used result"


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
