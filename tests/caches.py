"""What a provider with marks on requests reads from its prompt cache."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from lading.testing.anthropic import split_pieces
from lading.testing.prompt_cache import PromptCache

LOOK_BACK = 20
FAR = 10**6


def list_reads(bodies: Sequence[Any], *, look_back: int) -> list[int]:
    """How much of each request a provider that looks back over so many blocks reads from its cache, in bytes."""
    cache, reads = PromptCache(min_prefix_tokens=0, look_back=look_back), list[int]()
    for body in bodies:
        pieces = split_pieces(body)
        ends = accumulate(len(json.dumps(piece.value)) for piece in pieces)
        reads.append(cache.bill(pieces, [*ends]).read_tokens)
    return reads
