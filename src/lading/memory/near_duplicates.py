"""Find texts that say nearly the same: of two with nearly the same words, one is enough."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

ALIKE = 0.8
"""Share of the words of two texts together that both have."""
_MOST_CHARS = 4_000
_WORD = re.compile(r"\w+")


def group_alike(texts: Sequence[str]) -> list[int]:
    """Return for each text the index of the first one that it is alike to, its own where there is none."""
    words = [frozenset(_WORD.findall(text[:_MOST_CHARS].casefold())) or frozenset([text]) for text in texts]
    spread = Counter(word for own in words for word in own)
    holders: dict[str, list[int]] = {}
    groups: list[int] = []
    for at, own in enumerate(words):
        # Sets that are alike share one of these words, whatever the order; the rarest make the fewest pairs.
        ordered = sorted(own, key=lambda word: (spread[word], word))
        leading = ordered[: len(own) - math.ceil(ALIKE * len(own)) + 1]
        others = sorted({other for word in leading for other in holders.get(word, ())})
        group = next((other for other in others if _is_alike(own, words[other])), at)
        if group == at:
            for word in leading:
                holders.setdefault(word, []).append(at)
        groups.append(group)
    return groups


def _is_alike(own: frozenset[str], other: frozenset[str]) -> bool:
    both = len(own & other)
    return both >= ALIKE * (len(own) + len(other) - both)
