"""Fold records in the file: they leave the index of words and stay as the history of another; the caller's
transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from lading.errors import InputError
from lading.memory.adding import hide_record
from lading.memory.records import AUTHORS, MemoryRecord
from lading.memory.word_index import WordIndex


def check_fold(older: Sequence[MemoryRecord], into: MemoryRecord | None, *, at_s: float) -> None:
    """Raise InputError where records may not become the history of that one; None: they must be expired."""
    for one in older:
        if one.superseded_by:
            raise InputError(f"The record {one.id} is superseded by {one.superseded_by}; list the newest ones.")
        if into is None:
            if one.is_shown(at_s):
                raise InputError(f"The record {one.id} is not expired; name the record that takes its place.")
        elif one.id == into.id or into.superseded_by or one.namespace != into.namespace:
            raise InputError(f"The record {one.id} cannot be folded into {into.id}; give a newest one beside it.")
        elif AUTHORS.index(into.origin.author) > AUTHORS.index(one.origin.author) or one.is_rule > into.is_rule:
            raise InputError(
                f"The record {one.id} of the author {one.origin.author} cannot be folded into what a "
                f"{into.origin.author} wrote."
            )


def fold_records(
    sql: sqlite3.Connection, index: WordIndex, *, older: Sequence[MemoryRecord], into: int | None
) -> None:
    """Make records the history of the one of that number, which gets their salience too; None: each is retired, and
    its successor is itself."""
    for one in older:
        number = int(one.id)
        (namespace,) = sql.execute("SELECT namespace FROM record WHERE id = ?", (number,)).fetchone()
        hide_record(sql, index, record=one, namespace=namespace)
        successor = number if into is None else into
        sql.execute("UPDATE record SET superseded_by = ? WHERE id = ?", (successor, number))
    if into is not None:
        gained = sum(one.salience for one in older)
        sql.execute("UPDATE record SET salience = salience + ? WHERE id = ?", (gained, into))
