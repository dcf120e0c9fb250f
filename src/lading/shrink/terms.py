"""Find words of the request in a text.

Words match whatever their case. Those of up to three ASCII letters match as whole words only.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice

from msgspec import Struct

_MOST_TERMS = 80
_MOST_PLACES = 20_000
"""Of each word."""
_SHORT_CHARS = 3
_COMMON_UNITS = 16
_STEPS = (4_096, 64, 1)
_MOST_PIECES = 100_000
"""Of the start, and of the end, of a text that is too long to be read."""
_MOST_HITS = 50
"""Places of every word in its middle that are read."""
_LEAST_CHARS = 200


class Matches(Struct, frozen=True):
    """Units of a text that hold words of the request."""

    first: tuple[int, ...]
    """The best unit of each word, the rarest word first."""
    others: tuple[int, ...]
    """The other units, best first: many words, and rare ones."""


def find_units(units: Sequence[str], terms: Iterable[str]) -> Matches:
    """Find the words. One in more than 16 units and more than a quarter of them all is ignored."""
    common = max(_COMMON_UNITS, len(units) // 4)
    found = sorted((held for held in _held(units, _wanted(terms)) if 0 < len(held) <= common), key=len)
    worth: dict[int, float] = {}
    for held in found:
        for unit in held:
            worth[unit] = worth.get(unit, 0.0) + 1 / len(held)
    first = tuple(dict.fromkeys(max(held, key=worth.__getitem__) for held in found))
    return Matches(first, tuple(sorted(worth.keys() - set(first), key=lambda unit: (-worth[unit], unit))))


def find_spans(text: str, terms: Iterable[str], *, each: int) -> list[tuple[int, int]]:
    """Find start and end of the first ``each`` places of every word, in order."""
    wanted = _wanted(terms)
    folded = text.casefold() if wanted else ""
    found = sorted({at: len(term) for term in wanted for at in islice(_places(folded, term), each)}.items())
    places = [at for at, _ in found]
    # Casefolding only ever makes a text longer.
    starts = _unfolded(text, places) if len(folded) > len(text) else places
    return [(start, start + chars) for start, (_, chars) in zip(starts, found, strict=True)]


def select_slices(
    text: str, terms: Iterable[str], *, head_chars: int, tail_chars: int, mark: str
) -> list[tuple[int, int]]:
    """Select what to read of a long text: its start, its end, and the surroundings of words. ``mark`` is the
    character that pieces end with; no cut goes through a piece, unless it is as long as a slice."""
    if len(text) <= head_chars + tail_chars and text.count(mark) <= 2 * _MOST_PIECES:
        return [(0, len(text))]
    head, tail = text[: min(head_chars, len(text) // 2)], text[max(len(text) - tail_chars, len(text) // 2) :]
    end = len(head) - len(head.split(mark, _MOST_PIECES)[-1]) or len(head)
    pieces = tail.rsplit(mark, _MOST_PIECES)
    cut = len(pieces[0]) + 1
    start = len(text) - len(tail) + (cut if cut < len(tail) else 0)
    middle = text[end:start]
    hits = find_spans(middle, terms, each=_MOST_HITS)
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


def read_slices(text: str, terms: Iterable[str], *, head_chars: int, tail_chars: int, mark: str) -> tuple[str, str]:
    """Join what ``select_slices`` selects; note how many characters it leaves out, such as ``12 characters``."""
    slices = select_slices(text, terms, head_chars=head_chars, tail_chars=tail_chars, mark=mark)
    pieces = [text[start:end] for start, end in slices]
    left = len(text) - sum(map(len, pieces))
    return "\n".join(pieces), (left and plural(left, "character")) or ""


def plural(count: int, noun: str) -> str:
    """Write ``1 line``, ``2 lines``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _wanted(terms: Iterable[str]) -> list[str]:
    return [*filter(None, dict.fromkeys(term.strip().casefold() for term in islice(terms, _MOST_TERMS)))]


def _held(units: Sequence[str], terms: Sequence[str]) -> Iterator[list[int]]:
    """List for each word the units that hold it, in order."""
    folded = [unit.casefold() for unit in units] if terms else []
    joined = "\n".join(folded)
    starts = [0, *accumulate(len(unit) + 1 for unit in folded)]
    for term in terms:
        places = islice(_places(joined, term), _MOST_PLACES)
        yield [*dict.fromkeys(bisect_right(starts, at) - 1 for at in places)]


def _places(folded: str, term: str) -> Iterator[int]:
    if len(term) <= _SHORT_CHARS and term.isascii():
        for found in re.finditer(re.escape(term) + r"(?![^\W_])", folded):
            if not folded[found.start() - 1 : found.start()].isalnum():
                yield found.start()
        return
    at = folded.find(term)
    while at >= 0:
        yield at
        at = folded.find(term, at + len(term))


def _unfolded(text: str, places: Iterable[int]) -> Iterator[int]:
    """Map rising places in the casefolded text, which may be longer, to places in the text."""
    start = folded = 0
    for place in places:
        for step in _STEPS:
            while folded + (chars := len(text[start : start + step].casefold())) <= place:
                start, folded = start + step, folded + chars
        yield start
