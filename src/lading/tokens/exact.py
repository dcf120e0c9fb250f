"""Exact counts for OpenAI's public vocabularies, from tables inside the package: nothing is downloaded.

The tables and split patterns are those of tiktoken's o200k_base and cl100k_base;
``scripts/encode_vocabularies.py`` writes the tables.
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct
from tiktoken import Encoding

PIECE_CHARS = 65_536
"""Characters encoded together. Merging takes longer than linear for a long word, and the split pattern backtracks
over a run of white space and gives up (a panic) near a million characters."""
_BOUNDARY = re.compile(r"[^\W_](?= )")
"""A letter or digit before a space: no token spans it, so that a cut there changes no count."""
NEAR_CHARS = 4_096

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
    """A counter over one of the shipped tables; loads it at the first count (some 0.3 s, once)."""

    name: str
    pattern: str

    def count(self, text: str) -> int:
        """Tokens as tiktoken counts them, special-token literals taken as plain text, lone surrogates as
        the replacement character. Exact; a run of more than 65,536 characters, of which the last 4,096 hold no
        letter or digit before a space, is cut there, and each cut is some two tokens off."""
        encoding = _encoding(self.name, self.pattern)
        return sum(len(encoding.encode_ordinary(piece)) for piece in _pieces(text))


O200K = Vocabulary("o200k", _O200K_PATTERN)
CL100K = Vocabulary("cl100k", _CL100K_PATTERN)


@cache
def _encoding(name: str, pattern: str) -> Encoding:
    packed = lzma.decompress((Path(__file__).with_name("tables") / f"{name}.xz").read_bytes())
    return Encoding(name, pat_str=pattern, mergeable_ranks=_ranks(packed), special_tokens={})


def _ranks(packed: bytes) -> dict[bytes, int]:
    ranks: dict[bytes, int] = {}
    position = 0
    while position < len(packed):
        start = position + 1
        position = start + packed[position]
        ranks[packed[start:position]] = len(ranks)
    return ranks


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > PIECE_CHARS:
        end = start + PIECE_CHARS
        start, begun = (
            max((found.end() for found in _BOUNDARY.finditer(text, end - NEAR_CHARS, end)), default=end),
            start,
        )
        yield text[begun:start]
    yield text[start:]
