"""Read replies of providers, whole or streamed.

A ``text/event-stream`` is read from bytes that may be cut anywhere. Comments, pings and unknown fields are events
too, so that no byte is lost.

Lading answers calls of its own tools itself (``session.own_tools``). They never reach the caller: a reply is passed
on without them, and a stream is held back from the start of such a call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from lading import jsonbytes
from lading.history.log import Reported
from lading.messages import Message

# A CR at the end of the buffer may be half of a CRLF: it ends a line only once the next byte is known.
_LINE_END = rb"(?:\r\n|\n|\r(?=[^\n]))"
_BLANK_LINE = re.compile(_LINE_END)
_EVENT_END = re.compile(_LINE_END + _LINE_END)
_LINES = re.compile(rb"\r\n|\n|\r")
_LONGEST_END = len(b"\r\n\r\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


_ERROR_CHARS = 2_000


class SseEvent(NamedTuple):
    """One event of a ``text/event-stream``."""

    raw: bytes
    """Its bytes as received, including the blank line."""
    name: str
    data: str


class SseReader:
    """Splits one stream into events. Their ``raw`` bytes, joined, are the bytes fed."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._opening = True

    def feed(self, data: bytes) -> list[SseEvent]:
        """Return the events that these bytes complete."""
        self._buffer += data
        events: list[SseEvent] = []
        start = 0
        while found := _BLANK_LINE.match(self._buffer, start) or _EVENT_END.search(
            self._buffer, max(start, self._searched)
        ):
            events.append(self._event(bytes(self._buffer[start : found.end()])))
            start = found.end()
        del self._buffer[:start]
        self._searched = max(0, len(self._buffer) - _LONGEST_END)
        return events

    def end(self) -> list[SseEvent]:
        """Return the remaining events at the end of the stream. An event without its blank line has no name and no
        data, because readers of the stream ignore it."""
        # Any byte but LF shows that a last CR is a line end of its own.
        events = self.feed(b"\0")
        cut = bytes(self._buffer[:-1])
        self._buffer.clear()
        return [*events, SseEvent(cut, "", "")] if cut else events

    def _event(self, raw: bytes) -> SseEvent:
        lines = _LINES.split(raw.removeprefix(_BYTE_ORDER_MARK) if self._opening else raw)
        self._opening = False
        name, data = "", []
        for line in lines:
            field, _, value = line.partition(b":")
            text = value.removeprefix(b" ").decode("utf-8", "replace")
            if field == b"event":
                name = text
            elif field == b"data":
                data.append(text)
        return SseEvent(raw, name, "\n".join(data))


def make_event(value: Any, *, name: str = "") -> SseEvent:
    """Return an event with a JSON value as its data. NaN and lone surrogates are written, as providers may do."""
    data = json.dumps(value, separators=(",", ":"))
    opening = f"event: {name}\n" if name else ""
    return SseEvent(f"{opening}data: {data}\n\n".encode(), name, data)


def error_event(content: bytes) -> bytes:
    """Return an error response as the event by which Anthropic and OpenAI report an error within a stream."""
    text = content.decode("utf-8", "replace")
    error = read_object(SseEvent(content, "error", text))
    plain = {"type": "error", "error": {"type": "api_error", "message": text[:_ERROR_CHARS]}}
    return make_event(plain if error is None else error, name="error").raw


def read_object(event: SseEvent) -> dict[str, Any] | None:
    """Return the JSON object in the event's data; None for any other data."""
    try:
        value = jsonbytes.load(event.data, read=jsonbytes.read_finite) if event.data else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


class Reply(Struct, frozen=True):
    """One reply of a model."""

    message: Message
    """The assistant message as the next request has to contain it."""
    usage: Reported | None = None
    id: str = ""
    """The provider's id of the response."""
    model: str = ""
    choices: int = 1
    """Number of answers in the response; ``message`` is the first."""
    others: tuple[Message, ...] = ()
    """The other answers, in formats that read them."""
    complete: bool = True
    """False: the stream ended before the provider marked its end."""


class Held(NamedTuple):
    """An event that is held back, and its numbered data if that is an object."""

    event: SseEvent
    value: dict[str, Any] | None


class ReplyStream(Protocol):
    """A streamed reply on its way to the caller. One answer may consist of several such streams."""

    held: list[Held]
    """The events held back. To end the answer, remove them and pass each to ``release``."""

    def feed(self, event: SseEvent) -> list[bytes]:
        """Read the next event; return the bytes for the caller now. From the first call that is or may become one
        of a held tool on, there are none."""

    def reply(self) -> Reply:
        """Return the reply so far, including calls of held tools. Raises WireError if it is malformed."""

    def shown_message(self) -> Message:
        """Return the message that the caller received by this stream and those it continues."""

    def release(self, held: Held) -> list[bytes]:
        """Return the bytes of a held event at the end of the answer, without calls of held tools."""

    def continue_answer(self) -> ReplyStream:
        """Return a stream that continues the same answer: its events are renumbered, its start is not repeated, and
        its usage is the sum of all streams."""


class Replies(Struct, frozen=True):
    """Functions for the replies of one wire."""

    read: Callable[[Mapping[str, Any]], Reply]
    """Read the reply in a response body. Raises WireError if it is not of this wire's shape."""
    without: Callable[[Mapping[str, Any], AbstractSet[str]], dict[str, Any]]
    """Return the response body without the calls of the tools of these names."""
    stream: Callable[[AbstractSet[str]], ReplyStream]
    """Return a new stream that holds back calls of the tools of these names."""
    asks_usage: Mapping[str, Any] = MappingProxyType({})
    """The fields by which a streamed request asks for usage; none if it is always reported."""
    usage: str = "usage"
    """The field of a response body with the request's usage."""
    go_on: Callable[[Mapping[str, Any], dict[str, Any]], dict[str, Any]] = lambda _before, body: body
    """Return a response body as the answer that a hidden one, without own calls, began: where that has one half of
    a pair of a provider's call and its result, what it holds comes first."""
    error_event: Callable[[bytes], bytes] = error_event
    """Return the content of an error response as an event within a stream."""
    answer_only: frozenset[str] = frozenset()
    """Fields of an item that are no input of the API: an echo that adds only these is no other form of it."""

    def read_usage(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the usage in a response body; empty if it has none."""
        usage = body.get(self.usage)
        return usage if isinstance(usage, dict) else {}


MOST_TOKENS = 10**10
"""A higher number is not a token count."""


def read_counts(usage: Mapping[str, Any], fields: Sequence[str]) -> list[int] | None:
    """Return the token counts in these fields, 0 for a missing or null one; None if one is not a count."""
    counts = [usage.get(field) or 0 for field in fields]
    if all(type(count) is int and 0 <= count <= MOST_TOKENS for count in counts):
        return counts
    return None


def add_usage(one: Mapping[str, Any], other: Mapping[str, Any], *, levels: int = 4) -> dict[str, Any]:
    """Add the usage of two requests, numbers at any depth; of other values, ``other`` wins unless null."""
    total = {**one, **other}
    for key in one.keys() & other.keys():
        first, second = one[key], other[key]
        if isinstance(first, Mapping) and isinstance(second, Mapping) and levels:
            total[key] = add_usage(first, second, levels=levels - 1)
        elif _is_number(first) and _is_number(second):
            total[key] = first + second
        elif second is None:
            total[key] = first
    return total


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def text_or_empty(holder: Mapping[str, Any], key: str) -> str:
    """Return the string under that key; an empty one for anything else."""
    value = holder.get(key)
    return value if isinstance(value, str) else ""
