"""Which lines of a text stay within a wish: the lowest ranks first, in their order, with honest notes.

Shrinkers of line by line text rank the lines; ``keep`` finds how many fit. Ranks by what matters: lines that hold
a term of the request, what heads a table, the very ends, errors, warnings, what is rare, what is first and last of
its kind, the rest.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate, groupby

from msgspec import Struct
from msgspec.structs import replace

from lading.shrink import Count, Wish
from lading.shrink.fitting import Kept, Units, fitted
from lading.shrink.notes import gap, heading, share
from lading.shrink.terms import matches

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

_OTHERS = TERM + 30
_WORTH_A_NOTE_CHARS = 24
"""A gap that is no longer than its note is no gap."""

ALARMS = (
    "error", "exception", "fatal", "critical", "panic", "failed", "failure", "traceback", "denied", "refused",
    "abort", "segfault", "timed out", "unreachable", "corrupt", "out of memory",
)  # fmt: skip
"""What lines that tell of an error hold."""
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_ERROR = re.compile("|".join((*ALARMS, r"fails?\b")))
_WARNING = re.compile(r"warn|deprecat")
_ALARM = re.compile(f"{_ERROR.pattern}|{_WARNING.pattern}")
_LOOKED_AT_CHARS = 2_000


class Lines(Struct, frozen=True):
    """Lines in their order, some of which may be left out. Sequences that are not empty are equally long."""

    texts: Sequence[str]
    ranks: Sequence[int]
    """The lowest are kept first; of equals, those nearest to the first or the last of them."""
    sizes: Sequence[int] = ()
    """How many lines of the original each stands for; 1 when empty. What stands for many is a note about them, and
    they count as left out; what stands for none is an entry of a list."""
    entries: str = "entries"
    """What the lines that stand for none are, for the notes where some were left out."""
    under: Sequence[int] = ()
    """The earlier line that each stands under and never without; -1 for none, as when empty."""
    unnoted_from: int = EVERY
    """No note stands where only lines of this rank or higher ones were left out. 0, no notes at all, is for lines
    that are numbered or counted."""
    most_chars: int = 2_000
    """Longer lines are clipped around words of the request. So are those longer than half of the room."""
    title: str = ""
    """What the first line says before it says how much was left out; where this is empty, it says only that."""


def keep(text: str, lines: Lines, *, wish: Wish, count: Count) -> str | None:
    """As many of the lines as fit, in their order, below a line that says how many are left out and where the whole
    is. None as of ``fitting.fitted``; ``text`` is the original."""
    sizes = lines.sizes or [1] * len(lines.texts)
    is_noted = [rank < lines.unnoted_from for rank in lines.ranks]
    sizes_before = [0, *accumulate(sizes)]
    noted_before = [0, *accumulate(size * noted for size, noted in zip(sizes, is_noted, strict=True))]
    entries_before = [0, *accumulate(size == 0 for size in sizes)]

    def draw(kept: Kept) -> str:
        shown, after = [""], 0
        for place, line in (*kept.items(), (len(sizes), "")):
            if left := entries_before[place] - entries_before[after]:
                shown.append(f"[{left:,} more of the {lines.entries} left out]")
            if noted_before[place] > noted_before[after]:
                shown.append(gap(sizes_before[place] - sizes_before[after], "line"))
            shown.append(line)
            after = place + 1
        total = sizes_before[-1]
        left = total - sum(sizes[place] == 1 for place in kept)
        shown[0] = heading(share(left, total, of="lines"), wish=wish, title=lines.title)
        return "\n".join(shown[:-1])

    units = Units(
        lines.texts,
        _order(lines.ranks),
        under=lines.under,
        most_chars=lines.most_chars,
        gap_chars=_WORTH_A_NOTE_CHARS if lines.unnoted_from else 0,
    )
    found = fitted(text, units, draw=draw, wish=wish, count=count)
    return found.text if found else None


def plain_lines(text: str) -> list[str]:
    """The lines without colours, carriage returns at their ends, and the empty one after the last line end."""
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def ranked(
    lines: Sequence[str], terms: Iterable[str] = (), *, edge_lines: int = 10, odd: Collection[int] = ()
) -> list[int]:
    """The ranks of lines of no special kind: by terms, by words of errors and warnings, first and last lines;
    ``odd`` are the places of lines that are out of the ordinary."""
    ranks = [by_words(line) for line in lines]
    places = range(len(lines))
    for place in (*places[:edge_lines], *places[max(len(lines) - edge_lines, 0) :]):
        ranks[place] = min(ranks[place], EDGE)
    for place in odd:
        ranks[place] = min(ranks[place], RARE)
    for place in (*places[:1], *places[-1:]):
        ranks[place] = END
    return with_terms(lines, ranks, terms=terms)


def by_words(line: str) -> int:
    """ERROR, WARNING or REST, by the words of the line."""
    folded = line[:_LOOKED_AT_CHARS].lower()
    if _ALARM.search(folded) is None:
        return REST
    return ERROR if _ERROR.search(folded) else WARNING


def with_terms(lines: Sequence[str], ranks: Sequence[int], *, terms: Iterable[str]) -> list[int]:
    """The ranks, but of lines that hold words of the request: the best line of each word, then the others."""
    found = list(ranks)
    held = matches(lines, terms)
    for base, places in ((TERM, held.first), (_OTHERS, held.others)):
        for worse, place in enumerate(places):
            found[place] = min(found[place], base + min(worse, _OTHERS - TERM - 1))
    return found


def without(lines: Lines, rank: int, *, about: str, note_rank: int) -> Lines:
    """The lines, neighbours of that rank as one note of how many lines about something were left out. A line alone
    of that rank stays. For lines of the original only, with no notes among them yet."""
    if rank not in lines.ranks:
        return replace(lines, sizes=[1] * len(lines.texts), under=lines.under or [-1] * len(lines.texts))
    texts: list[str] = []
    ranks: list[int] = []
    sizes: list[int] = []
    under: list[int] = []
    moved: list[int] = []
    for found, run in groupby(range(len(lines.texts)), key=lines.ranks.__getitem__):
        places = list(run)
        if found == rank and len(places) > 1:
            moved += [len(texts)] * len(places)
            texts.append(f"[{len(places):,} lines about {about} left out]")
            ranks.append(note_rank)
            sizes.append(len(places))
            places = places[:1]
        else:
            moved += range(len(texts), len(texts) + len(places))
            texts += (lines.texts[place] for place in places)
            ranks += [found] * len(places)
            sizes += [1] * len(places)
        under += (lines.under[place] if lines.under else -1 for place in places)
    under = [moved[place] if place >= 0 else -1 for place in under]
    return replace(lines, texts=texts, ranks=ranks, sizes=sizes, under=under)


def _order(ranks: Sequence[int]) -> list[int]:
    """Places by rank; those of one rank in turn from the first and from the last."""
    order: list[int] = []
    ranked_places = sorted((place for place, rank in enumerate(ranks) if rank < EVERY), key=ranks.__getitem__)
    for _, group in groupby(ranked_places, key=ranks.__getitem__):
        places = list(group)
        middle = (len(places) + 1) // 2
        turns = places.copy()
        turns[::2], turns[1::2] = places[:middle], places[middle:][::-1]
        order += turns
    return order
