"""Embed texts offline, by their words and the three-letter parts of these: near in spelling, not in meaning."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from zlib import crc32

from lading.memory.embedding import EmbedderSource, Purpose
from lading.memory.query_words import FUNCTION_WORDS

SIZE = 256
SHARE = 0.05
"""How much nearness counts beside the words: these vectors add forms that no stem joins, and spelling mistakes."""
_MOST_CHARS = 20_000
_WORD = re.compile(r"[^\W_]+")
_GRAM = 3


class HashedEmbedder:
    """Vectors of hashed words and trigrams."""

    name = f"hashed-{SIZE}"
    size = SIZE

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> list[list[float]]:  # noqa: ARG002 - both alike
        """Return a vector of length 1 for each text, in order."""
        return [_embed(text[:_MOST_CHARS]) for text in texts]


def make_hashed(_: EmbedderSource) -> HashedEmbedder:
    """Make the embedder; it has no options."""
    return HashedEmbedder()


def _embed(text: str) -> list[float]:
    words = Counter(_WORD.findall(text.casefold()))
    vector = [0.0] * SIZE
    for word, count in words.items():
        if word not in FUNCTION_WORDS or len(words) == 1:
            places, weight = _hash(word)
            weight *= math.sqrt(count)
            for place, sign in places:
                vector[place] += sign * weight
    length = math.sqrt(math.fsum(number * number for number in vector))
    if not length:
        return [1.0, *[0.0] * (SIZE - 1)]
    return [number / length for number in vector]


@lru_cache(50_000)
def _hash(word: str) -> tuple[tuple[tuple[int, float], ...], float]:
    """Return where a word and its trigrams are counted, each with its sign, and their weight."""
    marked = f"<{word}>"
    grams = [marked, *(marked[at : at + _GRAM] for at in range(len(marked) - _GRAM + 1))]
    codes = [crc32(gram.encode("utf-8", "surrogatepass")) for gram in grams]
    places = tuple((code % SIZE, 1.0 if code >> 16 & 1 else -1.0) for code in codes)
    return places, 1 / math.sqrt(len(grams))
