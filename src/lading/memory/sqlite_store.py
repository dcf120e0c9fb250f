"""Records in one SQLite file, ``FOLDER/memory.db``, with an index of their words and their vectors.

The numbers of records are their ids. A record that is superseded leaves the index of words and loses its vector,
and stays as history.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from lading.errors import InputError, StoreError
from lading.memory.adding import Destination, add_record, check_records
from lading.memory.folding import check_fold, fold_records
from lading.memory.forgetting import erase_traces, forget_records
from lading.memory.held_vectors import VectorCache
from lading.memory.listing import list_around, list_earlier, list_newest
from lading.memory.memory_file import describe_file, has_fts5
from lading.memory.records import Kind, MemoryRecord, Namespace, Tombstone
from lading.memory.rows import list_visible, parse_ids, read_records
from lading.memory.store import LIMITS, Beside, MemoryLimits, Scored, Vectors, WordHit
from lading.memory.terms import query_terms
from lading.memory.vector_rows import find_model, list_unembedded, write_vectors
from lading.memory.vectors import encode_vector
from lading.memory.word_index import Fts5Index, WordIndex, find_index
from lading.memory.word_search import Area, RowFilter, count_term, rank_words
from lading.stores.sqlite_connection import StoreConnection
from lading.stores.sqlite_file import Durability, connect, connect_in_memory


class SqliteRecordStore:
    """A RecordStore in a file, made by ``open_records``. Several processes may use the folder at once."""

    def __init__(
        self, connection: StoreConnection, index: WordIndex, *, folder: Path, limits: MemoryLimits
    ) -> None:
        self._folder = folder
        self._limits = limits
        self._connection = connection
        self._index = index
        self._vectors = VectorCache()

    def add(
        self, records: Sequence[MemoryRecord], *, vectors: Vectors | None = None, at_s: float
    ) -> tuple[MemoryRecord, ...]:
        """Add records and return them with ids; see RecordStore."""
        bodies = check_records(records, limits=self._limits, at_s=at_s)
        rows = _encode_vectors(vectors) if vectors else {}
        with self._connection.use("BEGIN IMMEDIATE") as sql:
            target = Destination(sql, self._index, self._limits)
            added = [
                add_record(target, record, body=body, at_s=at_s)
                for record, body in zip(records, bodies, strict=True)
            ]
            return self._finish(sql, added, vectors=vectors, rows=rows)

    def supersede(
        self, reader: Namespace, record_id: str, *, by: MemoryRecord, vectors: Vectors | None = None, at_s: float
    ) -> MemoryRecord:
        """Add a record in place of that one; see RecordStore."""
        rows = _encode_vectors(vectors) if vectors else {}
        with self._connection.use("BEGIN IMMEDIATE") as sql:
            seen = [row.id for row in list_visible(sql, reader)]
            older = next(iter(read_records(sql, parse_ids([record_id]), namespaces=seen).values()), None)
            if older is None or older.superseded_by:
                problem = f"is superseded by {older.superseded_by}" if older else "is not there"
                raise InputError(f"The record {record_id[:80]!r} {problem}; list the records for the newest ones.")
            record = replace(by, namespace=older.namespace, key=older.key)
            [body] = check_records([record], limits=self._limits, at_s=at_s)
            target = Destination(sql, self._index, self._limits)
            added = add_record(target, record, body=body, older=older, at_s=at_s)
            return self._finish(sql, [added], vectors=vectors, rows=rows)[0]

    def fold(
        self,
        reader: Namespace,
        ids: Collection[str],
        *,
        into: MemoryRecord | None,
        vectors: Vectors | None = None,
        at_s: float,
    ) -> MemoryRecord | None:
        """Make records the history of another one; see RecordStore."""
        rows = _encode_vectors(vectors) if vectors else {}
        wanted = {*ids, into.id} - {""} if into else {*ids}
        with self._connection.use("BEGIN IMMEDIATE") as sql:
            seen = [row.id for row in list_visible(sql, reader)]
            found = {one.id: one for one in read_records(sql, parse_ids(wanted), namespaces=seen).values()}
            if missing := sorted(wanted - set(found)):
                raise InputError(
                    f"The record {missing[0][:80]!r} is not there; list the records for the newest ones."
                )
            older = [found[one] for one in dict.fromkeys(ids)]
            into = found[into.id] if into and into.id else into
            check_fold(older, into, at_s=at_s)
            if into and not into.id:
                [body] = check_records([into], limits=self._limits, at_s=at_s)
                added = add_record(Destination(sql, self._index, self._limits), into, body=body, at_s=at_s)
                [into] = self._finish(sql, [added], vectors=vectors, rows=rows)
            fold_records(sql, self._index, older=older, into=int(into.id) if into else None)
            return replace(into, salience=into.salience + sum(one.salience for one in older)) if into else None

    def get(self, reader: Namespace, ids: Collection[str]) -> dict[str, MemoryRecord]:
        """Return the records of these ids that the reader sees; see RecordStore."""
        with self._connection.use("BEGIN") as sql:
            seen = [row.id for row in list_visible(sql, reader)]
            found = read_records(sql, parse_ids(ids), namespaces=seen)
        return {record.id: record for record in found.values()}

    def list_records(
        self,
        reader: Namespace,
        *,
        kinds: Collection[Kind] = (),
        key: str = "",
        at_s: float,
        with_history: bool = False,
        limit: int = 1_000,
    ) -> tuple[MemoryRecord, ...]:
        """List records, newest first; see RecordStore."""
        with self._connection.use("BEGIN") as sql:
            seen = [row.id for row in list_visible(sql, reader)]
            shown = None if with_history else _describe_shown(at_s)
            newest = list_newest(sql, seen, kinds=kinds, key=key, shown=shown, limit=limit)
            found = read_records(sql, newest, namespaces=seen)
        return tuple(reversed(found.values()))

    def list_earlier(self, reader: Namespace, ids: Collection[str]) -> tuple[MemoryRecord, ...]:
        """List the earlier versions of records; see RecordStore."""
        with self._connection.use("BEGIN") as sql:
            seen = [row.id for row in list_visible(sql, reader)]
            earlier = list_earlier(sql, seen, records=parse_ids(ids))
            return tuple(reversed(read_records(sql, earlier, namespaces=seen).values()))

    def list_namespaces(self, tenant: str = "") -> tuple[Namespace, ...]:
        """List the namespaces that have records, sorted; see RecordStore."""
        with self._connection.use("BEGIN") as sql:
            rows = sql.execute(
                "SELECT tenant, user, agent, session FROM namespace WHERE records > 0 AND ? IN ('', tenant)",
                (tenant,),
            )
            return tuple(sorted(Namespace(*names) for names in rows))

    def around(self, reader: Namespace, ids: Collection[str], *, count: int, at_s: float) -> dict[str, Beside]:
        """Return shown records before and after each of those; see RecordStore."""
        with self._connection.use("BEGIN") as sql:
            seen = [row.id for row in list_visible(sql, reader)]
            return list_around(sql, seen, records=parse_ids(ids), count=count, shown=_describe_shown(at_s))

    def search_words(
        self, reader: Namespace, words: Sequence[str], *, at_s: float, limit: int, kinds: Collection[Kind] = ()
    ) -> list[WordHit]:
        """Return the shown records that have any of the words, by BM25; see RecordStore."""
        with self._connection.use("BEGIN") as sql:
            area = _find_area(sql, reader)
            shown = _describe_shown(at_s, kinds)
            found = rank_words(sql, self._index, area=area, words=words, shown=shown, limit=max(limit, 0))
        return [WordHit(str(record), math.fsum(by_word.values()), by_word) for record, by_word in found.items()]

    def count_words(self, reader: Namespace, words: Collection[str]) -> dict[str, int]:
        """Return in how many records each word is: for several terms in one word, that of the rarest."""
        with self._connection.use("BEGIN") as sql:
            area = _find_area(sql, reader)
            return {
                word: min(
                    (count_term(sql, self._index, area=area, term=term) for term in query_terms(word)), default=0
                )
                for word in words
            }

    def search_vector(
        self, reader: Namespace, vector: Sequence[float], *, model: str, at_s: float, limit: int
    ) -> list[Scored]:
        """Return the shown records nearest to a vector by cosine; see RecordStore."""
        encode_vector(vector, size=len(vector))
        shown = _describe_shown(at_s)
        with self._connection.use("BEGIN") as sql:
            number = find_model(sql, model, size=len(vector))
            held = [
                self._vectors.read(sql, row.id, model=number, size=len(vector))
                for row in list_visible(sql, reader)
                if number
            ]
            wanted = limit
            while held and limit > 0:
                ranked = sorted(
                    (item for vectors in held for item in vectors.rank(vector, limit=wanted)),
                    key=lambda item: (-item[1], item[0]),
                )
                is_all = len(ranked) < wanted
                found = _keep_shown(sql, ranked[:wanted], shown=shown)
                if len(found) >= limit or is_all:
                    return [Scored(str(record), score) for record, score in found[:limit]]
                wanted *= 4
        return []

    def list_without_vectors(self, tenant: str, *, model: str, limit: int) -> tuple[MemoryRecord, ...]:
        """Return records of a tenant that have no vector of that model; see RecordStore."""
        with self._connection.use("BEGIN") as sql:
            return list_unembedded(sql, tenant, model=model, limit=limit)

    def set_vectors(self, tenant: str, vectors: Vectors) -> None:
        """Store vectors by id, in place of those of other models; see RecordStore."""
        rows = _encode_vectors(vectors)
        with self._connection.use("BEGIN IMMEDIATE") as sql:
            write_vectors(sql, vectors, rows=rows, tenant=tenant)

    def forget(self, reader: Namespace, ids: Collection[str], *, at_s: float) -> tuple[Tombstone, ...]:
        """Remove records with their words and vectors; see RecordStore."""
        with self._connection.use("BEGIN IMMEDIATE") as sql:
            seen = [row.id for row in list_visible(sql, reader)]
            found = read_records(sql, parse_ids(ids), namespaces=seen)
            forget_records(sql, self._index, records=found.values(), at_s=at_s)
        with self._connection.use() as sql:
            erase_traces(sql, self._folder)
        return tuple(Tombstone(record.id, record.namespace, at_s) for record in found.values())

    def list_tombstones(self, reader: Namespace) -> tuple[Tombstone, ...]:
        """Return the traces of what was forgotten, oldest first; see RecordStore."""
        with self._connection.use("BEGIN") as sql:
            seen = [row.id for row in list_visible(sql, reader)]
            rows = sql.execute(
                "SELECT tombstone.id, tenant, user, agent, session, forgotten_s FROM tombstone "
                "JOIN namespace ON namespace.id = tombstone.namespace "
                f"WHERE namespace IN ({', '.join('?' * len(seen))}) ORDER BY forgotten_s, tombstone.id",
                seen,
            )
            return tuple(Tombstone(str(row[0]), Namespace(*row[1:5]), row[5]) for row in rows)

    def close(self) -> None:
        """Close the file; see RecordStore."""
        self._connection.close()
        self._vectors.clear()

    def _finish(
        self,
        sql: sqlite3.Connection,
        added: Sequence[tuple[int, int]],
        *,
        vectors: Vectors | None,
        rows: Mapping[int, bytes],
    ) -> tuple[MemoryRecord, ...]:
        """Write the vectors of what was added, and return it. ``added``: numbers of namespaces and records."""
        if vectors and any(at >= len(added) for at in rows):
            raise InputError("Vectors are given for more records than there are; key each by its position.")
        if vectors:
            write_vectors(sql, vectors, rows={added[at][1]: data for at, data in rows.items()})
        return tuple(read_records(sql, [number], namespaces=[of])[number] for of, number in added)


def open_records(
    folder: str | Path | None,
    *,
    limits: MemoryLimits = LIMITS,
    durability: Durability = "full",
    create: bool = True,
    with_fts5: bool | None = None,
) -> SqliteRecordStore:
    """Open the memory of a folder, or one in this process's memory for None.

    With ``create`` a missing folder (not its parents) and file are made, with an index in FTS5 where SQLite has it;
    ``with_fts5`` says otherwise. Raises like ``lading.stores.sqlite.open_sqlite``, and StoreError for a file with
    an index in FTS5 where SQLite lacks it.
    """
    can_use = has_fts5()
    if with_fts5 and not can_use:
        raise InputError("This build of SQLite has no FTS5; leave with_fts5 out.")
    kind = describe_file(with_fts5=can_use if with_fts5 is None else with_fts5)
    place = Path(":memory:" if folder is None else folder)
    connection = (
        connect_in_memory(kind)
        if folder is None
        else connect(place, kind=kind, durability=durability, create=create)
    )
    with connection.use() as sql:
        index = find_index(sql)
    if not can_use and isinstance(index, Fts5Index):
        connection.close()
        raise StoreError(
            f"The memory in {place} has its index of words in FTS5, which this build of SQLite "
            f"({sqlite3.sqlite_version}) lacks; nothing is damaged. Open it with a Python whose SQLite has FTS5."
        )
    return SqliteRecordStore(connection, index, folder=place, limits=limits)


def _find_area(sql: sqlite3.Connection, reader: Namespace) -> Area:
    rows = [row for row in list_visible(sql, reader) if row.shown]
    return Area(tuple(row.id for row in rows), sum(row.shown for row in rows), sum(row.terms for row in rows))


def _describe_shown(at_s: float, kinds: Collection[Kind] = ()) -> RowFilter:
    condition = "record.superseded_by = 0 AND (record.expires_s IS NULL OR record.expires_s > ?)"
    if kinds:
        condition += f" AND record.kind IN ({', '.join('?' * len(kinds))})"
    return RowFilter(condition, (at_s, *kinds))


def _keep_shown(
    sql: sqlite3.Connection, ranked: Sequence[tuple[int, float]], *, shown: RowFilter
) -> list[tuple[int, float]]:
    places = ", ".join("?" * len(ranked))
    rows = sql.execute(
        f"SELECT id FROM record WHERE id IN ({places}) AND {shown.condition}",
        (*(record for record, _ in ranked), *shown.values),
    )
    left = {record for (record,) in rows}
    return [item for item in ranked if item[0] in left]


def _encode_vectors(vectors: Vectors) -> dict[int, bytes]:
    rows = {}
    for given, vector in vectors.by_id.items():
        number = next(parse_ids([given]), None)
        if number is None:
            raise InputError(f"{given!r} is not the id of a record; key a vector by its id.")
        rows[number] = encode_vector(vector, size=vectors.size)
    return rows
