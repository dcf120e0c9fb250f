"""The file ``memory.db``: its tables, and whether SQLite can index words in it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache

from lading.stores.sqlite_connection import connecting
from lading.stores.sqlite_file import FileKind

FILE_NAME = "memory.db"
APPLICATION_ID = 0x4C444D45
FORMAT = 1

# ``record`` has what queries ask for and ``content`` the JSON, so that a search reads few pages. A number of a
# record is its id. ``superseded_by`` is 0 while a record is the newest of its key.
# ``namespace`` counts: ``records`` and ``bytes`` of all, ``shown`` and ``terms`` of those in the index of words;
# ``stamp`` rises with every vector that is added and ``removed`` with every one that is removed. ``erasure`` has a
# row while bytes of something forgotten may be left.
_TABLES = (
    """CREATE TABLE namespace (
        id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, user TEXT NOT NULL, agent TEXT NOT NULL,
        session TEXT NOT NULL, records INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0,
        shown INTEGER NOT NULL DEFAULT 0, terms INTEGER NOT NULL DEFAULT 0,
        stamp INTEGER NOT NULL DEFAULT 0, removed INTEGER NOT NULL DEFAULT 0,
        UNIQUE (tenant, user, agent, session))""",
    """CREATE TABLE record (
        id INTEGER PRIMARY KEY AUTOINCREMENT, namespace INTEGER NOT NULL REFERENCES namespace,
        superseded_by INTEGER NOT NULL DEFAULT 0, kind TEXT NOT NULL, terms INTEGER NOT NULL,
        expires_s REAL, salience INTEGER NOT NULL, model INTEGER NOT NULL DEFAULT 0,
        bytes INTEGER NOT NULL, key BLOB NOT NULL, created_s REAL NOT NULL)""",
    "CREATE INDEX record_kind ON record (namespace, superseded_by, kind, id)",
    "CREATE INDEX record_order ON record (namespace, id) WHERE superseded_by = 0",
    "CREATE INDEX record_key ON record (namespace, key, id) WHERE key <> x''",
    "CREATE INDEX record_model ON record (namespace, model, id) WHERE superseded_by = 0",
    "CREATE TABLE content (id INTEGER PRIMARY KEY, crc INTEGER NOT NULL, body BLOB NOT NULL)",
    "CREATE TABLE model (id INTEGER PRIMARY KEY, name TEXT NOT NULL, size INTEGER NOT NULL, UNIQUE (name, size))",
    """CREATE TABLE vector (
        id INTEGER PRIMARY KEY, namespace INTEGER NOT NULL, model INTEGER NOT NULL, stamp INTEGER NOT NULL,
        data BLOB NOT NULL)""",
    "CREATE INDEX vector_stamp ON vector (namespace, model, stamp)",
    "CREATE TABLE tombstone (id INTEGER PRIMARY KEY, namespace INTEGER NOT NULL, forgotten_s REAL NOT NULL)",
    "CREATE TABLE erasure (id INTEGER PRIMARY KEY)",
)
# FTS5 keeps only which record has which token: 3.40 cannot count by namespace, and a token is of one.
_FTS5_INDEX = (
    "CREATE VIRTUAL TABLE words USING fts5"
    "(tokens, content = '', detail = none, columnsize = 0, tokenize = 'ascii')",
    "CREATE VIRTUAL TABLE word_counts USING fts5vocab(words, row)",
)
_PLAIN_INDEX = (
    """CREATE TABLE posting (
        token TEXT NOT NULL, record INTEGER NOT NULL, PRIMARY KEY (token, record)) WITHOUT ROWID""",
)


def describe_file(*, with_fts5: bool) -> FileKind:
    """Return the kind of the file, with an index of words in FTS5 or in plain tables."""
    return FileKind(
        FILE_NAME, "memory", APPLICATION_ID, FORMAT, (*_TABLES, *(_FTS5_INDEX if with_fts5 else _PLAIN_INDEX))
    )


@cache
def has_fts5() -> bool:
    """Whether this build of SQLite has FTS5."""
    with connecting, closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE probe USING fts5(tokens)")
        except sqlite3.OperationalError:
            return False
    return True
