"""Probe files: questions about a session, each with the quotes that hold its answer (docs/reference/compare.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from lading import jsonbytes
from lading.addresses import make_name
from lading.audit.text_search import iter_message_strings
from lading.errors import InputError
from lading.evaluate.evidence import ProbeScore, collapse_spaces, measure_evidence, read_request, split_words
from lading.evaluate.session_runs import RecordedSession, RunCall
from lading.structs import convert

P = TypeVar("P", bound=Struct)


class Quote(Struct, frozen=True):
    """A passage of an earlier message that holds part of the answer."""

    message: Annotated[int, Meta(ge=-1)]
    """Index of the message in the session file, from 0; -1: system text outside the list of messages."""
    quote: str
    """Copied verbatim; runs of white space count as one space."""


class Probe(Struct, frozen=True):
    """A question that the model should be able to answer at a call."""

    session: str
    """Recorded id of the session, or its name in results."""
    call: Annotated[int, Meta(ge=1)]
    """Number of the assistant message after the first user message, from 1."""
    kind: Annotated[str, Meta(min_length=1)]
    evidence: Annotated[tuple[Quote, ...], Meta(min_length=1)]
    question: str = ""
    answer: str = ""
    importance: Annotated[int, Meta(ge=1, le=3)] = 2
    line: int = 0
    """Line in its file, from 1."""

    @property
    def name(self) -> str:
        """Name of the session in results."""
        return make_name(self.session)


class Question(Struct, frozen=True, forbid_unknown_fields=True):
    """A probe in its short form, without evidence."""

    question: Annotated[str, Meta(min_length=1)]
    answer: Annotated[str, Meta(min_length=1)]
    at: Annotated[int, Meta(ge=1)]
    """The call, as in ``Probe``."""
    kind: str = "question"
    session: str = ""
    """Empty: the only session."""


class SessionProbes:
    """The probes of one session, by call."""

    def __init__(self, session: RecordedSession, probes: Iterable[Probe]) -> None:
        self._session = session
        self._replies = [session.recording.raw_indices[position] for position in session.raw_calls]
        self.calls: dict[int, list[Probe]] = {}
        """Probes by call, from 0."""
        for probe in probes:
            if probe.name == session.name:
                self.calls.setdefault(probe.call - 1, []).append(probe)

    def check(self, path: str) -> None:
        """Raise InputError for a probe that cannot be scored; ``path`` is the path of its file."""
        texts = _read_messages(self._session) if self.calls else {}
        for call, probes in sorted(self.calls.items()):
            for probe in probes:
                fault = f"There is no call {probe.call}: the session has {len(self._replies)}."
                if call < len(self._replies):
                    found = (_find_fault(item, texts, reply=self._replies[call]) for item in probe.evidence)
                    fault = next(filter(None, found), "")
                if fault:
                    raise InputError(f"{path}:{probe.line}: {fault}")

    def score(
        self, call: int, body: bytes, *, weight: Mapping[str, float], full: Sequence[RunCall]
    ) -> Iterator[ProbeScore]:
        """Score the probes of a call in its request; without a request, no evidence is present. ``weight``: weight
        of each word. ``full``: the append-only calls."""
        probes = self.calls.get(call, ())
        reading = read_request(body) if probes and body else None
        for probe in probes:
            oldest = min(item.message for item in probe.evidence)
            seen = next(at for at, reply in enumerate(self._replies) if reply > oldest)
            quotes = [item.quote for item in probe.evidence]
            found = measure_evidence(quotes, reading, weight=weight) if reading else (False, False, 0.0)
            place = (probe.line, self._session.name, probe.call, probe.kind, probe.importance)
            yield ProbeScore(*place, max(full[call].tokens - full[seen].tokens, 0), *found)


def read_probes(path: str) -> Iterator[Probe]:
    """Read the probes of a file. Raises InputError for an invalid line."""
    for number, value in _read_lines(path):
        yield _convert(value, Probe, where=f"{path}:{number}", line=number)


def read_questions(path: str, sessions: Sequence[str]) -> Iterator[Probe]:
    """Read probes and questions in short form, as probes; ``sessions``: the names of those that were read. Raises
    InputError for an invalid line and for one that is no question."""
    for number, value in _read_lines(path):
        where = f"{path}:{number}"
        if not isinstance(value, dict) or "at" not in value:
            probe = _convert(value, Probe, where=where, line=number)
            if not probe.question.strip():
                raise InputError(f"{where}: The probe has no question. Write what the model is asked.")
            yield probe
            continue
        item = _convert(value, Question, where=where)
        if not item.session and len(sessions) != 1:
            raise InputError(f"{where}: Several sessions were read. Name the question's one in the field session.")
        yield Probe(item.session or sessions[0], item.at, item.kind, (), item.question, item.answer, line=number)


def _read_lines(path: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(Path(path).read_bytes().removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
        if line.strip():
            try:
                value = jsonbytes.load(line)
            except ValueError as error:
                raise _make_error(f"{path}:{number}", error) from error
            yield number, value


def _convert(value: Any, kind: type[P], *, where: str, **fields: int) -> P:
    try:
        return replace(convert(value, kind), **fields)
    except msgspec.ValidationError as error:
        raise _make_error(where, error) from error


def _make_error(where: str, error: Exception) -> InputError:
    advice = "Write one probe a line, as docs/reference/compare.md shows."
    return InputError(f"{where}: This is no probe: {error}. {advice}")


def _find_fault(item: Quote, texts: Mapping[int, str], *, reply: int) -> str:
    if not split_words(item.quote):
        return f"The quote {item.quote!r} has no word to search for. Quote more."
    if item.message >= reply:
        text = f"Message {item.message} is not before the call, whose reply is message {reply}."
        return f"{text} Quote an earlier message, or ask at a later call."
    quote = collapse_spaces(item.quote)
    if quote in texts.get(item.message, ""):
        return ""
    places = [index for index, text in texts.items() if index < reply and quote in text]
    advice = f"Message {places[-1]} holds it." if places else "Copy the passage from the message as it is."
    return f"Message {item.message} does not hold the quote {item.quote[:80]!r}. {advice}"


def _read_messages(session: RecordedSession) -> dict[int, str]:
    """Read the text of each message of the file, arguments both raw and decoded, with white space collapsed."""
    found: dict[int, str] = {}
    for message, index in zip(session.recording.messages, session.recording.raw_indices, strict=True):
        strings = (string for kind, string in iter_message_strings(message) if kind != "reasoning")
        found[index] = collapse_spaces("\n".join((found.get(index, ""), *strings)))
    return found
