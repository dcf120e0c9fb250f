"""Add a record: what it supersedes or confirms, and the limits that it must keep."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from lading.errors import InputError, MemoryFull
from lading.memory.records import RULE_AUTHORS, MemoryRecord
from lading.memory.rows import (
    NamespaceRow,
    encode_body,
    encode_key,
    find_or_add_namespace,
    read_records,
    write_body,
)
from lading.memory.store import MemoryLimits
from lading.memory.terms import count_terms
from lading.memory.vector_rows import remove_vector
from lading.memory.word_index import WordIndex, make_tokens
from lading.validation import check


class Destination(NamedTuple):
    """Where records are written, within a transaction."""

    sql: sqlite3.Connection
    words: WordIndex
    limits: MemoryLimits


def check_records(records: Sequence[MemoryRecord], *, limits: MemoryLimits, at_s: float) -> list[bytes]:
    """Return what is stored of each record. Raises InputError for what is no record, MemoryFull for one that is too
    large."""
    for record in records:
        check(record, MemoryRecord, advice="give records as MemoryRecord")
        if (size := _count_bytes(record.text)) > limits.most_record_bytes:
            raise MemoryFull(
                f"A record has {size:,} bytes, and one may have {limits.most_record_bytes:,}. Store the text "
                "elsewhere and remember a summary with its address, or raise most_record_bytes."
            )
    return [encode_body(record if record.created_s else replace(record, created_s=at_s)) for record in records]


def add_record(
    target: Destination, record: MemoryRecord, *, body: bytes, older: MemoryRecord | None = None, at_s: float
) -> tuple[int, int]:
    """Add a record with its body, or confirm the newest one of its key; ``older``: the one that it supersedes where
    that is another. Return the numbers of its namespace and of the record. Raises MemoryFull, and InputError for
    one that would supersede a rule without the right to."""
    sql, index, limits = target
    namespace = find_or_add_namespace(sql, record.namespace)
    if not older:
        older = _find_newest(sql, namespace, record.key)
        if older and _is_confirmed(older, record, at_s=at_s):
            return namespace.id, _confirm(sql, older, record)
    if older:
        _check_right(older, record, at_s=at_s)
    _check_room(namespace, record, limits=limits)
    terms = count_terms(record.text)
    size = _count_bytes(record.text)
    sql.execute(
        "INSERT INTO record (namespace, kind, terms, expires_s, salience, bytes, key, created_s) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(namespace.id, record.kind, terms.total(), record.validity.expires_s, record.salience, size),
            encode_key(record.key),
            record.created_s or at_s,
        ),
    )
    number = int(sql.execute("SELECT last_insert_rowid()").fetchone()[0])
    write_body(sql, number, body=body)
    index.add(sql, number, tokens=make_tokens(namespace.id, terms))
    sql.execute(
        "UPDATE namespace SET records = records + 1, bytes = bytes + ?, shown = shown + 1, terms = terms + ? "
        "WHERE id = ?",
        (size, terms.total(), namespace.id),
    )
    if older:
        hide_record(sql, index, record=older, namespace=namespace.id)
        sql.execute("UPDATE record SET superseded_by = ? WHERE id = ?", (number, int(older.id)))
    return namespace.id, number


def hide_record(sql: sqlite3.Connection, index: WordIndex, *, record: MemoryRecord, namespace: int) -> None:
    """Remove a record that is the newest of its key from the index of words, with its vector."""
    terms = count_terms(record.text)
    index.remove(sql, int(record.id), tokens=make_tokens(namespace, terms))
    remove_vector(sql, int(record.id))
    sql.execute(
        "UPDATE namespace SET shown = shown - 1, terms = terms - ? WHERE id = ?", (terms.total(), namespace)
    )


def _find_newest(sql: sqlite3.Connection, namespace: NamespaceRow, key: str) -> MemoryRecord | None:
    if not key:
        return None
    row = sql.execute(
        "SELECT id FROM record WHERE namespace = ? AND key = ? AND key <> x'' ORDER BY id DESC LIMIT 1",
        (namespace.id, encode_key(key)),
    ).fetchone()
    if row is None:
        return None
    newest = read_records(sql, row, namespaces=[namespace.id])[row[0]]
    return None if newest.superseded_by else newest


def _is_confirmed(older: MemoryRecord, record: MemoryRecord, *, at_s: float) -> bool:
    is_same = (older.text, older.kind, older.origin.author) == (record.text, record.kind, record.origin.author)
    return is_same and older.is_shown(at_s)


def _check_right(older: MemoryRecord, record: MemoryRecord, *, at_s: float) -> None:
    if older.is_rule and older.is_shown(at_s) and record.origin.author not in RULE_AUTHORS:
        raise InputError(
            f"The record {older.id} is a standing instruction, which a {record.origin.author} cannot replace. "
            "Choose another key."
        )


def _confirm(sql: sqlite3.Connection, older: MemoryRecord, record: MemoryRecord) -> int:
    """Raise the salience of a record; it now holds as long as the one that confirms it says."""
    number = int(older.id)
    sql.execute(
        "UPDATE record SET salience = salience + 1, expires_s = ? WHERE id = ?",
        (record.validity.expires_s, number),
    )
    if older.validity != record.validity:
        write_body(sql, number, body=encode_body(replace(older, validity=record.validity)))
    return number


def _check_room(namespace: NamespaceRow, record: MemoryRecord, *, limits: MemoryLimits) -> None:
    size = namespace.bytes + _count_bytes(record.text)
    if namespace.records < limits.most_records and size <= limits.most_bytes:
        return
    of = record.namespace
    name = "/".join(part for part in (of.tenant, of.user, of.agent, of.session) if part)
    hidden = namespace.records - namespace.shown
    raise MemoryFull(
        f"The memory of {name} is full: {namespace.records:,} of {limits.most_records:,} records, "
        f"{namespace.bytes:,} of {limits.most_bytes:,} bytes, {hidden:,} of the records superseded. Nothing was "
        "added. Forget records (lading memory STORE forget), write a note under the key of an older one with fewer "
        "words, or raise the limits."
    )


def _count_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
