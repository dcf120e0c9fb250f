"""``compact``: above a number of tokens, rules shorten what is old, part by part."""

from __future__ import annotations

from collections.abc import Sequence

from lading.compaction import Pressure
from lading.history.validity import newest_block
from lading.history.view import View
from lading.messages import Image, Message, Part, Reasoning, Text, ToolResult
from lading.presets.open_multi_agent.options import Compact
from lading.presets.open_multi_agent.shortening import (
    COMPACTED_MARK,
    NAME_CHARS,
    Shorter,
    address_at,
    may_leave,
    noted,
)
from lading.presets.open_multi_agent.sizes import result_chars
from lading.presets.open_multi_agent.turns import called_by, said


def compacted_by_rules(
    view: View, messages: Sequence[Message], *, options: Compact, pressure: Pressure
) -> dict[int, Shorter]:
    """What becomes of the messages before the newest ``preserve_recent_turns`` pairs, by position."""
    tools = called_by(messages)
    found: dict[int, Shorter] = {}
    end = min(_boundary(messages, view.head, pairs=options.preserve_recent_turns), newest_block(messages))
    for position in range(view.head, end):
        item, message = view.items[position], messages[position]
        if item.kind in ("dropped", "summarised", "pinned"):
            continue
        pointer = address_at(view, position, pressure=pressure)
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolResult) and item.clearable_tokens:
                part = _result(part, tools[position, part.call_id], pointer, options)
            elif isinstance(part, Image):
                part = Text(f"[Image compacted] Kept at {pointer}")
            elif isinstance(part, Text) and item.kind != "clipped":
                part = _said(part, message, pointer, options)
            parts.append(part)
        shorter = message.with_parts(tuple(parts))
        if pressure.count(shorter) < pressure.count(message):
            reason = f"compact: more than {options.max_tokens} tokens"
            found[position] = Shorter(shorter, "cleared" if message.results else "clipped", reason)
    return found


def _boundary(messages: Sequence[Message], head: int, *, pairs: int) -> int:
    """Where the newest pairs of an assistant's and a user's message begin; the head's end where there are fewer."""
    rest = said(messages, head)
    index, position = len(rest) - 1, len(messages)
    while pairs and index > 0:
        if rest[index - 1].is_assistant and not rest[index].is_assistant:
            pairs, index, position = pairs - 1, index - 1, rest[index - 1].start
        index -= 1
    return head if pairs else position


def _result(result: ToolResult, tool: str, pointer: str, options: Compact) -> ToolResult:
    chars = result_chars(result)
    if not may_leave(result, tool, least_chars=options.min_tool_result_chars, chars=chars):
        return result
    return noted(result, f"{COMPACTED_MARK} {tool[:NAME_CHARS]} — {chars} chars, compacted]", pointer=pointer)


def _said(part: Text, message: Message, pointer: str, options: Compact) -> Text:
    if message.role != "assistant" or len(part.text) < options.min_text_block_chars:
        return part
    if any(isinstance(other, Reasoning) for other in message.parts):
        # A provider that signed its reasoning may check what was said with it.
        return part
    kept, size = part.text[: options.text_block_excerpt_chars], len(part.text)
    return Text(f"{kept}... [truncated — {size} chars total] Kept at {pointer}")
