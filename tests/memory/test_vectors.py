"""Vectors held in memory: numpy and plain Python agree."""

from __future__ import annotations

import random

import pytest

from lading.memory import vectors
from lading.memory.vectors import HeldVectors, MatrixVectors, PlainVectors, encode_vector

SIZE = 8


def rows(count: int, seed: int = 1) -> list[tuple[int, bytes]]:
    chance = random.Random(seed)
    return [(at, encode_vector([chance.gauss(0, 1) for _ in range(SIZE)], size=SIZE)) for at in range(1, count + 1)]


def test_both_rank_alike_after_any_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "_BLOCK_ROWS", 16)
    chance = random.Random(2)
    held: tuple[HeldVectors, HeldVectors] = (MatrixVectors(SIZE), PlainVectors(SIZE))
    known = rows(300)
    kept: set[int] = set()
    for start in range(0, 300, 30):
        added = known[start : start + 30]
        kept = {*chance.sample(sorted(kept), len(kept) // 2), *(record for record, _ in added)}
        for table in held:
            table.extend(added)
            table.keep(kept)
        query = [chance.gauss(0, 1) for _ in range(SIZE)]
        matrix, plain = (table.rank(query, limit=9)[:9] for table in held)
        assert [record for record, _ in matrix] == [record for record, _ in plain]
        assert [score for _, score in matrix] == pytest.approx([score for _, score in plain], abs=1e-6)
        assert {record for record, _ in held[0].rank(query, limit=999)} == kept


def test_a_vector_takes_four_bytes_a_number() -> None:
    assert encode_vector([1.0, -2.0], size=2) == b"\x00\x00\x80\x3f\x00\x00\x00\xc0"
