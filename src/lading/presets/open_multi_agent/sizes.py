"""Estimate sizes as open-multi-agent does: in characters, four to a token.

The system prompt, tool schemas and the names and ids of calls are not counted.
"""

from __future__ import annotations

from collections.abc import Iterable

from lading import jsonbytes
from lading.messages import File, Message, Opaque, Part, Reasoning, ResultPart, Text, ToolCall, ToolResult

IMAGE_CHARS = 64
"""Size of a picture as a part of a message."""
MEDIA_CHARS = 32
"""Size of a picture or file in a result beside its data, type and name."""
CHARS_A_TOKEN = 4


def estimate_tokens(messages: Iterable[Message]) -> int:
    """Estimate the tokens of the messages as open-multi-agent does, without system messages."""
    chars = sum(
        _count_part_chars(part) for message in messages if message.role != "system" for part in message.parts
    )
    return -(-chars // CHARS_A_TOKEN)


def count_result_chars(result: ToolResult) -> int:
    """Count the characters of a result: of its text, and of the data of any other parts."""
    if is_text_only(result):
        return len(result.text)
    return sum(map(_count_result_part_chars, result.parts))


def is_text_only(result: ToolResult) -> bool:
    """Return whether all parts of a result are text."""
    return all(isinstance(part, Text) for part in result.parts)


def _count_part_chars(part: Part) -> int:
    if isinstance(part, Text | Reasoning):
        return len(part.text)
    if isinstance(part, ToolCall):
        return len(part.arguments)
    if isinstance(part, ToolResult):
        return count_result_chars(part)
    return IMAGE_CHARS


def _count_result_part_chars(part: ResultPart) -> int:
    if isinstance(part, Text):
        return len(part.text)
    if isinstance(part, Opaque):
        return len(jsonbytes.dump_value(part))
    name = part.name if isinstance(part, File) else ""
    return len(part.data or part.url) + len(part.media_type) + len(name) + MEDIA_CHARS
