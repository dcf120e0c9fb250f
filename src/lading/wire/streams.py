"""A streamed reply passing by: what the wires share.

A wire brings two things: what collects its events into a response body, and what edits the events on their
way to the caller. Events that need no edit go on as the very bytes that came.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from msgspec.structs import replace

from lading.messages import Message
from lading.wire.replies import Held, Reply, SseEvent, summed
from lading.wire.sse import event_of, object_of

Value = dict[str, Any]
"""The data of one event."""

DONE = "[DONE]"


class Collector(Protocol):
    """Gathers events into the body that the same response has when it is not streamed."""

    @property
    def finished(self) -> bool:
        """Whether the provider said why the reply ends."""

    @property
    def failed(self) -> bool:
        """Whether the stream reported an error."""

    @property
    def usage(self) -> Value:
        """What the request took, as far as it was told."""

    def add(self, value: Value) -> None:
        """Take in the next event."""

    def body(self) -> Value:
        """The response body so far."""


class Edits(Protocol):
    """What is changed in the events of one stream on their way to the caller."""

    def numbered(self, value: Value) -> Value:
        """The event with its place in the reply spelled out, whatever the server left out."""

    def split(self, value: Value) -> tuple[Value | None, Value | None]:
        """What of an event goes on now, and what is held back."""

    def edited(self, value: Value) -> Value | None:
        """The event as the caller gets it, equal where nothing changes; None when nothing of it is left."""


class Passage(NamedTuple):
    """What a stream of one wire is made of."""

    edits: Callable[[Value], Edits]
    """The edits of a stream, given what earlier streams of the same answer showed, as a body."""
    collector: Callable[[], Collector]
    read: Callable[[Mapping[str, Any]], Reply]


class PassingStream:
    """A ``ReplyStream`` over what one wire knows."""

    def __init__(self, passage: Passage, *, shown: Collector | None = None, spent: Value | None = None) -> None:
        """``shown`` and ``spent``: what earlier streams of the answer showed, and what they took."""
        self._passage = passage
        self._spent = spent
        self._shown = shown or passage.collector()
        self._edits = passage.edits(self._shown.body())
        self._whole = passage.collector()
        self.held: list[Held] = []
        self._done = False

    def feed(self, event: SseEvent) -> list[bytes]:
        """Take in the next event; returns what goes on to the caller now. One that it raises for is not held."""
        value = object_of(event)
        if value is not None:
            value = self._edits.numbered(value)
            self._whole.add(value)
        self._done = self._done or event.data.strip() == DONE
        if self.held:
            self.held.append(Held(event, value))
            return []
        if value is None:
            return [event.raw]
        now, later = self._edits.split(value)
        if later is None:
            return self._passed(event, value)
        if now is None:
            self.held.append(Held(event, value))
            return []
        held, passed = event_of(later, name=event.name), self._passed(event_of(now, name=event.name), now)
        self.held.append(Held(held, later))
        return passed

    def reply(self) -> Reply:
        """The reply so far, calls of the held tool included. Raises WireError for what no reply can hold."""
        complete = (self._whole.finished or self._done) and not self._whole.failed
        return replace(self._passage.read(self._whole.body()), complete=complete)

    def shown(self) -> Message:
        """What the caller was shown by this stream and those it continues. Raises like ``reply``."""
        return self._passage.read(self._shown.body()).message

    def release(self, held: Held) -> list[bytes]:
        """What goes on to the caller of an event that was held back, without the calls of the held tool."""
        event, value = held
        return [event.raw] if value is None else self._passed(event, value)

    def again(self) -> PassingStream:
        """The stream that goes on with the same answer."""
        spent = summed(self._spent or {}, self._whole.usage)
        return PassingStream(self._passage, shown=copy.deepcopy(self._shown), spent=spent)

    def _passed(self, event: SseEvent, value: Value) -> list[bytes]:
        edited = self._edits.edited(value)
        if edited is None:
            return []
        if self._spent and isinstance(edited.get("usage"), dict):
            edited = edited | {"usage": summed(self._spent, self._whole.usage)}
        self._shown.add(edited)
        return [event.raw if edited == value else event_of(edited, name=event.name).raw]


def object_at(holder: Mapping[str, Any], key: str) -> Value:
    """The object under that key; an empty one for anything else."""
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def index_of(holder: Mapping[str, Any]) -> int | None:
    """The whole number under ``index``."""
    index = holder.get("index")
    return index if isinstance(index, int) and not isinstance(index, bool) else None


def objects_at(holder: Mapping[str, Any], key: str) -> list[Value]:
    """The objects of the list under that key."""
    value = holder.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
