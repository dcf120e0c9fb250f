"""Raw messages of a file through a wire, so that a bad one costs only itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lading.errors import WireError
from lading.messages import Conversation, Message, Tool
from lading.sources.recording import Report
from lading.wire import Wire


def decode_message(raw: Any, wire: Wire) -> Message:
    """A message by itself. Raises WireError."""
    (message,) = wire.decode({"messages": [raw]}).messages
    return message


def decode_messages(
    raw: Sequence[Any], wire: Wire, *, report: Report, line: int
) -> tuple[tuple[Message, ...], tuple[int, ...]]:
    """The messages and, for each, its index in ``raw``. What is no message is reported and left out."""
    try:
        return wire.decode({"messages": list(raw)}).messages, tuple(range(len(raw)))
    except WireError:
        sound = tuple(_sound(raw, wire, report=report, line=line))
    return wire.decode({"messages": [raw[index] for index in sound]}).messages, sound


def _sound(raw: Sequence[Any], wire: Wire, *, report: Report, line: int) -> Iterator[int]:
    for index, item in enumerate(raw):
        try:
            decode_message(item, wire)
        except WireError as error:
            report(line, f"A message was left out: {_at(error, 'messages', index)}")
        else:
            yield index


def decode_tools(raw: Any, wire: Wire, *, report: Report, line: int) -> tuple[Tool, ...]:
    """The tool schemas. What is none is reported and left out."""
    if not isinstance(raw, list):
        if raw is not None:
            report(line, "The tools were left out: they are not a list.")
        return ()
    tools: list[Tool] = []
    for index, item in enumerate(raw):
        try:
            tools.extend(wire.decode({"messages": [], "tools": [item]}).tools)
        except WireError as error:
            report(line, f"A tool was left out: {_at(error, 'tools', index)}")
    return tuple(tools)


def decode_envelope(body: Mapping[str, Any], wire: Wire, *, report: Report, line: int) -> Conversation:
    """Everything of a body but its messages. A field in a bad shape is reported and left out."""
    envelope = {**body, "messages": []}
    try:
        return wire.decode(envelope)
    except WireError as error:
        report(line, f"System text and parameters were left out: {error}")
    return Conversation(tools=decode_tools(body.get("tools"), wire, report=report, line=line), origin=wire.name)


def _at(error: WireError, field: str, index: int) -> str:
    """What is wrong, with the place in the file's list instead of that in a list of one."""
    return str(error).replace(f"{field}.0", f"{field}.{index}", 1)
