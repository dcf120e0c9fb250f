"""The ledger: values that left the view, grouped under a word that stood near them, the likeliest first.

One plain word is enough to tell what a value was, and a word shared by many values costs little. Newest wins:
a value is written once, under a word of where it stood last.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from lading.compaction.identifiers import Mention

LINE_CHARS = 76
"""A line is no longer, so that each value stands near its word."""
UNBOUND = "also"
"""Stands for the word of values that stood near none."""
HEADINGS = frozenset({"Asked", "Goal", "Done", "Failed", "Open", "Decided", "Original", "Whole"})
"""They head the sections of a state and a summary, and pointers. No value stands under one: a tool's output would
choose what the user is said to have asked."""
MOST_VALUES = 20_000
"""Beyond twice as many the least likely are forgotten; they stay in the log."""
_CALM_MESSAGES = 10
"""How many messages back the age of a value begins to tell."""


MOST_PIECES = 12
"""A value of more pieces is not looked into."""
_BETWEEN = re.compile(r"[^\w@]+")


class _Known(Struct):
    messages: int = 0
    weight: float = 0.0
    last: int = 0
    words: tuple[str, ...] = ()

    def stands(self, words: frozenset[str] | None) -> bool:
        """Whether a place that shows it under these words says what the newest mention says."""
        return words is not None and (not words or not self.words or not words.isdisjoint(self.words))


class Ledger:
    """Every value that left the view so far, with how often, by whom and when it was named."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._last = 0

    def add(self, entry: int, mentioned: Iterable[Mention]) -> None:
        """Take in what the message of an entry names; entries come in order."""
        best: dict[str, float] = {}
        self._last = entry
        for mention in mentioned:
            known = self._known.setdefault(mention.value, _Known())
            best[mention.value] = max(best.get(mention.value, 0.0), mention.weight)
            known.words = tuple(word for word in mention.words if word not in HEADINGS) or known.words
        for value, weight in best.items():
            known = self._known[value]
            known.messages += 1
            known.weight += weight
            known.last = entry
        if len(self._known) > 2 * MOST_VALUES:
            self._known = {value: self._known[value] for value in self.ranked(most=MOST_VALUES)}

    def ranked(self, *, most: int, since: int = 0, shown: Mapping[str, frozenset[str]] | None = None) -> list[str]:
        """The first ``most`` values named from the entry ``since`` on, the likeliest to be named again first: by
        how often, in what and how long ago they were named, and by how little they take.

        ``shown``: values that stand elsewhere, each with its words there; they are left out while a newer mention
        does not give them other words. No words: it stands as it was said.
        """
        standing: dict[str, frozenset[str]] = {}
        for value, words in (shown or {}).items():
            _stand(standing, value, words)
        values = [value for value, known in self._known.items() if known.last >= since]
        ranked: list[str] = []
        if most <= 0:
            return ranked
        for value in sorted(values, key=lambda value: -self._score(value)):
            known = self._known[value]
            if not known.stands(standing.get(value)):
                ranked.append(value)
                _stand(standing, value, frozenset(known.words))
            if len(ranked) >= most:
                break
        return ranked

    @staticmethod
    def read(line: str) -> Iterator[tuple[str, str]]:
        """The values of a line, each with its word."""
        word, _, values = line.partition(": ")
        return ((value, word) for value in values.split())

    def lines(self, values: Sequence[str], *, most_tokens: int, count: Callable[[str], int]) -> list[str]:
        """The lines of as many first values as fit ``most_tokens``, found by bisection."""
        low, high = 0, len(values) + 1
        while high - low > max(low // 50, 1):
            middle = (low + high) // 2
            if count("\n".join(self._lines(values[:middle]))) <= most_tokens:
                low = middle
            else:
                high = middle
        return self._lines(values[:low])

    def _score(self, value: str) -> float:
        known = self._known[value]
        age = self._last - known.last + _CALM_MESSAGES
        return math.log1p(known.weight) - math.log(age) / 2 - math.log(len(value) + 4) / 4

    def _lines(self, values: Sequence[str]) -> list[str]:
        lines: list[str] = []
        for word, group in self._grouped(values).items():
            line = start = f"{word}:"
            for value in group:
                if len(line) + len(value) >= LINE_CHARS and line != start:
                    lines.append(line)
                    line = start
                line += f" {value}"
            lines.append(line)
        return lines

    def _grouped(self, values: Sequence[str]) -> Mapping[str, list[str]]:
        """Each value under the one of its words that most values share; groups in the order of their first."""
        shared = Counter(word for value in values for word in self._known[value].words)
        groups: defaultdict[str, list[str]] = defaultdict(list)
        for value in values:
            word = max(self._known[value].words, key=lambda word: shared[word], default=UNBOUND)
            groups[word].append(value)
        return groups


def _stand(standing: dict[str, frozenset[str]], value: str, words: frozenset[str]) -> None:
    """Note that a value stands somewhere under these words, and with it what stands whole inside it."""
    for inner in (value, *_inside(value)):
        known = standing.get(inner, words)
        standing[inner] = known | words if known and words else frozenset()


def _inside(value: str) -> Iterator[str]:
    """What stands whole inside a value of several pieces: ``b.c`` and ``c`` in ``a.b.c``."""
    starts = [0, *(found.end() for found in _BETWEEN.finditer(value))]
    ends = [*(found.start() for found in _BETWEEN.finditer(value)), len(value)]
    if len(starts) <= MOST_PIECES:
        for first, start in enumerate(starts):
            yield from (value[start:end] for end in ends[first:] if end - start < len(value))
