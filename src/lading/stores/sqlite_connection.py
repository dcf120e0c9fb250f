"""A connection to the SQLite file of a store, used by one thread of one process at a time.

No connection may come across a fork (sqlite.org/howtocorrupt.html, 2.6). The locks do not, but the SQLite of the
child believes that it has them while the file is open there, so that its parent deletes the log to which the child
writes; closed there later, it deletes the log of others. So a fork waits until no thread uses a file, and closes
all of them; the parent opens each again when it is used next.
"""

from __future__ import annotations

import os
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Literal

from lading.errors import StoreError, StoreFormatError

_ADVICE = {
    sqlite3.SQLITE_BUSY: "another process is writing to it; try again when that is done",
    sqlite3.SQLITE_FULL: "no space is left; free some and repeat, nothing of this write was kept",
    sqlite3.SQLITE_IOERR: "the system failed to read or write it; check the disk and its free space",
    sqlite3.SQLITE_READONLY: "it cannot be written; check the permissions or choose another folder",
    sqlite3.SQLITE_CANTOPEN: "its folder cannot be written; check the permissions or choose another folder",
}

connecting = RLock()
"""Held to open or close a file, so that no other opening, and no fork, comes between."""


class _OpenFile:
    """A connection, the lock of those who use it, and device and inode of its file; None for tables in memory."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], path: Path | None) -> None:
        self._connect = connect
        self.sql: sqlite3.Connection | None = connect()
        self.file = identify(path) if path else None
        self.lock = RLock()  # A handler of signals may fork, too.
        self.is_parked = False
        """It was closed for a fork."""
        _open.add(self)

    def park(self) -> None:
        """Close it for a fork, while its lock and ``connecting`` are held."""
        # A transaction here is of the thread that forks: that must not go on in both processes.
        if self.sql is not None and self.file and not self.sql.in_transaction:
            with suppress(sqlite3.Error):
                self.sql.close()
            self.sql, self.is_parked = None, True

    def resume(self) -> None:
        """Open it again, while ``connecting`` is held."""
        if self.is_parked:
            self.sql = self._connect()
            self.is_parked = False

    def close(self) -> None:
        sql, self.sql, self.is_parked = self.sql, None, False
        _open.discard(self)
        if sql is not None:
            sql.close()


_open: set[_OpenFile] = set()
"""The open files of this process, changed while ``connecting`` is held; read a copy: a collection may close one."""
_held: list[_OpenFile] = []
"""Those that a fork keeps threads out of."""
_dropped: deque[_OpenFile] = deque()
"""Those whose stores were collected unclosed. They are closed before another is opened."""


class StoreConnection:
    """A connection to a file, in autocommit mode; or to tables in memory, without a ``path``.

    ``connect`` makes it, also after each fork; ``what`` names it in errors. It is made while ``connecting`` is
    held. All functions raise StoreError and StoreFormatError with advice.
    """

    def __init__(
        self, connect: Callable[[], sqlite3.Connection], folder: Path, path: Path | None, *, what: str
    ) -> None:
        self._folder, self._path, self._what = folder, path, what
        self._file_name = path.name if path else ""
        self._process = os.getpid()
        self._opened = _OpenFile(connect, path)

    @contextmanager
    def use(self, begin: Literal["", "BEGIN", "BEGIN IMMEDIATE"] = "") -> Iterator[sqlite3.Connection]:
        """Keep other threads out; with a statement that begins one, in a transaction."""
        if self._process != os.getpid():
            raise StoreError(f"{self._what} was opened before a fork; open it again here.")
        with self._hold(), translate_errors(self._folder, self._file_name):
            if (sql := self._opened.sql) is None:
                raise StoreError(f"{self._what} is closed; open it again.")
            if begin == "BEGIN IMMEDIATE":
                self._check_place()
            if not begin:
                yield sql
                return
            sql.execute(begin)
            try:
                yield sql
                sql.execute("COMMIT")
            finally:
                if sql.in_transaction:
                    sql.execute("ROLLBACK")

    def close(self) -> None:
        """Close the file. SQLite then merges the write-ahead log into it unless another process uses it.

        Does nothing in a forked child.
        """
        if self._process == os.getpid():
            with connecting, self._opened.lock, translate_errors(self._folder, self._file_name):
                self._opened.close()

    def __del__(self) -> None:
        if not hasattr(self, "_opened") or self._process != os.getpid():
            return
        # Nothing is waited for while objects are collected: the thread may hold the lock that another one needs.
        _dropped.append(self._opened)
        if connecting.acquire(blocking=False):
            try:
                close_dropped()
            finally:
                connecting.release()

    @contextmanager
    def _hold(self) -> Iterator[None]:
        self._opened.lock.acquire()
        try:
            while self._opened.is_parked:
                self._opened.lock.release()
                try:
                    with connecting, translate_errors(self._folder, self._file_name):
                        self._check_place()
                        self._opened.resume()
                finally:
                    self._opened.lock.acquire()
            yield
        finally:
            self._opened.lock.release()

    def _check_place(self) -> None:
        # SQLite checks this itself, by the inode too, but not for files with a write-ahead log.
        with suppress(OSError):
            if self._path is None or identify(self._path) == self._opened.file:
                return
        raise StoreError(
            f"{self._what} cannot be written: its file was moved, removed or replaced after it was opened. Put it "
            "back, or close the store and open it again."
        )


def close_dropped() -> None:
    """Close those files, while ``connecting`` is held."""
    while _dropped:
        with suppress(sqlite3.Error):
            _dropped.popleft().close()


def is_connected(path: Path) -> bool:
    """Return whether this process has the file open. ``connecting`` must be held."""
    return identify(path) in {one.file for one in _open.copy() if one.sql is not None}


@contextmanager
def translate_errors(folder: Path, file_name: str) -> Iterator[None]:
    """Translate errors of SQLite and the system into errors of Lading with advice."""
    try:
        yield
    except UnicodeDecodeError as error:
        # SQLite quotes damaged names in its messages, which the sqlite3 module then fails to decode.
        raise make_damaged_error(folder, "a name is not UTF-8", file_name=file_name) from error
    except sqlite3.Error as error:
        advice = _ADVICE.get(get_error_code(error))
        if advice is None:
            raise make_damaged_error(folder, str(error), file_name=file_name) from error
        raise StoreError(f"The store in {folder} cannot be used: {advice} ({error}).") from error
    except OSError as error:
        raise StoreError(
            f"The store in {folder} cannot be used: {error.strerror}; check its permissions and free space."
        ) from error


def make_damaged_error(folder: Path, detail: str, *, file_name: str) -> StoreFormatError:
    """Make the error for a damaged file."""
    # SQLite quotes the damaged bytes, which may be unprintable.
    words = "".join(sign if sign.isprintable() else " " for sign in detail[:200]).split()
    return StoreFormatError(
        f"The store in {folder} is damaged ({' '.join(words)}); restore the folder from a copy, or "
        f"save what can be read with: sqlite3 {file_name} .recover"
    )


def get_error_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary code of an error."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def identify(path: Path) -> tuple[int, int]:
    """Return device and inode of a file. Raises OSError."""
    status = path.stat()
    return status.st_dev, status.st_ino


def _park_all() -> None:
    connecting.acquire()
    close_dropped()
    _held.extend(_open.copy())
    for one in _held:
        one.lock.acquire()
        one.park()


def _let_go_all() -> None:
    while _held:
        _held.pop().lock.release()
    connecting.release()


if hasattr(os, "register_at_fork"):
    # The locks of modules that this one imports are registered earlier, so that a fork takes them later.
    os.register_at_fork(before=_park_all, after_in_parent=_let_go_all, after_in_child=_let_go_all)
