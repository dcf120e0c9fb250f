"""Fits the weights of the estimator and writes its table of weights. Needs numpy beside the development tools.

    python -m scripts.estimator.fit CACHE               write the weights
    python -m scripts.estimator.fit CACHE --leave-out   print how a kind fares with weights fitted to all others

CACHE is a folder for the downloaded packages. The fit minimises the squared relative error over chunks of the
fitted side, as many of each kind of text, by coordinate descent over weights from 0 to 255 units; the last rounds
move in whole units. Kinds that are far off after a round weigh more in the next.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np  # type: ignore[import-not-found, unused-ignore]

from lading.tokens.estimate import TABLE, UNITS_PER_TOKEN, compute_codes
from lading.tokens.exact import O200K
from scripts.estimator.corpus import chunks, corpus, sides
from scripts.estimator.measure import CHUNKS, HEAD, Errors, line

FITTED_CHUNKS = 400
LEFT_OUT_CHUNKS = 100
"""Of each kind: for the weights that are shipped, and for those of the kinds that are left out."""
TABLES = 11
ROUNDS, PASSES, WHOLE_PASSES = 4, 60, 15
PULL = 1e-3
"""Weight of the penalty on what a feature contributes in the mean square, against 1 for the error."""

_FIRST_OF_LEADS = 5
_GROUPED = 64
"""Codes of the tables of leads below this stand for bytes without a lead of the table, and weigh nothing."""

Array: TypeAlias = Any


class Sample(NamedTuple):
    """Chunks of a kind: how often each feature occurs in each, in tokens per unit of weight; and its tokens."""

    shares: Array
    tokens: Array
    chars: int


def sample(texts: list[str]) -> Sample:
    """The features of some chunks, as shares of each chunk's tokens."""
    counts = np.zeros((len(texts), TABLES * 256))
    tokens = np.array([O200K.count(text) for text in texts], dtype=float)
    for row, text in enumerate(texts):
        for table, found in enumerate(compute_codes(text.encode("utf-8", "surrogatepass"))):
            counted = np.bincount(np.frombuffer(found, np.uint8), minlength=256)
            counted[: _GROUPED if table >= _FIRST_OF_LEADS else 0] = 0
            counts[row, table * 256 : table * 256 + 256] = counted
    return Sample(counts / tokens[:, None] / UNITS_PER_TOKEN, tokens, sum(map(len, texts)))


def fit(samples: list[Sample]) -> Array:
    """The weights of all tables, one after the other, in units."""
    shares = np.vstack([found.shares for found in samples])
    seen = np.flatnonzero(shares.any(axis=0))
    shares = shares[:, seen]
    kinds = np.repeat(np.arange(len(samples)), [len(found.tokens) for found in samples])
    importance = np.ones(len(samples))
    weights = np.zeros(len(seen))
    for turn in range(ROUNDS):
        weighed = shares * importance[kinds][:, None]
        _descend(weights, shares.T @ weighed, target=weighed.sum(axis=0), whole=turn == ROUNDS - 1)
        off = abs(shares @ weights - 1)
        medians = np.array([np.median(off[kinds == kind]) for kind in range(len(samples))])
        importance *= medians / medians.mean()
    whole = np.zeros(TABLES * 256)
    whole[seen] = weights
    return whole


def _descend(weights: Array, gram: Array, *, target: Array, whole: bool) -> None:
    """Moves each weight in turn to where the error is least."""
    energy = gram.diagonal()
    reached = gram @ weights
    for turn in range(PASSES + (WHOLE_PASSES if whole else 0)):
        for feature in range(len(weights)):
            slope = target[feature] - reached[feature] + energy[feature] * weights[feature]
            new = min(255.0, max(0.0, slope / (energy[feature] * (1 + PULL))))
            new = float(round(new)) if turn >= PASSES else new
            if new != weights[feature]:
                reached += gram[feature] * (new - weights[feature])
                weights[feature] = new


def errors(found: Sample, weights: Array) -> Errors:
    """How far some chunks are off with these weights."""
    off = found.shares @ weights - 1
    median, p95 = np.quantile(abs(off), [0.5, 0.95])
    return Errors(len(off), found.chars / found.tokens.sum(), median, p95, off.mean())


def write(weights: Array, target: Path) -> None:
    """Replaces the tables of the estimator, sixteen numbers to a line."""
    rows = weights.astype(int).reshape(-1, 16, 16).tolist()
    tables = ["\n".join(" ".join(f"{weight:3}" for weight in row) for row in table) for table in rows]
    target.write_text("\n\n".join(tables) + "\n")


def main(arguments: list[str]) -> None:
    """Write the table of weights, or print the table of kinds left out."""
    kinds = {kind: sides(documents) for kind, documents in corpus(Path(arguments[0])).items()}
    count = LEFT_OUT_CHUNKS if "--leave-out" in arguments else FITTED_CHUNKS
    fitted = {kind: sample(chunks(side, count=count, seed=1)) for kind, (side, _) in kinds.items()}
    if "--leave-out" not in arguments:
        write(fit(list(fitted.values())), TABLE)
        return
    print(HEAD)
    for kind, (_, side) in kinds.items():
        weights = fit([found for other, found in fitted.items() if other != kind])
        print(line(kind, errors(sample(chunks(side, count=CHUNKS, seed=2)), weights)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
