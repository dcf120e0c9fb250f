"""Where words of the request stand: the one place that knows how they are matched.

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


class Matches(Struct, frozen=True):
    """Units of a text that hold words of the request."""

    first: tuple[int, ...]
    """The best unit of each word, the rarest word first."""
    others: tuple[int, ...]
    """The other units, best first: many words, and rare ones."""


def matches(units: Sequence[str], terms: Iterable[str]) -> Matches:
    """Where the words stand. A word in more than 16 units and more than a quarter of them all tells nothing."""
    common = max(_COMMON_UNITS, len(units) // 4)
    found = sorted((held for held in _held(units, _wanted(terms)) if 0 < len(held) <= common), key=len)
    worth: dict[int, float] = {}
    for held in found:
        for unit in held:
            worth[unit] = worth.get(unit, 0.0) + 1 / len(held)
    first = tuple(dict.fromkeys(max(held, key=worth.__getitem__) for held in found))
    return Matches(first, tuple(sorted(worth.keys() - set(first), key=lambda unit: (-worth[unit], unit))))


def spans(text: str, terms: Iterable[str], *, each: int) -> list[tuple[int, int]]:
    """Start and end of the first ``each`` places of every word, in order."""
    wanted = _wanted(terms)
    folded = text.casefold() if wanted else ""
    found = sorted({at: len(term) for term in wanted for at in islice(_places(folded, term), each)}.items())
    places = [at for at, _ in found]
    # Casefolding only ever makes a text longer.
    starts = _unfolded(text, places) if len(folded) > len(text) else places
    return [(start, start + chars) for start, (_, chars) in zip(starts, found, strict=True)]


def _wanted(terms: Iterable[str]) -> list[str]:
    return [*filter(None, dict.fromkeys(term.strip().casefold() for term in islice(terms, _MOST_TERMS)))]


def _held(units: Sequence[str], terms: Sequence[str]) -> Iterator[list[int]]:
    """For each word the units that hold it, in order."""
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
    """Where the characters stand in the text that stand at rising places when it is casefolded, which may make it
    longer."""
    start = folded = 0
    for place in places:
        for step in _STEPS:
            while folded + (chars := len(text[start : start + step].casefold())) <= place:
                start, folded = start + step, folded + chars
        yield start
