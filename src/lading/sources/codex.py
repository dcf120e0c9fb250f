"""Read session logs of Codex ("rollouts"): one event a line, items in OpenAI's Responses format.

Items that the model produced in one call become one message at the position of its first line. The system message
is the ``base_instructions`` of the first line. Of a compaction, only the items that are new in the history, its
summary, are read. Messages keep the order of the file, including those that the user later withdrew. Events for the
screen repeat items and are skipped, as are snapshots of settings and environment.

Codex repeats the usage of a call whenever it redraws: with an unchanged running total it is not a new call. A fork
or a sub-agent starts with a copy of its parent's lines, with the time of the copy; their usage is left out, because
it is the parent's.

Three versions are read: lines with a ``payload``; before September 2025 the bare items after a line with ``id``,
``timestamp`` and ``instructions``; before that one JSON object with ``session`` and ``items``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lading.errors import WireError
from lading.messages import Message, Part, Reasoning, Role, Text, Tool, ToolCall, ToolResult
from lading.sources.billing import read_usage
from lading.sources.opentools import is_legal_name
from lading.sources.recording import JsonLine, RecordedUsage, Recording, Report, Source
from lading.sources.response_items import decode_item
from lading.sources.times import parse_time
from lading.wire.templates import as_list, as_object, copy_json

NAME = "codex"
_COPY_GAP_S = 1.0
"""Copied lines follow each other faster than this; a model's call takes longer."""

_SESSION_EVENTS = ("session_meta", "response_item", "compacted", "turn_context", "inter_agent_communication")
_OTHER_EVENTS = (
    "event_msg",
    "token_usage_record",
    "world_state",
    "inter_agent_communication_metadata",
    "retained_context",
    "security_risk_score",
    "realtime_item",
)
_OLD_START = frozenset({"id", "timestamp", "instructions"})


def recognises(values: Sequence[Any]) -> bool:
    """Whether one of the values is an event of such a log, in any of its versions."""
    return any(isinstance(value, dict) and _is_event(value) for value in values)


def _is_event(value: Mapping[str, Any]) -> bool:
    if isinstance(value.get("payload"), dict):
        return value.get("type") in _SESSION_EVENTS + _OTHER_EVENTS
    return value.keys() >= _OLD_START or _is_document(value)


def _is_document(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("session"), dict) and isinstance(value.get("items"), list)


def read(lines: Iterable[JsonLine], report: Report) -> Iterator[Recording]:
    """Read the one session of the file."""
    rollout, index = _Rollout(), -1
    for line in lines:
        for event in _split_events(line.value):
            # All events of a JSON list have the same line number.
            index = max(line.number - 1, index + 1)
            if not isinstance(event, dict):
                report(line.number, "Left out: not an object.")
                continue
            try:
                rollout.add(event, index=index)
            except WireError as error:
                report(line.number, f"The line was left out: {error}")
    if rollout.messages:
        yield rollout.build_recording()


def _split_events(value: Any) -> Iterator[Any]:
    if isinstance(value, dict) and _is_document(value):
        yield value["session"]
        yield from value["items"]
    else:
        yield value


class _OpenMessage(Struct):
    """A message whose items are still being read."""

    role: Role
    parts: list[Part]
    index: int
    at_s: float | None


class _PlacedUsage(Struct, frozen=True):
    """The usage of a call and the number of messages before it."""

    usage: RecordedUsage
    position: int


class _Rollout:
    """A session that is being read."""

    def __init__(self) -> None:
        self.messages: list[_OpenMessage] = []
        self._id = ""
        self._read_tools: tuple[Tool, ...] = ()
        self._models: list[str] = []
        self._reply_is_open = False
        self._bills: list[_PlacedUsage] = []
        self._bills_are_records = False
        self._billed_total: Any = None
        self._is_copy = False
        self._previous_s: float | None = None

    def add(self, event: Mapping[str, Any], *, index: int) -> None:
        """Add one line. Raises WireError when it has no known form."""
        kind, payload, at_s = event.get("type"), event.get("payload"), parse_time(event.get("timestamp"))
        if not isinstance(payload, Mapping):
            self._add_without_payload(event, index=index)
            return
        if self._is_copy and (at_s is None or self._previous_s is None or at_s - self._previous_s >= _COPY_GAP_S):
            self._is_copy = False
        self._previous_s = at_s
        match kind:
            case "response_item":
                self._add_parts(*decode_item(payload), index=index, at_s=at_s)
            case "event_msg":
                self._read_token_count(payload, at_s)
            case "token_usage_record":
                self._read_usage_record(payload, at_s)
            case "turn_context":
                self._read_turn_context(payload)
            case "session_meta":
                self._read_meta(payload, index=index, at_s=at_s)
            case "compacted":
                self._read_compaction(payload, index=index, at_s=at_s)
            case "inter_agent_communication":
                self._add_parts(*decode_item({**payload, "type": "agent_message"}), index=index, at_s=at_s)
            case _ if kind not in _OTHER_EVENTS:
                raise WireError(f"It is of the unknown type {str(kind)[:40]!r}.")

    def _add_without_payload(self, event: Mapping[str, Any], *, index: int) -> None:
        if event.get("type") in _SESSION_EVENTS:
            raise WireError("It has no payload object.")
        if "type" in event:
            self._add_parts(*decode_item(event), index=index, at_s=parse_time(event.get("timestamp")))
        elif "id" in event:
            at_s, text = parse_time(event.get("timestamp")), event.get("instructions")
            self._read_meta({"id": event["id"], "base_instructions": {"text": text}}, index=index, at_s=at_s)
        elif "record_type" not in event:
            raise WireError("It has no type.")

    def _read_meta(self, meta: Mapping[str, Any], *, index: int, at_s: float | None) -> None:
        identity = meta.get("id") or meta.get("session_id")
        if self._id:
            self._is_copy = self._is_copy or (identity != self._id and at_s is not None)
            return
        self._id = identity if isinstance(identity, str) else ""
        self._read_tools = tuple(_read_tools(meta.get("dynamic_tools")))
        instructions = meta.get("base_instructions")
        text = instructions.get("text") if isinstance(instructions, Mapping) else None
        if isinstance(text, str) and text and not self.messages:
            self._add_parts("system", (Text(text),), index=index, at_s=at_s)

    def _read_turn_context(self, context: Mapping[str, Any]) -> None:
        if isinstance(model := context.get("model"), str) and model:
            self._models.append(model)

    def _add_parts(self, role: Role, parts: tuple[Part, ...], *, index: int, at_s: float | None) -> None:
        if role == "assistant" and self._reply_is_open and parts:
            self.messages[-1].parts.extend(parts)
        elif parts:
            self.messages.append(_OpenMessage(role, list(parts), index, at_s))
            self._reply_is_open = role == "assistant"

    def _read_compaction(self, payload: Mapping[str, Any], *, index: int, at_s: float | None) -> None:
        history, summary = payload.get("replacement_history"), payload.get("message")
        if history is None:
            items = [{"type": "message", "role": "user", "content": summary}] if summary else []
        else:
            items = as_list(history, "replacement_history")
        known = {_message_key(message.role, message.parts) for message in self.messages}
        for position, item in enumerate(items):
            role, parts = decode_item(as_object(item, f"replacement_history.{position}"))
            if _message_key(role, parts) not in known:
                self._add_parts(role, parts, index=index, at_s=at_s)
        self._reply_is_open = False

    def _read_token_count(self, event: Mapping[str, Any], at_s: float | None) -> None:
        info = event.get("info")
        if event.get("type") != "token_count" or not isinstance(info, Mapping):
            return
        total = info.get("total_token_usage")
        if total is not None and total == self._billed_total:
            return
        self._billed_total = total
        if not self._bills_are_records:
            self._add_usage(info.get("last_token_usage"), at_s)

    def _read_usage_record(self, payload: Mapping[str, Any], at_s: float | None) -> None:
        """Add the usage that later versions write in addition to the events for the screen."""
        known = len(self._bills)
        self._add_usage(payload.get("usage"), at_s)
        if known and len(self._bills) > known and not self._bills_are_records:
            event, record = self._bills[-2:]
            if replace(event.usage, at_s=record.usage.at_s) == record.usage:
                del self._bills[-2]
        self._bills_are_records = True

    def _add_usage(self, value: Any, at_s: float | None) -> None:
        model = self._models[-1] if self._models else ""
        usage = read_usage(value, message_index=0, model=model, at_s=at_s)
        if usage is not None:
            self._reply_is_open = False
            if not self._is_copy:
                self._bills.append(_PlacedUsage(usage, len(self.messages)))

    def build_recording(self) -> Recording:
        """Return what was read as a recording."""
        return Recording(
            id=self._id,
            messages=tuple(Message(message.role, tuple(message.parts)) for message in self.messages),
            raw_indices=tuple(message.index for message in self.messages),
            tools=self._read_tools,
            model=self._models[0] if self._models else "",
            times_s=tuple(message.at_s for message in self.messages),
            usage=tuple(self._assign_usage()),
            origin=NAME,
        )

    def _assign_usage(self) -> Iterator[RecordedUsage]:
        """Yield each usage with the index of its reply.

        Some versions write it after the reply's items, some before; in the latter case the first one precedes
        every reply.
        """
        replies = [position for position, message in enumerate(self.messages) if message.role == "assistant"]
        if not replies or not self._bills:
            return
        comes_first = self._bills[0].position <= replies[0]
        for bill in self._bills:
            before = bisect_left(replies, bill.position)
            position = replies[min(before, len(replies) - 1) if comes_first else max(before - 1, 0)]
            yield replace(bill.usage, message_index=self.messages[position].index)


def _message_key(role: Role, parts: Sequence[Part]) -> tuple[str, ...]:
    """Return a key that is equal for a message and its repetition in a compaction."""
    words: list[str] = [role]
    for part in parts:
        match part:
            case Text():
                words.append(part.text)
            case Reasoning():
                words.append(part.data or part.text)
            case ToolCall():
                words.append(part.id)
            case ToolResult():
                words.append(part.call_id)
            case _:
                words.append(repr(part))
    return tuple(words)


def _read_tools(listed: Any) -> Iterator[Tool]:
    """Read the schemas of tools that were registered for this session only; skip malformed ones."""
    for item in listed if isinstance(listed, list) else ():
        name = item.get("name") if isinstance(item, Mapping) else None
        schema = item.get("inputSchema") or item.get("input_schema") if isinstance(item, Mapping) else None
        if isinstance(name, str) and is_legal_name(name) and isinstance(schema, dict):
            description = item.get("description")
            text = description if isinstance(description, str) else ""
            yield Tool(name, text, copy_json(schema, "dynamic_tools"))


SOURCE = Source(NAME, recognises, read)
