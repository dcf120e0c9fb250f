"""Shrink any text: keep its start, its end, the lines with terms and those that report errors."""

from __future__ import annotations

import re

from msgspec.structs import replace

from lading.shrink import Count, Sample, Shrinker, Shrunk, Target
from lading.shrink.fitting import write_gap_note
from lading.shrink.line_selection import ALARMS, Rank, RankedLines, rank_lines, select_lines, split_lines
from lading.shrink.terms import select_slices

MOST_CHARS = 2_000_000
"""Of a longer text only about this much at its ends is read, and the lines with terms in between."""
_SEARCH_LINE = re.compile(r"^[^\s:]*[A-Za-z][^\s:]*[:-]\d+[:-]")


def _is_search(sample: Sample) -> bool:
    """Whether the text is a list of search hits: file, line number, line."""
    return sample.share(_SEARCH_LINE) >= 0.6


def _reduce(text: str, target: Target, count: Count) -> Shrunk | None:
    """Keep lines of the text, with a note for each gap."""
    texts: list[str] = []
    sizes: list[int] = []
    done = 0
    for start, end in _select_spans(text, target):
        if unread := text.count("\n", done, start):
            texts.append(write_gap_note(unread, "line"))
            sizes.append(unread)
        read = split_lines(text[start:end])
        texts += read
        sizes += [1] * len(read)
        done = end
    ranks = [
        rank if size == 1 else Rank.NEVER for rank, size in zip(rank_lines(texts, target.terms), sizes, strict=True)
    ]
    lines = RankedLines(texts, ranks, "text.lines", sizes, most_chars=MOST_CHARS)
    return select_lines(text, lines, target=target, count=count)


SHRINKER = Shrinker("text", lambda _: False, _reduce)
SEARCH = replace(SHRINKER, name="search", recognises=_is_search)
EMPTY = replace(SHRINKER, name="empty", recognises=lambda sample: not sample.text.strip())


def _select_spans(text: str, target: Target) -> list[tuple[int, int]]:
    """Return start and end of the parts to read, in whole lines; gaps between them have two lines or more."""
    found: list[tuple[int, int]] = []
    half = MOST_CHARS // 2
    for start, end in select_slices(text, (*target.terms, *ALARMS), head_chars=half, tail_chars=half, mark="\n"):
        start = text.rfind("\n", 0, start) + 1
        end = text.find("\n", end - 1) + 1 or len(text)
        if found and text.count("\n", found[-1][1], start) < 2:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found
