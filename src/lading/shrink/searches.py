"""Hits of a search, ``path:line:text`` as grep and ripgrep print them: each path once, its hits below it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice

from msgspec import Struct

from lading.shrink import Count, Shrinker, Shrunk, Wish, only
from lading.shrink.folding import proven
from lading.shrink.keeping import EDGE, REST, Lines, keep, plain_lines, with_terms

FORM = "search.grouped"

_HEADING = "== "
_BETWEEN = "--"
"""What grep prints between hits that are apart."""
_HIT = re.compile(r"((?:[A-Za-z]:[\\/])?[^:\n]+):(?=[0-9]+:)")
_AROUND = re.compile(r"-(?=[0-9]+-)")
_BARE = re.compile(r"[0-9]+([:-])")
_MARKS_TRIED = 8
"""A line around a hit is ``path-line-text``; the path may hold such marks too, but hardly more."""
_FIRST_HITS = 3
_MOST_CHARS = 300
_LINE_AROUND = REST + 50


class _Hit(Struct, frozen=True):
    """A line, and the path it starts with; none where it is no hit."""

    line: str
    path: str = ""
    is_around: bool = False
    """Whether it is a line around a hit."""

    @property
    def bare(self) -> str:
        """The line without its path."""
        return self.line[len(self.path) + 1 :] if self.path else self.line


def _reshape(text: str) -> Iterator[Shrunk]:
    hits = _hits(text.split("\n"))
    paths = [hit.path for hit in hits if hit.path]
    shown: list[str] = []
    current, number = "", 0
    for hit in hits:
        number += bool(hit.path)
        if hit.path != current and hit.path in paths[number : number + 1]:
            shown.append(_HEADING + hit.path)
            current = hit.path
        shown.append(hit.bare if hit.path == current else hit.line)
    return proven(text, Shrunk("\n".join(shown), FORM, lossless=True), decode=only(FORM, _ungrouped))


def _ungrouped(text: str) -> str:
    lines: list[str] = []
    path = ""
    for line in text.split("\n"):
        if line.startswith(_HEADING):
            path = line.removeprefix(_HEADING)
        elif path and (number := _BARE.match(line)):
            lines.append(f"{path}{number[1]}{line}")
        else:
            lines.append(line)
    return "\n".join(lines)


def _reduce(text: str, wish: Wish, count: Count) -> Shrunk | None:
    hits = _hits(plain_lines(text))
    files: dict[str, list[int]] = {}
    for place, hit in enumerate(hits):
        if hit.path:
            files.setdefault(hit.path, []).append(place)
    if not files:
        return None
    ranks = with_terms([hit.line for hit in hits], _ranks(hits, files.values()), terms=wish.terms)
    kept = keep(text, _lines(hits, ranks, files=files), wish=wish, count=count)
    return None if kept is None else Shrunk(kept, "search.hits", lossless=False)


SHRINKER = Shrinker("search", _reduce, _reshape, only(FORM, _ungrouped))


def _hits(lines: Sequence[str]) -> list[_Hit]:
    found = [(line, hit[1] if (hit := _HIT.match(line)) else "") for line in lines]
    known = {path for _, path in found}
    return [_Hit(line, path) if path else _around(line, known) for line, path in found]


def _around(line: str, known: Set[str]) -> _Hit:
    for mark in islice(_AROUND.finditer(line), _MARKS_TRIED):
        if mark.start() and line[: mark.start()] in known:
            return _Hit(line, line[: mark.start()], is_around=True)
    return _Hit(line)


def _ranks(hits: Sequence[_Hit], files: Iterable[Sequence[int]]) -> list[int]:
    """The first hit of each file, beginning with those of most hits; a few more of each; the rest."""
    ranks = [EDGE] * len(hits)
    for places in files:
        found = [place for place in places if not hits[place].is_around]
        for place in places:
            ranks[place] = _LINE_AROUND if hits[place].is_around else REST
        for place in found[:_FIRST_HITS]:
            ranks[place] = EDGE
        ranks[found[0]] = _rank_of_file(len(found))
    return ranks


def _rank_of_file(hits: int) -> int:
    return EDGE - min(hits.bit_length(), 40)


def _lines(hits: Sequence[_Hit], ranks: Sequence[int], *, files: Mapping[str, Sequence[int]]) -> Lines:
    """Each file with its hits below it, between what stands before and after all hits."""
    first = min(places[0] for places in files.values())
    others = [place for place, hit in enumerate(hits) if not hit.path and hit.line != _BETWEEN]
    rows = [(hits[place].line, ranks[place], 1, -1) for place in others if place < first]
    total = 0
    for path, places in files.items():
        found = sum(not hits[place].is_around for place in places)
        head = len(rows)
        rows.append((f"{_HEADING}{path}: {found:,} {'hit' if found == 1 else 'hits'}", _rank_of_file(found), 0, -1))
        rows += ((hits[place].bare, ranks[place], 1, head) for place in places)
        total += found
    rows += ((hits[place].line, ranks[place], 1, -1) for place in others if place > first)
    texts, ranked, sizes, under = zip(*rows, strict=True)
    return Lines(
        texts,
        ranked,
        sizes=sizes,
        under=under,
        entries="files",
        unnoted_from=0,
        most_chars=_MOST_CHARS,
        title=f"{total:,} hits in {len(files):,} {'file' if len(files) == 1 else 'files'}",
    )
