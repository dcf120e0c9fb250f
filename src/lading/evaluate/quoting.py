"""Remove the quotes of a session's messages from a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from lading.evaluate.value_recall import PIECE, ValueIndex, is_identifier

LEAST_WORDS = 3
"""Shorter runs of words occur somewhere by chance."""
MOST_MARKS = 8
"""Limit of punctuation marks among the first words of a run."""
_LINE = re.compile(rf"^(?=(?:[^\w\n]*+\w++){{{LEAST_WORDS}}})", re.MULTILINE)
"""The start of a line with at least ``LEAST_WORDS`` words; a shorter line is read with the line before."""
_TOKEN = re.compile(r"\w+|[^\w\s]")


class QuoteFinder:
    """Finds quotes of the messages of one session."""

    def __init__(self, places: ValueIndex) -> None:
        self._places = places
        self._tokens = cache(self._join_tokens)
        # Requests repeat the texts of earlier requests.
        self._rest = cache(self._remove_from_line)

    def remove_quotes(self, text: str) -> str:
        """Return the text without what a message of the session holds verbatim, apart from white space: runs of
        three words or more, identifiers, paths and numbers."""
        starts = dict.fromkeys((0, *(line.start() for line in _LINE.finditer(text)), len(text)))
        return " ".join(filter(None, (self._rest(text[start:end]) for start, end in pairwise(starts))))

    def _remove_from_line(self, text: str) -> str:
        tokens = [*_TOKEN.finditer(text)]
        words = [token[0] for token in tokens]
        left: list[str] = []
        at = start = 0
        while at < len(tokens):
            length = self._count_quoted(words, at)
            if length:
                left.append(text[start : tokens[at].start()])
                start = tokens[at + length - 1].end()
            at += length or 1
        rest = " ".join([*left, text[start:]])
        return " ".join(PIECE.sub(lambda found: self._remove_known(found[0]), rest).split())

    def _count_quoted(self, words: Sequence[str], at: int) -> int:
        """Count the words and marks from ``at`` on that are quoted: the longest run that one message holds."""
        window = range(at, min(at + LEAST_WORDS + MOST_MARKS, len(words)))
        first = [place for place in window if re.match(r"\w", words[place])][:LEAST_WORDS]
        if len(first) < LEAST_WORDS:
            return 0
        least = first[-1] + 1 - at
        holding = self._places.find_holding(frozenset(words[place] for place in first))
        return max((self._match_run(position, words, at=at, least=least) for position in holding), default=0)

    def _match_run(self, position: int, words: Sequence[str], *, at: int, least: int) -> int:
        """Count the words from ``at`` on that a message holds as one run; 0 for fewer than ``least``."""
        text = self._tokens(position)
        run = f" {' '.join(words[at : at + least])} "
        place = text.find(run)
        if place < 0:
            return 0
        place, end = place + len(run), at + least
        while end < len(words) and text.startswith(f"{words[end]} ", place):
            place, end = place + len(words[end]) + 1, end + 1
        return end - at

    def _join_tokens(self, position: int) -> str:
        return f" {' '.join(_TOKEN.findall(self._places.text(position)))} "

    def _remove_known(self, piece: str) -> str:
        return "" if is_identifier(piece) and self._places.find_first(piece) is not None else piece
