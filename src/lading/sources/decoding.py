"""Decode the raw messages and tools of a file one by one, so that a malformed one is all that is lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lading.errors import WireError
from lading.messages import Conversation, Message, Opaque, Tool
from lading.sources.recording import Report
from lading.wire import WIRES, Wire, find_wire
from lading.wire.layout import SURELY


def decode_message(raw: Any, wire: Wire) -> Message:
    """Decode one message: an item, or the list of its items where several may form one. Raises WireError."""
    (message,) = wire.read_items(raw if wire.layout.items.unites else [raw])
    return message


def decode_messages(
    raw: Sequence[Any], wire: Wire, *, report: Report, lines: Sequence[int]
) -> tuple[tuple[Message, ...], tuple[int, ...]]:
    """Decode the messages, and return the index of each in ``raw``. Malformed ones are reported and left out.
    ``raw``: as for ``decode_message``; ``lines``: the line of each."""
    try:
        return _decode_all(raw, wire), tuple(range(len(raw)))
    except WireError:
        decodable = tuple(_find_decodable(raw, wire, report=report, lines=lines))
    return _decode_all([raw[index] for index in decodable], wire), decodable


def _decode_all(raw: Sequence[Any], wire: Wire) -> tuple[Message, ...]:
    """Decode messages together where one may refer to another, else one by one. Raises WireError."""
    if wire.layout.items.unites:
        return tuple(decode_message(run, wire) for run in raw)
    return wire.read_items(raw)


def _find_decodable(raw: Sequence[Any], wire: Wire, *, report: Report, lines: Sequence[int]) -> Iterator[int]:
    field = wire.layout.items.field
    for index, item in enumerate(raw):
        try:
            decode_message(item, wire)
        except WireError as error:
            report(lines[index], f"A message was left out: {_correct_index(error, field, index)}")
        else:
            yield index


def report_other_formats(
    raw: Sequence[Any], decoded: Mapping[int, Message], *, wire: Wire, report: Report, lines: Sequence[int]
) -> None:
    """Report messages of a list that have parts of another format, which are kept without being understood."""
    found: dict[str, list[int]] = {}
    for index, message in decoded.items():
        if any(isinstance(part, Opaque) for part in message.parts):
            items = raw[index] if wire.layout.items.unites else [raw[index]]
            for name in {name for item in items if (name := _find_other_format(item, wire))}:
                found.setdefault(name, []).append(index)
    for name, indices in found.items():
        report(
            lines[indices[0]],
            f"The list is of several formats: read as {wire.name}, {len(indices)} of {len(raw)} messages have "
            f"parts of {name}, which are not read as calls, results or text.",
        )


def _find_other_format(item: Mapping[str, Any], wire: Wire) -> str:
    """Return the name of the format that an item is surely of; empty for the one that it is read as."""
    claims = {find_wire(name).layout.items.claim(item): name for name in reversed(WIRES)}
    surest = max(claims)
    return claims[surest] if surest >= SURELY and surest > wire.layout.items.claim(item) else ""


def decode_tools(raw: Any, wire: Wire, *, report: Report, line: int) -> tuple[Tool, ...]:
    """Decode the tool schemas. Malformed ones are reported and left out."""
    if not isinstance(raw, list):
        if raw is not None:
            report(line, "The tools were left out: they are not a list.")
        return ()
    tools: list[Tool] = []
    for index, item in enumerate(raw):
        try:
            tools.extend(wire.read_tools([item]))
        except WireError as error:
            report(line, f"A tool was left out: {_correct_index(error, 'tools', index)}")
    return tuple(tools)


def decode_envelope(body: Mapping[str, Any], wire: Wire, *, report: Report, line: int) -> Conversation:
    """Decode a body without its messages. If it is malformed, report that and decode only the tools."""
    envelope = {**body, wire.layout.items.field: []}
    try:
        return wire.decode(envelope)
    except WireError as error:
        report(line, f"System text and parameters were left out: {error}")
    return Conversation(tools=decode_tools(body.get("tools"), wire, report=report, line=line), origin=wire.name)


def _correct_index(error: WireError, field: str, index: int) -> str:
    """Return the error text with the index in the file's list in place of the index in a list of one."""
    return str(error).replace(f"{field}.0", f"{field}.{index}", 1)
