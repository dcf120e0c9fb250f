"""What a message says, as one text."""

from __future__ import annotations

from collections.abc import Iterator

from lading import jsonbytes
from lading.messages import Message, Text, ToolCall, ToolResult
from lading.needles import strings


def said(message: Message) -> str:
    """All text of a message: words, names and arguments of calls, results."""
    return "\n".join(_said(message))


def said_by(call: ToolCall) -> str:
    """The arguments of a call as they read: where their JSON escapes something, its strings a line each."""
    if "\\" not in call.arguments:
        return call.arguments
    try:
        return "\n".join(strings(jsonbytes.load(call.arguments)))
    except ValueError:
        return call.arguments


def _said(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, ToolCall):
            yield f"{part.name} {said_by(part)}"
        elif isinstance(part, ToolResult):
            yield part.text
