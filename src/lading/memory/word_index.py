"""Two indexes of words within the file, with one interface: FTS5, and plain tables where the build lacks it.

Both hold which record has which *token*: a term with the number of its namespace and a level in front. So the terms
of one namespace have lists of their own, and a search reads no other one's. A record has the token of level 1 for
each of its terms, of level 2 for those it has twice, and of level 4 for those it has four times.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias

LEVELS: Mapping[int, str] = {1: "x", 2: "y", 4: "z"}
"""How often a record has a term, at least, and the sign of the token that says so."""


def make_token(namespace: int, term: str, *, level: int = 1) -> str:
    """Make the token of a term in a namespace."""
    return f"{namespace}{LEVELS[level]}{term}"


def make_tokens(namespace: int, terms: Mapping[str, int]) -> list[str]:
    """Make the tokens of a record from how often it has each term."""
    return [
        f"{namespace}{sign}{term}"
        for level, sign in LEVELS.items()
        for term, count in terms.items()
        if count >= level
    ]


Query: TypeAlias = tuple[str, list[object]]
"""A query and its parameters."""


class WordIndex(Protocol):
    """Which records have which token."""

    def add(self, sql: sqlite3.Connection, record: int, *, tokens: Sequence[str]) -> None:
        """Add a record."""

    def remove(self, sql: sqlite3.Connection, record: int, *, tokens: Sequence[str]) -> None:
        """Remove a record, given the tokens with which it was added."""

    def count(self, sql: sqlite3.Connection, token: str) -> int:
        """Count the records with a token."""

    def select(self, any_of: Sequence[str], *, also: Sequence[str] = (), after: int = 0) -> Query:
        """Return a query for the records with any of the tokens and, where some are given,
        any of those of ``also``; ``after``: with a greater number. Its column is ``record``; a record is found
        once."""

    def purge(self, sql: sqlite3.Connection) -> None:
        """Remove from the bytes of the index what was removed from it."""


class Fts5Index:
    """The index of words in FTS5."""

    def add(self, sql: sqlite3.Connection, record: int, *, tokens: Sequence[str]) -> None:
        """Add a record."""
        sql.execute("INSERT INTO words (rowid, tokens) VALUES (?, ?)", (record, " ".join(tokens)))

    def remove(self, sql: sqlite3.Connection, record: int, *, tokens: Sequence[str]) -> None:
        """Remove a record, given the tokens with which it was added."""
        sql.execute("INSERT INTO words (words, rowid, tokens) VALUES ('delete', ?, ?)", (record, " ".join(tokens)))

    def count(self, sql: sqlite3.Connection, token: str) -> int:
        """Count the records with a token."""
        row = sql.execute("SELECT doc FROM word_counts WHERE term = ?", (token,)).fetchone()
        return int(row[0]) if row else 0

    def select(self, any_of: Sequence[str], *, also: Sequence[str] = (), after: int = 0) -> Query:
        """Return a query for the records with any of the tokens; see WordIndex."""
        wanted = " AND ".join(f"({_join_tokens(tokens)})" for tokens in (any_of, also) if tokens)
        return "SELECT rowid AS record FROM words WHERE words MATCH ? AND rowid > ?", [wanted, after]

    def purge(self, sql: sqlite3.Connection) -> None:
        """Merge all segments into one, which drops what was removed."""
        sql.execute("INSERT INTO words (words) VALUES ('optimize')")


class PlainIndex:
    """The index of words in a plain table."""

    def add(self, sql: sqlite3.Connection, record: int, *, tokens: Sequence[str]) -> None:
        """Add a record."""
        # In the order of the table, which is twice as fast.
        rows = [(token, record) for token in sorted(tokens)]
        sql.executemany("INSERT INTO posting (token, record) VALUES (?, ?)", rows)

    def remove(self, sql: sqlite3.Connection, record: int, *, tokens: Sequence[str]) -> None:
        """Remove a record, given the tokens with which it was added."""
        rows = [(token, record) for token in sorted(tokens)]
        sql.executemany("DELETE FROM posting WHERE token = ? AND record = ?", rows)

    def count(self, sql: sqlite3.Connection, token: str) -> int:
        """Count the records with a token."""
        return int(sql.execute("SELECT count(*) FROM posting WHERE token = ?", (token,)).fetchone()[0])

    def select(self, any_of: Sequence[str], *, also: Sequence[str] = (), after: int = 0) -> Query:
        """Return a query for the records with any of the tokens; see WordIndex."""
        query = f"SELECT DISTINCT record FROM posting WHERE token IN ({_mark_places(any_of)}) AND record > ?"
        if also:
            query += f" AND record IN (SELECT record FROM posting WHERE token IN ({_mark_places(also)}))"
        return query, [*any_of, after, *also]

    def purge(self, sql: sqlite3.Connection) -> None:
        """Do nothing: a removed row is overwritten at once."""


def find_index(sql: sqlite3.Connection) -> WordIndex:
    """Return the index that the file has."""
    is_plain = sql.execute("SELECT count(*) FROM sqlite_master WHERE name = 'posting'").fetchone()[0]
    return PlainIndex() if is_plain else Fts5Index()


def _join_tokens(tokens: Iterable[str]) -> str:
    return " OR ".join(f'"{token}"' for token in tokens)


def _mark_places(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))
