"""A chunked window, and at the end of each request the chunks of what left it that match best (BM25)."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from lading.evaluate.baselines.fitting import AdmittedMessages, Cutting, Window, admit, message_text
from lading.evaluate.showings import Arm, Case, Showing
from lading.history.validity import newest_block
from lading.messages import Message, user_text

CHUNK_CHARS = 1_200
QUERY_TERMS = 400
"""More different terms of what is newest are not asked for."""
RECALLED_TOKENS = 2_000
HEADING = "[Recalled from earlier messages:]"
SATURATION, LENGTH_WEIGHT = 1.2, 0.75
"""BM25's k1 and b."""

_TERM = re.compile(r"[^\W_]{2,40}")


class Index:
    """Texts by number, in the order they came, to be ranked by BM25."""

    def __init__(self) -> None:
        self._postings: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        self._lengths: list[int] = []
        self._total = 0

    def add(self, text: str) -> None:
        """Take in the next text."""
        terms = Counter(_terms(text))
        for term, times in terms.items():
            self._postings[term].append((len(self._lengths), times))
        self._lengths.append(terms.total())
        self._total += terms.total()

    def scores(self, query: str) -> Mapping[int, float]:
        """The score of each text that shares a term with the query."""
        found: defaultdict[int, float] = defaultdict(float)
        mean = self._total / max(len(self._lengths), 1)
        for term in list(dict.fromkeys(_terms(query)))[:QUERY_TERMS]:
            places = self._postings.get(term, ())
            rarity = math.log(1 + (len(self._lengths) - len(places) + 0.5) / (len(places) + 0.5))
            for number, times in places:
                length = 1 - LENGTH_WEIGHT + LENGTH_WEIGHT * self._lengths[number] / mean
                found[number] += rarity * times * (SATURATION + 1) / (times + SATURATION * length)
        return found


class _Snippet(NamedTuple):
    text: str
    tokens: int


def _show(case: Case, *, window_share: float, recalled_tokens: int | None) -> Iterator[Showing]:
    """``recalled_tokens`` None: recalled chunks take all that the window leaves."""
    past = admit(case)
    cutting = Cutting(at_share=window_share, reserved_tokens=_reserved(case, window_share, recalled_tokens))
    window = Window(case, past.head, cutting=cutting)
    index, chunks, taken = Index(), list[_Snippet](), past.head
    for upto in case.calls:
        showing = window.show(past, upto)
        for message in past.messages[taken : window.start]:
            for text in _texts(message):
                index.add(text)
                chunks.append(_Snippet(text, case.count(user_text(text))))
        taken = window.start
        left = case.room_tokens - window.tokens(past, upto)
        max_tokens = left if recalled_tokens is None else min(left, recalled_tokens)
        recalled = _recalled(chunks, index.scores(_query(past, upto)), case=case, max_tokens=max_tokens)
        yield replace(showing, messages=(*showing.messages, *recalled))


def _reserved(case: Case, window_share: float, recalled_tokens: int | None) -> int:
    """A small room is shared in halves."""
    asked = int((1 - window_share) * case.window_tokens) if recalled_tokens is None else recalled_tokens
    return min(asked, case.room_tokens // 2)


def _query(past: AdmittedMessages, upto: int) -> str:
    """Take what the model has not answered yet, then what a user said last."""
    messages = past.messages[:upto]
    asked = next((message for message in reversed(messages) if message.role == "user" and message.text), None)
    return "\n".join(map(message_text, (*messages[newest_block(messages) :], *([asked] if asked else []))))


def _recalled(
    chunks: Sequence[_Snippet], scores: Mapping[int, float], *, case: Case, max_tokens: int
) -> tuple[Message, ...]:
    """The best chunks that fit, in their old order; equals are taken newest first. None: no message."""
    taken: list[int] = []
    left = max_tokens - case.count(user_text(HEADING))
    for number in sorted(scores, key=lambda number: (-scores[number], -number)):
        if chunks[number].tokens <= left:
            taken.append(number)
            left -= chunks[number].tokens
    while taken:
        message = user_text("\n".join((HEADING, *(chunks[number].text for number in sorted(taken)))))
        if case.count(message) <= max_tokens:
            return (message,)
        taken.pop()
    return ()


def _texts(message: Message) -> Iterator[str]:
    """Split the text of a message into pieces, at line ends where there are any."""
    text = message_text(message)
    start = 0
    while start < len(text):
        end = start + CHUNK_CHARS
        if end < len(text):
            end = text.rfind("\n", start + CHUNK_CHARS // 2, end) + 1 or end
        yield f"{message.role}: {text[start:end].strip()}"
        start = end


def _terms(text: str) -> list[str]:
    return [term.casefold() for term in _TERM.findall(text)]


BM25_2K = Arm("window-bm25-2k", partial(_show, window_share=1.0, recalled_tokens=RECALLED_TOKENS))
HALF_WINDOW = Arm("half-window-bm25", partial(_show, window_share=0.5, recalled_tokens=None))
