"""Read session logs of Claude Code: one event a line, messages in Anthropic's format.

A reply of the model spans several lines, one block each, with one message id: its blocks become one message at the
position of its first line. Each of these lines repeats the reply's usage; the last one counts. The messages of a
sub-agent (``isSidechain``) are a separate recording. A resumed session continues under another session id: a line
belongs to the recording of its parent line. Messages keep the order of the file, including those of a branch that
the user later abandoned. Other lines (summaries, snapshots, system notices) and notices of failed calls, which no
model wrote, are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lading.errors import WireError
from lading.messages import Message
from lading.sources.billing import read_usage
from lading.sources.decoding import decode_message
from lading.sources.recording import JsonLine, RecordedUsage, Recording, Report, Source
from lading.sources.times import parse_time
from lading.wire import Wire, find_wire
from lading.wire.replies import text_or_empty

_EVENTS = ("user", "assistant", "system", "summary", "file-history-snapshot", "queue-operation")
_MARKS = frozenset({"sessionId", "parentUuid", "leafUuid", "snapshot"})
_NO_MODEL = "<synthetic>"


def recognises(values: Sequence[Any]) -> bool:
    """Whether one of the values is an event of such a log."""
    return any(
        isinstance(value, dict) and value.get("type") in _EVENTS and not _MARKS.isdisjoint(value)
        for value in values
    )


def read(lines: Iterable[JsonLine], report: Report) -> Iterator[Recording]:
    """Read all sessions of the file, in the order in which they start."""
    transcripts = _Transcripts()
    anthropic = find_wire("anthropic")
    index = -1
    for line in lines:
        event = line.value
        # All events of a JSON list have the same line number.
        index = max(line.number - 1, index + 1)
        if not isinstance(event, dict):
            report(line.number, "Left out: not an object.")
        elif (transcript := transcripts.find(event)) and _is_message(event):
            try:
                transcript.add(event, index=index, wire=anthropic)
            except WireError as error:
                report(line.number, f"The message was left out: {error}")
    yield from (transcript.build_recording() for transcript in transcripts.all if transcript.messages)


def _is_message(event: Mapping[str, Any]) -> bool:
    return event.get("type") in ("user", "assistant") and event.get("isApiErrorMessage") is not True


class _Transcript:
    """A conversation that is being read."""

    def __init__(self, name: str, *, is_side: bool) -> None:
        self.is_side = is_side
        self.messages: list[Message] = []
        self._name = name
        self._indices: list[int] = []
        self._times_s: list[float | None] = []
        self._replies: dict[str, int] = {}
        self._usage: dict[int, RecordedUsage] = {}
        self._model = ""

    def add(self, event: Mapping[str, Any], *, index: int, wire: Wire) -> None:
        """Add the message of one line. Raises WireError when it is malformed."""
        raw = event.get("message")
        if not isinstance(raw, Mapping):
            raise WireError("The line holds no message object.")
        if raw.get("role") != event["type"]:
            raise WireError(f"Its role is {raw.get('role')!r} on a line of type {event['type']!r}.")
        is_reply = event["type"] == "assistant"
        content = raw.get("content")
        if is_reply and isinstance(content, str):
            content = [{"type": "text", "text": content}]
        decoded = decode_message({"role": raw["role"], "content": content}, wire)
        at_s = parse_time(event.get("timestamp"))
        reply = text_or_empty(raw, "id") if is_reply else ""
        position = self._replies.get(reply) if reply else None
        if position is None:
            position = len(self.messages)
            self.messages.append(decoded)
            self._indices.append(index)
            self._times_s.append(at_s)
        else:
            known = self.messages[position]
            self.messages[position] = known.with_parts(known.parts + decoded.parts)
        if reply:
            self._replies[reply] = position
        if is_reply:
            self._bill(event, raw, index=self._indices[position], at_s=at_s)

    def _bill(self, event: Mapping[str, Any], raw: Mapping[str, Any], *, index: int, at_s: float | None) -> None:
        model = text_or_empty(raw, "model").replace(_NO_MODEL, "")
        self._model = self._model or model
        bill = raw.get("usage")
        if isinstance(bill, Mapping):
            bill = {"costUSD": event.get("costUSD"), **bill}
        usage = read_usage(bill, message_index=index, model=model, at_s=at_s)
        if usage is not None:
            self._usage[index] = usage

    def build_recording(self) -> Recording:
        """Return what was read as a recording."""
        return Recording(
            id=self._name,
            messages=tuple(self.messages),
            raw_indices=tuple(self._indices),
            model=self._model,
            times_s=tuple(self._times_s),
            usage=tuple(self._usage.values()),
            origin=SOURCE.name,
        )


class _Transcripts:
    """The conversations of a file, and which one each line belongs to."""

    def __init__(self) -> None:
        self.all: list[_Transcript] = []
        self._by_line: dict[str, _Transcript] = {}
        self._main: dict[str, _Transcript] = {}
        self._by_agent: dict[tuple[str, str], _Transcript] = {}
        self._newest_side: dict[str, _Transcript] = {}

    def find(self, event: Mapping[str, Any]) -> _Transcript | None:
        """Find or start the conversation of a line. None for a copy of an earlier line."""
        line = text_or_empty(event, "uuid")
        if line and line in self._by_line:
            return None
        transcript = self._find_side(event) if event.get("isSidechain") is True else self._find_main(event)
        if line:
            self._by_line[line] = transcript
        return transcript

    def _find_main(self, event: Mapping[str, Any]) -> _Transcript:
        session = text_or_empty(event, "sessionId")
        parent = self._by_line.get(text_or_empty(event, "parentUuid"))
        if parent is not None and not parent.is_side:
            self._main[session] = parent
        elif session not in self._main:
            self._main[session] = self._start(session, is_side=False)
        return self._main[session]

    def _find_side(self, event: Mapping[str, Any]) -> _Transcript:
        session, agent = text_or_empty(event, "sessionId"), text_or_empty(event, "agentId")
        parent = self._by_line.get(text_or_empty(event, "parentUuid"))
        if agent:
            transcript = self._by_agent.get((session, agent))
        elif parent is not None or not text_or_empty(event, "parentUuid"):
            transcript = parent if parent is not None and parent.is_side else None
        else:
            # The parent line is damaged or missing.
            transcript = self._newest_side.get(session)
        if transcript is None:
            number = 1 + sum(other.is_side for other in self.all)
            transcript = self._start(f"{session}/{agent or f'sidechain-{number}'}", is_side=True)
        self._by_agent[session, agent] = self._newest_side[session] = transcript
        return transcript

    def _start(self, name: str, *, is_side: bool) -> _Transcript:
        self.all.append(_Transcript(name, is_side=is_side))
        return self.all[-1]


SOURCE = Source("claude_code", recognises, read)
