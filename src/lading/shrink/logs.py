"""Shrink logs: their kinds of lines and how often each came, then the lines that matter, numbered.

Kinds are mined as Drain does: lines are alike when they have as many words and most of them in common, once what
varies (numbers, times, ids) is masked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from lading.shrink import Count, Sample, Shrinker, Shrunk, Wish
from lading.shrink.folding import fold, unfold, verify
from lading.shrink.keeping import Lines, Rank, keep, rank_by_words, rank_terms, split_lines

_DECODERS = {"log.folded": unfold}
_LOG_LINE = re.compile(
    r"^\W{0,2}(?:\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d\b|[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d"
    r"|\W?(?:DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL)\b)"
    r"|^\S+(?:\(\d+,\d+\)|:\d+:\d+): (?:error|warning)\b"
)
_MASK = "<*>"
_VARYING = re.compile(r"\b[^\W\d]*\d\w*")
_PATHS = re.compile(r"(?<![\w<>*.-])(?:/[\w<>*.+@-]+){2,}")
_MASKS = re.compile(r"<\*>(?:[-.:,/+]? ?<\*>)+")
_MOST_WORDS = 48
"""Words of a line that are compared; the rest of it is one word more."""
_FIRST_WORDS = 2
_ALIKE = 0.6
"""Share of words that are the same in lines of one kind."""
_MOST_COMPARED = 8
"""Kinds with the same first words that a line is compared with; further ones must be equal."""
_LEAST_OF_A_KIND = 3
_MOST_KIND_CHARS = 300
_RARE_LINES = 16
_LEVEL_WITHIN_CHARS = 160
_LEVEL = re.compile(
    r"\b(?:(TRACE|DEBUG|INFO|NOTICE|VERBOSE)|(WARN|WARNING)"
    r"|(ERROR|ERR|FATAL|CRITICAL|SEVERE|ALERT|EMERG|EMERGENCY|PANIC))\b"
)


class _Kind(Struct):
    """A kind of lines while it is mined."""

    words: list[str]
    rank: int
    """ERROR, WARNING or REST: lines of different ranks are never of one kind."""
    first: int
    last: int
    """Places of its first and last line."""
    count: int = 0


def _is_log(sample: Sample) -> bool:
    """Recognise lines that start with a time or a level."""
    return len(sample.lines) >= 3 and sample.share(_LOG_LINE) >= 0.5


def _reduce(text: str, wish: Wish, count: Count) -> Shrunk | None:
    lines = split_lines(text)
    kinds, kind_of = _mine(lines)
    ranks = rank_terms(lines, _ranks(kinds, kind_of), terms=wish.terms)
    listed = [kind for kind in kinds if kind.count >= _LEAST_OF_A_KIND]
    found = Lines(
        [*map(_list, listed), *(f"{number}: {line}" for number, line in enumerate(lines, 1))],
        [*map(_rank_of_list, listed), *ranks],
        "log.kinds",
        sizes=[0] * len(listed) + [1] * len(lines),
        entries="kinds",
        unnoted_from=0,
        title=f"Log of {len(lines):,} lines: their kinds ({_MASK} is what varies), then lines with their numbers",
    )
    return keep(text, found, wish=wish, count=count)


SHRINKER = Shrinker(
    "log", _is_log, _reduce, lambda text: verify(text, {"log.folded": fold(text)}, decoders=_DECODERS), _DECODERS
)


def _mine(lines: Sequence[str]) -> tuple[list[_Kind], list[_Kind]]:
    """Find the kinds in order of their first line, and the kind of each line. Time linear in the lines."""
    kinds: list[_Kind] = []
    kind_of: list[_Kind] = []
    exact: dict[tuple[int, str], _Kind] = {}
    near: dict[tuple[object, ...], list[_Kind]] = {}
    rank = Rank.REST
    for place, (line, masked) in enumerate(zip(lines, _mask(lines), strict=True)):
        # What is indented below an error goes on with it, as a stack trace does.
        rank = min(_severity(line), Rank.WARNING if line[:1] in (" ", "\t") and rank < Rank.REST else Rank.REST)
        kind = exact.get((rank, masked))
        if kind is None:
            words = masked.split(None, _MOST_WORDS)
            siblings = near.setdefault((rank, len(words), *words[:_FIRST_WORDS]), [])
            kind = next((sibling for sibling in siblings if _is_alike(sibling.words, words)), None)
            if kind is None:
                kind = _Kind(words, rank, first=place, last=place)
                kinds.append(kind)
                if len(siblings) < _MOST_COMPARED:
                    siblings.append(kind)
            elif kind.words != words:
                kind.words = [
                    word if word == other else _MASK for word, other in zip(kind.words, words, strict=True)
                ]
            exact[rank, masked] = kind
        kind.last = place
        kind.count += 1
        kind_of.append(kind)
    return kinds, kind_of


def _mask(lines: Iterable[str]) -> list[str]:
    text = "\n".join(lines)
    return _MASKS.sub(_MASK, _PATHS.sub(_MASK, _VARYING.sub(_MASK, text))).split("\n")


def _is_alike(words: Sequence[str], others: Sequence[str]) -> bool:
    return sum(map(str.__eq__, words, others)) >= _ALIKE * len(words)


def _severity(line: str) -> int:
    """Rank by the line's level; by its words where it has none. Words of errors at a quiet level are a warning."""
    level = _LEVEL.search(line, 0, _LEVEL_WITHIN_CHARS)
    if level is None:
        return rank_by_words(line)
    if level[1]:
        return Rank.REST if rank_by_words(line) == Rank.REST else Rank.WARNING
    return Rank.WARNING if level[2] else Rank.ERROR


def _ranks(kinds: Sequence[_Kind], kind_of: Sequence[_Kind]) -> list[int]:
    """Rank first and last lines of a kind before those between; rare kinds first."""
    ranks = []
    for kind in kind_of:
        much = kind.count.bit_length() - 1
        rare = Rank.RARE + much if kind.count < _RARE_LINES else Rank.REST
        ranks.append(rare if kind.rank == Rank.REST else kind.rank + 10 + much)
    for kind in kinds:
        for place in (kind.first, kind.last):
            ranks[place] = min(ranks[place], Rank.EDGE if kind.rank == Rank.REST else kind.rank)
    return ranks


def _list(kind: _Kind) -> str:
    return f"{kind.count:,}x from line {kind.first + 1}: {' '.join(kind.words)[:_MOST_KIND_CHARS]}"


def _rank_of_list(kind: _Kind) -> int:
    """Rank before rare lines; the kinds of most lines first."""
    return min(kind.rank, Rank.RARE) - min(kind.count.bit_length(), 40)
