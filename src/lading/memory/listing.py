"""List records by namespace, kind, key and neighbourhood, each by an index of the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence

from lading.memory.records import KINDS, Kind
from lading.memory.rows import encode_key, parse_ids
from lading.memory.word_search import Shown


def list_newest(
    sql: sqlite3.Connection,
    namespaces: Sequence[int],
    *,
    kinds: Collection[Kind],
    key: str,
    shown: Shown | None,
    limit: int,
) -> list[int]:
    """Return the numbers of the newest records, newest first. ``shown``: None for superseded and expired ones
    too."""
    condition, values = shown or Shown("1", ())
    found: list[int] = []
    for namespace in namespaces:
        for kind in kinds or KINDS:
            wanted, given = f"namespace = ? AND kind = ? AND {condition}", [namespace, kind, *values]
            if key:
                wanted, given = f"{wanted} AND key = ? AND key <> x''", [*given, encode_key(key)]
            query = f"SELECT id FROM record WHERE {wanted} ORDER BY id DESC LIMIT ?"
            found += _read_numbers(sql.execute(query, (*given, max(limit, 0))))
    return sorted(found, reverse=True)[: max(limit, 0)]


def list_around(
    sql: sqlite3.Connection, namespaces: Sequence[int], *, record_id: str, count: int, shown: Shown
) -> list[int]:
    """Return the numbers of up to ``count`` records before and after that one, of its namespace, in order."""
    number = next(parse_ids([record_id]), 0)
    row = sql.execute("SELECT namespace FROM record WHERE id = ?", (number,)).fetchone()
    if row is None or row[0] not in namespaces or count <= 0:
        return []
    before: list[int] = []
    after: list[int] = []
    for kind in KINDS:
        for found, side, order in ((before, "<", "DESC"), (after, ">", "ASC")):
            query = (
                f"SELECT id FROM record WHERE namespace = ? AND kind = ? AND id {side} ? AND {shown.condition} "
                f"ORDER BY id {order} LIMIT ?"
            )
            found += _read_numbers(sql.execute(query, (row[0], kind, number, *shown.values, count)))
    return [*sorted(before)[-count:], *sorted(after)[:count]]


def _read_numbers(rows: Iterable[tuple[int]]) -> list[int]:
    return [number for (number,) in rows]
