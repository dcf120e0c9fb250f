"""What is forgotten is in no byte of any file: of the text, the key, the index of words and the vector."""

from __future__ import annotations

import random
import sqlite3
import struct
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from lading.errors import StoreError
from lading.memory.records import MemoryRecord, Namespace
from lading.memory.sqlite_store import SqliteRecordStore, open_records
from lading.memory.store import Vectors

PLACES = [Namespace("acme", f"user{number}") for number in range(3)]


def draw_record(chance: random.Random) -> tuple[MemoryRecord, list[float]]:
    """A record of words that are in no other one, and a vector."""
    words = ["".join(chance.choices("bcdfghjklmnpqrstvwxz", k=14)) for _ in range(chance.randint(2, 40))]
    key = chance.choice(["", words[0], f"key{chance.randrange(20)}"])
    text = " ".join(words[1:] * chance.choice([1, 2, 5]))
    record = MemoryRecord(text=text, namespace=chance.choice(PLACES), key=key, entities=(words[0],))
    return record, [chance.random() for _ in range(chance.choice([4, 384]))]


def traces(record: MemoryRecord, vector: Sequence[float]) -> list[bytes]:
    words = [*record.text.split(), *record.entities, *([record.key] if len(record.key) == 14 else [])]
    return [*(word.encode() for word in words), struct.pack(f"<{len(vector)}f", *vector)[:16]]


def bytes_of(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file())


@pytest.mark.parametrize("with_fts5", [True, False])
def test_no_byte_is_left(tmp_path: Path, with_fts5: bool) -> None:
    chance = random.Random(7)
    with ExitStack() as undo:
        stores = [
            undo.enter_context(closing(open_records(tmp_path, durability="off", with_fts5=with_fts5)))
            for _ in range(2)
        ]
        kept: dict[str, tuple[MemoryRecord, list[float]]] = {}
        for _ in range(6):
            for _ in range(60):
                record, vector = draw_record(chance)
                vectors = Vectors(f"m{len(vector)}", len(vector), {"0": vector})
                [added] = chance.choice(stores).add([record], vectors=vectors, at_s=1.0)
                kept[added.id] = added, vector
            gone = [kept.pop(name) for name in chance.sample(sorted(kept), 9)]
            assert all(trace in bytes_of(tmp_path) for record, _ in gone for trace in traces(record, [])[:-1][:1])
            for record, _ in gone:
                assert len(chance.choice(stores).forget(record.namespace, [record.id], at_s=2.0)) == 1
            left = bytes_of(tmp_path)
            assert [trace for record, vector in gone for trace in traces(record, vector) if trace in left] == []
        found = {name for place in PLACES for name in stores[0].get(place, list(kept))}
        assert found == set(kept)


def read_while(folder: Path, store: SqliteRecordStore, names: list[str]) -> str:
    """Forget while somebody reads, and return the error."""
    with closing(sqlite3.connect(folder / "memory.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM record").fetchone()
        with pytest.raises(StoreError) as caught:
            store.forget(PLACES[0], names, at_s=2.0)
    return str(caught.value)


def test_a_reader_in_the_way_is_said_and_the_next_call_completes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lading.stores.sqlite_file.WAIT_S", 0.02)
    with closing(open_records(tmp_path)) as store:
        [added] = store.add([MemoryRecord(text="xyzzyplugh", namespace=PLACES[0])], at_s=1.0)
        assert "forgotten, but another process is reading" in read_while(tmp_path, store, [added.id])
        assert store.get(PLACES[0], [added.id]) == {}
        assert b"xyzzyplugh" in bytes_of(tmp_path)
        assert store.forget(PLACES[0], [added.id], at_s=3.0) == ()
        assert b"xyzzyplugh" not in bytes_of(tmp_path)
        [tombstone] = store.list_tombstones(PLACES[0])
        assert tombstone.forgotten_s == 2.0


def test_an_id_that_is_not_there_costs_no_rewriting(tmp_path: Path) -> None:
    with closing(open_records(tmp_path)) as store:
        store.add([MemoryRecord(text="text", namespace=PLACES[0])], at_s=1.0)
        files = [tmp_path / name for name in ("memory.db", "memory.db-wal")]
        before = [path.read_bytes() for path in files]
        assert store.forget(PLACES[0], ["77"], at_s=2.0) == ()
        assert [path.read_bytes() for path in files] == before
