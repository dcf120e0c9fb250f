"""Source text as lines and an outline, whatever its language, its gutter and its size."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from textwrap import dedent

from msgspec import Struct
from msgspec.structs import replace

from lading.shrink.grammars import grammar_outline, language
from lading.shrink.line_numbers import Line
from lading.shrink.outlines import Definition, Outline, outline, python_outline

_HEAD_CHARS = 120_000
_TAIL_CHARS = 30_000
"""Of larger texts only the start and the end are read for definitions."""

_LEAST_FOLDED = 3
_MOST_FOLDED_CHARS = 160
_LOOKED_AT_CHARS = 400
_MODULES = (
    re.compile(r"\bfrom\s+['\"]?([\w./@-]+)"),
    re.compile(r"['\"<]([\w./@-]+)['\">]"),
    re.compile(r"^\s*(?:pub\s+)?(?:use|using|import(?:\s+static)?)\s+([\w.:*]+)"),
)
"""How a line of imports names a module, surest first."""


class Fold(Struct, frozen=True):
    """Imports that are shown as one line."""

    last: int
    text: str


class Source(Struct, frozen=True):
    """A text as lines, and what stands where. Lines are counted from 0."""

    lines: tuple[Line, ...]
    written: tuple[int, ...]
    """Lines that are not blank."""
    spans: tuple[tuple[int, int], ...]
    """What was read for definitions: first line, and the line after the last."""
    definitions: tuple[Definition, ...]
    folds: dict[int, Fold]
    """By the first line of the imports."""

    def written_in(self, start: int, end: int) -> int:
        """How many lines from ``start`` to before ``end`` are not blank."""
        return max(bisect_left(self.written, end) - bisect_left(self.written, start), 0)


def read(lines: Sequence[Line]) -> Source:
    """What stands where in the lines of a file, or of a piece of one."""
    spans = _spans(lines)
    spoken = language([line.text for line in lines[: spans[0][1]] if not line.is_foreign])
    definitions: list[Definition] = []
    imports: list[tuple[int, int]] = []
    for start, end in spans:
        part = _outline(_parseable(lines[start:end]), spoken)
        definitions.extend(_moved(definition, start) for definition in part.definitions)
        imports.extend((first + start, last + start) for first, last in part.imports)
    written = tuple(at for at, line in enumerate(lines) if line.text.strip())
    return Source(tuple(lines), written, spans, tuple(definitions), _folds(imports, lines))


def _spans(lines: Sequence[Line]) -> tuple[tuple[int, int], ...]:
    head = _reach(lines, _HEAD_CHARS)
    tail = len(lines) - _reach(reversed(lines), _TAIL_CHARS)
    return ((0, len(lines)),) if tail <= head else ((0, head), (tail, len(lines)))


def _reach(lines: Iterable[Line], most_chars: int) -> int:
    """How many lines have that many characters."""
    reached = chars = 0
    for line in lines:
        chars += len(line.text) + 1
        if chars > most_chars:
            break
        reached += 1
    return reached


def _parseable(lines: Sequence[Line]) -> list[str]:
    """As many lines, without what is no code and without the indentation that all have."""
    bare = ["" if line.is_foreign else line.text.replace("\r", " ").rstrip() for line in lines]
    return dedent("\n".join(bare)).split("\n")


def _outline(lines: Sequence[str], spoken: str) -> Outline:
    exact = python_outline(lines) if spoken == "python" else grammar_outline(lines, spoken)
    if exact and exact.is_whole:
        return exact
    plain = outline(lines)
    return exact if exact and len(exact.definitions) >= len(plain.definitions) else plain


def _moved(definition: Definition, by: int) -> Definition:
    return replace(
        definition,
        start=definition.start + by,
        head_end=definition.head_end + by,
        end=definition.end + by,
        doc=None if definition.doc is None else definition.doc + by,
    )


def _folds(imports: Iterable[tuple[int, int]], lines: Sequence[Line]) -> dict[int, Fold]:
    merged: list[tuple[int, int]] = []
    for first, last in imports:
        if merged and not any(line.text.strip() for line in lines[merged[-1][1] + 1 : first]):
            merged[-1] = (merged[-1][0], last)
        else:
            merged.append((first, last))
    return {
        first: Fold(last, _folded([line.text for line in lines[first : last + 1]]))
        for first, last in merged
        if last - first + 1 >= _LEAST_FOLDED
    }


def _folded(lines: Sequence[str]) -> str:
    tried = ((pattern.search(line[:_LOOKED_AT_CHARS]) for pattern in _MODULES) for line in lines)
    found = (next(filter(None, matches), None) for matches in tried)
    modules = ", ".join(dict.fromkeys(match.group(1) for match in found if match))
    if len(modules) > _MOST_FOLDED_CHARS:
        modules = modules[:_MOST_FOLDED_CHARS].rsplit(", ", 1)[0] + ", ..."
    return f"[{len(lines)} lines of imports: {modules}]" if modules else f"[{len(lines)} lines of imports]"
