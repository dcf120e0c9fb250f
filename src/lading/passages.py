"""A long text in lines of bounded length, and the passages of it that hold words that are asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec import Struct

LINE_CHARS = 200
"""A longer line is shown as several, so that a page is bounded in characters too."""
MOST_LOOKS = 1_000_000
"""How often one search looks into a line, once for each word that is near: a fraction of a second."""
_OVERLAP_CHARS = 80
"""What is found at the end of such a piece may go on so far in the next."""
_AROUND_LINES = 2
_BATCH_LINES = 256
_WORD = re.compile(r"\w+", re.UNICODE)
_QUERY_WORDS = 16


class Found(Struct, frozen=True):
    """The lines that hold a query or words of it, best first."""

    best: list[int]
    start: int
    end: int
    """Searched were the lines from ``start`` up to here, not included."""


def split(text: str) -> list[str]:
    """The text in lines of bounded length; how a text is split does not depend on what is asked of it."""
    lines: list[str] = []
    for line in text.splitlines() or [""]:
        if len(line) <= LINE_CHARS:
            lines.append(line)
        else:
            lines += [line[start : start + LINE_CHARS] for start in range(0, len(line), LINE_CHARS)]
    return lines


def find(lines: Sequence[str], query: str, *, start: int = 0) -> Found:
    """The lines from ``start`` on that hold the query, or words of it, in any case; those that hold most words
    first, and words that few lines hold weigh more. The search ends after about ``MOST_LOOKS``."""
    whole = query.strip().casefold()
    words = list(dict.fromkeys(_WORD.findall(whole)))[:_QUERY_WORDS]
    holding: dict[str, list[int]] = {needle: [] for needle in (*words, whole)}
    last, looks = start, 0
    for first in range(start, len(lines), _BATCH_LINES):
        if looks >= MOST_LOOKS:
            break
        last = min(first + _BATCH_LINES, len(lines))
        after = lines[last][:_OVERLAP_CHARS] if last < len(lines) else ""
        joined = ("".join(lines[first:last]) + after).casefold()
        looks += last - first
        if here := [needle for needle in holding if needle in joined]:
            looks += (last - first) * len(here)
            for at in range(first, last):
                folded = _folded(lines, at)
                for needle in here:
                    if needle in folded:
                        holding[needle].append(at)
    scores = dict.fromkeys(holding[whole], float(len(words)))
    for word in words:
        for at in holding[word]:
            scores[at] = scores.get(at, 0.0) + 1 / len(holding[word])
    return Found(sorted(scores, key=lambda at: (-scores[at], at)), start, last)


def chosen(lines: Sequence[str], best: Sequence[int], *, count: Callable[[str], int], room: int) -> list[int]:
    """As many of these lines as fit the room with a few lines around each, in the text's order; at least one."""
    taken: set[int] = set()
    for at in best:
        wider = taken | set(range(max(at - _AROUND_LINES, 0), min(at + _AROUND_LINES + 1, len(lines))))
        if count(numbered(lines, sorted(wider))) > room:
            break
        taken = wider
    return sorted(taken or {best[0]})


def numbered(lines: Sequence[str], positions: Sequence[int]) -> str:
    """Lines with their numbers, gaps marked."""
    shown: list[str] = []
    for position, at in enumerate(positions):
        if position and positions[position - 1] != at - 1:
            shown.append("...")
        shown.append(f"{at + 1}: {lines[at]}")
    return "\n".join(shown)


def _folded(lines: Sequence[str], at: int) -> str:
    """A line to be searched; a piece of a longer one with what follows it."""
    line = lines[at]
    if len(line) == LINE_CHARS and at + 1 < len(lines):
        line += lines[at + 1][:_OVERLAP_CHARS]
    return line.casefold()
