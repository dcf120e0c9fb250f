"""What an identifier is to a ledger.

Identifiers are addresses, paths, names with a mark inside (``_ . / : @ -`` with a digit), camelCase, hashes,
ids, and numbers of four digits or with a point. A plain word is neither part of one nor beside one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

LEAST_CHARS, MOST_CHARS = 4, 120
NEAR_CHARS = 80
"""A word no farther from an identifier, and whole, is its neighbour."""

_CANDIDATE = re.compile(r"""https?://[^\s"'`<>()\[\]{}|\\]+|[\w$@~./:#+-]+""")
_MARKED = re.compile(r"[a-z][A-Z]|[^\W\d]\d|\d[^\W\d]|\d{4}|\d[.:/@-]\d|\w[_/@]\w|\w[.:]\w|^~?[/@]\w")
_LETTERS = re.compile(r"[A-Za-z]{4,}")
_TOUCHING = re.compile(r"[\w$@~/:#+\\-]")


class Identifier(NamedTuple):
    """An identifier where it stands in a text."""

    value: str
    words: tuple[str, ...]
    """Plain words beside it, the nearest first."""


def identifiers(text: str, *, words: int) -> Iterator[Identifier]:
    """The identifiers of a text, the last one first, each with up to so many different neighbouring words."""
    plain = list(_plain_words(text)) if words else []
    starts = [start for start, _ in plain]
    for match in reversed(list(_CANDIDATE.finditer(text))):
        value = match[0].strip("#+-:").rstrip("./")
        if LEAST_CHARS <= len(value) <= MOST_CHARS and _MARKED.search(value):
            place = bisect_left(starts, match.start())
            yield Identifier(value, tuple(islice(_nearest(plain, place, match), words)))


def _plain_words(text: str) -> Iterator[tuple[int, str]]:
    for match in _LETTERS.finditer(text):
        before, after = text[max(match.start() - 1, 0) : match.start()], text[match.end() : match.end() + 2]
        touching = _TOUCHING.match(before) or _TOUCHING.match(after) or (after[:1] == "." and after[1:].isalnum())
        if not touching and before != "." and (match[0][1:].islower() or match[0].isupper()):
            yield match.start(), match[0]


def _nearest(plain: list[tuple[int, str]], place: int, match: re.Match[str]) -> Iterator[str]:
    """The words around, nearest first, each once; ``place`` is the first that starts behind the match's start."""
    seen: set[str] = set()
    left, right = place - 1, place
    while True:
        before = match.start() - plain[left][0] if left >= 0 else NEAR_CHARS + 1
        after = plain[right][0] + len(plain[right][1]) - match.end() if right < len(plain) else NEAR_CHARS + 1
        if min(before, after) > NEAR_CHARS:
            return
        nearest, left, right = (left, left - 1, right) if before <= after else (right, left, right + 1)
        word = plain[nearest][1]
        if word not in seen:
            seen.add(word)
            yield word
