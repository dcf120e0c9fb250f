"""Leases of a folder among stores and processes: who holds them, and what the death of a holder leaves."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select

import pytest

from lading.errors import SessionBusy, StoreError
from lading.stores.sqlite import open_sqlite
from tests.waiting import PATIENCE_S, ended, go_on, line, until

ROOT = Path(__file__).parents[2]
NAMES = [f"s{number}" for number in range(50)]


def start_holder(folder: Path, wait: str, *sessions: str) -> subprocess.Popen[str]:
    return started(["-m", "tests.stores.holder", str(folder), wait, *sessions])


def started(arguments: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@contextmanager
def held_elsewhere(folder: Path, *sessions: str) -> Iterator[subprocess.Popen[str]]:
    """While another process holds leases."""
    with start_holder(folder, "0", *sessions) as process:
        try:
            assert line(process) == "held"
            yield process
        finally:
            process.kill()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    open_sqlite(tmp_path / "store").close()
    return tmp_path / "store"


def locks(folder: Path) -> list[Path]:
    return list((folder / "locks").iterdir())


def test_two_stores_of_one_folder_share_leases(folder: Path) -> None:
    with open_sqlite(folder) as one, open_sqlite(folder) as two:
        held = one.lease("acme", "s1")
        with pytest.raises(SessionBusy, match="this process"):
            two.lease("acme", "s1")
        held.release()
        two.lease("acme", "s1").release()


def test_a_closed_store_lets_go_of_its_leases_only(folder: Path) -> None:
    with open_sqlite(folder) as other:
        theirs = other.lease("acme", "s2")
        with open_sqlite(folder) as store:
            mine = store.lease("acme", "s1")
        with other.lease("acme", "s1"):
            mine.release()
            with pytest.raises(SessionBusy):
                other.lease("acme", "s1")
        with pytest.raises(SessionBusy):
            other.lease("acme", "s2")
        theirs.release()


def test_a_lock_is_a_file_for_its_owner_only_and_no_name(folder: Path) -> None:
    with open_sqlite(folder) as store, store.lease("acme", "a-session"):
        [path] = locks(folder)
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert "session" not in path.name
    assert locks(folder) == []


def test_names_that_differ_in_case_are_two_sessions(folder: Path) -> None:
    with open_sqlite(folder) as store, store.lease("acme", "a"), store.lease("acme", "A"):
        assert len({path.name.lower() for path in locks(folder)}) == 2


def test_reading_the_folder_frees_nothing(folder: Path) -> None:
    """A backup opens and closes every file."""
    with open_sqlite(folder) as store, store.lease("acme", "s1"):
        assert locks(folder)[0].read_bytes().startswith(b"process ")
        with start_holder(folder, "0", "s1") as second:
            assert line(second).startswith("busy ")


def test_a_second_process_is_told_who_writes(folder: Path) -> None:
    with (
        open_sqlite(folder) as store,
        held_elsewhere(folder, "s1") as process,
        pytest.raises(SessionBusy, match=f"by process {process.pid} on "),
    ):
        store.lease("acme", "s1")


def test_what_a_lock_file_says_is_not_repeated_unless_it_is_a_signature(folder: Path) -> None:
    with open_sqlite(folder) as store, store.lease("acme", "s1"):
        locks(folder)[0].write_bytes(b"process 1 on \x1b[2J" + b"x" * 1_000)
        with pytest.raises(SessionBusy, match="by another process") as caught:
            store.lease("acme", "s1")
        assert "\x1b" not in str(caught.value)


def test_a_waiting_process_gets_the_lease_once_it_is_released(folder: Path) -> None:
    for wait in (str(PATIENCE_S), "-"):
        with held_elsewhere(folder, "s1") as first, start_holder(folder, wait, "s1") as second:
            go_on(first)
            assert line(first) == "released"
            assert line(second) == "held"
            second.kill()


def test_a_killed_process_holds_nothing(folder: Path) -> None:
    with open_sqlite(folder) as store:
        with held_elsewhere(folder, *NAMES) as process:
            for name in NAMES:
                with pytest.raises(SessionBusy):
                    store.lease("acme", name)
            process.kill()
            ended(process, "the killed process")
            assert len(locks(folder)) == len(NAMES)
            taken = [store.lease("acme", name) for name in NAMES]
        for lease in taken:
            lease.release()
    assert locks(folder) == []


@pytest.mark.full
def test_a_process_that_waits_gets_the_lease_of_one_that_is_killed(folder: Path) -> None:
    with held_elsewhere(folder, "s1") as first, start_holder(folder, "-", "s1") as second:
        first.kill()
        assert line(second) == "held"
        second.kill()


@pytest.mark.full
def test_of_many_processes_one_at_a_time_holds(folder: Path) -> None:
    waiting = [start_holder(folder, "-", "s1") for _ in range(4)]
    with open_sqlite(folder) as store:
        while waiting:
            outputs = {process.stdout.fileno(): process for process in waiting if process.stdout}
            said, _, _ = select(list(outputs), [], [], PATIENCE_S)
            [holder] = [outputs[number] for number in said]
            assert line(holder) == "held"
            with pytest.raises(SessionBusy, match=f"by process {holder.pid} on "):
                store.lease("acme", "s1")
            assert ended(holder, "the process with the lease", "\n\n")[0] == "released\n"
            waiting.remove(holder)
        store.lease("acme", "s1").release()


FORKING = """
import os, signal, sys
from lading.errors import StoreError
from lading.stores.sqlite import open_sqlite
store = open_sqlite(sys.argv[1])
lease = store.lease("acme", "s1")
if not os.fork():
    lease.release()
    try:
        store.sessions()
    except StoreError as error:
        print(os.getpid(), error, flush=True)
    signal.pause()
sys.stdin.readline()
lease.release()
print("released", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("end", ["released", "killed"])
def test_a_forked_child_neither_holds_nor_ends_its_parents_lease(folder: Path, end: str) -> None:
    """The child shares the file that is locked; it tries to let go of it, and lives on."""
    with open_sqlite(folder) as store, started(["-c", FORKING, str(folder)]) as parent:
        child, error = line(parent).split(maxsplit=1)
        try:
            assert "was opened before a fork; open it again here" in error
            with pytest.raises(SessionBusy, match=f"by process {parent.pid} on "):
                store.lease("acme", "s1")
            if end == "released":
                go_on(parent)
                assert line(parent) == "released"
            else:
                parent.kill()
                until("the death of the parent", lambda: parent.poll() is not None)
            store.lease("acme", "s1").release()
            parent.kill()
        finally:
            os.kill(int(child), signal.SIGKILL)


def test_what_is_planted_in_the_place_of_a_lock_is_not_followed(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "mine"
    target.write_text("mine")
    with open_sqlite(folder) as store:
        with store.lease("acme", "s1"):
            [path] = locks(folder)
        plants: list[Callable[[], object]] = [
            lambda: path.symlink_to(target),
            lambda: os.mkfifo(path),
            lambda: path.mkdir(),
        ]
        for plant in plants:
            plant()
            with pytest.raises(StoreError, match="cannot be used"):
                store.lease("acme", "s1")
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink(missing_ok=True)
        assert target.read_text() == "mine"
        store.lease("acme", "s1").release()


def test_locks_removed_by_hand_do_not_take_the_next_one_with_them(folder: Path) -> None:
    with open_sqlite(folder) as store:
        first = store.lease("acme", "s1")
        locks(folder)[0].unlink()
        second = store.lease("acme", "s1")
        first.release()
        with pytest.raises(SessionBusy):
            store.lease("acme", "s1")
        second.release()
