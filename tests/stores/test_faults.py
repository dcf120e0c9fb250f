"""What happens to a store when its process is killed, the disk is full, or somebody else writes too."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from lading import jsonbytes
from lading.errors import StoreError
from lading.stores import Stored
from lading.stores.sqlite import open_sqlite
from tests.stores.samples import entry, manifest
from tests.stores.writer import append_round, blob
from tests.waiting import any_moment, ended, line, until

ROOT = Path(__file__).parents[2]


def start_writer(folder: Path, *numbers: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.stores.writer", str(folder), *map(str, numbers)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )


def whole_rounds(folder: Path) -> int:
    """How many rounds the store holds, after checking that each is there with all its pieces."""
    with open_sqlite(folder, create=False) as store:
        stored: Stored = store.load("acme", "s1", verify=True)
        rounds = stored.calls
        assert len(stored.entries) == 2 * rounds
        assert len(stored.edits) == rounds
        assert list(store.manifests("acme", "s1")) == [manifest(call) for call in range(rounds)]
        for call in range(rounds):
            assert store.blob("acme", "s1", digest=jsonbytes.digest(blob(call))) == blob(call)
            with_large = stored.entries[2 * call + 1]
            assert with_large == entry(2 * call + 1, "large " * 8_000 if call % 3 == 0 else "")
    return rounds


@pytest.mark.full
def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    chance = random.Random(11)
    folder = tmp_path / "store"
    known = 0
    for _ in range(10):
        with start_writer(folder, 10_000) as writer:
            for _ in range(chance.randrange(1, 8)):
                acknowledged = int(line(writer, "a round"))
            any_moment(chance)
            writer.kill()
            # What it still said before it died counts as well.
            for said in ended(writer, "the killed writer")[0].splitlines():
                acknowledged = int(said)
        rounds = whole_rounds(folder)
        assert rounds >= acknowledged + 1 > known
        known = rounds


@pytest.mark.full
def test_a_writer_killed_while_it_makes_the_store_leaves_none_or_a_whole_one(tmp_path: Path) -> None:
    chance = random.Random(12)
    for number in range(6):
        folder = tmp_path / f"store{number}"
        with start_writer(folder, 1) as writer:
            until("the folder of the store", folder.exists)
            any_moment(chance)
            writer.kill()
        with open_sqlite(folder) as store:
            call = store.load("acme", "s1").calls if store.sessions() else 0
            append_round(store, call)
        assert whole_rounds(folder) == call + 1


@pytest.mark.parametrize("most_file_bytes", [70_000, 200_000, 400_000])
def test_on_a_full_disk_the_store_stays_readable(tmp_path: Path, most_file_bytes: int) -> None:
    folder = tmp_path / "store"
    with open_sqlite(folder) as store:
        append_round(store, 0)
    with start_writer(folder, 10_000, most_file_bytes) as writer:
        output = ended(writer, "the writer on a full disk")[0].splitlines()
    assert output[-1].startswith("error StoreError: ")
    assert "free space" in output[-1]
    acknowledged = [int(said) for said in output[:-1]]
    assert whole_rounds(folder) == 1 + len(acknowledged)
    with open_sqlite(folder) as store:
        append_round(store, 1 + len(acknowledged))
    assert whole_rounds(folder) == 2 + len(acknowledged)


def test_a_full_database_refuses_the_append_and_takes_a_smaller_one(tmp_path: Path) -> None:
    with open_sqlite(tmp_path) as store:
        append_round(store, 0)
        with store._connection.use() as sql:
            pages = sql.execute("PRAGMA page_count").fetchone()[0]
            sql.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(StoreError, match="no space is left; free some and repeat"):
            store.append("acme", "s1", entries=[entry(index, "x" * 9_000) for index in range(2, 9)])
        assert len(store.load("acme", "s1", verify=True).entries) == 2
        store.append("acme", "s1", manifest=manifest(1))
        assert store.load("acme", "s1").calls == 2


def test_two_processes_may_write_the_same_session(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with start_writer(folder, 25) as one, start_writer(folder, 25) as two:
        outputs = [ended(writer, "a writer of two")[0].split() for writer in (one, two)]
    assert sorted(int(call) for output in outputs for call in output) == list(range(50))
    assert whole_rounds(folder) == 50
