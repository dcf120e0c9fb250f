"""Find the part of a text that is not quoted from a session."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from lading.evaluate.value_recall import PIECE, Places, is_identifier

LEAST_WORDS = 3
"""A shorter run of words occurs somewhere by chance."""
MOST_MARKS = 8
"""So many punctuation marks may be among the first words of a run."""
_LINE = re.compile(rf"^(?=(?:[^\w\n]*+\w++){{{LEAST_WORDS}}})", re.MULTILINE)
"""Starts a line with so many words. A shorter one is read with the line before."""
_TOKEN = re.compile(r"\w+|[^\w\s]")


class Quotes:
    """The messages of one session, in which texts are looked for."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._tokens = cache(self._tokens_of)
        # Requests that are built anew at each call say the same again.
        self._rest = cache(self._rest_of)

    def unquoted(self, text: str) -> str:
        """The text without what is verbatim in one message of the session, white space aside: runs of three
        words or more, identifiers, paths and numbers."""
        starts = dict.fromkeys((0, *(line.start() for line in _LINE.finditer(text)), len(text)))
        return " ".join(filter(None, (self._rest(text[start:end]) for start, end in pairwise(starts))))

    def _rest_of(self, text: str) -> str:
        tokens = [*_TOKEN.finditer(text)]
        words = [token[0] for token in tokens]
        left: list[str] = []
        at = start = 0
        while at < len(tokens):
            length = self._quoted(words, at)
            if length:
                left.append(text[start : tokens[at].start()])
                start = tokens[at + length - 1].end()
            at += length or 1
        rest = " ".join([*left, text[start:]])
        return " ".join(PIECE.sub(lambda found: self._unless_known(found[0]), rest).split())

    def _quoted(self, words: Sequence[str], at: int) -> int:
        """How many of the words and marks from ``at`` on are quoted: the longest run that one message holds."""
        window = range(at, min(at + LEAST_WORDS + MOST_MARKS, len(words)))
        first = [place for place in window if _is_word(words[place])][:LEAST_WORDS]
        if len(first) < LEAST_WORDS:
            return 0
        least = first[-1] + 1 - at
        holding = self._places.holding(frozenset(words[place] for place in first))
        return max((self._length(position, words, at=at, least=least) for position in holding), default=0)

    def _length(self, position: int, words: Sequence[str], *, at: int, least: int) -> int:
        """How many of the words from ``at`` on are together in a message; 0 for fewer than ``least``."""
        text = self._tokens(position)
        run = f" {' '.join(words[at : at + least])} "
        place = text.find(run)
        if place < 0:
            return 0
        place, end = place + len(run), at + least
        while end < len(words) and text.startswith(f"{words[end]} ", place):
            place, end = place + len(words[end]) + 1, end + 1
        return end - at

    def _tokens_of(self, position: int) -> str:
        return f" {' '.join(_TOKEN.findall(self._places.text(position)))} "

    def _unless_known(self, piece: str) -> str:
        return "" if is_identifier(piece) and self._places.first(piece) is not None else piece


def _is_word(token: str) -> bool:
    return token[0].isalnum() or token[0] == "_"
