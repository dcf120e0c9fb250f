"""Count tokens of OpenAI's public vocabularies exactly, from tables inside the package, without downloads.

The tables (by ``scripts/encode_vocabularies.py``) and split patterns are tiktoken's o200k_base and cl100k_base.
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path

from msgspec import Struct
from tiktoken import Encoding

PIECE_CHARS = 65_536
"""Characters encoded together. Merging a long word is slower than linear, and the split pattern backtracks over
white space and panics near a million characters of it."""
_BOUNDARY = re.compile(r"[^\W_](?= )")
"""A letter or digit before a space: no token spans it, so a cut there changes no count."""
NEAR_CHARS = 4_096

REMEMBERED_CHARS = 1_000
"""The count of a text of this many characters or more is kept for the process, under a digest of the text: sessions
share prompts and tools, and a comparison plays one session under many strategies. Counting takes a hundred times as
long as the digest."""
MOST_REMEMBERED = 16_384
"""Counts that are kept (about 3 MB); then all are counted anew."""

_O200K_PATTERN = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
_CL100K_PATTERN = "|".join(
    (
        r"'(?i:[sdmt]|ll|ve|re)",
        r"[^\r\n\p{L}\p{N}]?+\p{L}++",
        r"\p{N}{1,3}+",
        r" ?[^\s\p{L}\p{N}]++[\r\n]*+",
        r"\s++$",
        r"\s*[\r\n]",
        r"\s+(?!\S)",
        r"\s",
    )
)


class Vocabulary(Struct, frozen=True):
    """A counter over one of the shipped tables, which is loaded at the first count (about 0.3 s, once)."""

    name: str
    pattern: str

    def count(self, text: str) -> int:
        """Count as tiktoken does, special-token literals as plain text and lone surrogates as the replacement
        character. Exact, except that a run of more than 65,536 characters without a letter or digit before a
        space in its last 4,096 is cut there; each such cut is up to five tokens off."""
        encoding = _load_encoding(self.name, self.pattern)
        if len(text) < REMEMBERED_CHARS:
            return len(encoding.encode_ordinary(text))
        key = self.name, blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        counted = remembered.get(key)
        if counted is None:
            counted = sum(len(encoding.encode_ordinary(piece)) for piece in _split(text))
            if len(remembered) >= MOST_REMEMBERED:
                remembered.clear()
            remembered[key] = counted
        return counted


remembered: dict[tuple[str, bytes], int] = {}
"""Counts by vocabulary and digest. Whoever measures the time of counting clears it before each time."""

O200K = Vocabulary("o200k", _O200K_PATTERN)
CL100K = Vocabulary("cl100k", _CL100K_PATTERN)


@cache
def _load_encoding(name: str, pattern: str) -> Encoding:
    packed = lzma.decompress((Path(__file__).with_name("tables") / f"{name}.xz").read_bytes())
    return Encoding(name, pat_str=pattern, mergeable_ranks=_parse_ranks(packed), special_tokens={})


def _parse_ranks(packed: bytes) -> dict[bytes, int]:
    ranks: dict[bytes, int] = {}
    position = 0
    while position < len(packed):
        start = position + 1
        position = start + packed[position]
        ranks[packed[start:position]] = len(ranks)
    return ranks


def _split(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > PIECE_CHARS:
        end = start + PIECE_CHARS
        start, begun = (
            max((found.end() for found in _BOUNDARY.finditer(text, end - NEAR_CHARS, end)), default=end),
            start,
        )
        yield text[begun:start]
    yield text[start:]
