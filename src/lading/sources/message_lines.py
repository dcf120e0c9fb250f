"""Read files with one OpenAI chat message a line: the whole file is one session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lading.messages import Message
from lading.sources.agents import rewrite_other_agents
from lading.sources.decoding import decode_messages
from lading.sources.recording import JsonLine, Recording, Report, Source
from lading.wire import find_wire

NAME = "message_lines"
_ROLES = ("system", "developer", "user", "assistant", "tool", "function")


def recognises(values: Sequence[Any]) -> bool:
    """Whether one of the values is a chat message."""
    return any(
        isinstance(value, dict) and value.get("role") in _ROLES and ("content" in value or "tool_calls" in value)
        for value in values
    )


def _read(lines: Iterable[JsonLine], report: Report) -> Iterator[Recording]:
    wire = find_wire("openai_chat")
    messages: list[Message] = []
    indices: list[int] = []
    for position, line in enumerate(lines):
        found, _ = decode_messages([line.value], wire, report=report, line=line.number)
        messages += found
        indices += [position] * len(found)
    if messages:
        times_s = (None,) * len(messages)
        yield Recording("", tuple(rewrite_other_agents(messages)), tuple(indices), times_s=times_s, origin=NAME)


SOURCE = Source(NAME, recognises, _read)
