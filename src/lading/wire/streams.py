"""Edit a streamed reply on its way to the caller: the code that all wires share.

A wire supplies a collector of events into a response body, and the edits of events for the caller. Events that need
no edit are passed on with their original bytes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from msgspec.structs import replace

from lading.messages import Message
from lading.wire.replies import Held, Reply, SseEvent, add_usage, make_event, read_object

Value = dict[str, Any]
"""The data of one event."""

DONE = "[DONE]"


class Collector(Protocol):
    """Collects events into the body that the response would have if it were not streamed."""

    @property
    def finished(self) -> bool:
        """Whether the provider gave a reason for the end of the reply."""

    @property
    def failed(self) -> bool:
        """Whether the stream reported an error."""

    @property
    def usage(self) -> Value:
        """The usage reported so far."""

    def add(self, value: Value) -> None:
        """Add the next event."""

    def body(self) -> Value:
        """Return the response body so far."""


class StreamEdits(Protocol):
    """The edits of the events of one stream for the caller."""

    def number(self, value: Value) -> Value:
        """Return the event with the indices of its place in the reply, which servers may omit."""

    def split(self, value: Value) -> tuple[Value | None, Value | None]:
        """Split an event into the parts that are passed on now and held back; None: no such part."""

    def edit(self, value: Value) -> Value | None:
        """Return the event for the caller, equal if nothing changes; None if nothing of it remains."""


class StreamFormat(NamedTuple):
    """How streams of one wire are edited and collected."""

    edits: Callable[[Value], StreamEdits]
    """Return the edits of a stream, given the body that the caller received by earlier streams of the answer."""
    collector: Callable[[], Collector]
    read: Callable[[Mapping[str, Any]], Reply]
    usage: tuple[str, ...] = ("usage",)
    """The place of the usage in an event: a field, or a path of nested fields."""


class EditedStream:
    """A ``ReplyStream`` for the format of one wire."""

    def __init__(
        self, passage: StreamFormat, *, shown: Collector | None = None, spent: Value | None = None
    ) -> None:
        """``shown`` and ``spent``: the collected events and the usage of earlier streams of the answer."""
        self._passage = passage
        self._spent = spent
        self._shown = shown or passage.collector()
        self._edits = passage.edits(self._shown.body())
        self._whole = passage.collector()
        self.held: list[Held] = []
        self._done = False

    def feed(self, event: SseEvent) -> list[bytes]:
        """Read the next event; return the bytes for the caller now. An event that raises an error is not held."""
        value = read_object(event)
        if value is not None:
            value = self._edits.number(value)
            self._whole.add(value)
        self._done = self._done or event.data.strip() == DONE
        if self.held:
            self.held.append(Held(event, value))
            return []
        if value is None:
            return [event.raw]
        now, later = self._edits.split(value)
        if later is None:
            return self._pass_on(event, value)
        if now is None:
            self.held.append(Held(event, value))
            return []
        held, passed = make_event(later, name=event.name), self._pass_on(make_event(now, name=event.name), now)
        self.held.append(Held(held, later))
        return passed

    def reply(self) -> Reply:
        """Return the reply so far, including calls of held tools. Raises WireError if it is malformed."""
        complete = (self._whole.finished or self._done) and not self._whole.failed
        return replace(self._passage.read(self._whole.body()), complete=complete)

    def shown_message(self) -> Message:
        """Return the message that the caller received by this and earlier streams. Raises like ``reply``."""
        return self._passage.read(self._shown.body()).message

    def release(self, held: Held) -> list[bytes]:
        """Return the bytes of a held event for the caller, without calls of held tools."""
        event, value = held
        return [event.raw] if value is None else self._pass_on(event, value)

    def continue_answer(self) -> EditedStream:
        """Return a stream that continues the same answer."""
        spent = add_usage(self._spent or {}, self._whole.usage)
        return EditedStream(self._passage, shown=copy.deepcopy(self._shown), spent=spent)

    def _pass_on(self, event: SseEvent, value: Value) -> list[bytes]:
        edited = self._edits.edit(value)
        if edited is None:
            return []
        if self._spent:
            edited = _replace_usage(edited, self._passage.usage, add_usage(self._spent, self._whole.usage))
        self._shown.add(edited)
        return [event.raw if edited == value else make_event(edited, name=event.name).raw]


def _replace_usage(value: Value, path: tuple[str, ...], usage: Value) -> Value:
    """Return the event with other usage; unchanged if it has none."""
    inner = value.get(path[0])
    if not isinstance(inner, dict):
        return value
    return value | {path[0]: _replace_usage(inner, path[1:], usage) if path[1:] else usage}


def object_at(holder: Mapping[str, Any], key: str) -> Value:
    """Return the object under that key; an empty one for anything else."""
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def read_index(holder: Mapping[str, Any]) -> int | None:
    """Return the integer under ``index``; None for anything else."""
    index = holder.get("index")
    return index if isinstance(index, int) and not isinstance(index, bool) else None


def objects_at(holder: Mapping[str, Any], key: str) -> list[Value]:
    """Return the objects in the list under that key."""
    value = holder.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
