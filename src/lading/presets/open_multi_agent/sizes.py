"""How open-multi-agent measures: characters, and four of them to a token.

The system prompt, the schemas of tools and the names and ids of calls count nothing there.
"""

from __future__ import annotations

from collections.abc import Iterable

from lading import jsonbytes
from lading.messages import File, Message, Opaque, Part, Reasoning, ResultPart, Text, ToolCall, ToolResult

IMAGE_CHARS = 64
"""What a picture counts as a part of a message."""
MEDIA_CHARS = 32
"""What a picture or file in a result counts beside its data, type and name."""
CHARS_A_TOKEN = 4


def estimated_tokens(messages: Iterable[Message]) -> int:
    """Tokens of the messages as open-multi-agent estimates them, system messages left out."""
    chars = sum(_part_chars(part) for message in messages if message.role != "system" for part in message.parts)
    return -(-chars // CHARS_A_TOKEN)


def result_chars(result: ToolResult) -> int:
    """Characters of a result: its text; of one with other parts, their data too."""
    if is_plain(result):
        return len(result.text)
    return sum(map(_result_part_chars, result.parts))


def is_plain(result: ToolResult) -> bool:
    """Whether a result is text alone."""
    return all(isinstance(part, Text) for part in result.parts)


def _part_chars(part: Part) -> int:
    if isinstance(part, Text | Reasoning):
        return len(part.text)
    if isinstance(part, ToolCall):
        return len(part.arguments)
    if isinstance(part, ToolResult):
        return result_chars(part)
    return IMAGE_CHARS


def _result_part_chars(part: ResultPart) -> int:
    if isinstance(part, Text):
        return len(part.text)
    if isinstance(part, Opaque):
        return len(jsonbytes.dump_value(part))
    name = part.name if isinstance(part, File) else ""
    return len(part.data or part.url) + len(part.media_type) + len(name) + MEDIA_CHARS
