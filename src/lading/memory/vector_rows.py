"""Read and write the rows of vectors; every function works within the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from lading.memory.records import MemoryRecord
from lading.memory.rows import read_records
from lading.memory.store import Vectors


def find_model(sql: sqlite3.Connection, name: str, *, size: int) -> int:
    """Return the number of a model; 0 where no vector of it and of that size was ever stored."""
    row = sql.execute("SELECT id FROM model WHERE name = ? AND size = ?", (name, size)).fetchone()
    return int(row[0]) if row else 0


def write_vectors(
    sql: sqlite3.Connection, vectors: Vectors, *, rows: Mapping[int, bytes], tenant: str = ""
) -> None:
    """Write encoded vectors by the number of their record, in place of those of other models. A record that is
    forgotten, superseded or of another tenant than the one given is left out."""
    sql.execute("INSERT OR IGNORE INTO model (name, size) VALUES (?, ?)", (vectors.model, vectors.size))
    model = find_model(sql, vectors.model, size=vectors.size)
    for record, data in rows.items():
        row = sql.execute(
            "SELECT record.namespace FROM record JOIN namespace ON namespace.id = record.namespace "
            "WHERE record.id = ? AND record.superseded_by = 0 AND ? IN ('', namespace.tenant)",
            (record, tenant),
        ).fetchone()
        if row:
            remove_vector(sql, record)
            sql.execute("UPDATE namespace SET stamp = stamp + 1 WHERE id = ?", row)
            sql.execute(
                "INSERT INTO vector (id, namespace, model, stamp, data) "
                "SELECT ?, id, ?, stamp, ? FROM namespace WHERE id = ?",
                (record, model, data, *row),
            )
            sql.execute("UPDATE record SET model = ? WHERE id = ?", (model, record))


def remove_vector(sql: sqlite3.Connection, record: int) -> None:
    """Remove the vector of a record, if it has one."""
    namespace, model = sql.execute("SELECT namespace, model FROM record WHERE id = ?", (record,)).fetchone()
    if model:
        sql.execute("DELETE FROM vector WHERE id = ?", (record,))
        sql.execute("UPDATE record SET model = 0 WHERE id = ?", (record,))
        sql.execute("UPDATE namespace SET removed = removed + 1 WHERE id = ?", (namespace,))


def list_unembedded(sql: sqlite3.Connection, tenant: str, *, model: str, limit: int) -> tuple[MemoryRecord, ...]:
    """Return the newest records of each key of a tenant that have no vector of that model, by number."""
    namespaces = [row[0] for row in sql.execute("SELECT id FROM namespace WHERE tenant = ?", (tenant,))]
    others = [0, *(row[0] for row in sql.execute("SELECT id FROM model WHERE name <> ?", (model,)))]
    found: list[int] = []
    for namespace in namespaces:
        for other in others:
            rows = sql.execute(
                "SELECT id FROM record WHERE namespace = ? AND model = ? AND superseded_by = 0 ORDER BY id LIMIT ?",
                (namespace, other, max(limit, 0)),
            )
            found += [number for (number,) in rows]
    return tuple(read_records(sql, sorted(found)[: max(limit, 0)], namespaces=namespaces).values())
