"""What is read of a text that is too long to be read: its start, its end, and what stands around words."""

from __future__ import annotations

from collections.abc import Iterable

from lading.shrink.terms import spans

_MOST_PIECES = 100_000
"""Of the start, and of the end."""
_EACH = 50
"""Places of every word in the middle that are read."""
_LEAST_CHARS = 200


def slices(
    text: str, terms: Iterable[str], *, head_chars: int, tail_chars: int, mark: str
) -> list[tuple[int, int]]:
    """Start and end of what is read, in order. ``mark`` is the character that pieces end with; no cut goes through
    a piece, unless it is as long as a slice."""
    if len(text) <= head_chars + tail_chars and text.count(mark) <= 2 * _MOST_PIECES:
        return [(0, len(text))]
    head, tail = text[: min(head_chars, len(text) // 2)], text[max(len(text) - tail_chars, len(text) // 2) :]
    end = len(head) - len(head.split(mark, _MOST_PIECES)[-1]) or len(head)
    pieces = tail.rsplit(mark, _MOST_PIECES)
    cut = len(pieces[0]) + 1
    start = len(text) - len(tail) + (cut if cut < len(tail) else 0)
    middle = text[end:start]
    hits = spans(middle, terms, each=_EACH)
    around = max(head_chars // (2 * len(hits) + 1), _LEAST_CHARS)
    found = [(0, end)]
    for first, last in hits:
        low, high = max(first - around, 0), min(last + around, len(middle))
        low = end + (middle.rfind(mark, low, first) + 1 or low)
        high = end + (middle.find(mark, last, high) + 1 or high)
        if low <= found[-1][1]:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return [*found, (start, len(text))]


def joined(text: str, read: Iterable[tuple[int, int]]) -> tuple[str, int]:
    """The slices, one below the other, and how many characters of the text are in none."""
    pieces = [text[start:end] for start, end in read]
    return "\n".join(pieces), len(text) - sum(map(len, pieces))
