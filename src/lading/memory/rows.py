"""Read and write the rows of records and namespaces; every function works within the caller's transaction."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from lading import jsonbytes
from lading.errors import InputError, StoreFormatError, TamperedError
from lading.memory.records import MemoryRecord, Namespace
from lading.structs import convert

_COLUMNS = (
    "record.id, record.salience, record.superseded_by, content.crc, content.body, "
    "namespace.tenant, namespace.user, namespace.agent, namespace.session"
)
_SOURCE = "record JOIN content ON content.id = record.id JOIN namespace ON namespace.id = record.namespace"
_BATCH = 500
_make_namespace = lru_cache(1_000)(Namespace)


class NamespaceRow(NamedTuple):
    """The number of a namespace and what it counts."""

    id: int
    records: int
    bytes: int
    shown: int
    terms: int


def list_visible(sql: sqlite3.Connection, reader: Namespace) -> list[NamespaceRow]:
    """List the namespaces that a reader sees: at most eight."""
    rows = sql.execute(
        "SELECT id, records, bytes, shown, terms FROM namespace "
        "WHERE tenant = ? AND user IN ('', ?) AND agent IN ('', ?) AND session IN ('', ?) ORDER BY id",
        (reader.tenant, reader.user, reader.agent, reader.session),
    )
    return [NamespaceRow(*row) for row in rows]


def find_or_add_namespace(sql: sqlite3.Connection, namespace: Namespace) -> NamespaceRow:
    """Return the row of exactly this namespace, which is added where it is missing."""
    names = (namespace.tenant, namespace.user, namespace.agent, namespace.session)
    sql.execute("INSERT OR IGNORE INTO namespace (tenant, user, agent, session) VALUES (?, ?, ?, ?)", names)
    row = sql.execute(
        "SELECT id, records, bytes, shown, terms FROM namespace "
        "WHERE tenant = ? AND user = ? AND agent = ? AND session = ?",
        names,
    ).fetchone()
    return NamespaceRow(*row)


def encode_body(record: MemoryRecord) -> bytes:
    """Encode what the table ``content`` keeps of a record. Raises InputError for a value that is no JSON."""
    bare = replace(record, namespace=Namespace(), id="", superseded_by="")
    try:
        built = msgspec.to_builtins(bare)
        convert(built, MemoryRecord)
        return jsonbytes.dump({**built, "salience": 1})
    except (ValueError, TypeError) as error:
        raise InputError(f"A record cannot be stored: {error}; correct that value.") from error


def write_body(sql: sqlite3.Connection, record: int, *, body: bytes) -> None:
    """Write the body of a record, or another in its place."""
    crc = _make_checksum(record, body)
    sql.execute("INSERT OR REPLACE INTO content (id, crc, body) VALUES (?, ?, ?)", (record, crc, body))


def read_records(
    sql: sqlite3.Connection, records: Iterable[int], *, namespaces: Collection[int]
) -> dict[int, MemoryRecord]:
    """Read the records with these numbers that are in one of the namespaces, in the order of their numbers."""
    wanted = sorted(set(records))
    found: dict[int, MemoryRecord] = {}
    for start in range(0, len(wanted), _BATCH):
        part = wanted[start : start + _BATCH]
        rows = sql.execute(
            f"SELECT {_COLUMNS} FROM {_SOURCE} WHERE record.id IN ({_mark_places(part)}) "
            # The sign keeps SQLite from reading every record of the namespace by an index.
            f"AND +record.namespace IN ({_mark_places(namespaces)}) ORDER BY record.id",
            (*part, *namespaces),
        )
        found.update((row[0], _decode(row)) for row in rows)
    return found


def encode_key(key: str) -> bytes:
    """Encode the key of a record for its column: it may hold lone surrogates, which texts of SQLite cannot."""
    return key.encode("utf-8", "surrogatepass")


def parse_ids(ids: Iterable[str]) -> Iterator[int]:
    """Read the numbers of records from ids; what is no id is left out."""
    for given in ids:
        if given.isascii() and given.isdecimal() and len(given) <= 18:
            yield int(given)


def _mark_places(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))


def _decode(row: tuple[int, int, int, int, bytes, str, str, str, str]) -> MemoryRecord:
    number, salience, superseded_by, crc, body, *names = row
    if _make_checksum(number, body) != crc:
        raise TamperedError(f"The record {number} is not as it was written; restore the memory from a copy.")
    try:
        record = jsonbytes.load_value(body, MemoryRecord)
    except (ValueError, InputError) as error:
        raise StoreFormatError(
            f"The record {number} cannot be read by this version of Lading ({error}); use the one that wrote it."
        ) from error
    return replace(
        record,
        namespace=_make_namespace(*names),
        id=str(number),
        salience=salience,
        superseded_by=str(superseded_by or ""),
    )


def _make_checksum(record: int, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(str(record).encode()))
