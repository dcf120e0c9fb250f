"""Rank the values that messages name by how likely they are to be named again.

A value that occurs whole inside a listed one is left out, unless other plain words are near it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from lading.compaction.identifiers import Mention

HEADINGS = frozenset({"Asked", "Goal", "Done", "Failed", "Open", "Decided", "Original", "Whole"})
"""Words of headings, which describe no value."""
MOST_VALUES = 20_000
"""Beyond twice as many, the least likely are forgotten; they stay in the log."""
MOST_PIECES = 12
"""Values inside a value of more pieces are not looked for."""
_CALM_MESSAGES = 10
"""Messages after which the age of a value begins to matter."""
_BETWEEN = re.compile(r"[^\w@]+")


class _ValueHistory(Struct):
    weight: float = 0.0
    last: int = 0
    words: tuple[str, ...] = ()


class ValueRanking:
    """The values of some messages, with their weight, age and nearby words."""

    def __init__(self) -> None:
        self._known: dict[str, _ValueHistory] = {}
        self._last = 0

    def add(self, entry: int, mentioned: Iterable[Mention]) -> None:
        """Add the mentions of an entry's message; entries come in order."""
        best: dict[str, float] = {}
        self._last = entry
        for mention in mentioned:
            known = self._known.setdefault(mention.value, _ValueHistory())
            best[mention.value] = max(best.get(mention.value, 0.0), mention.weight)
            known.words = tuple(word for word in mention.words if word not in HEADINGS) or known.words
        for value, weight in best.items():
            known = self._known[value]
            known.weight += weight
            known.last = entry
        if len(self._known) > 2 * MOST_VALUES:
            self._known = {value: self._known[value] for value in self.rank(most=MOST_VALUES)}

    def rank(self, *, most: int, shown: Iterable[str] = ()) -> list[str]:
        """Return the first ``most`` values, those most likely to be named again first: by how often, in what and
        how long ago they were named, and by how short they are. ``shown`` values are left out."""
        listed: dict[str, frozenset[str]] = {}
        for value in shown:
            _add_listed(listed, value, frozenset())
        ranked: list[str] = []
        for value in sorted(self._known, key=lambda value: -self._score(value)):
            if len(ranked) >= most:
                break
            words = frozenset(self._known[value].words)
            if value not in listed or (words and listed[value] and words.isdisjoint(listed[value])):
                ranked.append(value)
                _add_listed(listed, value, words)
        return ranked

    def _score(self, value: str) -> float:
        known = self._known[value]
        age = self._last - known.last + _CALM_MESSAGES
        return math.log1p(known.weight) - math.log(age) / 2 - math.log(len(value) + 4) / 4


def _add_listed(listed: dict[str, frozenset[str]], value: str, words: frozenset[str]) -> None:
    """List a value, and those inside it, under the words near it; no words match any."""
    for inner in (value, *_find_inner(value)):
        known = listed.get(inner, words)
        listed[inner] = known | words if known and words else frozenset()


def _find_inner(value: str) -> Iterator[str]:
    """Yield the values inside a value of several pieces: ``b.c`` and ``c`` in ``a.b.c``."""
    starts = [0, *(found.end() for found in _BETWEEN.finditer(value))]
    ends = [*(found.start() for found in _BETWEEN.finditer(value)), len(value)]
    if len(starts) <= MOST_PIECES:
        for first, start in enumerate(starts):
            yield from (value[start:end] for end in ends[first:] if end - start < len(value))
