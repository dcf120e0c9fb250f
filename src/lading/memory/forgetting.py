"""Forget records, from the bytes of the file too."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from lading.errors import StoreError
from lading.memory.adding import hide_record
from lading.memory.records import MemoryRecord
from lading.memory.word_index import WordIndex


def forget_records(
    sql: sqlite3.Connection, index: WordIndex, *, records: Iterable[MemoryRecord], at_s: float
) -> None:
    """Delete records with all that was derived from them, leave tombstones, and purge the index of words.

    The connection overwrites what it deletes (``secure_delete``). Call ``truncate_log`` after the transaction.
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
    index.purge(sql)


def truncate_log(connection: sqlite3.Connection, folder: Path) -> None:
    """Merge the write-ahead log, which still has what was deleted, into the file and empty it. Raises StoreError
    where another process reads an older state of the file for longer than writers wait."""
    is_busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if is_busy:
        raise StoreError(
            f"The records are forgotten, but another process is reading the memory in {folder}, so that their "
            "words are still in the bytes of its write-ahead log. Forget the same ids once more when that process "
            "is done."
        )
