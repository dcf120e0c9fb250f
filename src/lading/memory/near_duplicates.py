"""Find texts that say nearly the same: of two with nearly the same words, one is enough."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from lading.memory.query_words import FUNCTION_WORDS

ALIKE = 0.8
"""Share of the words of two texts together that both have."""
NEGATIONS = frozenset({"no", "nor", "not", "t", "don", "few", "only", "until", "before", "after", "off", "now"})
"""Words of grammar that change what is said."""
UNSAYING = FUNCTION_WORDS - NEGATIONS
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


def find_repeated(texts: Sequence[str]) -> set[int]:
    """Return the indices of texts that are alike to an earlier one and say nothing that it does not: no other word
    but those of grammar, and neither negates what the other says."""
    kept: dict[int, list[frozenset[str]]] = {}
    repeated: set[int] = set()
    for at, group in enumerate(group_alike(texts)):
        own = frozenset(_WORD.findall(texts[at].casefold()))
        if any(_adds_nothing(own, other) for other in kept.get(group, ())):
            repeated.add(at)
        else:
            kept.setdefault(group, []).append(own)
    return repeated


def _adds_nothing(own: frozenset[str], other: frozenset[str]) -> bool:
    return own - other <= UNSAYING and not (other - own) & NEGATIONS


def _is_alike(own: frozenset[str], other: frozenset[str]) -> bool:
    both = len(own & other)
    return both >= ALIKE * (len(own) + len(other) - both)
