"""Read source code of any language and size, with or without line numbers, as lines and an outline."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise
from textwrap import dedent

from msgspec import Struct
from msgspec.structs import replace

from lading.shrink.grammars import outline_by_grammar, recognise_language
from lading.shrink.outlines import Definition, Outline, outline_by_indentation, outline_python

_HEAD_CHARS = 120_000
_TAIL_CHARS = 30_000
"""Of larger texts only this much of the start and of the end is outlined."""

_NUMBERED = re.compile(r" {0,12}([0-9]{1,7})([→|:\t]| {1,2}|$)")
_LEAST_NUMBERED = 3
_LEAST_SHARE = 0.7
_LEAST_FOLDED = 3
_MOST_FOLDED_CHARS = 160
_LOOKED_AT_CHARS = 400
_MODULES = (
    re.compile(r"\bfrom\s+['\"]?([\w./@-]+)"),
    re.compile(r"['\"<]([\w./@-]+)['\">]"),
    re.compile(r"^\s*(?:pub\s+)?(?:use|using|import(?:\s+static)?)\s+([\w.:*]+)"),
)
"""Patterns for the module's name in an import, the most reliable first."""


class SourceLine(Struct, frozen=True):
    """A line without its gutter."""

    text: str
    number: int
    """Its number in the file, or, in text without line numbers, in the text."""
    is_foreign: bool = False
    """Whether it is the viewer's own text among numbered lines."""


class Fold(Struct, frozen=True):
    """Imports that are shown as one line."""

    last: int
    text: str


class SourceText(Struct, frozen=True):
    """A text as lines, and its outline. Lines are counted from 0."""

    lines: tuple[SourceLine, ...]
    written: tuple[int, ...]
    """Lines that are not blank."""
    spans: tuple[tuple[int, int], ...]
    """The parts that were outlined: first line, and the line after the last."""
    definitions: tuple[Definition, ...]
    folds: dict[int, Fold]
    """Folded imports by their first line."""

    def count_written(self, start: int, end: int) -> int:
        """Count the lines from ``start`` to before ``end`` that are not blank."""
        return max(bisect_left(self.written, end) - bisect_left(self.written, start), 0)


def read_source(text: str) -> SourceText:
    """Read a file, or a part of one."""
    lines = read_lines(text)
    spans = _find_spans(lines)
    language = recognise_language([line.text for line in lines[: spans[0][1]] if not line.is_foreign])
    definitions: list[Definition] = []
    imports: list[tuple[int, int]] = []
    for start, end in spans:
        part = _make_outline(_strip_viewer_text(lines[start:end]), language)
        definitions.extend(_shift(definition, start) for definition in part.definitions)
        imports.extend((first + start, last + start) for first, last in part.imports)
    written = tuple(at for at, line in enumerate(lines) if line.text.strip())
    return SourceText(tuple(lines), written, spans, tuple(definitions), _fold_imports(imports, lines))


def read_lines(text: str) -> list[SourceLine]:
    """Split a text into lines, and remove the line numbers if most lines have one."""
    plain = [line.rstrip("\r") for line in text.split("\n")]
    found = [_NUMBERED.match(line) for line in plain]
    numbers = [int(match.group(1)) for match in found if match]
    if not _is_gutter(numbers, sum(bool(line.strip()) for line in plain)):
        return [SourceLine(line, number) for number, line in enumerate(plain, 1)]
    numbered: list[SourceLine] = []
    last = max(numbers[0] - 1, 0)
    for line, match in zip(plain, found, strict=True):
        if match:
            last = int(match.group(1))
            numbered.append(SourceLine(line[match.end() :], last))
        else:
            numbered.append(SourceLine(line, last, is_foreign=True))
    return numbered


def _is_gutter(numbers: Sequence[int], written: int) -> bool:
    if len(numbers) < max(_LEAST_NUMBERED, _LEAST_SHARE * written):
        return False
    return all(before < after for before, after in pairwise(numbers))


def _find_spans(lines: Sequence[SourceLine]) -> tuple[tuple[int, int], ...]:
    head = _count_within(lines, _HEAD_CHARS)
    tail = len(lines) - _count_within(reversed(lines), _TAIL_CHARS)
    return ((0, len(lines)),) if tail <= head else ((0, head), (tail, len(lines)))


def _count_within(lines: Iterable[SourceLine], most_chars: int) -> int:
    """Count the first lines that together have at most ``most_chars``."""
    reached = chars = 0
    for line in lines:
        chars += len(line.text) + 1
        if chars > most_chars:
            break
        reached += 1
    return reached


def _strip_viewer_text(lines: Sequence[SourceLine]) -> list[str]:
    """Blank the viewer's own text, and remove the common indentation."""
    bare = ["" if line.is_foreign else line.text.replace("\r", " ").rstrip() for line in lines]
    return dedent("\n".join(bare)).split("\n")


def _make_outline(lines: Sequence[str], language: str) -> Outline:
    exact = outline_python(lines) if language == "python" else outline_by_grammar(lines, language)
    if exact and exact.is_whole:
        return exact
    plain = outline_by_indentation(lines)
    return exact if exact and len(exact.definitions) >= len(plain.definitions) else plain


def _shift(definition: Definition, by: int) -> Definition:
    return replace(
        definition,
        start=definition.start + by,
        head_end=definition.head_end + by,
        end=definition.end + by,
        doc=None if definition.doc is None else definition.doc + by,
    )


def _fold_imports(imports: Iterable[tuple[int, int]], lines: Sequence[SourceLine]) -> dict[int, Fold]:
    merged: list[tuple[int, int]] = []
    for first, last in imports:
        if merged and not any(line.text.strip() for line in lines[merged[-1][1] + 1 : first]):
            merged[-1] = (merged[-1][0], last)
        else:
            merged.append((first, last))
    return {
        first: Fold(last, _write_fold([line.text for line in lines[first : last + 1]]))
        for first, last in merged
        if last - first + 1 >= _LEAST_FOLDED
    }


def _write_fold(lines: Sequence[str]) -> str:
    tried = ((pattern.search(line[:_LOOKED_AT_CHARS]) for pattern in _MODULES) for line in lines)
    found = (next(filter(None, matches), None) for matches in tried)
    modules = ", ".join(dict.fromkeys(match.group(1) for match in found if match))
    if len(modules) > _MOST_FOLDED_CHARS:
        modules = modules[:_MOST_FOLDED_CHARS].rsplit(", ", 1)[0] + ", ..."
    return f"[{len(lines)} lines of imports: {modules}]" if modules else f"[{len(lines)} lines of imports]"
