"""Create, recognise and open the SQLite file of a store.

The file appears complete or not at all: it is built under another name and linked into place. The header of an
existing file is read as plain bytes before SQLite opens it, so a foreign file is never changed. A file that this
process has open in SQLite is not: to close it would release SQLite's locks (sqlite.org/howtocorrupt.html, 2.2), and
another process that closes the store would then delete the log that this one still writes to.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from lading.errors import InputError, StoreError, StoreFormatError
from lading.stores.artifacts import sync_folder
from lading.stores.sqlite_connection import (
    StoreConnection,
    close_dropped,
    connecting,
    get_error_code,
    is_connected,
    translate_errors,
)

Durability: TypeAlias = Literal["full", "normal", "off"]
"""Failures that a finished append survives. In every mode that is the death of the process; in addition:

- ``full``: loss of power and a crash of the system, as every append waits for the disk.
- ``normal``: after loss of power the newest appends may be missing, but the store is whole.
- ``off``: after loss of power the store may be damaged. For sessions that can be recorded again.
"""

WAIT_S = 5.0
"""Seconds that a writer waits for another one."""

_SYNCHRONOUS: dict[str, str] = {"full": "FULL", "normal": "NORMAL", "off": "OFF"}
_LOG_PAGES = 250
"""Size in pages at which the write-ahead log is merged and written from its start again, in mode ``full``: a flush
is faster while no file grows, and many sessions never fill SQLite's default of 1,000 pages."""
_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100


class FileKind(Struct, frozen=True):
    """A kind of file, by which one of another kind is recognised."""

    name: str
    """Its name in the folder of the store."""
    noun: str
    """Its contents' name in errors."""
    application_id: int
    format: int
    """The newest format that is read and written; the first one is 1."""
    schema: tuple[str, ...]
    """Statements that make its tables."""
    settings: tuple[str, ...] = ()
    """Pragmas of each connection."""


FILE_NAME = "lading.db"
APPLICATION_ID = 0x4C444E47
FORMAT = 1

# An item is an entry, an edit or a manifest. Its JSON is in ``body``, or in the artifact with that digest.
# By the counts in ``session`` a load notices that rows at the end are missing.
SESSIONS = FileKind(
    FILE_NAME,
    "store",
    APPLICATION_ID,
    FORMAT,
    (
        """CREATE TABLE session (
            id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL,
            entries INTEGER NOT NULL, edits INTEGER NOT NULL, manifests INTEGER NOT NULL,
            UNIQUE (tenant, name))""",
        """CREATE TABLE item (
            session INTEGER NOT NULL REFERENCES session, kind TEXT NOT NULL, idx INTEGER NOT NULL,
            artifact TEXT, crc INTEGER NOT NULL, body BLOB,
            PRIMARY KEY (session, kind, idx))""",
        """CREATE TABLE blob (
            session INTEGER NOT NULL REFERENCES session, digest TEXT NOT NULL,
            artifact TEXT, body BLOB,
            PRIMARY KEY (session, digest))""",
    ),
)

REPLIES = """CREATE TABLE IF NOT EXISTS reply (
    digest TEXT NOT NULL, session INTEGER NOT NULL REFERENCES session, idx INTEGER NOT NULL,
    PRIMARY KEY (digest, session))"""
"""An index of the entries by the digests of the ids of replies, made with the first: many stores have none."""


def connect(folder: Path, *, kind: FileKind = SESSIONS, durability: Durability, create: bool) -> StoreConnection:
    """Connect to the file of that kind in a folder.

    Without ``create`` nothing is made, and a store that cannot be written is opened for reading.
    Raises StoreError, StoreFormatError; InputError for an unknown durability.
    """
    if durability not in _SYNCHRONOUS:
        raise InputError(f"There is no durability {durability!r}; choose full, normal or off.")
    path = folder / kind.name
    with translate_errors(folder, kind.name), connecting:
        close_dropped()
        if create and not path.exists():
            _make_folder(folder)
            _make_file(path, kind)
        _check_header(path, kind, write=create)
        statements = [f"synchronous = {_SYNCHRONOUS[durability]}", *kind.settings]
        statements += [f"wal_autocheckpoint = {_LOG_PAGES}"] if durability == "full" else []
        opening = partial(_open_with, path.absolute(), statements, write=create)
        return StoreConnection(opening, folder, path.absolute(), what=f"The {kind.noun} in {folder}")


def connect_in_memory(kind: FileKind) -> StoreConnection:
    """Connect to new tables in memory."""
    with connecting:
        close_dropped()
        opening = partial(_make_tables, ":memory:", kind)
        return StoreConnection(opening, Path(":memory:"), None, what=f"The {kind.noun}")


def _make_tables(place: str, kind: FileKind) -> sqlite3.Connection:
    connection = sqlite3.connect(place, isolation_level=None, check_same_thread=False)
    with ExitStack() as undo:
        undo.callback(connection.close)
        connection.execute("BEGIN")
        for statement in kind.schema:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {kind.application_id}")
        connection.execute(f"PRAGMA user_version = {kind.format}")
        connection.execute("COMMIT")
        undo.pop_all()
    return connection


def _make_folder(folder: Path) -> None:
    if not folder.parent.is_dir():
        raise StoreError(f"The folder {folder.parent} does not exist; make it first, or choose another.")
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        if not folder.is_dir():
            raise StoreError(f"{folder} is a file; give a folder to keep the store in.") from None
    else:
        sync_folder(folder.parent)


def _make_file(path: Path, kind: FileKind) -> None:
    descriptor, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    os.close(descriptor)
    try:
        with closing(_make_tables(name, kind)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        os.link(name, path)
    except FileExistsError:
        pass  # Another process has just made the store: use that one.
    finally:
        Path(name).unlink()
    sync_folder(path.parent)


def _check_header(path: Path, kind: FileKind, *, write: bool) -> None:
    if not path.exists():
        raise StoreError(f"There is no store in {path.parent}: {kind.name} is missing; check the folder.")
    if not path.is_file():
        raise StoreFormatError(f"{path} is not a file; choose another folder for the store.")
    if is_connected(path):
        return
    with open(path, "r+b" if write else "rb") as file:
        header = file.read(_HEADER_BYTES)
    application_id = int.from_bytes(header[68:72], "big")
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC) or application_id != kind.application_id:
        raise StoreFormatError(
            f"{path} is not a Lading store and was left as it is; choose another folder for the store."
        )
    version = int.from_bytes(header[60:64], "big")
    if version > kind.format:
        raise StoreFormatError(
            f"{path} has store format {version}, newer than format {kind.format} of this Lading; upgrade Lading."
        )
    if version < 1:
        raise StoreFormatError(
            f"{path} has store format {version}, which no Lading writes: it was changed. Put back a copy of the "
            "folder, or choose another one."
        )


def _open_with(path: Path, settings: Sequence[str], *, write: bool) -> sqlite3.Connection:
    try:
        sql = _open(path, "mode=rw")
    except sqlite3.OperationalError as error:
        if write or get_error_code(error) not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
            raise
        sql = _open_read_only(path)
    for setting in settings:
        sql.execute(f"PRAGMA {setting}")
    return sql


def _open(path: Path, query: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?{query}",
        uri=True,
        timeout=WAIT_S,
        isolation_level=None,
        check_same_thread=False,
    )
    with ExitStack() as undo:
        undo.callback(connection.close)
        # Only the first read shows whether SQLite can use the file and its folder.
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        undo.pop_all()
    return connection


def _open_read_only(path: Path) -> sqlite3.Connection:
    # SQLite cannot share a write-ahead log that it may not lock. Without a log the file is complete and has no
    # writer; with one the file alone would silently lack the newest appends.
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise StoreError(
            f"The store in {path.parent} was not closed and its folder cannot be written; copy the whole "
            "folder to a place that can be written and open it there."
        )
    return _open(path, "mode=ro&immutable=1")
