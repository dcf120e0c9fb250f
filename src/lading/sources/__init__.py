"""Read session files of other tools into recordings.

``read(path)`` detects the format from the content. To add a format, write a module with a ``Source`` and add one
line to ``SOURCES``. Knows no engine and no client. Start with ``recording.py``, the value that each source gives.
"""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import TypeVar

from msgspec.structs import replace

from lading.errors import SourceError
from lading.registry import lookup
from lading.sources.files import read_lines
from lading.sources.jsonvalues import read_values
from lading.sources.opentools import ToolsSoFar, open_tool, tools_at
from lading.sources.recording import JsonLine, Problem, RecordedRequest, RecordedUsage, Recording, Source, restated

__all__ = [
    "SOURCES",
    "Problem",
    "RecordedRequest",
    "RecordedUsage",
    "Recording",
    "Source",
    "ToolsSoFar",
    "open_tool",
    "read",
    "restated",
    "source",
    "tools_at",
]

T = TypeVar("T")

SOURCES: dict[str, str] = {
    "claude_code": "lading.sources.claude_code:SOURCE",
    "codex": "lading.sources.codex:SOURCE",
    "gemini": "lading.sources.gemini:SOURCE",
    "openai_responses": "lading.sources.openai_responses:SOURCE",
    "anthropic": "lading.sources.anthropic:SOURCE",
    "trajectories": "lading.sources.trajectories:SOURCE",
    "openai_chat": "lading.sources.openai_chat:SOURCE",
    "message_lines": "lading.sources.message_lines:SOURCE",
}
"""The formats in the order in which detection tries them, the most specific first."""

_SNIFFED_VALUES = 32
_SNIFFED_PROBLEMS = 1000
_ENDINGS = (".gz", ".jsonl", ".json")


def source(name: str) -> Source:
    """Return the format with this name or dotted path. Raises UnknownName."""
    return lookup(SOURCES, name, kind="source", type_=Source)


def read(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 - the word a caller looks for; the builtin is not needed here
) -> Iterator[Recording | Problem]:
    """Iterate over the sessions of a file and the problems in it, in order, each as soon as it is complete.

    ``format`` is a name in ``SOURCES`` or a dotted path; without it the format is detected. Raises SourceError at
    the first item if the file is missing, unreadable, empty, binary or of an unknown format, and at any item for a
    decompression bomb. Raises UnknownName for an unknown ``format``.
    """
    name = os.fspath(path)
    problems: deque[Problem] = deque()

    def report(line: int, text: str) -> None:
        problems.append(Problem(name, line, text))

    def limit_lines() -> Iterator[tuple[int, str]]:
        for line in read_lines(name, report):
            # A file of an unknown format may be large, or a device without an end.
            if chosen is None and len(problems) > _SNIFFED_PROBLEMS:
                return
            yield line

    chosen = None if format is None else source(format)
    lines = read_values(limit_lines(), report)
    if chosen is None:
        chosen, lines = _detect(lines, problems, name)
    recordings = 0
    for recording in _assign_ids(chosen.read(lines, report), name, problems):
        recordings += 1
        yield from _pop_all(problems)
        yield recording
    if not recordings:
        report(0, f"No session was found in it, read as {chosen.name}.")
    yield from _pop_all(problems)


def _detect(lines: Iterator[JsonLine], problems: deque[Problem], name: str) -> tuple[Source, Iterator[JsonLine]]:
    """Return the format that recognises the first values, and an iterator over all lines from the first on."""
    known = [source(entry) for entry in SOURCES]
    seen: deque[JsonLine] = deque()
    for line in itertools.islice(lines, _SNIFFED_VALUES):
        seen.append(line)
        values = [early.value for early in seen]
        for candidate in known:
            if candidate.recognises(values):
                return candidate, itertools.chain(_pop_all(seen), lines)
    raise SourceError(
        f"{name} is not a session file of a known format ({', '.join(SOURCES)}): "
        f"{_describe_start(seen, problems)} Convert it to one of these."
    )


def _describe_start(seen: Iterable[JsonLine], problems: Iterable[Problem]) -> str:
    first = next(iter(seen), None)
    if first is not None and isinstance(first.value, dict):
        fields = ", ".join(str(key)[:40] for key in list(first.value)[:8])
        return f"its first value is an object with the fields {fields or '(none)'}."
    if first is not None:
        return f"its first value is of type {type(first.value).__name__}."
    damage = next(iter(problems), None)
    return (
        "it holds no text."
        if damage is None
        else f"line {damage.line}: {damage.text.partition(';')[0].rstrip('.')}."
    )


def _assign_ids(recordings: Iterable[Recording], name: str, problems: deque[Problem]) -> Iterator[Recording]:
    """Make the ids unique within the file; a recording without an id gets the file's name."""
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


def _pop_all(items: deque[T]) -> Iterator[T]:
    while items:
        yield items.popleft()
