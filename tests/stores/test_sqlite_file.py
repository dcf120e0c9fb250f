"""Opening a folder: what is there, what may be made, and what must be left as it is."""

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from lading import jsonbytes
from lading.errors import InputError, StoreError, StoreFormatError
from lading.stores.sqlite import open_sqlite
from lading.stores.sqlite_file import APPLICATION_ID, FORMAT, Durability
from tests.stores.samples import entries, entry, manifest

NOBODY = 65534
BLOB = b"y" * 50_000


def snapshot(folder: Path) -> dict[str, bytes | None]:
    """Every path below a folder and its bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")
    }


def filled(folder: Path) -> Path:
    with open_sqlite(folder) as store:
        store.append("acme", "s1", entries=[*entries(0, 5), entry(5, "x" * 50_000)], manifest=manifest(0))
    return folder


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can read, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


@contextmanager
def unprivileged() -> Iterator[None]:
    """Without the rights of root, whom no permission stops."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


def readable(folder: Path, *, writable: bool = False) -> None:
    """Everything in the folder belongs to the unprivileged user; written only where that is said."""
    for path in (folder, *folder.rglob("*")):
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
        path.chmod((0o700 if path.is_dir() else 0o600) if writable else (0o500 if path.is_dir() else 0o400))


def test_a_new_store_is_a_marked_file_for_its_owner_only(tmp_path: Path) -> None:
    open_sqlite(tmp_path / "store").close()
    assert list(snapshot(tmp_path / "store")) == ["lading.db"]
    path = tmp_path / "store" / "lading.db"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    with closing(sqlite3.connect(path)) as connection:
        found = [
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version", "journal_mode")
        ]
    assert found == [APPLICATION_ID, FORMAT, "wal"]


def test_the_write_ahead_log_of_a_store_that_waits_for_the_disk_stays_short(tmp_path: Path) -> None:
    with open_sqlite(tmp_path, durability="full") as store:
        for index in range(100):
            store.append("acme", "s1", entries=[entry(index, "x" * 20_000)])
        assert (tmp_path / "lading.db-wal").stat().st_size < 1_500_000


def test_what_is_beside_the_store_stays(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    open_sqlite(tmp_path).close()
    assert snapshot(tmp_path).keys() == {"notes.txt", "lading.db"}
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["plain", "with space", "per%20cent?mode=memory#x", "é日本", "q'uote"])
def test_any_folder_name_will_do(tmp_path: Path, name: str) -> None:
    filled(tmp_path / name)
    assert (tmp_path / name / "lading.db").is_file()
    with open_sqlite(str(tmp_path / name), create=False) as store:
        assert store.sessions() == (("acme", "s1"),)


@pytest.mark.parametrize(("durability", "synchronous"), [("full", 2), ("normal", 1), ("off", 0)])
def test_durability_belongs_to_the_opening(tmp_path: Path, durability: Durability, synchronous: int) -> None:
    with open_sqlite(tmp_path, durability=durability) as store:
        with store._connection.use() as sql:
            assert sql.execute("PRAGMA synchronous").fetchone() == (synchronous,)
        store.append("acme", "s1", entries=[entry(0, "x" * 50_000)])
    with open_sqlite(tmp_path) as store:
        assert store.load("acme", "s1", verify=True).entries == (entry(0, "x" * 50_000),)


def test_an_unknown_durability_is_refused(tmp_path: Path) -> None:
    unknown: Callable[..., object] = open_sqlite
    with pytest.raises(InputError, match="choose full, normal or off"):
        unknown(tmp_path / "store", durability="forever")
    assert snapshot(tmp_path) == {}


def test_many_openers_make_one_store(tmp_path: Path) -> None:
    def write(number: int) -> None:
        with open_sqlite(tmp_path / "store") as store:
            store.append("acme", f"s{number}", entries=[entry(0)])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    with open_sqlite(tmp_path / "store", create=False) as store:
        assert store.sessions() == tuple(("acme", f"s{number}") for number in range(8))
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["lading.db"]


def missing(folder: Path) -> None:
    assert not folder.exists()


def empty_folder(folder: Path) -> None:
    folder.mkdir()


def a_file(folder: Path) -> None:
    folder.write_text("mine")


@pytest.mark.parametrize("prepare", [missing, empty_folder, a_file])
def test_without_create_nothing_is_made(tmp_path: Path, prepare: Callable[[Path], None]) -> None:
    prepare(tmp_path / "store")
    before = snapshot(tmp_path)
    with pytest.raises(StoreError, match=r"There is no store in|cannot be used: Not a directory"):
        open_sqlite(tmp_path / "store", create=False)
    assert snapshot(tmp_path) == before


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("mine")
    with pytest.raises(StoreError, match="is a file; give a folder"):
        open_sqlite(tmp_path / "store")
    assert snapshot(tmp_path) == {"store": b"mine"}


def test_a_missing_parent_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"missing does not exist; make it first"):
        open_sqlite(tmp_path / "missing" / "store")
    assert snapshot(tmp_path) == {}


def text(path: Path) -> None:
    path.write_text("Dear diary, " * 50)


def nothing(path: Path) -> None:
    path.write_bytes(b"")


def head_only(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\x00")


def foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE session (id INTEGER PRIMARY KEY, tenant TEXT)")
        connection.commit()


def foreign_not_closed(path: Path) -> None:
    """Another program's database with a write-ahead log, as after a crash."""
    with closing(sqlite3.connect(path.with_name("live.db"))) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE secrets (x)")
        connection.commit()
        for name in ("", "-wal", "-shm"):
            shutil.copy(path.with_name("live.db" + name), path.with_name(path.name + name))


def a_folder(path: Path) -> None:
    path.mkdir()


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("plant", [text, nothing, head_only, foreign, foreign_not_closed, a_folder, a_pipe])
def test_a_foreign_file_is_refused_and_left_as_it_is(
    tmp_path: Path, plant: Callable[[Path], None], create: bool
) -> None:
    plant(tmp_path / "lading.db")
    before = snapshot(tmp_path)
    with pytest.raises(StoreFormatError, match="choose another folder"):
        open_sqlite(tmp_path, create=create)
    assert snapshot(tmp_path) == before


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    filled(tmp_path)
    with closing(sqlite3.connect(tmp_path / "lading.db")) as connection:
        connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
        connection.commit()
    before = snapshot(tmp_path)
    with pytest.raises(StoreFormatError, match=f"format {FORMAT + 1}, newer than format {FORMAT} .* upgrade"):
        open_sqlite(tmp_path)
    assert snapshot(tmp_path) == before


def test_format_0_is_refused(tmp_path: Path) -> None:
    filled(tmp_path)
    with closing(sqlite3.connect(tmp_path / "lading.db")) as connection:
        connection.execute("PRAGMA user_version = 0")
        connection.commit()
    before = snapshot(tmp_path)
    with pytest.raises(StoreFormatError, match=r"format 0, which no Lading writes.*Put back a copy"):
        open_sqlite(tmp_path)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("size", [100, 5_000, 20_000])
def test_a_file_that_was_cut_is_damaged(tmp_path: Path, size: int) -> None:
    filled(tmp_path)
    os.truncate(tmp_path / "lading.db", size)

    def use() -> None:
        with open_sqlite(tmp_path, create=False) as store:
            store.load("acme", "s1")
            store.append("acme", "s1", entries=[entry(6)])

    with pytest.raises(StoreFormatError, match=r"is damaged .* restore the folder from a copy"):
        use()


def test_a_store_without_its_tables_is_damaged(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "lading.db")) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.commit()
    with open_sqlite(tmp_path) as store, pytest.raises(StoreFormatError, match="no such table"):
        store.sessions()


def test_reading_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    before = snapshot(filled(tmp_path / "store"))
    with open_sqlite(tmp_path / "store", create=False) as store:
        store.load("acme", "s1", verify=True)
    assert snapshot(tmp_path / "store") == before


def test_a_store_that_cannot_be_written_is_opened_for_reading(open_folder: Path) -> None:
    folder = filled(open_folder / "store")
    readable(folder)
    before = snapshot(folder)
    with unprivileged():
        with open_sqlite(folder, create=False) as store:
            assert len(store.load("acme", "s1", verify=True).entries) == 6
            assert list(store.manifests("acme", "s1")) == [manifest(0)]
            with pytest.raises(StoreError, match="cannot be written; check the permissions"):
                store.append("acme", "s1", entries=[entry(6)])
            with pytest.raises(StoreError, match="Permission denied; check free space and permissions"):
                store.append("acme", "s1", blobs={jsonbytes.digest(BLOB): BLOB})
            with pytest.raises(StoreError, match="Permission denied; check its permissions"):
                store.lease("acme", "s1", wait_s=None)
        with pytest.raises(StoreError, match="Permission denied"):
            open_sqlite(folder)
    assert snapshot(folder) == before


def test_to_write_a_store_its_folder_must_be_writable_too(open_folder: Path) -> None:
    folder = filled(open_folder / "store")
    readable(folder, writable=True)
    folder.chmod(0o500)
    before = snapshot(folder)
    with unprivileged(), pytest.raises(StoreError, match=r"cannot be written; check the permissions"):
        open_sqlite(folder)
    assert snapshot(folder) == before


def test_a_folder_without_write_permission_cannot_hold_a_new_store(open_folder: Path) -> None:
    with unprivileged():
        for place in (open_folder, open_folder / "store"):
            if os.geteuid() != open_folder.stat().st_uid:
                with pytest.raises(StoreError, match="Permission denied"):
                    open_sqlite(place)
    assert snapshot(open_folder) == {}


def test_a_store_in_use_is_not_read_without_its_newest_appends(open_folder: Path) -> None:
    """What is in the write-ahead log must not silently be missing."""
    with open_sqlite(open_folder / "live") as store:
        store.append("acme", "s1", entries=entries(0, 2))
        copy = open_folder / "copy"
        copy.mkdir()
        for name in ("lading.db", "lading.db-wal"):
            shutil.copy(open_folder / "live" / name, copy / name)
    readable(copy)
    with unprivileged(), pytest.raises(StoreError, match=r"was not closed .* copy the whole folder"):
        open_sqlite(copy, create=False)
    readable(copy, writable=True)
    with unprivileged(), open_sqlite(copy, create=False) as store:
        assert store.load("acme", "s1", verify=True).entries == entries(0, 2)


def test_a_writer_that_waits_too_long_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lading.stores.sqlite_file.WAIT_S", 0.02)
    with open_sqlite(tmp_path) as store, closing(sqlite3.connect(tmp_path / "lading.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another process is writing"):
            store.append("acme", "s1", entries=[entry(0)])
        assert store.sessions() == ()
        other.rollback()
        store.append("acme", "s1", entries=[entry(0)])


WRITER = """
import os, sys, lading
with lading.Session("gpt-5-mini", store=sys.argv[1], name=f"other-{os.getpid()}") as session:
    session.add("word " * 1_000)
"""


@pytest.mark.parametrize("closes", [False, True], ids=["open", "closed"])
def test_a_second_opening_in_a_process_leaves_the_first_one_its_locks(closes: bool, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with open_sqlite(folder) as store, ExitStack() as others:
        store.append("acme", "s1", entries=entries(0, 5))
        others.enter_context(open_sqlite(folder))
        if closes:
            others.close()
        log = (folder / "lading.db-wal").stat().st_ino
        for start in (5, 10):
            subprocess.run([sys.executable, "-c", WRITER, folder], check=True)
            store.append("acme", "s1", entries=entries(start, start + 5))
            # Another process that believed to be the last one would have deleted the log.
            assert (folder / "lading.db-wal").stat().st_ino == log
    with open_sqlite(folder) as store:
        assert len(store.load("acme", "s1").entries) == 15


@pytest.mark.parametrize("returns", [False, True], ids=["replaced", "moved"])
def test_a_file_that_is_no_longer_in_its_place_is_not_written(returns: bool, tmp_path: Path) -> None:
    folder, aside = tmp_path / "store", tmp_path / "aside"
    with open_sqlite(folder) as store:
        store.append("acme", "s1", entries=entries(0, 5))
        folder.rename(aside)
        if not returns:
            with open_sqlite(folder) as other:
                other.append("acme", "s2", entries=entries(0, 1))
        with pytest.raises(StoreError, match=r"was moved, removed or replaced .* open it again"):
            store.append("acme", "s1", entries=entries(5, 10))
        assert len(store.load("acme", "s1").entries) == 5
        if returns:
            aside.rename(folder)
            store.append("acme", "s1", entries=entries(5, 10))
    with open_sqlite(folder) as store:
        assert store.sessions() == ((("acme", "s1"),) if returns else (("acme", "s2"),))


def test_a_folder_is_the_one_that_was_opened_wherever_the_process_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with open_sqlite("store") as store:
        monkeypatch.chdir("/")
        with store.lease("acme", "s1"):
            store.append("acme", "s1", entries=[entry(0), entry(1, "x" * 50_000)])
    with open_sqlite(tmp_path / "store") as store:
        assert len(store.load("acme", "s1", verify=True).entries) == 2
