"""The table of errors of the estimator, against o200k, by kind of text, on files it was not fitted to.

    python -m scripts.estimator.measure CACHE

CACHE is a folder for the downloaded packages.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from math import ceil
from pathlib import Path
from typing import NamedTuple

from lading.tokens.estimate import ESTIMATE
from lading.tokens.exact import O200K
from scripts.estimator.corpus import chunks, corpus, sides

CHUNKS = 200
HEAD = "| kind | chunks | chars per token | median | p95 | bias |\n|---|---|---|---|---|---|"


class Errors(NamedTuple):
    """How far the counts of chunks are off: sizes at half and at nineteen of twenty, and the mean with its sign."""

    chunks: int
    chars_per_token: float
    median: float
    p95: float
    bias: float


def errors(texts: Iterable[str]) -> Errors:
    """Relative errors against o200k of the estimates of some texts; the bias is above zero where they are high."""
    found = [(len(text), O200K.count(text), ESTIMATE.count(text)) for text in texts]
    off = [estimate / tokens - 1 for _, tokens, estimate in found]
    size = sorted(map(abs, off))
    chars, tokens = sum(length for length, _, _ in found), sum(tokens for _, tokens, _ in found)
    median, p95 = size[len(size) // 2], size[ceil(len(size) * 0.95) - 1]
    return Errors(len(off), chars / tokens, median, p95, sum(off) / len(off))


def line(kind: str, found: Errors) -> str:
    """A row of the table."""
    shares = f"{found.median:.1%} | {found.p95:.1%} | {found.bias:+.1%}"
    return f"| {kind} | {found.chunks} | {found.chars_per_token:.2f} | {shares} |"


def main(arguments: list[str]) -> None:
    """Print the table."""
    print(HEAD)
    for kind, documents in corpus(Path(arguments[0])).items():
        print(line(kind, errors(chunks(sides(documents)[1], count=CHUNKS, seed=2))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
