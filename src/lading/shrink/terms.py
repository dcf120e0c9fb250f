"""Find terms, which are words of the request, in a text.

Terms match in any case. Those of up to three ASCII letters match as whole words only.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice

from msgspec import Struct

_MOST_TERMS = 80
_MOST_PLACES = 20_000
"""Hits of each term that are read."""
_SHORT_CHARS = 3
_COMMON_UNITS = 16
_FEW_UNITS = 1_000
"""Up to this number, units are searched one by one: a joined text costs more for each hit, less for each unit."""
_STEPS = (4_096, 64, 1)
_MOST_PIECES = 100_000
"""Pieces that are read of the start, and of the end, of a long text."""
_MOST_HITS = 50
"""Hits of each term in the middle of a long text that are read."""
_LEAST_CHARS = 200


class Matches(Struct, frozen=True):
    """Units of a text that have terms."""

    first: tuple[int, ...]
    """The best unit of each term, the rarest term first."""
    others: tuple[int, ...]
    """The other units, those with many and rare terms first."""


def find_units(units: Sequence[str], terms: Iterable[str]) -> Matches:
    """Find the units with terms. A term in more than 16 units and more than a quarter of all is ignored."""
    common = max(_COMMON_UNITS, len(units) // 4)
    found = sorted(
        (holders for holders in _find_holders(units, _clean_terms(terms)) if 0 < len(holders) <= common), key=len
    )
    worth: dict[int, float] = {}
    for holders in found:
        for unit in holders:
            worth[unit] = worth.get(unit, 0.0) + 1 / len(holders)
    first = tuple(dict.fromkeys(max(holders, key=worth.__getitem__) for holders in found))
    return Matches(first, tuple(sorted(worth.keys() - set(first), key=lambda unit: (-worth[unit], unit))))


def find_spans(text: str, terms: Iterable[str], *, each: int) -> list[tuple[int, int]]:
    """Find start and end of the first ``each`` hits of every term, in order."""
    wanted = _clean_terms(terms)
    folded = text.casefold() if wanted else ""
    found = sorted({at: len(term) for term in wanted for at in islice(_find_places(folded, term), each)}.items())
    places = [at for at, _ in found]
    # Casefolding never shortens a text.
    starts = _map_to_original(text, places) if len(folded) > len(text) else places
    return [(start, start + chars) for start, (_, chars) in zip(starts, found, strict=True)]


def select_slices(
    text: str, terms: Iterable[str], *, head_chars: int, tail_chars: int, mark: str
) -> list[tuple[int, int]]:
    """Select the parts of a long text to read: its start, its end, and the surroundings of terms. ``mark`` is the
    character that ends a piece; a piece is cut only if it is as long as a slice."""
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
    """Join the selected slices, and write how much is left out, such as ``12 characters``."""
    slices = select_slices(text, terms, head_chars=head_chars, tail_chars=tail_chars, mark=mark)
    pieces = [text[start:end] for start, end in slices]
    left = len(text) - sum(map(len, pieces))
    return "\n".join(pieces), (left and pluralize(left, "character")) or ""


def pluralize(count: int, noun: str) -> str:
    """Write ``1 line``, ``2 lines``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _clean_terms(terms: Iterable[str]) -> list[str]:
    return [*filter(None, dict.fromkeys(term.strip().casefold() for term in islice(terms, _MOST_TERMS)))]


def _find_holders(units: Sequence[str], terms: Sequence[str]) -> Iterator[list[int]]:
    """List the units that have each term, in order."""
    folded = [unit.casefold() for unit in units] if terms else []
    joined = "\n".join(folded)
    starts = [0, *accumulate(len(unit) + 1 for unit in folded)]
    for term in terms:
        if len(folded) <= _FEW_UNITS and not _is_short(term):
            yield [at for at, unit in enumerate(folded) if term in unit]
            continue
        places = islice(_find_places(joined, term), _MOST_PLACES)
        yield [*dict.fromkeys(bisect_right(starts, at) - 1 for at in places)]


def _is_short(term: str) -> bool:
    return len(term) <= _SHORT_CHARS and term.isascii()


def _find_places(folded: str, term: str) -> Iterator[int]:
    if _is_short(term):
        for found in re.finditer(re.escape(term) + r"(?![^\W_])", folded):
            if not folded[found.start() - 1 : found.start()].isalnum():
                yield found.start()
        return
    at = folded.find(term)
    while at >= 0:
        yield at
        at = folded.find(term, at + len(term))


def _map_to_original(text: str, places: Iterable[int]) -> Iterator[int]:
    """Map ascending indices in the casefolded text, which may be longer, to indices in the text."""
    start = folded = 0
    for place in places:
        for step in _STEPS:
            while folded + (chars := len(text[start : start + step].casefold())) <= place:
                start, folded = start + step, folded + chars
        yield start
