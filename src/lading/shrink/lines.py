"""Any text: its head, its tail, the lines that are asked for and those that tell of errors."""

from __future__ import annotations

from lading.shrink import Count, Shrinker, Shrunk, Wish
from lading.shrink.keeping import ALARMS, EVERY, Lines, keep, plain_lines, ranked
from lading.shrink.notes import gap
from lading.shrink.slices import slices

MOST_CHARS = 2_000_000
"""Of a longer text only about this much at its ends is looked at, and lines in between that hold words."""


def _reduce(text: str, wish: Wish, count: Count) -> Shrunk | None:
    """Lines of the text, with a note in each gap."""
    texts: list[str] = []
    sizes: list[int] = []
    done = 0
    for start, end in _whole_lines(text, wish):
        if unread := text.count("\n", done, start):
            texts.append(gap(unread, "line"))
            sizes.append(unread)
        read = plain_lines(text[start:end])
        texts += read
        sizes += [1] * len(read)
        done = end
    ranks = [rank if size == 1 else EVERY for rank, size in zip(ranked(texts, wish.terms), sizes, strict=True)]
    kept = keep(text, Lines(texts, ranks, sizes, most_chars=MOST_CHARS), wish=wish, count=count)
    return None if kept is None else Shrunk(kept, "text.lines", lossless=False)


SHRINKER = Shrinker("text", _reduce)


def _whole_lines(text: str, wish: Wish) -> list[tuple[int, int]]:
    """Start and end, line end included, of the lines that are looked at; between them are two lines or more."""
    found: list[tuple[int, int]] = []
    half = MOST_CHARS // 2
    for start, end in slices(text, (*wish.terms, *ALARMS), head_chars=half, tail_chars=half, mark="\n"):
        start = text.rfind("\n", 0, start) + 1
        end = text.find("\n", end - 1) + 1 or len(text)
        if found and text.count("\n", found[-1][1], start) < 2:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found
