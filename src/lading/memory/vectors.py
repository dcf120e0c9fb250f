"""Vectors as bytes, and held in memory to be compared: with numpy where it is installed, else in plain Python."""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Collection, Iterable, Sequence
from importlib.util import find_spec
from operator import mul
from typing import Any, Protocol

from lading.errors import InputError

_BLOCK_ROWS = 4_096


def encode_vector(vector: Sequence[float], *, size: int) -> bytes:
    """Encode a vector of that size as 32-bit numbers, little-endian. Raises InputError for another size, and for
    what is no finite number of 32 bits."""
    if len(vector) != size:
        raise InputError(f"A vector has {len(vector)} numbers where its model has {size}; embed the text again.")
    try:
        numbers = array("f", map(float, vector))
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"A vector holds what is no number: {error}; embed the text again.") from error
    if not all(map(math.isfinite, numbers)):
        raise InputError("A vector holds a number that is infinite or NaN; embed the text again.")
    return _swap(numbers).tobytes()


class HeldVectors(Protocol):
    """Vectors of one size, each with the number of its record."""

    def extend(self, rows: Sequence[tuple[int, bytes]]) -> None:
        """Add vectors that ``encode_vector`` made."""

    def keep(self, records: Collection[int]) -> None:
        """Drop the vectors of all other records."""

    def rank(self, vector: Sequence[float], *, limit: int) -> list[tuple[int, float]]:
        """Return the nearest records by cosine, best first, equal ones by number; at least ``limit`` of them where
        there are as many."""


def has_numpy() -> bool:
    """Whether numpy is installed."""
    return find_spec("numpy") is not None


def hold_vectors(size: int) -> HeldVectors:
    """Make an empty table of vectors."""
    return MatrixVectors(size) if has_numpy() else PlainVectors(size)


class MatrixVectors:
    """Vectors as matrices of numpy, of few enough rows that adding some copies little."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._blocks: list[tuple[Any, Any]] = []
        """For each block the numbers of its records, and its rows, which have length 1."""

    def extend(self, rows: Sequence[tuple[int, bytes]]) -> None:
        """Add vectors that ``encode_vector`` made."""
        import numpy as np  # noqa: PLC0415 - an extra

        for start in range(0, len(rows), _BLOCK_ROWS):
            part = rows[start : start + _BLOCK_ROWS]
            records = np.array([record for record, _ in part], dtype=np.int64)
            matrix = np.frombuffer(b"".join(data for _, data in part), dtype="<f4").reshape(-1, self._size)
            lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
            matrix = matrix / np.where(lengths == 0, 1, lengths)
            if self._blocks and len(self._blocks[-1][0]) + len(records) <= _BLOCK_ROWS:
                before = self._blocks.pop()
                records, matrix = np.concatenate((before[0], records)), np.concatenate((before[1], matrix))
            self._blocks.append((records, matrix))

    def keep(self, records: Collection[int]) -> None:
        """Drop the vectors of all other records."""
        import numpy as np  # noqa: PLC0415 - an extra

        wanted = np.fromiter(records, dtype=np.int64, count=len(records))
        for at, (held, matrix) in enumerate(self._blocks):
            is_wanted = np.isin(held, wanted)
            if not is_wanted.all():
                self._blocks[at] = held[is_wanted], matrix[is_wanted]

    def rank(self, vector: Sequence[float], *, limit: int) -> list[tuple[int, float]]:
        """Return the nearest records by cosine, best first; see HeldVectors."""
        import numpy as np  # noqa: PLC0415 - an extra

        if not self._blocks:
            return []
        query = np.asarray(_normalize(vector), dtype=np.float32)
        records = np.concatenate([held for held, _ in self._blocks])
        scores = np.concatenate([matrix @ query for _, matrix in self._blocks])
        if limit < len(scores):
            least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
            records, scores = records[scores >= least], scores[scores >= least]
        order = np.lexsort((records, -scores))
        return list(zip(records[order].tolist(), scores[order].tolist(), strict=True))


class PlainVectors:
    """Vectors as arrays of numbers: exact as well, and slow from ten thousand on."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._rows: dict[int, array[float]] = {}

    def extend(self, rows: Sequence[tuple[int, bytes]]) -> None:
        """Add vectors that ``encode_vector`` made."""
        for record, data in rows:
            self._rows[record] = array("f", _normalize(_swap(array("f", data))))

    def keep(self, records: Collection[int]) -> None:
        """Drop the vectors of all other records."""
        self._rows = {record: self._rows[record] for record in records if record in self._rows}

    def rank(self, vector: Sequence[float], *, limit: int) -> list[tuple[int, float]]:
        """Return the nearest records by cosine, best first; see HeldVectors."""
        query = _normalize(vector)
        scores = [(record, sum(map(mul, row, query))) for record, row in self._rows.items()]
        return sorted(scores, key=lambda item: (-item[1], item[0]))[:limit]


def _normalize(vector: Iterable[float]) -> list[float]:
    numbers = list(vector)
    length = math.sqrt(sum(map(mul, numbers, numbers))) or 1.0
    return [number / length for number in numbers]


def _swap(numbers: array[float]) -> array[float]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
