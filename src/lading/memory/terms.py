"""Split texts into the terms that an index of words holds: folded, stemmed, bigrams for scripts without spaces."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from itertools import pairwise

from lading.memory.stemming import stem

_LONGEST_TERM_CHARS = 64
_ASCII_WORD = re.compile("[a-z0-9]+")
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670]+")
"""Accents and the vowel points of Hebrew and Arabic, which writers leave out."""
# Other marks are part of a word: the vowel signs of India and Southeast Asia are no letters to ``re``.
_WORD = re.compile("[^\\W_]+(?:[\u0900-\u0963\u0966-\u109f\u1780-\u17d3\u3099\u309a]+[^\\W_]*)*")
_UNSPACED = (
    "\u0e00-\u0eff\u0f00-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
"""Thai, Lao, Tibetan, Burmese, Khmer, Chinese, Japanese and Korean, whose words are not, or not only, between
spaces."""
_HAS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_RUNS = re.compile(f"([{_UNSPACED}]+)")


def count_terms(text: str) -> Counter[str]:
    """Count the terms of a text, as they are indexed. Of a script without spaces each character and each pair of
    neighbours is a term."""
    if text.isascii():
        return Counter([stem(word[:_LONGEST_TERM_CHARS]) for word in _ASCII_WORD.findall(text.lower())])
    found: Counter[str] = Counter()
    for word in _WORD.findall(_fold(text)):
        if word.isascii():
            found[stem(word[:_LONGEST_TERM_CHARS])] += 1
            continue
        for is_run, piece in _split_scripts(word):
            if is_run:
                found.update(piece)
                found.update(map("".join, pairwise(piece)))
            else:
                found[stem(piece[:_LONGEST_TERM_CHARS])] += 1
    return found


def query_terms(text: str) -> list[str]:
    """Return the terms by which a text is searched for, each once, in order: of a script without spaces the pairs,
    and a single character where it is alone."""
    found: list[str] = []
    for word in _WORD.findall(_fold(text)):
        for is_run, piece in _split_scripts(word):
            if is_run and len(piece) > 1:
                found.extend(map("".join, pairwise(piece)))
            else:
                found.append(stem(piece[:_LONGEST_TERM_CHARS]))
    return list(dict.fromkeys(found))


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFKD", text))).casefold()


def _split_scripts(word: str) -> list[tuple[bool, str]]:
    """Split a word into pieces, each with whether its script has no spaces."""
    if not _HAS_UNSPACED.search(word):
        return [(False, word)]
    return [(at % 2 == 1, piece) for at, piece in enumerate(_RUNS.split(word)) if piece]
