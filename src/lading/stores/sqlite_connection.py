"""A connection to the SQLite file of a store, used by one thread of one process at a time.

SQLite's locks do not come across a fork, but the SQLite of the child believes that it has them, for as long as the
file is open there (sqlite.org/howtocorrupt.html, 2.6): what the child then writes is lost with the log that its
parent deletes. So a fork waits until no thread uses a file, and its child closes what it inherited.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Literal
from weakref import WeakSet

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


class StoreConnection:
    """A connection to a file, in autocommit mode; or to tables in memory, without a ``path``.

    ``what`` names it in errors. All functions raise StoreError and StoreFormatError with advice.
    """

    def __init__(self, sql: sqlite3.Connection, folder: Path, path: Path | None, *, what: str) -> None:
        self._sql: sqlite3.Connection | None = sql
        self._folder, self._path, self._what = folder, path, what
        self._file_name = path.name if path else ""
        self._file = _identify(path) if path else None
        self._process = os.getpid()
        self._lock = RLock()  # A handler of signals may fork, too.
        _connections.add(self)

    @contextmanager
    def use(self, begin: Literal["", "BEGIN", "BEGIN IMMEDIATE"] = "") -> Iterator[sqlite3.Connection]:
        """Keep other threads out; with a statement that begins one, in a transaction."""
        if self._process != os.getpid():
            raise StoreError(f"{self._what} was opened before a fork; open it again here.")
        with self._lock, translate_errors(self._folder, self._file_name):
            if self._sql is None:
                raise StoreError(f"{self._what} is closed; open it again.")
            if begin == "BEGIN IMMEDIATE":
                self._check_place()
            if not begin:
                yield self._sql
                return
            self._sql.execute(begin)
            try:
                yield self._sql
                self._sql.execute("COMMIT")
            finally:
                if self._sql.in_transaction:
                    self._sql.execute("ROLLBACK")

    def has_open(self, file: tuple[int, int]) -> bool:
        """Return whether it is open, to the file of that device and inode."""
        return self._sql is not None and self._file == file

    def close(self) -> None:
        """Close the file. SQLite then merges the write-ahead log into it unless another process uses it.

        Does nothing in a forked child.
        """
        if self._process == os.getpid():
            with connecting, self._lock, translate_errors(self._folder, self._file_name):
                self._end()

    def hold(self) -> None:
        """Wait for the thread that uses it and keep all others out, for a fork."""
        self._lock.acquire()

    def let_go(self, *, is_child: bool) -> None:
        """Let threads use it again, or close it in the child of a fork."""
        # In a transaction of the thread that forked it is left: to end that would change the log of the parent.
        if is_child and self._sql is not None and not self._sql.in_transaction:
            with suppress(sqlite3.Error):
                self._end()
        self._lock.release()

    def _end(self) -> None:
        sql, self._sql = self._sql, None
        if sql is not None:
            sql.close()

    def _check_place(self) -> None:
        # SQLite checks this itself, by the inode too, but not for files with a write-ahead log.
        with suppress(OSError):
            if self._path is None or _identify(self._path) == self._file:
                return
        raise StoreError(
            f"{self._what} cannot be written: its file was moved, removed or replaced after it was opened. Put it "
            "back, or close the store and open it again."
        )


_connections: WeakSet[StoreConnection] = WeakSet()
_held: list[StoreConnection] = []
"""Those that a fork keeps threads out of."""


def is_connected(path: Path) -> bool:
    """Return whether this process has the file open. ``connecting`` must be held."""
    return any(one.has_open(_identify(path)) for one in _connections)


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
    _held.extend(_connections)
    for one in _held:
        one.hold()


def _let_go_all(*, is_child: bool) -> None:
    while _held:
        _held.pop().let_go(is_child=is_child)
    connecting.release()


if hasattr(os, "register_at_fork"):
    # The locks of modules that this one imports are registered earlier, so that a fork takes them later.
    os.register_at_fork(
        before=_hold_all,
        after_in_parent=partial(_let_go_all, is_child=False),
        after_in_child=partial(_let_go_all, is_child=True),
    )
