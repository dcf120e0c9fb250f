"""What a simulated provider counts of a request, and what its prompt cache holds.

Written apart from ``lading.economics``, which it is to be compared with: there every prefix that was sent is
held; here what a request marks, and an earlier mark is found at most a number of blocks before a new one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from lading.economics import Usage
from lading.jsonbytes import dump
from lading.tokens import Counter

_UNREAD = frozenset({"id", "type", "role", "tool_use_id", "tool_call_id", "signature", "data", "url", "is_error"})
_AS_JSON = frozenset({"input", "input_schema", "parameters"})


class Piece(Struct, frozen=True):
    """A part of a request that the cache knows as a whole: a tool, a block, a message."""

    value: Any
    """As sent, without cache marks: those are no part of the prompt."""
    digest: bytes
    marked: bool
    """Whether the prefix that ends here is to be cached."""
    messages: int = 0
    """How many messages begin here, 0 or 1."""


def piece(value: Any, *, marked: bool, messages: int = 0) -> Piece:
    """The piece with its digest."""
    return Piece(value, hashlib.sha256(dump(value)).digest(), marked, messages)


class Scale(Struct, frozen=True):
    """The difference between a provider's count and the counter's, which calibration has to learn."""

    factor: float = 1.0
    message_tokens: int = 4
    request_tokens: int = 3


PLAIN = Scale()


class Ruler:
    """Counts pieces. Texts, names, arguments and tool definitions count; ids, signatures and pictures do not."""

    def __init__(self, counter: Counter, scale: Scale) -> None:
        """Every piece is counted once and remembered by its digest."""
        self._counter = counter
        self._scale = scale
        self._known: dict[bytes, int] = {}

    def ends(self, pieces: Sequence[Piece]) -> list[int]:
        """The length in tokens of each prefix that ends with a piece."""
        counted, fixed = 0, self._scale.request_tokens
        found: list[int] = []
        for piece in pieces:
            counted += self._words(piece)
            fixed += piece.messages * self._scale.message_tokens
            found.append(round(counted * self._scale.factor) + fixed)
        return found

    def text(self, text: str) -> int:
        """Tokens of what the model said itself."""
        return round(self._counter.count(text) * self._scale.factor)

    def _words(self, piece: Piece) -> int:
        if piece.digest not in self._known:
            self._known[piece.digest] = sum(self._counter.count(text) for text in words(piece.value))
        return self._known[piece.digest]


def words(value: Any) -> Iterator[str]:
    """The texts in a piece that a model reads."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from words(item)
    elif isinstance(value, dict):
        for field, item in value.items():
            if field in _AS_JSON:
                yield dump(item).decode()
            elif field not in _UNREAD:
                yield from words(item)


class PromptCache:
    """Holds the prefixes that requests marked, for good. Prefixes below the least length are not held."""

    def __init__(self, *, min_prefix_tokens: int, look_back: int = 20) -> None:
        """``look_back``: how many pieces, a mark included, are searched for one that is held."""
        self._min_prefix = min_prefix_tokens
        self._look_back = look_back
        self._held: set[bytes] = set()

    def bill(self, pieces: Sequence[Piece], ends: Sequence[int]) -> Usage:
        """What the request is billed, to the token. The cache holds its marked prefixes from now on."""
        chain = _chain(pieces)
        marks = [index for index, piece in enumerate(pieces) if piece.marked and ends[index] >= self._min_prefix]
        if not marks:
            return Usage(fresh_tokens=ends[-1])
        hit = next(
            (index for mark in reversed(marks) for index in self._searched(mark) if chain[index] in self._held), -1
        )
        self._held.update(chain[mark] for mark in marks)
        read, marked = ends[hit] if hit >= 0 else 0, ends[marks[-1]]
        return Usage(read_tokens=read, written_tokens=marked - read, fresh_tokens=ends[-1] - marked)

    def _searched(self, mark: int) -> range:
        return range(mark, max(mark - self._look_back, -1), -1)


def _chain(pieces: Sequence[Piece]) -> list[bytes]:
    links: list[bytes] = []
    link = b""
    for piece in pieces:
        link = hashlib.sha256(link + piece.digest).digest()
        links.append(link)
    return links
