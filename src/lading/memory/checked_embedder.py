"""Call an embedder so that nothing it does harms a search: in a thread, in time, and with its vectors checked."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from concurrent.futures import Future
from threading import Semaphore

from lading.effects import start_thread
from lading.errors import EmbeddingFailed, InputError
from lading.guard import attempt, describe_error
from lading.memory.embedding import Embedder, Purpose

MEANING_SHARE = 0.3
"""Score of the record nearest in meaning where words bring nothing: less than half of what words can bring, since
the nearest of all records may still be far."""
TIMEOUT_S = 10.0
MOST_CALLS = 4
"""Calls at the same time. Where as many hang, no further one is begun."""
_REASON_CHARS = 300


class CheckedEmbedder:
    """An embedder whose calls end in time, with vectors of the size and model that it had when it was given."""

    def __init__(self, embedder: Embedder, *, share: float = MEANING_SHARE, timeout_s: float = TIMEOUT_S) -> None:
        """``share``: how much nearness of its vectors counts beside the words, 0 to 1. Raises InputError."""
        if not 0 <= share <= 1 or not 0 < timeout_s < math.inf:
            raise InputError("Give a share from 0 to 1, and a timeout_s above 0.")
        self._embedder = embedder
        self.name, self.size = embedder.name, embedder.size
        self.share, self.timeout_s = share, timeout_s
        self._free = Semaphore(MOST_CALLS)

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> list[list[float]]:
        """Return a vector for each text, in order. Raises EmbeddingFailed, which says why there are none."""
        if not texts:
            return []
        if not self._free.acquire(blocking=False):
            raise EmbeddingFailed(f"{MOST_CALLS} earlier calls have not returned yet")
        outcome = self._start(list(texts), purpose)
        vectors = attempt(lambda: outcome.result(self.timeout_s))
        if isinstance(vectors, TimeoutError):
            raise EmbeddingFailed(f"no answer within {self.timeout_s:g} s")
        if isinstance(vectors, EmbeddingFailed):
            raise vectors
        if isinstance(vectors, Exception):
            raise EmbeddingFailed(describe_error(vectors)[:_REASON_CHARS]) from vectors
        return self._check(vectors, len(texts))

    def _start(self, texts: list[str], purpose: Purpose) -> Future[object]:
        def call() -> object:
            return [[float(number) for number in vector] for vector in self._embedder.embed(texts, purpose=purpose)]

        otherwise = EmbeddingFailed("it ended its thread")
        started = attempt(
            lambda: start_thread(call, name="lading-embedder", ended=self._free.release, otherwise=otherwise)
        )
        if isinstance(started, Future):
            return started
        self._free.release()
        raise EmbeddingFailed(f"no call could be started: {describe_error(started)}") from started

    def _check(self, vectors: object, count: int) -> list[list[float]]:
        if (name := self._embedder.name) != self.name:
            raise EmbeddingFailed(f"its model changed from {self.name} to {name}: embed the records again")
        if not isinstance(vectors, list) or len(vectors) != count:
            raise EmbeddingFailed(f"it did not give {count} vectors")
        self.size = self.size or len(vectors[0])
        for vector in vectors:
            if len(vector) != self.size:
                raise EmbeddingFailed(f"it gave a vector of {len(vector)} numbers, not of {self.size}")
            stored = array("f", vector)
            if not all(map(math.isfinite, stored)) or not any(stored):
                raise EmbeddingFailed("it gave a vector that has no direction")
        return vectors
