"""Exact counts for OpenAI's public vocabularies, from tables inside the package: nothing is downloaded.

The tables and split patterns are those of tiktoken's o200k_base and cl100k_base;
``scripts/encode_vocabularies.py`` writes the tables.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct
from tiktoken import Encoding

_SPACE_RUN = 65_536
"""The split pattern backtracks over a run of white space and gives up (a panic) near a million characters,
so a run is cut where a window of this many characters is all space. Shorter runs are never touched."""

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
        the replacement character. Exact; only a run of white space beyond 65,536 characters is counted in
        pieces, each at most one token off."""
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
    for window in range(0, len(text) - _SPACE_RUN + 1, _SPACE_RUN):
        if text[window : window + _SPACE_RUN].isspace():
            yield text[start:window]
            start = window
    yield text[start:]
