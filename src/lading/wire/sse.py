"""``text/event-stream``: bytes to events however they are cut, and events to bytes.

Comments, pings and unknown fields are events like any other: nothing of the bytes is lost.
"""

from __future__ import annotations

import json
import re
from typing import Any

from lading import jsonbytes
from lading.wire.replies import SseEvent

# A CR that ends what has arrived may be half of a CRLF: it is a line's end only once the next byte is known.
_LINE_END = rb"(?:\r\n|\n|\r(?=[^\n]))"
_BLANK_LINE = re.compile(_LINE_END)
_EVENT_END = re.compile(_LINE_END + _LINE_END)
_LINES = re.compile(rb"\r\n|\n|\r")
_LONGEST_END = len(b"\r\n\r\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseReader:
    """Reads one stream. The events' ``raw`` bytes, joined, are the bytes fed."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._opening = True

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that these bytes complete."""
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
        """What is left when no more bytes come. An event cut before its blank line has no name and no data, as
        no reader of the stream would act on it."""
        # Any byte but LF tells that a last CR stands alone.
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


def event_of(value: Any, *, name: str = "") -> SseEvent:
    """An event with a JSON value as its data. What a provider may write (a NaN, a lone surrogate) is written."""
    data = json.dumps(value, separators=(",", ":"))
    opening = f"event: {name}\n" if name else ""
    return SseEvent(f"{opening}data: {data}\n\n".encode(), name, data)


def object_of(event: SseEvent) -> dict[str, Any] | None:
    """The JSON object that is the event's data; None for any other data."""
    try:
        value = jsonbytes.load(event.data) if event.data else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
