"""Read recorded trajectories, one session a line: ``id``, ``messages`` in OpenAI's chat format, and other fields.

In addition to OpenAI's fields a message may have ``is_error`` (of a tool result) and ``timestamp``. ``tools`` are
OpenAI's schemas or null; ``tools_observed`` are the called names, as a list, or each with its arguments' names.
``usage`` lists the usage of single calls by ``message_index``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from lading.messages import Message, ToolResult
from lading.sources.agents import rewrite_other_agents
from lading.sources.billing import read_usage
from lading.sources.decoding import decode_messages, decode_tools
from lading.sources.opentools import make_open_tools
from lading.sources.recording import JsonLine, RecordedUsage, Recording, Report, Source
from lading.sources.times import parse_time
from lading.wire import Wire, find_wire

_OWN_FIELDS = frozenset({"is_error", "timestamp"})
_REPLY_FIELDS = frozenset({"response", "choices"})


def recognises(values: Sequence[Any]) -> bool:
    """Whether one of the values has ``tools_observed``, or is a session with an id and not a request with reply."""
    return any(
        isinstance(value, dict)
        and isinstance(value.get("messages"), list)
        and ((isinstance(value.get("id"), str) and _REPLY_FIELDS.isdisjoint(value)) or "tools_observed" in value)
        for value in values
    )


def read(lines: Iterable[JsonLine], report: Report) -> Iterator[Recording]:
    """Read one recording per line."""
    chat = find_wire("openai_chat")
    for line in lines:
        record = line.value
        if not isinstance(record, dict) or not isinstance(record.get("messages"), list):
            report(line.number, "Left out: not a session, for it has no list of messages.")
        elif recording := _read_session(record, chat, report, line=line.number):
            yield recording


def _read_session(record: Mapping[str, Any], chat: Wire, report: Report, *, line: int) -> Recording | None:
    raw = record["messages"]
    read, lines = [_remove_own_fields(item) for item in raw], [line] * len(raw)
    messages, indices = decode_messages(read, chat, report=report, lines=lines)
    if not messages:
        report(line, "Left out: there is no message in it.")
        return None
    usage = tuple(_read_bills(record.get("usage"), raw, report, line=line))
    billed_s = {bill.message_index: bill.at_s for bill in usage}
    tools = decode_tools(record.get("tools"), chat, report=report, line=line)
    identity, model = record.get("id"), record.get("model")
    return Recording(
        id=identity if isinstance(identity, str) else "",
        messages=rewrite_other_agents(
            [_mark_error(message, raw[index]) for message, index in zip(messages, indices, strict=True)]
        ),
        raw_indices=tuple(indices),
        tools=tools or make_open_tools(record.get("tools_observed")),
        tools_recorded=bool(tools),
        model=model if isinstance(model, str) else "",
        times_s=tuple(parse_time(raw[index].get("timestamp")) or billed_s.get(index) for index in indices),
        usage=usage,
        origin=SOURCE.name,
    )


def _remove_own_fields(raw: Any) -> Any:
    """Remove the fields that a chat body cannot have."""
    if not isinstance(raw, dict) or _OWN_FIELDS.isdisjoint(raw):
        return raw
    return {key: value for key, value in raw.items() if key not in _OWN_FIELDS}


def _mark_error(message: Message, raw: Mapping[str, Any]) -> Message:
    if raw.get("is_error") is not True:
        return message
    return message.with_parts(
        tuple(replace(part, is_error=True) if isinstance(part, ToolResult) else part for part in message.parts)
    )


def _read_bills(bills: Any, raw: Sequence[Any], report: Report, *, line: int) -> Iterator[RecordedUsage]:
    if bills is not None and not isinstance(bills, list):
        report(line, "The usage was left out: it is not a list.")
        return
    for number, bill in enumerate(bills or ()):
        index = bill.get("message_index") if isinstance(bill, dict) else None
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(raw):
            report(line, f"Usage {number} was left out: its message_index names no message.")
        elif usage := read_usage(bill, message_index=index):
            yield usage


SOURCE = Source("trajectories", recognises, read)
