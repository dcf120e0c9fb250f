"""Shrink unified diffs: files with how much changed in each, then changed lines before what is around them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from lading.shrink import Count, Sample, Shrinker, Shrunk, Wish
from lading.shrink.folding import verify
from lading.shrink.keeping import Lines, Rank, keep, merge_rank, rank_terms, split_lines
from lading.shrink.terms import plural

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
"""What stands above the first file, such as the message of a commit."""
_CHANGE = Rank.RARE
_CONTEXT = Rank.REST
_WITH_TERM = {_CHANGE: Rank.ERROR + 10, _CONTEXT: Rank.EDGE}
"""What becomes of ranks in a hunk that holds a term."""
_HEADER = Rank.REST + 50
_GENERATED_LINE = Rank.REST + 60
_FIRST_FILES = 100


class _File(Struct):
    """A file in the diff."""

    name: str
    is_generated: bool = False
    added: int = 0
    removed: int = 0


class _Walk(Struct):
    """The state of a walk down the diff. Ranks are those of all lines so far."""

    ranks: list[int] = []
    under: list[int] = []
    files: list[_File] = []
    file_place: int = -1
    hunk_place: int = -1
    old_lines: int = 0
    new_lines: int = 0
    """Lines of the hunk that are still to come."""


def _is_diff(sample: Sample) -> bool:
    return ("@@ " in sample.head or "diff --git " in sample.head) and _START.search(sample.head) is not None


def _reshape(text: str) -> Iterator[Shrunk]:
    """Leave out the lines of names that a header repeats."""
    return verify(text, {"diff.headers": _NAMES.sub(r"\1", text)}, decoders=SHRINKER.decoders)


def _restore_names(text: str) -> str:
    return _NO_NAMES.sub(r"\1--- \2\n+++ \3\n", text)


def _reduce(text: str, wish: Wish, count: Count) -> Shrunk | None:
    texts = split_lines(text)
    walk = _walk(texts)
    files = walk.files
    if not files:
        return None
    ranks = _rank_neighbours(rank_terms(texts, walk.ranks, terms=wish.terms), walk.under)
    listed = files if len(files) > 1 else []
    first = len(listed)
    added, removed = sum(file.added for file in files), sum(file.removed for file in files)
    lines = Lines(
        [*(f"{file.name} +{file.added} -{file.removed}" for file in listed), *texts],
        [*(_FILE_LIST if place < _FIRST_FILES else Rank.EDGE for place in range(first)), *ranks],
        "diff.changes",
        sizes=[0] * first + [1] * len(texts),
        under=[-1] * first + [place + first if place >= 0 else -1 for place in walk.under],
        entries="files",
        unnoted_from=_CONTEXT,
        title=f"Diff of {plural(len(files), 'file')}, +{added:,} -{removed:,}; "
        "no note stands where only lines around changes are left out",
    )
    changes = merge_rank(lines, _GENERATED_LINE, about="generated content", note_rank=_NOTE)
    return keep(text, changes, wish=wish, count=count)


SHRINKER = Shrinker("diff", _is_diff, _reduce, _reshape, {"diff.headers": _restore_names})


def _walk(lines: Sequence[str]) -> _Walk:
    walk = _Walk()
    for place, line in enumerate(lines):
        if walk.old_lines > 0 or walk.new_lines > 0:
            _read_hunk_line(walk, line)
        else:
            _read_outer_line(walk, place, lines)
    return walk


def _read_hunk_line(walk: _Walk, line: str) -> None:
    mark, file = line[:1], walk.files[-1]
    changed = mark in ("+", "-")
    walk.old_lines -= mark not in ("+", "\\")
    walk.new_lines -= mark not in ("-", "\\")
    file.added += mark == "+"
    file.removed += mark == "-"
    walk.ranks.append(_GENERATED_LINE if file.is_generated else _CHANGE if changed else _CONTEXT)
    walk.under.append(walk.file_place if file.is_generated else walk.hunk_place)


def _read_outer_line(walk: _Walk, place: int, lines: Sequence[str]) -> None:
    line = lines[place]
    rank, under = Rank.EDGE if walk.files else _WORDS, -1
    if line.startswith("diff "):
        walk.file_place = place
        walk.files.append(_File(line.rpartition(" ")[2].removeprefix("b/")))
    elif line.startswith("--- ") and place + 1 < len(lines) and lines[place + 1].startswith("+++ "):
        rank, under = _read_names(walk, place, lines)
    elif walk.files and (hunk := _HUNK.match(line)):
        walk.hunk_place = place
        walk.old_lines, walk.new_lines = (int(number or 1) for number in hunk.groups())
        file = walk.files[-1]
        file.is_generated = _GENERATED.search(file.name) is not None
        rank, under = _GENERATED_LINE if file.is_generated else _CHANGE, walk.file_place
    elif walk.file_place >= 0 and _HEADER_LINE.match(line):
        rank, under = _HEADER, walk.file_place
    walk.ranks.append(rank)
    walk.under.append(under)


def _read_names(walk: _Walk, place: int, lines: Sequence[str]) -> tuple[int, int]:
    """Rank the line with the old name of a file, and find its header: none where it starts the file."""
    names = [line[4:].split("\t")[0] for line in lines[place : place + 2]]
    name = names[0].removeprefix("a/") if names[1] == "/dev/null" else names[1].removeprefix("b/")
    if walk.file_place >= 0 and walk.file_place > walk.hunk_place:
        walk.files[-1].name = name
        return _HEADER, walk.file_place
    walk.file_place = place
    walk.files.append(_File(name))
    return Rank.EDGE, -1


def _rank_neighbours(ranks: Sequence[int], under: Sequence[int]) -> list[int]:
    """Lower the ranks of what surrounds a term in its hunk."""
    hunks = {place for rank, place in zip(ranks, under, strict=True) if rank < Rank.ERROR and place >= 0}
    return [
        _WITH_TERM.get(rank, rank) if place in hunks else rank for rank, place in zip(ranks, under, strict=True)
    ]
