"""Plain BM25 in twenty lines: what a search of the memory is compared with."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

_K1, _B = 1.5, 0.75


class PlainBm25:
    """An index of texts by their lower-case words."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._counts = [Counter(_split(text)) for text in texts]
        self._lengths = [counts.total() for counts in self._counts]
        self._average = max(sum(self._lengths) / max(len(texts), 1), 1)
        self._found = Counter(word for counts in self._counts for word in counts)

    def rank(self, question: str) -> list[int]:
        """Return the indexes of the texts with any of the words, best first."""
        scores = [0.0] * len(self._counts)
        for word in _split(question):
            found = self._found[word]
            weight = math.log(1 + (len(scores) - found + 0.5) / (found + 0.5))
            for at, counts in enumerate(self._counts):
                if count := counts[word]:
                    damping = _K1 * (1 - _B + _B * self._lengths[at] / self._average)
                    scores[at] += weight * count * (_K1 + 1) / (count + damping)
        return sorted((at for at, score in enumerate(scores) if score), key=lambda at: (-scores[at], at))


def _split(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
