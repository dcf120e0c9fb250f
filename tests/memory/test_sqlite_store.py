"""The file of a memory: what is there, what may be made, what is refused, and what must be left as it is."""

from __future__ import annotations

import os
import resource
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from lading.errors import AddressError, InputError, MemoryFull, StoreError, StoreFormatError, TamperedError
from lading.memory.memory_file import APPLICATION_ID, FORMAT, has_fts5
from lading.memory.records import MemoryRecord, Namespace
from lading.memory.sqlite_store import open_records
from lading.memory.store import MemoryLimits
from lading.stores.sqlite import open_sqlite
from tests.stores.test_sqlite_file import open_folder, readable, unprivileged

__all__ = ["open_folder"]

OWNER = Namespace("acme", "ada")
RECORD = MemoryRecord(text="The server is in Oslo.", namespace=OWNER)


def fill(folder: Path, count: int = 3) -> Path:
    with closing(open_records(folder)) as store:
        store.add([RECORD] * count, at_s=1.0)
    return folder


def test_a_new_memory_is_a_marked_file_for_its_owner_only(tmp_path: Path) -> None:
    open_records(tmp_path / "store").close()
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["memory.db"]
    path = tmp_path / "store" / "memory.db"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with closing(sqlite3.connect(path)) as sql:
        found = [sql.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
        assert sql.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert found == [APPLICATION_ID, FORMAT]


def test_a_memory_stands_beside_the_sessions_of_a_folder(tmp_path: Path) -> None:
    with open_sqlite(tmp_path) as sessions:
        fill(tmp_path)
        assert sessions.sessions() == ()
    assert {path.name for path in tmp_path.iterdir()} == {"lading.db", "memory.db"}
    (tmp_path / "lading.db").replace(tmp_path / "memory.db")
    with pytest.raises(StoreFormatError, match="not a Lading store"):
        open_records(tmp_path)


def test_the_index_of_a_file_is_the_one_it_was_made_with(tmp_path: Path) -> None:
    assert has_fts5()
    for with_fts5 in (True, False):
        folder = tmp_path / str(with_fts5)
        open_records(folder, with_fts5=with_fts5).close()
        with closing(open_records(folder, with_fts5=not with_fts5)) as store:
            store.add([RECORD], at_s=1.0)
            assert len(store.search_words(OWNER, ["server"], at_s=1.0, limit=9)) == 1


@pytest.mark.parametrize("content", [b"", b"no database" * 99, b"SQLite format 3\x00" + b"\x00" * 200])
def test_a_foreign_file_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "memory.db").write_bytes(content)
    with pytest.raises(StoreFormatError, match="was left as it is"):
        open_records(tmp_path)
    assert (tmp_path / "memory.db").read_bytes() == content


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    fill(tmp_path)
    with closing(sqlite3.connect(tmp_path / "memory.db")) as sql:
        sql.execute(f"PRAGMA user_version = {FORMAT + 1}")
    with pytest.raises(StoreFormatError, match="upgrade Lading"):
        open_records(tmp_path)


def test_without_create_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"memory\.db is missing"):
        open_records(tmp_path, create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_byte_is_noticed(tmp_path: Path) -> None:
    path = fill(tmp_path) / "memory.db"
    path.write_bytes(path.read_bytes().replace(b"in Oslo", b"in Rome"))
    with closing(open_records(tmp_path)) as store, pytest.raises(TamperedError, match="not as it was written"):
        store.list_records(OWNER, at_s=1.0)


def read_all(folder: Path) -> str:
    """The number of records, or the error of reading them."""
    try:
        with closing(open_records(folder)) as store:
            store.search_words(OWNER, ["server"], at_s=1.0, limit=9)
            return f"{len(store.list_records(OWNER, at_s=1.0))} records"
    except StoreError as error:
        return str(error)


def test_a_damaged_page_is_a_typed_error(tmp_path: Path) -> None:
    path = fill(tmp_path, 300) / "memory.db"
    data = path.read_bytes()
    for start in range(4_096, len(data), 8_192):
        path.write_bytes(data[:start] + b"\xa5" * 4_096 + data[start + 4_096 :])
        said = read_all(tmp_path)
        assert said == "300 records" or "damaged" in said or "not as it was written" in said


def test_a_folder_that_may_not_be_written_is_read(open_folder: Path) -> None:
    fill(open_folder)
    readable(open_folder)
    with unprivileged(), closing(open_records(open_folder, create=False)) as store:
        assert len(store.search_words(OWNER, ["server"], at_s=1.0, limit=9)) == 3
        with pytest.raises(StoreError, match="cannot be written"):
            store.add([RECORD], at_s=1.0)
        with pytest.raises(StoreError, match="cannot be written"):
            store.forget(OWNER, ["1"], at_s=1.0)


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    large = MemoryRecord(text="word " * 20_000, namespace=OWNER)
    with closing(open_records(tmp_path)) as store:
        store.add([RECORD], at_s=1.0)
        before = store.list_records(OWNER, at_s=1.0)
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, hard))
        try:
            with pytest.raises(StoreError, match="space"):
                store.add([large], at_s=1.0)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        store.add([RECORD], at_s=1.0)
        assert len(store.search_words(OWNER, ["server"], at_s=1.0, limit=9)) == len(
            store.list_records(OWNER, at_s=1.0)
        )
        assert before[0].text == RECORD.text


def test_a_busy_file_is_waited_for_and_then_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lading.stores.sqlite_file.WAIT_S", 0.02)
    with closing(open_records(tmp_path)) as store, closing(sqlite3.connect(tmp_path / "memory.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another process is writing"):
            store.add([RECORD], at_s=1.0)
        other.rollback()
        store.add([RECORD], at_s=1.0)


def test_a_fork_does_not_share_the_file(tmp_path: Path) -> None:
    with closing(open_records(tmp_path)) as store:
        child = os.fork()
        if not child:
            try:
                store.list_records(OWNER, at_s=1.0)
            except StoreError as error:
                os._exit(0 if "before a fork" in str(error) else 1)
            os._exit(2)
        assert os.waitpid(child, 0)[1] == 0


def test_a_record_of_ten_megabytes_is_refused(tmp_path: Path) -> None:
    with closing(open_records(tmp_path)) as store:
        with pytest.raises(MemoryFull, match="Store the text elsewhere"):
            store.add([RECORD, MemoryRecord(text="x" * 10_000_000, namespace=OWNER)], at_s=1.0)
        assert store.list_records(OWNER, at_s=1.0) == ()
    with closing(open_records(tmp_path, limits=MemoryLimits(most_record_bytes=20_000_000))) as store:
        store.add([MemoryRecord(text="word " * 2_000_000 + "zebra", namespace=OWNER)], at_s=1.0)
        assert len(store.search_words(OWNER, ["zebra"], at_s=1.0, limit=9)) == 1


@pytest.mark.parametrize("name", ["../rival", "a/b", "", "acme\x00", "acme' OR 1=1 --", "é", "x" * 129])
def test_a_namespace_does_not_leave_its_tenant(name: str) -> None:
    with pytest.raises(AddressError):
        Namespace(name)


def test_values_of_other_types_are_refused(tmp_path: Path) -> None:
    odd = [
        MemoryRecord(text="x", namespace=OWNER, key=5),  # type: ignore[arg-type]
        MemoryRecord(text="x", namespace=OWNER, entities=("a", object())),  # type: ignore[arg-type]
        MemoryRecord(text="x", namespace=OWNER, created_s=float("nan")),
        MemoryRecord(text="x", namespace=OWNER, salience=0.5),  # type: ignore[arg-type]
    ]
    with closing(open_records(tmp_path)) as store:
        for record in odd:
            with pytest.raises(InputError, match="correct that value"):
                store.add([RECORD, record], at_s=1.0)
        with pytest.raises(InputError, match="as MemoryRecord"):
            store.add([{"text": "x"}], at_s=1.0)  # type: ignore[list-item]
        assert store.list_records(OWNER, at_s=1.0) == ()


def test_a_file_with_fts5_says_so_to_a_sqlite_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(open_records(tmp_path, with_fts5=True)) as store:
        store.add([RECORD], at_s=1.0)
    with monkeypatch.context() as patch:
        patch.setattr("lading.memory.sqlite_store.has_fts5", lambda: False)
        with pytest.raises(StoreError, match=r"FTS5, which this build of SQLite .* lacks; nothing is damaged"):
            open_records(tmp_path)
        with pytest.raises(InputError, match="no FTS5"):
            open_records(tmp_path / "other", with_fts5=True)
        with closing(open_records(tmp_path / "plain")) as store:
            store.add([RECORD], at_s=1.0)
        open_records(tmp_path / "plain").close()
    with closing(open_records(tmp_path)) as store:
        assert [hit.id for hit in store.search_words(OWNER, ["oslo"], at_s=2.0, limit=5)] == ["1"]
