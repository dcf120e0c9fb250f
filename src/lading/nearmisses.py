"""What comes closest to a text that stands nowhere, by edit distance. Needs the extra ``fuzzy``."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable

from msgspec import Struct

LEAST_SCORE = 75.0
"""Of 100: below, two texts have little in common."""
MOST_CHARS = 200
"""Of a longer text only so much is compared, from its start."""
_LONGEST_WORD = 40
INSTALL = "To see what comes closest: pip install 'lading[fuzzy]'."


class NearMiss(Struct, frozen=True):
    """A passage of the log that is almost the text."""

    entry: int
    score: float
    """100: equal but for case."""
    text: str


def available() -> bool:
    """Whether the package that compares is installed."""
    return importlib.util.find_spec("rapidfuzz") is not None


def near_misses(text: str, strings: Iterable[tuple[int, str]], *, most: int = 3) -> tuple[NearMiss, ...]:
    """The passages closest to the text among strings of entries, best first; of equal ones the first given.

    Case does not count. Raises ModuleNotFoundError where the extra is not installed (``available``).
    """
    from rapidfuzz import fuzz  # noqa: PLC0415 - an extra

    wanted = text[:MOST_CHARS].lower()
    found: dict[str, NearMiss] = {}
    seen: set[str] = set()
    bar = LEAST_SCORE
    for entry, string in strings:
        # A string much shorter than the text would be looked for in the text, not the other way round.
        if len(string) < 0.7 * len(wanted) or string in seen:
            continue
        seen.add(string)
        # Where lower case has another length, places found in it mean nothing in the string.
        lowered = low if len(low := string.lower()) == len(string) else string
        place = fuzz.partial_ratio_alignment(wanted, lowered, score_cutoff=bar)
        if place is None:
            continue
        passage = _whole_words(string, place.dest_start, place.dest_end)
        found.setdefault(passage, NearMiss(entry, place.score, passage))
        if len(found) > most:
            del found[min(found, key=lambda known: found[known].score)]
        if len(found) == most:
            bar = min(near.score for near in found.values())
    return tuple(sorted(found.values(), key=lambda near: (-near.score, -near.entry)))


def _whole_words(string: str, start: int, end: int) -> str:
    """The passage with the words at its ends whole, as far as they are words."""
    before = string[max(start - _LONGEST_WORD, 0) : start]
    after = string[end : end + _LONGEST_WORD]
    left = [] if before[-1:].isspace() else before.split()[-1:]
    right = [] if after[:1].isspace() else after.split()[:1]
    return "".join([*left, string[start:end], *right]).strip()
