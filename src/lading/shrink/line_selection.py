"""Select the lines of a text that fit a target: the lowest ranks first, in their order, with notes for gaps.

Shrinkers of line-based text rank the lines; ``select_lines`` finds how many fit. The ranks in order of importance:
lines with a term of the request, headers of tables, the first and last line, errors, warnings, rare lines, the
first and last lines of a kind, the rest.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate, groupby, repeat
from operator import mul
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lading.shrink import Count, Shrunk, Target
from lading.shrink.fitting import Kept, Units, fit_units, write_gap_note, write_heading, write_ratio
from lading.shrink.terms import find_units


class Rank:
    """The ranks of lines: the lowest are kept first."""

    TERM = 0
    """Ranks below TERM + 60 are lines with terms: the best line of each term first."""
    HEAD = 80
    END = 90
    ERROR = 100
    WARNING = 150
    RARE = 200
    EDGE = 300
    REST = 400
    NEVER = 1_000
    """Lines of this rank are never kept for their own sake."""


_OTHERS = Rank.TERM + 30
_EDGE_LINES = 10
_WORTH_A_NOTE_CHARS = 24
"""Shorter gaps are filled: their note would be as long."""

ALARMS = (
    "error", "exception", "fatal", "critical", "panic", "failed", "failure", "traceback", "denied", "refused",
    "abort", "segfault", "timed out", "unreachable", "corrupt", "out of memory",
)  # fmt: skip
"""Words of lines that report an error."""
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_ERROR = re.compile("|".join((*ALARMS, r"fails?\b")))
_WARNING = re.compile(r"warn|deprecat")
_ALARM = re.compile(f"{_ERROR.pattern}|{_WARNING.pattern}")
_LOOKED_AT_CHARS = 2_000


class RankedLine(NamedTuple):
    """A line with its rank; the fields are those of a row of ``RankedLines``."""

    text: str
    rank: int
    size: int = 1
    under: int = -1


class RankedLines(Struct, frozen=True):
    """Lines in their order, as columns, and how to write the selected ones."""

    texts: Sequence[str]
    ranks: Sequence[int]
    """The lowest are kept first; of equal ranks, those nearest to the first or last line of that rank."""
    form: str
    sizes: Sequence[int] = ()
    """Number of original lines that each represents; 1 when empty. A line of size 2 or more is a note about lines
    that count as left out; one of size 0 is an entry of a list."""
    under: Sequence[int] = ()
    """Index of the earlier line that each requires; -1 for none, as when empty."""
    entries: str = "entries"
    """Plural noun for the lines of size 0, for notes about those left out."""
    unnoted_from: int = Rank.NEVER
    """Gaps with only lines of this rank or higher get no note; 0 is for numbered or counted lines."""
    most_chars: int = 2_000
    """Longer lines are clipped around terms, as are lines longer than half of the target."""
    title: str = ""
    """Start of the first line, before the counts of what was left out."""

    def to_rows(self) -> list[RankedLine]:
        """List the lines one by one."""
        return [*map(RankedLine, self.texts, self.ranks, self.sizes or repeat(1), self.under or repeat(-1))]

    def with_rows(self, rows: Sequence[RankedLine]) -> RankedLines:
        """Replace the lines by these."""
        texts, ranks = [row.text for row in rows], [row.rank for row in rows]
        sizes, under = [row.size for row in rows], [row.under for row in rows]
        return replace(self, texts=texts, ranks=ranks, sizes=sizes, under=under)


def select_lines(text: str, lines: RankedLines, *, target: Target, count: Count) -> Shrunk | None:
    """Write as many of the lines as fit, in their order, below a line with the number of lines left out and the
    address of the original. None when ``fitting.fit_units`` returns None; ``text`` is the original."""
    sizes = lines.sizes or [1] * len(lines.texts)
    is_noted = [rank < lines.unnoted_from for rank in lines.ranks]
    sizes_before = [0, *accumulate(sizes)]
    noted_before = [0, *accumulate(map(mul, sizes, is_noted))]
    entries_before = [0, *accumulate(size == 0 for size in sizes)]

    def draw(kept: Kept) -> str:
        shown, after = [""], 0
        for place, line in (*kept.items(), (len(sizes), "")):
            if left := entries_before[place] - entries_before[after]:
                shown.append(f"[{left:,} more of the {lines.entries} left out]")
            if noted_before[place] > noted_before[after]:
                shown.append(write_gap_note(sizes_before[place] - sizes_before[after], "line"))
            shown.append(line)
            after = place + 1
        total = sizes_before[-1]
        left = total - sum(sizes[place] == 1 for place in kept)
        shown[0] = write_heading(write_ratio(left, total, of="lines"), target=target, title=lines.title)
        return "\n".join(shown[:-1])

    gap_chars = _WORTH_A_NOTE_CHARS if lines.unnoted_from else 0
    units = Units(lines.texts, _order_by_rank(lines.ranks), lines.under, lines.most_chars, gap_chars)
    fitted = fit_units(text, units, draw=draw, target=target, count=count)
    return Shrunk(fitted.text, lines.form) if fitted else None


def split_lines(text: str) -> list[str]:
    """Split into lines without colour codes, carriage returns, and the empty line after the last line end."""
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def rank_lines(lines: Sequence[str], terms: Iterable[str] = (), *, odd: Collection[int] = ()) -> list[int]:
    """Rank lines by terms, words of errors and warnings, and position; ``odd`` are the indices of unusual lines."""
    ranks = [rank_by_words(line) for line in lines]
    places = range(len(lines))
    for place in (*places[:_EDGE_LINES], *places[max(len(lines) - _EDGE_LINES, 0) :]):
        ranks[place] = min(ranks[place], Rank.EDGE)
    for place in odd:
        ranks[place] = min(ranks[place], Rank.RARE)
    for place in (*places[:1], *places[-1:]):
        ranks[place] = Rank.END
    return rank_terms(lines, ranks, terms=terms)


def rank_by_words(line: str) -> int:
    """Return ERROR, WARNING or REST, by the words of the line."""
    folded = line[:_LOOKED_AT_CHARS].lower()
    if _ALARM.search(folded) is None:
        return Rank.REST
    return Rank.ERROR if _ERROR.search(folded) else Rank.WARNING


def rank_terms(lines: Sequence[str], ranks: Sequence[int], *, terms: Iterable[str]) -> list[int]:
    """Lower the ranks of lines with terms: the best line of each term first, then the others."""
    lowered = list(ranks)
    found = find_units(lines, terms)
    for base, places in ((Rank.TERM, found.first), (_OTHERS, found.others)):
        for worse, place in enumerate(places):
            lowered[place] = min(lowered[place], base + min(worse, _OTHERS - Rank.TERM - 1))
    return lowered


def merge_rank(lines: RankedLines, rank: int, *, about: str, note_rank: int) -> RankedLines:
    """Merge adjacent lines of that rank into a note with their number and topic; a single line remains."""
    if rank not in lines.ranks:
        return lines
    merged: list[RankedLine] = []
    moved: list[int] = []
    for is_merged, run in groupby(lines.to_rows(), key=lambda line: line.rank == rank):
        group, start = list(run), len(merged)
        if is_merged and len(group) > 1:
            note = f"[{len(group):,} lines about {about} left out]"
            merged.append(RankedLine(note, note_rank, len(group), group[0].under))
            moved += [start] * len(group)
        else:
            merged += group
            moved += range(start, len(merged))
    return lines.with_rows([RankedLine(*line[:3], moved[line.under] if line.under >= 0 else -1) for line in merged])


def _order_by_rank(ranks: Sequence[int]) -> list[int]:
    """Order indices by rank; within a rank, alternate between the first and the last."""
    of_rank: dict[int, list[int]] = {}
    for place, rank in enumerate(ranks):
        of_rank.setdefault(rank, []).append(place)
    of_rank.pop(Rank.NEVER, None)
    order: list[int] = []
    for _, places in sorted(of_rank.items()):
        middle = (len(places) + 1) // 2
        turns = places.copy()
        turns[::2], turns[1::2] = places[:middle], places[middle:][::-1]
        order += turns
    return order
