"""Shrink any text: keep its head, its tail, the lines that are asked for and those that tell of errors."""

from __future__ import annotations

import re

from msgspec.structs import replace

from lading.shrink import Count, Sample, Shrinker, Shrunk, Wish
from lading.shrink.fitting import gap_note
from lading.shrink.keeping import ALARMS, Lines, Rank, keep, rank_lines, split_lines
from lading.shrink.terms import select_slices

MOST_CHARS = 2_000_000
"""Of a longer text only about this much at its ends is looked at, and lines in between that hold words."""
_SEARCH_LINE = re.compile(r"^[^\s:]*[A-Za-z][^\s:]*[:-]\d+[:-]")


def _is_search(sample: Sample) -> bool:
    """Recognise hits of a search: file, line number, line."""
    return sample.share(_SEARCH_LINE) >= 0.6


def _reduce(text: str, wish: Wish, count: Count) -> Shrunk | None:
    """Keep lines of the text, with a note in each gap."""
    texts: list[str] = []
    sizes: list[int] = []
    done = 0
    for start, end in _whole_lines(text, wish):
        if unread := text.count("\n", done, start):
            texts.append(gap_note(unread, "line"))
            sizes.append(unread)
        read = split_lines(text[start:end])
        texts += read
        sizes += [1] * len(read)
        done = end
    ranks = [
        rank if size == 1 else Rank.EVERY for rank, size in zip(rank_lines(texts, wish.terms), sizes, strict=True)
    ]
    lines = Lines(texts, ranks, "text.lines", sizes, most_chars=MOST_CHARS)
    return keep(text, lines, wish=wish, count=count)


SHRINKER = Shrinker("text", lambda _: False, _reduce)
SEARCH = replace(SHRINKER, name="search", recognises=_is_search)
EMPTY = replace(SHRINKER, name="empty", recognises=lambda sample: not sample.text.strip())


def _whole_lines(text: str, wish: Wish) -> list[tuple[int, int]]:
    """Find start and end, line end included, of the lines to look at; between them are two lines or more."""
    found: list[tuple[int, int]] = []
    half = MOST_CHARS // 2
    for start, end in select_slices(text, (*wish.terms, *ALARMS), head_chars=half, tail_chars=half, mark="\n"):
        start = text.rfind("\n", 0, start) + 1
        end = text.find("\n", end - 1) + 1 or len(text)
        if found and text.count("\n", found[-1][1], start) < 2:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found
