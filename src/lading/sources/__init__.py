"""Session files of other tools, read into recordings.

``read(path)`` recognises the format by content. To add one, write a module with a ``Source`` and one line
in ``SOURCES``.
"""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import PurePath

from msgspec.structs import replace

from lading.errors import SourceError
from lading.registry import lookup
from lading.sources.files import read_lines
from lading.sources.jsonvalues import read_values
from lading.sources.opentools import ToolsSoFar, open_tool, tools_at
from lading.sources.prompts import restated
from lading.sources.recording import Line, Problem, Recording, Request, Source, Usage

__all__ = [
    "SOURCES",
    "Problem",
    "Recording",
    "Request",
    "Source",
    "ToolsSoFar",
    "Usage",
    "open_tool",
    "read",
    "restated",
    "source",
    "tools_at",
]

SOURCES: dict[str, str] = {
    "claude_code": "lading.sources.claude_code:SOURCE",
    "codex": "lading.sources.codex:SOURCE",
    "anthropic": "lading.sources.anthropic:SOURCE",
    "trajectories": "lading.sources.trajectories:SOURCE",
    "openai_chat": "lading.sources.openai_chat:SOURCE",
    "message_lines": "lading.sources.message_lines:SOURCE",
}
"""The formats, in the order in which they are asked whether a file is theirs: the most particular first."""

_SNIFFED_VALUES = 32
_SNIFFED_PROBLEMS = 1000
_ENDINGS = (".gz", ".jsonl", ".json")


def source(name: str) -> Source:
    """The format of that name, or at that dotted path. Raises UnknownName."""
    return lookup(SOURCES, name, kind="source", type_=Source)


def read(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 - the word a caller looks for; the builtin is not needed here
) -> Iterator[Recording | Problem]:
    """The sessions of a file and the problems met, in order, each as soon as it is complete.

    ``format`` is a name of ``SOURCES`` or a dotted path; without it the content decides. Raises SourceError,
    when the first item is asked for, if nothing at all can be read: the file is missing, unreadable, empty,
    no text, or of no known format; at any item for a decompression bomb. Raises UnknownName for a ``format``
    that is none.
    """
    name = os.fspath(path)
    problems: deque[Problem] = deque()

    def report(line: int, text: str) -> None:
        problems.append(Problem(name, line, text))

    def numbered() -> Iterator[tuple[int, str]]:
        for line in read_lines(name, report):
            # What is no session file may be large, or a device without end.
            if chosen is None and len(problems) > _SNIFFED_PROBLEMS:
                return
            yield line

    chosen = None if format is None else source(format)
    lines = read_values(numbered(), report)
    if chosen is None:
        chosen, lines = _recognised(lines, problems, name)
    recordings = 0
    for recording in _identified(chosen.read(lines, report), name, problems):
        recordings += 1
        yield from _drained(problems)
        yield recording
    if not recordings:
        report(0, f"No session was found in it, read as {chosen.name}.")
    yield from _drained(problems)


def _recognised(lines: Iterator[Line], problems: deque[Problem], name: str) -> tuple[Source, Iterator[Line]]:
    """The format of the first values, and all lines with these again."""
    known = [source(entry) for entry in SOURCES]
    seen: deque[Line] = deque()
    for line in itertools.islice(lines, _SNIFFED_VALUES):
        seen.append(line)
        values = [early.value for early in seen]
        for candidate in known:
            if candidate.recognises(values):
                return candidate, itertools.chain(_emptied(seen), lines)
    raise SourceError(
        f"{name} is not a session file of a known format ({', '.join(SOURCES)}): "
        f"{_description(seen, problems)} Convert it to one of these."
    )


def _description(seen: Iterable[Line], problems: Iterable[Problem]) -> str:
    first = next(iter(seen), None)
    if first is not None and isinstance(first.value, dict):
        fields = ", ".join(str(key)[:40] for key in list(first.value)[:8])
        return f"its first value is an object with the fields {fields or '(none)'}."
    if first is not None:
        return f"its first value is of type {type(first.value).__name__}."
    damage = next(iter(problems), None)
    return "it holds no text." if damage is None else f"line {damage.line}: {damage.text}"


def _identified(recordings: Iterable[Recording], name: str, problems: deque[Problem]) -> Iterator[Recording]:
    """The recordings with ids that are unique in the file: one without is named after the file."""
    stem = PurePath(name).name
    for ending in _ENDINGS:
        stem = stem.removesuffix(ending)
    taken: dict[str, int] = {}
    for recording in recordings:
        identity = wanted = recording.id or stem
        while identity in taken:
            taken[wanted] += 1
            identity = f"{wanted}-{taken[wanted]}"
        taken[identity] = 1
        if recording.id and identity != recording.id:
            problems.append(Problem(name, 0, f"The id {recording.id!r} was taken; it is read as {identity!r}."))
        yield recording if identity == recording.id else replace(recording, id=identity)


def _emptied(lines: deque[Line]) -> Iterator[Line]:
    while lines:
        yield lines.popleft()


def _drained(problems: deque[Problem]) -> Iterator[Problem]:
    while problems:
        yield problems.popleft()
