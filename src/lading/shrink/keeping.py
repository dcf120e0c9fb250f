"""Keep lines of a text within a wish: the lowest ranks first, in their order, with notes of what is left out.

Shrinkers of line by line text rank the lines; ``keep`` finds how many fit. Ranks by what matters: lines that hold
a term of the request, what heads a table, the very ends, errors, warnings, what is rare, what is first and last of
its kind, the rest.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate, groupby, repeat
from operator import mul
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lading.shrink import Count, Shrunk, Wish
from lading.shrink.fitting import Kept, Units, fit_units, gap_note, heading, ratio
from lading.shrink.terms import find_units


class Rank:
    """The ranks of lines: the lowest are kept first."""

    TERM = 0
    """Ranks below TERM + 60 are those of terms: of each term the best line first."""
    HEAD = 80
    END = 90
    ERROR = 100
    WARNING = 150
    RARE = 200
    EDGE = 300
    REST = 400
    EVERY = 1_000
    """Higher than every rank: what has it never stays by itself."""


_OTHERS = Rank.TERM + 30
_EDGE_LINES = 10
_WORTH_A_NOTE_CHARS = 24
"""A gap that is no longer than its note is no gap."""

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


class Line(NamedTuple):
    """A line that may be left out."""

    text: str
    rank: int
    size: int = 1
    under: int = -1


class Lines(Struct, frozen=True):
    """Lines in their order, as columns, and how to write what is kept of them."""

    texts: Sequence[str]
    ranks: Sequence[int]
    """The lowest are kept first; of equals, those nearest to the first or the last of them."""
    form: str
    sizes: Sequence[int] = ()
    """How many lines of the original each is for; 1 when empty. One for many is a note about them, and they count
    as left out; one for none is an entry of a list."""
    under: Sequence[int] = ()
    """Place of the earlier line without which each is never kept; -1 for none, as when empty."""
    entries: str = "entries"
    """Plural noun for the lines of size 0, for the notes where some were left out."""
    unnoted_from: int = Rank.EVERY
    """Write no note where only lines of this rank or higher ones were left out. 0, no notes at all, is for lines
    that are numbered or counted."""
    most_chars: int = 2_000
    """Longer lines are clipped around words of the request. So are those longer than half of the room."""
    title: str = ""
    """Begins the first line, before how much was left out."""

    def rows(self) -> list[Line]:
        """List the lines one by one."""
        return [*map(Line, self.texts, self.ranks, self.sizes or repeat(1), self.under or repeat(-1))]

    def with_rows(self, rows: Sequence[Line]) -> Lines:
        """Replace the lines."""
        texts, ranks = [row.text for row in rows], [row.rank for row in rows]
        sizes, under = [row.size for row in rows], [row.under for row in rows]
        return replace(self, texts=texts, ranks=ranks, sizes=sizes, under=under)


def keep(text: str, lines: Lines, *, wish: Wish, count: Count) -> Shrunk | None:
    """Keep as many of the lines as fit, in their order, below a line that says how many are left out and where the
    original is. None as of ``fitting.fit_units``; ``text`` is the original."""
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
                shown.append(gap_note(sizes_before[place] - sizes_before[after], "line"))
            shown.append(line)
            after = place + 1
        total = sizes_before[-1]
        left = total - sum(sizes[place] == 1 for place in kept)
        shown[0] = heading(ratio(left, total, of="lines"), wish=wish, title=lines.title)
        return "\n".join(shown[:-1])

    gap_chars = _WORTH_A_NOTE_CHARS if lines.unnoted_from else 0
    units = Units(lines.texts, _order(lines.ranks), lines.under, lines.most_chars, gap_chars)
    fitted = fit_units(text, units, draw=draw, wish=wish, count=count)
    return Shrunk(fitted.text, lines.form) if fitted else None


def split_lines(text: str) -> list[str]:
    """Split into lines without colours, carriage returns, and the empty one after the last line end."""
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def rank_lines(lines: Sequence[str], terms: Iterable[str] = (), *, odd: Collection[int] = ()) -> list[int]:
    """Rank lines of no special kind: by terms, by words of errors and warnings, first and last lines; ``odd`` are
    the places of lines that are out of the ordinary."""
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
    """Give ERROR, WARNING or REST, by the words of the line."""
    folded = line[:_LOOKED_AT_CHARS].lower()
    if _ALARM.search(folded) is None:
        return Rank.REST
    return Rank.ERROR if _ERROR.search(folded) else Rank.WARNING


def rank_terms(lines: Sequence[str], ranks: Sequence[int], *, terms: Iterable[str]) -> list[int]:
    """Lower the ranks of lines that hold words of the request: the best line of each word, then the others."""
    lowered = list(ranks)
    found = find_units(lines, terms)
    for base, places in ((Rank.TERM, found.first), (_OTHERS, found.others)):
        for worse, place in enumerate(places):
            lowered[place] = min(lowered[place], base + min(worse, _OTHERS - Rank.TERM - 1))
    return lowered


def merge_rank(lines: Lines, rank: int, *, about: str, note_rank: int) -> Lines:
    """Merge neighbours of that rank into one note of how many lines about something were left out. A line alone of
    that rank stays."""
    if rank not in lines.ranks:
        return lines
    merged: list[Line] = []
    moved: list[int] = []
    for is_merged, run in groupby(lines.rows(), key=lambda line: line.rank == rank):
        group, start = list(run), len(merged)
        if is_merged and len(group) > 1:
            note = f"[{len(group):,} lines about {about} left out]"
            merged.append(Line(note, note_rank, len(group), group[0].under))
            moved += [start] * len(group)
        else:
            merged += group
            moved += range(start, len(merged))
    return lines.with_rows([Line(*line[:3], moved[line.under] if line.under >= 0 else -1) for line in merged])


def _order(ranks: Sequence[int]) -> list[int]:
    """Order places by rank; those of one rank in turn from the first and from the last."""
    of_rank: dict[int, list[int]] = {}
    for place, rank in enumerate(ranks):
        of_rank.setdefault(rank, []).append(place)
    of_rank.pop(Rank.EVERY, None)
    order: list[int] = []
    for _, places in sorted(of_rank.items()):
        middle = (len(places) + 1) // 2
        turns = places.copy()
        turns[::2], turns[1::2] = places[:middle], places[middle:][::-1]
        order += turns
    return order
