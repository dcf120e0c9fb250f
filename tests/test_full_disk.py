"""A session on a disk that fills up: a typed error, nothing half-written, the same bytes once there is space."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import pytest

from lading.audit.replay import verify
from lading.engine import Engine
from lading.errors import SessionBusy, StoreError
from lading.stores.sqlite import SqliteStore, open_sqlite
from tests.killed import Done, Reference, go_on, opened

SEED = 3
CALLS = 24

Full: TypeAlias = Callable[[int], AbstractContextManager[None]]
"""While it lasts, so many bytes are left."""


@pytest.fixture(params=["quota", "disk"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, Full]]:
    """A folder, and what makes its disk full."""
    if request.param == "quota":
        yield tmp_path, quota(tmp_path)
        return
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "none", str(tmp_path)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no small disk: only root may mount one")
    try:
        yield tmp_path, filled(tmp_path)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def quota(folder: Path) -> Full:
    """No file may grow by more; for any user, and any file of this process."""

    @contextmanager
    def full(left_bytes: int) -> Iterator[None]:
        sizes = [path.stat().st_size for path in folder.rglob("lading.db-wal")]
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (max(sizes, default=0) + left_bytes, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return full


def filled(folder: Path) -> Full:
    """A file takes all space but what is to be left."""

    @contextmanager
    def full(left_bytes: int) -> Iterator[None]:
        filler = folder / "filler"
        with open(filler, "wb", buffering=0) as file:
            with suppress(OSError):
                while file.write(b"x" * 65_536):
                    pass
            file.truncate(max(file.tell() - left_bytes, 0))
        try:
            yield
        finally:
            filler.unlink()

    return full


def outcome(done: Iterator[Done]) -> Done | StoreError:
    try:
        return next(done)
    except StoreError as error:
        return error


def half_written(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.startswith(".new-")]


@pytest.mark.parametrize("reopened", [False, True], ids=["same line", "reopened"])
def test_a_session_survives_a_full_disk_at_every_step(place: tuple[Path, Full], reopened: bool) -> None:
    folder, full = place
    reference = Reference("s1", SEED)
    refused = 0
    with open_sqlite(folder / "store", durability="normal") as store:
        engine = opened(store, "s1")
        for number in range(1, CALLS + 1):
            with full(number % 6 * 24_000):
                found = walk(engine, number)
            if isinstance(found, StoreError):
                refused += 1
                assert "space" in str(found)
                assert half_written(folder) == []
                check(store, reference, number)
                engine = opened(store, "s1") if reopened else engine
                found = walk(engine, number)
            assert isinstance(found, Done)
            assert found.pack
            assert found.pack.body == reference.pack(number).body
        check(store, reference, CALLS + 1)
    assert CALLS / 6 < refused < CALLS


def walk(engine: Engine, call: int) -> Done | StoreError:
    """What becomes of the line's way to the request of that call."""
    done = go_on(engine, SEED)
    found = outcome(done)
    while isinstance(found, Done) and not found.pack:
        found = outcome(done)
    assert isinstance(found, StoreError) or engine.call == call + 1
    return found


def check(store: SqliteStore, reference: Reference, call: int) -> None:
    """The store holds the session as it was before that call was made."""
    if not store.sessions():
        assert call == 1
        return
    reference.pack(call)
    stored = store.load("acme", "s1", verify=True)
    assert list(stored.entries) == reference.engine.history.entries[: len(stored.entries)]
    assert list(stored.edits) == reference.engine.history.edits[: len(stored.edits)]
    assert [outcome.problem for outcome in verify(store, tenant="acme", session="s1")] == [""] * (call - 1)


def test_on_a_full_disk_there_is_no_lease_and_no_trace_of_one(place: tuple[Path, Full]) -> None:
    folder, full = place
    with open_sqlite(folder / "store") as store:
        store.lease("acme", "s1").release()
        with full(0), pytest.raises(StoreError, match="check its permissions and free space") as caught:
            store.lease("acme", "s1", wait_s=None)
        assert not isinstance(caught.value, SessionBusy)
        assert list((folder / "store" / "locks").iterdir()) == []
        with store.lease("acme", "s1"), full(0), pytest.raises(SessionBusy):
            store.lease("acme", "s1")


def test_a_store_is_not_made_on_a_full_disk(place: tuple[Path, Full]) -> None:
    folder, full = place
    with full(0), pytest.raises(StoreError, match="space"):
        open_sqlite(folder / "store")
    assert half_written(folder) == []
    with open_sqlite(folder / "store") as store:
        assert store.sessions() == ()
