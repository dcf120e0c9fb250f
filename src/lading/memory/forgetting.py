"""Forget records, from the bytes of the file too."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from pathlib import Path

from lading.errors import StoreError
from lading.memory.adding import hide_record
from lading.memory.records import MemoryRecord
from lading.memory.word_index import WordIndex


def forget_records(
    sql: sqlite3.Connection, index: WordIndex, *, records: Collection[MemoryRecord], at_s: float
) -> None:
    """Delete records with all that was derived from them, leave tombstones, and purge the index of words.

    The connection overwrites what it deletes (``secure_delete``). Call ``erase_traces`` after the transaction.
    """
    for record in records:
        number = int(record.id)
        namespace, size = sql.execute("SELECT namespace, bytes FROM record WHERE id = ?", (number,)).fetchone()
        if not record.superseded_by:
            hide_record(sql, index, record=record, namespace=namespace)
        sql.execute("UPDATE namespace SET records = records - 1, bytes = bytes - ? WHERE id = ?", (size, namespace))
        sql.execute("DELETE FROM content WHERE id = ?", (number,))
        sql.execute("DELETE FROM record WHERE id = ?", (number,))
        sql.execute(
            "INSERT INTO tombstone (id, namespace, forgotten_s) VALUES (?, ?, ?)", (number, namespace, at_s)
        )
    if records:
        index.purge(sql)
        sql.execute("INSERT INTO erasure DEFAULT VALUES")


def erase_traces(connection: sqlite3.Connection, folder: Path) -> None:
    """Write the file anew without what was deleted, and empty the write-ahead log, which still has it. Raises
    StoreError where another process reads an older state of the file for longer than writers wait."""
    due = connection.execute("SELECT max(id) FROM erasure").fetchone()
    if due == (None,):
        return
    # With secure_delete alone, copies of rows that were moved within a page of an index are left between its rows.
    connection.execute("VACUUM")
    is_busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if is_busy:
        raise StoreError(
            f"The records are forgotten, but another process is reading the memory in {folder}, so that their "
            "words are still in the bytes of its write-ahead log. Forget the same ids once more when that process "
            "is done."
        )
    connection.execute("DELETE FROM erasure WHERE id <= ?", due)
