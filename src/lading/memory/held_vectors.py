"""The vectors that a process has searched, kept current by what others wrote.

For each namespace and model there is one table in memory. The namespace counts what was added and removed, in the
transaction that did it, so that one row read says whether anything is new.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict

from msgspec import Struct

from lading.memory.vectors import HeldVectors, hold_vectors

MOST_BYTES = 1_000_000_000
"""Bytes of vectors in memory; above it those used longest ago are read again when they are needed."""
_BATCH = 4_096


class _HeldNamespace(Struct):
    vectors: HeldVectors
    stamp: int = 0
    removed: int = 0
    bytes: int = 0


class VectorCache:
    """Vectors in memory, by the numbers of their namespace and model."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[int, int], _HeldNamespace] = OrderedDict()

    def read(self, sql: sqlite3.Connection, namespace: int, *, model: int, size: int) -> HeldVectors:
        """Return the vectors of a namespace and model as they are in this transaction."""
        held = self._held.setdefault((namespace, model), _HeldNamespace(hold_vectors(size)))
        self._held.move_to_end((namespace, model))
        stamp, removed = sql.execute("SELECT stamp, removed FROM namespace WHERE id = ?", (namespace,)).fetchone()
        of = (namespace, model)
        # A vector that was replaced is one removed and one added.
        if removed != held.removed:
            left = sql.execute(
                "SELECT id FROM vector WHERE namespace = ? AND model = ? AND stamp <= ?", (*of, held.stamp)
            )
            held.vectors.keep([record for (record,) in left])
        if stamp != held.stamp:
            added = sql.execute(
                "SELECT id, data FROM vector WHERE namespace = ? AND model = ? AND stamp > ?", (*of, held.stamp)
            )
            while rows := added.fetchmany(_BATCH):
                held.vectors.extend(rows)
                held.bytes += 4 * size * len(rows)
        held.stamp, held.removed = stamp, removed
        self._evict()
        return held.vectors

    def clear(self) -> None:
        """Drop all vectors."""
        self._held.clear()

    def _evict(self) -> None:
        while len(self._held) > 1 and sum(held.bytes for held in self._held.values()) > MOST_BYTES:
            self._held.popitem(last=False)
