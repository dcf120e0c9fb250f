"""Shrink unified diffs: files with their numbers of changed lines, then changed lines before context lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from lading.shrink import Count, Sample, Shrinker, Shrunk, Target
from lading.shrink.folding import verify
from lading.shrink.line_selection import Rank, RankedLines, merge_rank, rank_terms, select_lines, split_lines
from lading.shrink.terms import pluralize

_START = re.compile(r"^@@ .*@@|^diff --git ", re.MULTILINE)
_NAMES = re.compile(r"^(diff --git (\S+) (\S+)\n(?:index .*\n)?)--- \2\n\+\+\+ \3\n(?=@@ )", re.MULTILINE)
_NO_NAMES = re.compile(r"^(diff --git (\S+) (\S+)\n(?:index .*\n)?)(?=@@ )", re.MULTILINE)
_GENERATED = re.compile(
    r"(?:^|/)(?:package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|poetry\.lock|uv\.lock|Pipfile\.lock"
    r"|Cargo\.lock|go\.sum|composer\.lock|Gemfile\.lock|flake\.lock|bun\.lockb?|gradle\.lockfile)$"
    r"|\.(?:min\.js|min\.css|map|snap|pb\.go|svg)$|_pb2(?:_grpc)?\.py$|(?:^|/)(?:dist|vendor|node_modules|__snapshots__)/"
)
_HUNK = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")

_HEADER_LINE = re.compile(
    r"index |[-+]{3} |(?:new|deleted|old) (?:file )?mode |(?:dis)?similarity |Binary |GIT binary"
)

_FILE_LIST = Rank.ERROR
_NOTE = Rank.ERROR + 20
_WORDS = Rank.ERROR + 30
"""Lines above the first file, such as the message of a commit."""
_CHANGE = Rank.RARE
_CONTEXT = Rank.REST
_WITH_TERM = {_CHANGE: Rank.ERROR + 10, _CONTEXT: Rank.EDGE}
"""New ranks of the lines in a hunk that has a term."""
_HEADER = Rank.REST + 50
_GENERATED_LINE = Rank.REST + 60
_FIRST_FILES = 100


class _DiffFile(Struct):
    """A file in the diff."""

    name: str
    is_generated: bool = False
    added: int = 0
    removed: int = 0


class _DiffState(Struct):
    """The state while reading a diff, with the ranks of all lines read."""

    ranks: list[int] = []
    under: list[int] = []
    files: list[_DiffFile] = []
    file_place: int = -1
    hunk_place: int = -1
    old_lines: int = 0
    new_lines: int = 0
    """Lines of the hunk, in each version, that are not yet read."""


def _is_diff(sample: Sample) -> bool:
    return ("@@ " in sample.head or "diff --git " in sample.head) and _START.search(sample.head) is not None


def _reshape(text: str) -> Iterator[Shrunk]:
    """Leave out the lines with names that a header repeats."""
    return verify(text, {"diff.headers": _NAMES.sub(r"\1", text)}, decoders=SHRINKER.decoders)


def _restore_names(text: str) -> str:
    return _NO_NAMES.sub(r"\1--- \2\n+++ \3\n", text)


def _reduce(text: str, target: Target, count: Count) -> Shrunk | None:
    texts = split_lines(text)
    state = _parse_diff(texts)
    files = state.files
    if not files:
        return None
    ranks = _rank_neighbours(rank_terms(texts, state.ranks, terms=target.terms), state.under)
    listed = files if len(files) > 1 else []
    first = len(listed)
    added, removed = sum(file.added for file in files), sum(file.removed for file in files)
    lines = RankedLines(
        [*(f"{file.name} +{file.added} -{file.removed}" for file in listed), *texts],
        [*(_FILE_LIST if place < _FIRST_FILES else Rank.EDGE for place in range(first)), *ranks],
        "diff.changes",
        sizes=[0] * first + [1] * len(texts),
        under=[-1] * first + [place + first if place >= 0 else -1 for place in state.under],
        entries="files",
        unnoted_from=_CONTEXT,
        title=f"Diff of {pluralize(len(files), 'file')}, +{added:,} -{removed:,}; "
        "no note stands where only lines around changes are left out",
    )
    changes = merge_rank(lines, _GENERATED_LINE, about="generated content", note_rank=_NOTE)
    return select_lines(text, changes, target=target, count=count)


SHRINKER = Shrinker("diff", _is_diff, _reduce, _reshape, {"diff.headers": _restore_names})


def _parse_diff(lines: Sequence[str]) -> _DiffState:
    state = _DiffState()
    for place, line in enumerate(lines):
        if state.old_lines > 0 or state.new_lines > 0:
            _read_hunk_line(state, line)
        else:
            _read_outer_line(state, place, lines)
    return state


def _read_hunk_line(state: _DiffState, line: str) -> None:
    mark, file = line[:1], state.files[-1]
    changed = mark in ("+", "-")
    state.old_lines -= mark not in ("+", "\\")
    state.new_lines -= mark not in ("-", "\\")
    file.added += mark == "+"
    file.removed += mark == "-"
    state.ranks.append(_GENERATED_LINE if file.is_generated else _CHANGE if changed else _CONTEXT)
    state.under.append(state.file_place if file.is_generated else state.hunk_place)


def _read_outer_line(state: _DiffState, place: int, lines: Sequence[str]) -> None:
    line = lines[place]
    rank, under = Rank.EDGE if state.files else _WORDS, -1
    if line.startswith("diff "):
        state.file_place = place
        state.files.append(_DiffFile(line.rpartition(" ")[2].removeprefix("b/")))
    elif line.startswith("--- ") and place + 1 < len(lines) and lines[place + 1].startswith("+++ "):
        rank, under = _read_names(state, place, lines)
    elif state.files and (hunk := _HUNK.match(line)):
        state.hunk_place = place
        state.old_lines, state.new_lines = (int(number or 1) for number in hunk.groups())
        file = state.files[-1]
        file.is_generated = _GENERATED.search(file.name) is not None
        rank, under = _GENERATED_LINE if file.is_generated else _CHANGE, state.file_place
    elif state.file_place >= 0 and _HEADER_LINE.match(line):
        rank, under = _HEADER, state.file_place
    state.ranks.append(rank)
    state.under.append(under)


def _read_names(state: _DiffState, place: int, lines: Sequence[str]) -> tuple[int, int]:
    """Rank the line with a file's old name, and find the index of its header; -1 if this line is the header."""
    names = [line[4:].split("\t")[0] for line in lines[place : place + 2]]
    name = names[0].removeprefix("a/") if names[1] == "/dev/null" else names[1].removeprefix("b/")
    if state.file_place >= 0 and state.file_place > state.hunk_place:
        state.files[-1].name = name
        return _HEADER, state.file_place
    state.file_place = place
    state.files.append(_DiffFile(name))
    return Rank.EDGE, -1


def _rank_neighbours(ranks: Sequence[int], under: Sequence[int]) -> list[int]:
    """Lower the ranks of the other lines in the hunk of a term."""
    hunks = {place for rank, place in zip(ranks, under, strict=True) if rank < Rank.ERROR and place >= 0}
    return [_WITH_TERM.get(rank, rank) if at in hunks else rank for rank, at in zip(ranks, under, strict=True)]
