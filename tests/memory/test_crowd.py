"""Several processes on one memory, and processes that are killed."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from lading.memory.records import MemoryRecord
from lading.memory.sqlite_store import SqliteRecordStore, open_records
from tests.memory.writer import OWNER, text_of
from tests.waiting import any_moment, ended, line

ROOT = Path(__file__).parents[2]


def start(folder: Path, name: str, rounds: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.memory.writer", str(folder), name, str(rounds)]
    return subprocess.Popen(command, cwd=ROOT, env={"PYTHONPATH": "src:."}, stdout=subprocess.PIPE, text=True)


def check_whole(store: SqliteRecordStore, folder: Path) -> dict[str, MemoryRecord]:
    """Every record is found by its words, the counts are right, and SQLite finds no fault. Return the records."""
    shown = store.list_records(OWNER, at_s=0.0)
    everything = store.list_records(OWNER, at_s=0.0, with_history=True, limit=100_000)
    for record in shown[:200]:
        [hit] = store.search_words(OWNER, [record.text.split()[2]], at_s=0.0, limit=2)
        assert hit.id == record.id
    assert store.count_words(OWNER, ["writer"]) == {"writer": len(shown)}
    assert len(store.search_vector(OWNER, (1.0, 1.0), model="m", at_s=0.0, limit=9_999)) == len(shown)
    with closing(sqlite3.connect(folder / "memory.db")) as sql:
        assert sql.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        counted = sql.execute("SELECT records, shown FROM namespace").fetchall()
    assert counted == [(len(everything), len(shown))]
    return {record.id: record for record in everything}


@pytest.mark.parametrize(
    ("processes", "rounds"), [(3, 40), pytest.param(8, 500, marks=pytest.mark.full)], ids=["few", "many"]
)
def test_processes_lose_and_tear_nothing(tmp_path: Path, processes: int, rounds: int) -> None:
    started = [start(tmp_path, f"w{number}", rounds) for number in range(processes)]
    lines = [process.communicate()[0].splitlines() for process in started]
    assert [said[-1] for said in lines] == [f"done w{number}" for number in range(processes)]
    assert not [said for of in lines for said in of if said.startswith("missed")]
    with closing(open_records(tmp_path, create=False)) as store:
        records = check_whole(store, tmp_path)
    assert len(records) == processes * rounds
    for number, said in enumerate(lines):
        ids = [one.split()[1] for one in said[:-1]]
        texts = [records[name].text for name in ids]
        assert texts == [text_of(f"w{number}", at) for at in range(rounds)]


@pytest.mark.full
def test_a_killed_writer_leaves_whole_records(tmp_path: Path) -> None:
    chance = random.Random(3)
    acknowledged: list[str] = []
    for number in range(12):
        process = start(tmp_path, f"k{number}", 10_000)
        printed = [line(process, "what a writer says") for _ in range(chance.randrange(1, 12))]
        acknowledged += [said.split()[1] for said in printed]
        any_moment(chance)
        process.kill()
        ended(process, "a killed writer")
        with closing(open_records(tmp_path, create=False)) as store:
            assert set(acknowledged) <= check_whole(store, tmp_path).keys()
