"""A connection to the SQLite file of a store, used by one thread of one process at a time.

SQLite's locks do not come across a fork, but the SQLite of the child believes that it has them, for as long as the
file is open there (sqlite.org/howtocorrupt.html, 2.6): what the child then writes is lost with the log that its
parent deletes. So a fork waits until no thread uses a file, and its child closes what it inherited.
"""

from __future__ import annotations

import os
import sqlite3
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
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

    def __init__(self, sql: sqlite3.Connection, file: tuple[int, int] | None) -> None:
        self.sql: sqlite3.Connection | None = sql
        self.lock = RLock()  # A handler of signals may fork, too.
        self.file = file
        _open.add(self)

    def close(self) -> None:
        sql, self.sql = self.sql, None
        _open.discard(self)
        if sql is not None:
            sql.close()


_open: set[_OpenFile] = set()
"""The open files of this process, changed while ``connecting`` is held."""
_dropped: deque[_OpenFile] = deque()
"""Those whose stores were collected unclosed, and in the child of a fork those of its parent. They are closed
before another is opened: not in each child, where SQLite may wait for a thread that the child does not have."""


class StoreConnection:
    """A connection to a file, in autocommit mode; or to tables in memory, without a ``path``.

    ``what`` names it in errors. It is made while ``connecting`` is held. All functions raise StoreError and
    StoreFormatError with advice.
    """

    def __init__(self, sql: sqlite3.Connection, folder: Path, path: Path | None, *, what: str) -> None:
        self._folder, self._path, self._what = folder, path, what
        self._file_name = path.name if path else ""
        self._process = os.getpid()
        self._opened = _OpenFile(sql, _identify(path) if path else None)

    @contextmanager
    def use(self, begin: Literal["", "BEGIN", "BEGIN IMMEDIATE"] = "") -> Iterator[sqlite3.Connection]:
        """Keep other threads out; with a statement that begins one, in a transaction."""
        if self._process != os.getpid():
            raise StoreError(f"{self._what} was opened before a fork; open it again here.")
        with self._opened.lock, translate_errors(self._folder, self._file_name):
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
        if self._process != os.getpid():
            return
        # Nothing is waited for while objects are collected: the thread may hold the lock that another one needs.
        _dropped.append(self._opened)
        if connecting.acquire(blocking=False):
            try:
                close_dropped()
            finally:
                connecting.release()

    def _check_place(self) -> None:
        # SQLite checks this itself, by the inode too, but not for files with a write-ahead log.
        with suppress(OSError):
            if self._path is None or _identify(self._path) == self._opened.file:
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
    return _identify(path) in {one.file for one in _open}


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


def _identify(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def _hold_all() -> None:
    connecting.acquire()
    close_dropped()
    for one in _open:
        one.lock.acquire()


def _let_go_all(*, is_child: bool) -> None:
    for one in _open:
        one.lock.release()
        # In a transaction of the thread that forked it is left: to end that would change the log of the parent.
        if is_child and one.sql is not None and not one.sql.in_transaction:
            _dropped.append(one)
    connecting.release()


if hasattr(os, "register_at_fork"):
    # The locks of modules that this one imports are registered earlier, so that a fork takes them later.
    os.register_at_fork(
        before=_hold_all,
        after_in_parent=partial(_let_go_all, is_child=False),
        after_in_child=partial(_let_go_all, is_child=True),
    )
