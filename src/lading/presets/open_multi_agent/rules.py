"""The rules of ``compact``: above a number of tokens, shorten older messages part by part."""

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
    ShortenedMessage,
    can_remove,
    find_address,
    replace_with_note,
)
from lading.presets.open_multi_agent.sizes import count_result_chars
from lading.presets.open_multi_agent.turns import group_messages, map_result_tools


def compact_by_rules(
    view: View, messages: Sequence[Message], *, options: Compact, pressure: Pressure
) -> dict[int, ShortenedMessage]:
    """Return the shortened messages before the newest ``preserve_recent_turns`` pairs, by position."""
    tools = map_result_tools(messages)
    found: dict[int, ShortenedMessage] = {}
    end = min(_find_boundary(messages, view.head, pairs=options.preserve_recent_turns), newest_block(messages))
    for position in range(view.head, end):
        item, message = view.items[position], messages[position]
        if item.kind in ("dropped", "summarised", "pinned", "payload"):
            continue
        pointer = find_address(view, position, pressure=pressure)
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolResult) and item.clearable_tokens:
                part = _compact_result(part, tools[position, part.call_id], pointer, options)
            elif isinstance(part, Image):
                part = Text(f"[Image compacted] Kept at {pointer}")
            elif isinstance(part, Text) and item.kind != "clipped":
                part = _compact_text(part, message, pointer, options)
            parts.append(part)
        shorter = message.with_parts(tuple(parts))
        if pressure.count(shorter) < pressure.count(message):
            reason = f"compact: more than {options.max_tokens} tokens"
            found[position] = ShortenedMessage(shorter, "cleared" if message.results else "clipped", reason)
    return found


def _find_boundary(messages: Sequence[Message], head: int, *, pairs: int) -> int:
    """Return the start of the newest pairs; the end of the opening messages if there are fewer."""
    rest = group_messages(messages, head)
    index, position = len(rest) - 1, len(messages)
    while pairs and index > 0:
        if rest[index - 1].is_assistant and not rest[index].is_assistant:
            pairs, index, position = pairs - 1, index - 1, rest[index - 1].start
        index -= 1
    return head if pairs else position


def _compact_result(result: ToolResult, tool: str, pointer: str, options: Compact) -> ToolResult:
    chars = count_result_chars(result)
    if not can_remove(result, tool, least_chars=options.min_tool_result_chars, chars=chars):
        return result
    return replace_with_note(
        result, f"{COMPACTED_MARK} {tool[:NAME_CHARS]} — {chars} chars, compacted]", pointer=pointer
    )


def _compact_text(part: Text, message: Message, pointer: str, options: Compact) -> Text:
    if message.role != "assistant" or len(part.text) < options.min_text_block_chars:
        return part
    if any(isinstance(other, Reasoning) for other in message.parts):
        # A provider that signed its reasoning may check the text beside it.
        return part
    kept, size = part.text[: options.text_block_excerpt_chars], len(part.text)
    return Text(f"{kept}... [truncated — {size} chars total] Kept at {pointer}")
