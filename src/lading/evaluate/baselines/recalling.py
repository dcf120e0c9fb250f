"""Arms with a window cut in chunks, and the best-matching removed passages (BM25) at the end of each request."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from lading.evaluate.arms import Arm, ArmInput, ArmRequest
from lading.evaluate.baselines.fitting import AdmittedMessages, CutLimits, Window, admit, join_texts
from lading.history.validity import newest_block
from lading.messages import Message, user_text

CHUNK_CHARS = 1_200
QUERY_TERMS = 400
"""Maximum number of different terms in a query."""
RECALLED_TOKENS = 2_000
HEADING = "[Recalled from earlier messages:]"
SATURATION, LENGTH_WEIGHT = 1.2, 0.75
"""BM25's k1 and b."""

_TERM = re.compile(r"[^\W_]{2,40}")


class BM25Index:
    """An index of numbered texts, ranked by BM25."""

    def __init__(self) -> None:
        self._postings: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        self._lengths: list[int] = []
        self._total = 0

    def add(self, text: str) -> None:
        """Add the next text."""
        terms = Counter(_split_terms(text))
        for term, times in terms.items():
            self._postings[term].append((len(self._lengths), times))
        self._lengths.append(terms.total())
        self._total += terms.total()

    def score(self, query: str) -> Mapping[int, float]:
        """Score each text that shares a term with the query."""
        found: defaultdict[int, float] = defaultdict(float)
        mean = self._total / max(len(self._lengths), 1)
        for term in list(dict.fromkeys(_split_terms(query)))[:QUERY_TERMS]:
            places = self._postings.get(term, ())
            rarity = math.log(1 + (len(self._lengths) - len(places) + 0.5) / (len(places) + 0.5))
            for number, times in places:
                length = 1 - LENGTH_WEIGHT + LENGTH_WEIGHT * self._lengths[number] / mean
                found[number] += rarity * times * (SATURATION + 1) / (times + SATURATION * length)
        return found


class _Snippet(NamedTuple):
    text: str
    tokens: int


def _show(case: ArmInput, *, window_share: float, recalled_tokens: int | None) -> Iterator[ArmRequest]:
    """Show the window and recalled chunks; ``recalled_tokens`` None: chunks fill what the window leaves."""
    past = admit(case)
    limits = CutLimits(at_share=window_share, reserved_tokens=_reserve_tokens(case, window_share, recalled_tokens))
    window = Window(case, past.head, limits=limits)
    index, chunks, taken = BM25Index(), list[_Snippet](), past.head
    for upto in case.calls:
        showing = window.show(past, upto)
        for message in past.messages[taken : window.start]:
            for text in _split_message(message):
                index.add(text)
                chunks.append(_Snippet(text, case.count(user_text(text))))
        taken = window.start
        left = case.room_tokens - window.tokens(past, upto)
        max_tokens = left if recalled_tokens is None else min(left, recalled_tokens)
        recalled = _recall_chunks(chunks, index.score(_build_query(past, upto)), case=case, max_tokens=max_tokens)
        yield replace(showing, messages=(*showing.messages, *recalled))


def _reserve_tokens(case: ArmInput, window_share: float, recalled_tokens: int | None) -> int:
    """Return the tokens kept free for recalled chunks, at most half of the room."""
    wanted = int((1 - window_share) * case.window_tokens) if recalled_tokens is None else recalled_tokens
    return min(wanted, case.room_tokens // 2)


def _build_query(past: AdmittedMessages, upto: int) -> str:
    """Build a query from the messages that the model has not answered yet and the last user message."""
    messages = past.messages[:upto]
    last = next((message for message in reversed(messages) if message.role == "user" and message.text), None)
    return "\n".join(map(join_texts, (*messages[newest_block(messages) :], *([last] if last else []))))


def _recall_chunks(
    chunks: Sequence[_Snippet], scores: Mapping[int, float], *, case: ArmInput, max_tokens: int
) -> tuple[Message, ...]:
    """Return a message with the best chunks that fit, in their old order; of equal ones, newer ones first."""
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


def _split_message(message: Message) -> Iterator[str]:
    """Split the text of a message into chunks, at line ends where there are any."""
    text = join_texts(message)
    start = 0
    while start < len(text):
        end = start + CHUNK_CHARS
        if end < len(text):
            end = text.rfind("\n", start + CHUNK_CHARS // 2, end) + 1 or end
        yield f"{message.role}: {text[start:end].strip()}"
        start = end


def _split_terms(text: str) -> list[str]:
    return [term.casefold() for term in _TERM.findall(text)]


BM25_2K = Arm("window-bm25-2k", partial(_show, window_share=1.0, recalled_tokens=RECALLED_TOKENS))
HALF_WINDOW = Arm("half-window-bm25", partial(_show, window_share=0.5, recalled_tokens=None))
