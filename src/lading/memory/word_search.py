"""Rank records by BM25, the rarest terms first.

Terms are taken from the rarest on until they have ``MOST_FOUND`` records together. Only records with one of these
are ranked; the more frequent terms add to their scores, and find none of their own. Ranking every record with a
frequent word is what makes BM25 slow, and such a word says little. SQLite computes the scores, which takes half the
time of reading each hit into Python.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from lading.memory.terms import query_terms
from lading.memory.word_index import LEVELS, WordIndex, make_token

MOST_FOUND = 3_000
"""Records of the rare terms together, about. Where the rarest term has more, its newest ones are ranked."""
MOST_TERMS = 100
"""Terms of a query, the rarest ones; SQLite limits the parts of a statement."""
_SATURATION, _LENGTH_SHARE = 1.2, 0.75


class Area(NamedTuple):
    """The namespaces that a reader sees: their numbers, their records in the index and the terms of these."""

    namespaces: tuple[int, ...]
    shown: int
    terms: int


class RowFilter(NamedTuple):
    """A condition on rows of the table ``record``, with its parameters."""

    condition: str
    values: tuple[object, ...]


class _Term(NamedTuple):
    word: str
    """The word that it is of; the first one of several."""
    tokens: tuple[tuple[str, ...], ...]
    """For each level, those of the namespaces."""
    found: int
    """Records that have it."""


def count_term(sql: sqlite3.Connection, index: WordIndex, *, area: Area, term: str) -> int:
    """Count the records of these namespaces that have a term."""
    return sum(index.count(sql, make_token(namespace, term)) for namespace in area.namespaces)


def rank_words(
    sql: sqlite3.Connection, index: WordIndex, *, area: Area, words: Sequence[str], shown: RowFilter, limit: int
) -> dict[int, dict[str, float]]:
    """Return the best ``limit`` records that have any of the words, each with what every word adds to its score,
    best first; equal ones by number."""
    terms = _find_terms(sql, index, area=area, words=words)
    split = 0
    ranked: dict[int, dict[str, float]] = {}
    # Records of a term may be expired, or of another kind.
    while split < len(terms) and len(ranked) < limit:
        split = _count_rare(terms, start=split)
        query, values = _write_query(sql, index, terms, area=area, split=split, shown=shown)
        ranked = {}
        for record, at, gain in sql.execute(query, (*values, limit)):
            by_word = ranked.setdefault(record, {})
            by_word[terms[at].word] = by_word.get(terms[at].word, 0.0) + gain
    return ranked


def _find_terms(sql: sqlite3.Connection, index: WordIndex, *, area: Area, words: Sequence[str]) -> list[_Term]:
    """Return the terms that some record has, from the rarest on."""
    found = []
    words_of = {term: word for word in reversed(words) for term in query_terms(word)}
    for term, word in words_of.items():
        if count := count_term(sql, index, area=area, term=term):
            tokens = tuple(tuple(make_token(of, term, level=level) for of in area.namespaces) for level in LEVELS)
            found.append(_Term(word, tokens, count))
    return sorted(found, key=lambda term: (term.found, term.tokens))[:MOST_TERMS]


def _count_rare(terms: Sequence[_Term], *, start: int) -> int:
    """Count the terms that find records: at least one after the first ``start``."""
    split, total = start, 0
    while split < len(terms) and (split == start or total + terms[split].found <= MOST_FOUND):
        total += terms[split].found
        split += 1
    return split


def _write_query(
    sql: sqlite3.Connection, index: WordIndex, terms: Sequence[_Term], *, area: Area, split: int, shown: RowFilter
) -> tuple[str, list[object]]:
    """Return a query, with its parameters but for the last, the limit, for records with the index of each of their
    terms and what it adds to the score."""
    rare = [token for term in terms[:split] for token in term.tokens[0]]
    after = _find_start(sql, index, rare) if terms[split - 1].found > MOST_FOUND else 0
    parts: list[str] = []
    values: list[object] = []
    for at, term in enumerate(terms):
        weight = math.log(1 + (area.shown - term.found + 0.5) / (term.found + 0.5)) * (_SATURATION + 1)
        for below, level, tokens in zip((0, *LEVELS), LEVELS, term.tokens, strict=False):
            part, given = index.select(tokens, also=rare if at >= split else (), after=after)
            parts.append(
                f"SELECT record, {at} AS term, {weight!r} AS weight, {level}.0 AS level, {below}.0 AS below "
                f"FROM ({part})"
            )
            values += given
    average = max(area.terms / max(area.shown, 1), 1.0)
    # A record with a term twice is found by the tokens of both levels: the second adds the difference.
    damping = f"({_SATURATION * (1 - _LENGTH_SHARE)!r} + {_SATURATION * _LENGTH_SHARE / average!r} * record.terms)"
    gain = f"weight * (level / (level + {damping}) - below / (below + {damping}))"
    query = (
        f"WITH hit AS MATERIALIZED ({' UNION ALL '.join(parts)}), "
        f"best AS MATERIALIZED (SELECT record.id, record.terms, sum({gain}) AS score "
        f"FROM hit JOIN record ON record.id = hit.record WHERE {shown.condition} "
        "GROUP BY record.id ORDER BY score DESC, record.id LIMIT ?) "
        f"SELECT record.id, hit.term, sum({gain}) FROM hit CROSS JOIN best AS record ON record.id = hit.record "
        "GROUP BY record.id, hit.term ORDER BY record.score DESC, record.id, hit.term"
    )
    return query, [*values, *shown.values]


def _find_start(sql: sqlite3.Connection, index: WordIndex, tokens: Sequence[str]) -> int:
    """Return the number of the record after which there are ``MOST_FOUND`` ones with any of the tokens."""
    query, values = index.select(tokens)
    row = sql.execute(f"{query} ORDER BY record DESC LIMIT 1 OFFSET ?", (*values, MOST_FOUND)).fetchone()
    return int(row[0]) if row else 0
