"""Token counts and the prompt cache of a simulated provider.

Independent of ``lading.economics``, so that tests can compare both. There every prefix sent is cached; here only
the marked ones are, and a cached prefix is found only if it ends at most ``look_back`` pieces before a mark.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from msgspec import Struct

from lading.economics import Usage
from lading.jsonbytes import dump
from lading.models.card import TokenFacts
from lading.tokens import Counter

_UNREAD = frozenset({
    "call_id", "data", "encrypted_content", "file_data", "fileUri", "id", "image_url", "is_error", "mimeType",
    "role", "signature", "status", "thoughtSignature", "thought_signature", "tool_call_id", "tool_use_id", "type",
    "url",
})  # fmt: skip
_AS_JSON = frozenset({"input", "input_schema", "parameters", "args", "response", "parametersJsonSchema"})


class Piece(Struct, frozen=True):
    """The smallest part of a request that the cache distinguishes: a tool, a block or a message."""

    value: Any
    """The value as sent, without cache marks, which are not part of the prompt."""
    digest: bytes
    marked: bool
    """Whether the prefix that ends here is cached."""
    messages: int = 0
    """The number of messages that begin here, 0 or 1."""


def make_piece(value: Any, *, marked: bool, messages: int = 0) -> Piece:
    """Make a piece with its digest."""
    return Piece(value, hashlib.sha256(dump(value)).digest(), marked, messages)


class Scale(Struct, frozen=True):
    """The difference between a provider's count and that of o200k, which calibration must learn."""

    factor: float = 1.0
    message_tokens: int = 4
    request_tokens: int = 3


def find_scale(facts: TokenFacts) -> Scale:
    """Return the scale of a model: the multiplier of a card whose counter is an estimate, which is one of o200k."""
    return Scale(facts.multiplier) if facts.counter == "estimate" else Scale()


class PieceCounter:
    """Counts the tokens of texts, names, arguments and tool definitions; ids, signatures and pictures have none."""

    def __init__(self, counter: Counter) -> None:
        """Count with ``counter``. Counts are kept by the digest of the piece."""
        self._counter = counter
        self._known: dict[bytes, int] = {}

    def count_prefixes(self, pieces: Sequence[Piece], scale: Scale) -> list[int]:
        """Count the tokens of each prefix that ends with a piece, corrected by ``scale``."""
        counted, fixed = 0, scale.request_tokens
        found: list[int] = []
        for piece in pieces:
            counted += self._count(piece)
            fixed += piece.messages * scale.message_tokens
            found.append(round(counted * scale.factor) + fixed)
        return found

    def count_text(self, text: str, scale: Scale) -> int:
        """Count the tokens of a text of the model, corrected by ``scale``."""
        return round(self._counter.count(text) * scale.factor)

    def _count(self, piece: Piece) -> int:
        if piece.digest not in self._known:
            self._known[piece.digest] = sum(self._counter.count(text) for text in list_texts(piece.value))
        return self._known[piece.digest]


def list_texts(value: Any) -> Iterator[str]:
    """Yield the texts in a piece that a model reads."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from list_texts(item)
    elif isinstance(value, dict):
        for field, item in value.items():
            if field in _AS_JSON:
                yield dump(item).decode()
            elif field not in _UNREAD:
                yield from list_texts(item)


class PromptCache:
    """A prompt cache of the prefixes that requests marked, without expiry; shorter prefixes are not cached."""

    def __init__(self, *, min_prefix_tokens: int, look_back: int = 20) -> None:
        """``look_back``: number of pieces up to a mark that are searched for the end of a cached prefix."""
        self._min_prefix = min_prefix_tokens
        self._look_back = look_back
        self._cached: set[bytes] = set()

    def bill(self, pieces: Sequence[Piece], ends: Sequence[int]) -> Usage:
        """Compute the usage of a request, and cache its marked prefixes."""
        digests = (piece.digest for piece in pieces)
        chain = list(accumulate(digests, lambda link, own: hashlib.sha256(link + own).digest(), initial=b""))[1:]
        marks = [index for index, piece in enumerate(pieces) if piece.marked and ends[index] >= self._min_prefix]
        if not marks:
            return Usage(fresh_tokens=ends[-1])
        before = (range(mark, max(mark - self._look_back, -1), -1) for mark in reversed(marks))
        hit = next((index for indices in before for index in indices if chain[index] in self._cached), -1)
        self._cached.update(chain[mark] for mark in marks)
        read, marked = ends[hit] if hit >= 0 else 0, ends[marks[-1]]
        return Usage(read_tokens=read, written_tokens=marked - read, fresh_tokens=ends[-1] - marked)
