"""Session logs of Codex ("rollouts"): one event a line, items in OpenAI's Responses form.

Items that the model gave in one call are one message, where its first line stands. The system message is the
``base_instructions`` of the first line. Of a compaction, what it brings into the history is read: its summary.
Messages are taken in the order of the file, also those that the user later took back. Events for the screen
repeat items and are passed over, as are snapshots of settings and surroundings.

Codex writes the bill of a call again whenever it redraws: one whose running total has not moved is no new call.
A fork, or a sub-agent, starts with a copy of its parent's lines, stamped with the moment of the copy; the bills
among them are the parent's, and left out.

Three forms are read: lines with a ``payload``; before September 2025 the bare items after a line with ``id``,
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
from lading.sources.recording import Line, Recording, Report, Source, Usage
from lading.sources.response_items import decode_item, is_item
from lading.sources.times import seconds
from lading.wire.shapes import as_list, as_object, copied

NAME = "codex"
_COPY_GAP_S = 1.0
"""A copy is written at once; a call of a model takes longer."""

_OF_THE_MODEL = ("session_meta", "response_item", "compacted", "turn_context", "inter_agent_communication")
_OF_THE_HARNESS = (
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
    """Whether one of the values is an event of such a log, in any of its forms."""
    return any(isinstance(value, dict) and _is_event(value) for value in values)


def _is_event(value: Mapping[str, Any]) -> bool:
    if isinstance(value.get("payload"), dict):
        return value.get("type") in _OF_THE_MODEL + _OF_THE_HARNESS
    return value.keys() >= _OLD_START or _is_document(value) or is_item(value)


def _is_document(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("session"), dict) and isinstance(value.get("items"), list)


def read(lines: Iterable[Line], report: Report) -> Iterator[Recording]:
    """The session of the file: one."""
    rollout, index = _Rollout(), -1
    for line in lines:
        for event in _events(line.value):
            # In one JSON list all events stand on one line.
            index = max(line.number - 1, index + 1)
            if not isinstance(event, dict):
                report(line.number, "Left out: not an object.")
                continue
            try:
                rollout.add(event, index=index)
            except WireError as error:
                report(line.number, f"The line was left out: {error}")
    if rollout.messages:
        yield rollout.recording()


def _events(value: Any) -> Iterator[Any]:
    if isinstance(value, dict) and _is_document(value):
        yield value["session"]
        yield from value["items"]
    else:
        yield value


class _Heard(Struct):
    """A message while its items come in."""

    role: Role
    parts: list[Part]
    index: int
    at_s: float | None


class _Bill(Struct, frozen=True):
    """A bill and how many messages stood before it."""

    usage: Usage
    position: int


class _Rollout:
    """A session while it is being read."""

    def __init__(self) -> None:
        self.messages: list[_Heard] = []
        self._id = ""
        self._tools: tuple[Tool, ...] = ()
        self._models: list[str] = []
        self._reply_is_open = False
        self._bills: list[_Bill] = []
        self._bills_are_records = False
        self._billed_total: Any = None
        self._is_copy = False
        self._before_s: float | None = None

    def add(self, event: Mapping[str, Any], *, index: int) -> None:
        """Takes in one line. Raises WireError when it is of no known shape."""
        kind, payload, at_s = event.get("type"), event.get("payload"), seconds(event.get("timestamp"))
        if not isinstance(payload, Mapping):
            self._add_bare(event, index=index)
            return
        if self._is_copy and (at_s is None or self._before_s is None or at_s - self._before_s >= _COPY_GAP_S):
            self._is_copy = False
        self._before_s = at_s
        match kind:
            case "response_item":
                self._say(*decode_item(payload), index=index, at_s=at_s)
            case "event_msg":
                self._count(payload, at_s)
            case "token_usage_record":
                self._record(payload, at_s)
            case "turn_context":
                self._turn(payload)
            case "session_meta":
                self._start(payload, index=index, at_s=at_s)
            case "compacted":
                self._compact(payload, index=index, at_s=at_s)
            case "inter_agent_communication":
                self._say(*decode_item({**payload, "type": "agent_message"}), index=index, at_s=at_s)
            case _ if kind not in _OF_THE_HARNESS:
                raise WireError(f"It is of the unknown type {str(kind)[:40]!r}.")

    def _add_bare(self, event: Mapping[str, Any], *, index: int) -> None:
        if event.get("type") in _OF_THE_MODEL:
            raise WireError("It has no payload object.")
        if "type" in event:
            self._say(*decode_item(event), index=index, at_s=seconds(event.get("timestamp")))
        elif "id" in event:
            at_s, text = seconds(event.get("timestamp")), event.get("instructions")
            self._start({"id": event["id"], "base_instructions": {"text": text}}, index=index, at_s=at_s)
        elif "record_type" not in event:
            raise WireError("It has no type.")

    def _start(self, meta: Mapping[str, Any], *, index: int, at_s: float | None) -> None:
        identity = meta.get("id") or meta.get("session_id")
        if self._id:
            self._is_copy = self._is_copy or (identity != self._id and at_s is not None)
            return
        self._id = identity if isinstance(identity, str) else ""
        self._tools = tuple(_tools(meta.get("dynamic_tools")))
        instructions = meta.get("base_instructions")
        text = instructions.get("text") if isinstance(instructions, Mapping) else None
        if isinstance(text, str) and text and not self.messages:
            self._say("system", (Text(text),), index=index, at_s=at_s)

    def _turn(self, context: Mapping[str, Any]) -> None:
        if isinstance(model := context.get("model"), str) and model:
            self._models.append(model)

    def _say(self, role: Role, parts: tuple[Part, ...], *, index: int, at_s: float | None) -> None:
        if role == "assistant" and self._reply_is_open and parts:
            self.messages[-1].parts.extend(parts)
        elif parts:
            self.messages.append(_Heard(role, list(parts), index, at_s))
            self._reply_is_open = role == "assistant"

    def _compact(self, payload: Mapping[str, Any], *, index: int, at_s: float | None) -> None:
        history, summary = payload.get("replacement_history"), payload.get("message")
        if history is None:
            items = [{"type": "message", "role": "user", "content": summary}] if summary else []
        else:
            items = as_list(history, "replacement_history")
        said = {_words(heard.role, heard.parts) for heard in self.messages}
        for position, item in enumerate(items):
            role, parts = decode_item(as_object(item, f"replacement_history.{position}"))
            if _words(role, parts) not in said:
                self._say(role, parts, index=index, at_s=at_s)
        self._reply_is_open = False

    def _count(self, event: Mapping[str, Any], at_s: float | None) -> None:
        info = event.get("info")
        if event.get("type") != "token_count" or not isinstance(info, Mapping):
            return
        total = info.get("total_token_usage")
        if total is not None and total == self._billed_total:
            return
        self._billed_total = total
        if not self._bills_are_records:
            self._bill(info.get("last_token_usage"), at_s)

    def _record(self, payload: Mapping[str, Any], at_s: float | None) -> None:
        """A bill as later versions write it, beside the events for the screen."""
        known = len(self._bills)
        self._bill(payload.get("usage"), at_s)
        if known and len(self._bills) > known and not self._bills_are_records:
            event, record = self._bills[-2:]
            if replace(event.usage, at_s=record.usage.at_s) == record.usage:
                del self._bills[-2]
        self._bills_are_records = True

    def _bill(self, value: Any, at_s: float | None) -> None:
        model = self._models[-1] if self._models else ""
        usage = read_usage(value, message_index=0, model=model, at_s=at_s)
        if usage is not None:
            self._reply_is_open = False
            if not self._is_copy:
                self._bills.append(_Bill(usage, len(self.messages)))

    def recording(self) -> Recording:
        """The session as read."""
        return Recording(
            id=self._id,
            messages=tuple(Message(heard.role, tuple(heard.parts)) for heard in self.messages),
            raw_indices=tuple(heard.index for heard in self.messages),
            tools=self._tools,
            model=self._models[0] if self._models else "",
            times_s=tuple(heard.at_s for heard in self.messages),
            usage=tuple(self._usage()),
            origin=NAME,
        )

    def _usage(self) -> Iterator[Usage]:
        """Each bill with the reply it is for. Some versions write it after the reply's items, some before:
        then there is no reply yet when the first one comes."""
        replies = [position for position, heard in enumerate(self.messages) if heard.role == "assistant"]
        if not replies or not self._bills:
            return
        comes_first = self._bills[0].position <= replies[0]
        for bill in self._bills:
            before = bisect_left(replies, bill.position)
            position = replies[min(before, len(replies) - 1) if comes_first else max(before - 1, 0)]
            yield replace(bill.usage, message_index=self.messages[position].index)


def _words(role: Role, parts: Sequence[Part]) -> tuple[str, ...]:
    """What tells a message from others, as far as a compaction repeats them."""
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


def _tools(listed: Any) -> Iterator[Tool]:
    """The schemas of tools that were registered with this session alone; what is none is passed over."""
    for item in listed if isinstance(listed, list) else ():
        name = item.get("name") if isinstance(item, Mapping) else None
        schema = item.get("inputSchema") or item.get("input_schema") if isinstance(item, Mapping) else None
        if isinstance(name, str) and is_legal_name(name) and isinstance(schema, dict):
            description = item.get("description")
            text = description if isinstance(description, str) else ""
            yield Tool(name, text, copied(schema, "dynamic_tools"))


SOURCE = Source(NAME, recognises, read)
