"""Shrink logs: the kinds of their lines with counts, then the important lines, numbered.

Kinds are found as in the Drain log parser: two lines are of one kind when they have the same number of words and
most words in common, after numbers, times and ids are masked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from lading.shrink import Count, Sample, Shrinker, Shrunk, Target
from lading.shrink.folding import fold, unfold, verify
from lading.shrink.line_selection import Rank, RankedLines, rank_by_words, rank_terms, select_lines, split_lines

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
"""Words of a line that are compared; the rest counts as one word."""
_FIRST_WORDS = 2
_ALIKE = 0.6
"""Minimum share of equal words in lines of one kind."""
_MOST_COMPARED = 8
"""Kinds with the same first words that a line is compared with; of further kinds only equal lines match."""
_LEAST_OF_A_KIND = 3
_MOST_KIND_CHARS = 300
_RARE_LINES = 16
_LEVEL_WITHIN_CHARS = 160
_LEVEL = re.compile(
    r"\b(?:(TRACE|DEBUG|INFO|NOTICE|VERBOSE)|(WARN|WARNING)"
    r"|(ERROR|ERR|FATAL|CRITICAL|SEVERE|ALERT|EMERG|EMERGENCY|PANIC))\b"
)


class _LineKind(Struct):
    """A kind of lines that is being collected."""

    words: list[str]
    rank: int
    """ERROR, WARNING or REST: lines of different ranks are of different kinds."""
    first: int
    last: int
    """Indices of its first and last line so far."""
    count: int = 0


def find_error(text: str) -> str:
    """Return the first line of a log at the level of an error; empty if there is none."""
    for found in _LEVEL.finditer(text):
        if found[3]:
            before = text[max(found.start() - _LEVEL_WITHIN_CHARS, 0) : found.start()]
            start = found.start() - len(before) + before.rfind("\n") + 1
            if start and text[start - 1] != "\n":
                continue
            end = text.find("\n", found.end())
            line = text[start : end if end >= 0 else None]
            if _LOG_LINE.match(line):
                return line.strip()
    return ""


def _is_log(sample: Sample) -> bool:
    """Whether most lines start with a time or a level."""
    return len(sample.lines) >= 3 and sample.share(_LOG_LINE) >= 0.5


def _reduce(text: str, target: Target, count: Count) -> Shrunk | None:
    lines = split_lines(text)
    kinds, kind_of = _find_kinds(lines)
    ranks = rank_terms(lines, _rank_lines(kinds, kind_of), terms=target.terms)
    listed = [kind for kind in kinds if kind.count >= _LEAST_OF_A_KIND]
    found = RankedLines(
        [*map(_write_kind, listed), *(f"{number}: {line}" for number, line in enumerate(lines, 1))],
        [*map(_rank_kind, listed), *ranks],
        "log.kinds",
        sizes=[0] * len(listed) + [1] * len(lines),
        entries="kinds",
        unnoted_from=0,
        title=f"Log of {len(lines):,} lines: their kinds ({_MASK} is what varies), then lines with their numbers",
    )
    return select_lines(text, found, target=target, count=count)


SHRINKER = Shrinker(
    "log", _is_log, _reduce, lambda text: verify(text, {"log.folded": fold(text)}, decoders=_DECODERS), _DECODERS
)


def _find_kinds(lines: Sequence[str]) -> tuple[list[_LineKind], list[_LineKind]]:
    """Find the kinds in the order of their first lines, and the kind of each line. Linear in the lines."""
    kinds: list[_LineKind] = []
    kind_of: list[_LineKind] = []
    exact: dict[tuple[int, str], _LineKind] = {}
    near: dict[tuple[object, ...], list[_LineKind]] = {}
    rank = Rank.REST
    for place, (line, masked) in enumerate(zip(lines, _mask(lines), strict=True)):
        # Indented lines below an error belong to it, as in a stack trace.
        rank = min(_rank_level(line), Rank.WARNING if line[:1] in (" ", "\t") and rank < Rank.REST else Rank.REST)
        kind = exact.get((rank, masked))
        if kind is None:
            words = masked.split(None, _MOST_WORDS)
            siblings = near.setdefault((rank, len(words), *words[:_FIRST_WORDS]), [])
            kind = next((sibling for sibling in siblings if _is_alike(sibling.words, words)), None)
            if kind is None:
                kind = _LineKind(words, rank, first=place, last=place)
                kinds.append(kind)
                if len(siblings) < _MOST_COMPARED:
                    siblings.append(kind)
            elif kind.words != words:
                kind.words = [word if word == new else _MASK for word, new in zip(kind.words, words, strict=True)]
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


def _rank_level(line: str) -> int:
    """Rank by the line's level, or by its words when it has none. Error words at a lower level are a warning."""
    level = _LEVEL.search(line, 0, _LEVEL_WITHIN_CHARS)
    if level is None:
        return rank_by_words(line)
    if level[1]:
        return Rank.REST if rank_by_words(line) == Rank.REST else Rank.WARNING
    return Rank.WARNING if level[2] else Rank.ERROR


def _rank_lines(kinds: Sequence[_LineKind], kind_of: Sequence[_LineKind]) -> list[int]:
    """Rank the first and last line of a kind before its others, and rare kinds before frequent ones."""
    ranks = []
    for kind in kind_of:
        much = kind.count.bit_length() - 1
        rare = Rank.RARE + much if kind.count < _RARE_LINES else Rank.REST
        ranks.append(rare if kind.rank == Rank.REST else kind.rank + 10 + much)
    for kind in kinds:
        for place in (kind.first, kind.last):
            ranks[place] = min(ranks[place], Rank.EDGE if kind.rank == Rank.REST else kind.rank)
    return ranks


def _write_kind(kind: _LineKind) -> str:
    return f"{kind.count:,}x from line {kind.first + 1}: {' '.join(kind.words)[:_MOST_KIND_CHARS]}"


def _rank_kind(kind: _LineKind) -> int:
    """Rank kinds before rare lines, the most frequent kinds first."""
    return min(kind.rank, Rank.RARE) - min(kind.count.bit_length(), 40)
