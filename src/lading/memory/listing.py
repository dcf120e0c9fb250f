"""List records by namespace, kind, key and neighbourhood, each by an index of the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence

from lading.memory.records import KINDS, Kind
from lading.memory.rows import encode_key
from lading.memory.store import Beside, Placed
from lading.memory.word_search import RowFilter


def list_newest(
    sql: sqlite3.Connection,
    namespaces: Sequence[int],
    *,
    kinds: Collection[Kind],
    key: str,
    shown: RowFilter | None,
    limit: int,
) -> list[int]:
    """Return the numbers of the newest records, newest first. ``shown``: None for superseded and expired ones
    too."""
    condition, values = shown or RowFilter("1", ())
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
    sql: sqlite3.Connection, namespaces: Sequence[int], *, records: Iterable[int], count: int, shown: RowFilter
) -> dict[str, Beside]:
    """Return for each of these records up to ``count`` ones before it and after it, of its namespace."""
    found: dict[str, Beside] = {}
    queries = [
        f"SELECT CAST(id AS TEXT), created_s FROM record INDEXED BY record_order "
        f"WHERE namespace = ? AND id {side} ? AND {shown.condition} ORDER BY id {order} LIMIT ?"
        for side, order in (("<", "DESC"), (">", "ASC"))
    ]
    for number in records:
        row = sql.execute("SELECT namespace, created_s FROM record WHERE id = ?", (number,)).fetchone()
        if row is not None and row[0] in namespaces:
            values = (row[0], number, *shown.values, max(count, 0))
            before, after = (tuple(map(Placed._make, sql.execute(query, values))) for query in queries)
            found[str(number)] = Beside(row[1], before, after)
    return found


def list_earlier(sql: sqlite3.Connection, namespaces: Sequence[int], *, records: Iterable[int]) -> list[int]:
    """Return the numbers of the records that those superseded, and theirs."""
    found: dict[int, None] = {}
    waiting = list(records)
    while waiting:
        newer = waiting.pop()
        for namespace in namespaces:
            rows = sql.execute(
                "SELECT id FROM record WHERE namespace = ? AND superseded_by = ?", (namespace, newer)
            )
            # A retired record is its own successor.
            added = [number for number in _read_numbers(rows) if number != newer and number not in found]
            found |= dict.fromkeys(added)
            waiting += added
    return list(found)


def _read_numbers(rows: Iterable[tuple[int]]) -> list[int]:
    return [number for (number,) in rows]
