"""Rank records by BM25, the rarest terms first.

Terms are taken from the rarest on until they have ``MOST_FOUND`` records together. Only records with one of these
are ranked; the more frequent terms add to their scores, and find none of their own. Ranking every record with a
frequent word is what makes BM25 slow, and such a word says little.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Mapping, Sequence
from heapq import nsmallest
from typing import NamedTuple

from lading.memory.terms import query_terms
from lading.memory.word_index import LEVELS, WordIndex, make_token

MOST_FOUND = 5_000
"""Records of the rare terms together, about; of one term the newest ones."""
_SATURATION, _LENGTH_SHARE = 1.2, 0.75


class Area(NamedTuple):
    """The namespaces that a reader sees: their numbers, their records in the index and the terms of these."""

    namespaces: tuple[int, ...]
    shown: int
    terms: int


class Shown(NamedTuple):
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
    sql: sqlite3.Connection, index: WordIndex, *, area: Area, words: Sequence[str], shown: Shown, limit: int
) -> list[tuple[int, dict[str, float]]]:
    """Return the best ``limit`` records that have any of the words, each with what every word adds to its score,
    best first; equal ones by number."""
    rare, frequent = _split_terms(sql, index, area, words=words)
    lengths: dict[int, int] = {}
    while rare:
        opening = [token for term in rare for token in term.tokens[0]]
        lengths = _find_lengths(sql, index, opening, shown=shown)
        if len(lengths) >= limit or not frequent:
            break
        rare.append(frequent.pop(0))
    average = max(area.terms / max(area.shown, 1), 1.0)
    damping = {
        record: _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * length / average)
        for record, length in lengths.items()
    }
    scores = dict.fromkeys(lengths, 0.0)
    added: list[tuple[str, dict[int, float]]] = []
    for at, term in enumerate([*rare, *frequent]):
        weight = math.log(1 + (area.shown - term.found + 0.5) / (term.found + 0.5))
        also = opening if at >= len(rare) else ()
        counts = _count_term_in_records(sql, index, term, also=also)
        gains = {
            record: weight * count * (_SATURATION + 1) / (count + damping[record])
            for record, count in counts.items()
            if record in scores
        }
        added.append((term.word, gains))
        for record, gain in gains.items():
            scores[record] += gain
    best = nsmallest(limit, scores, key=lambda record: (-scores[record], record))
    return [(record, _sum_by_word(added, record)) for record in best]


def _sum_by_word(added: Sequence[tuple[str, Mapping[int, float]]], record: int) -> dict[str, float]:
    by_word: dict[str, float] = {}
    for word, gains in added:
        if record in gains:
            by_word[word] = by_word.get(word, 0.0) + gains[record]
    return by_word


def _split_terms(
    sql: sqlite3.Connection, index: WordIndex, area: Area, *, words: Sequence[str]
) -> tuple[list[_Term], list[_Term]]:
    """Return the terms that find records and those that only add to scores, each from the rarest on."""
    found = []
    for term, word in {term: word for word in reversed(words) for term in query_terms(word)}.items():
        if count := count_term(sql, index, area=area, term=term):
            tokens = tuple(tuple(make_token(of, term, level=level) for of in area.namespaces) for level in LEVELS)
            found.append(_Term(word, tokens, count))
    found.sort(key=lambda term: (term.found, term.tokens))
    split, total = 0, 0
    while split < len(found) and (not split or total + found[split].found <= MOST_FOUND):
        total += found[split].found
        split += 1
    return found[:split], found[split:]


def _find_lengths(
    sql: sqlite3.Connection, index: WordIndex, tokens: Sequence[str], *, shown: Shown
) -> dict[int, int]:
    """Return the number of terms of each shown record with one of the tokens, of the newest ones."""
    query, values = index.select(tokens)
    rows = sql.execute(
        f"SELECT record.id, record.terms FROM ({query}) AS hit JOIN record ON record.id = hit.record "
        f"WHERE {shown.condition} ORDER BY hit.record DESC LIMIT ?",
        (*values, *shown.values, 4 * MOST_FOUND),
    )
    return dict(rows.fetchall())


def _count_term_in_records(
    sql: sqlite3.Connection, index: WordIndex, term: _Term, *, also: Sequence[str]
) -> dict[int, int]:
    """Return how often each record has the term, as far as the levels say; ``also``: only of those with one of
    these tokens."""
    counts: dict[int, int] = {}
    for level, tokens in zip(LEVELS, term.tokens, strict=True):
        query, values = index.select(tokens, also=also)
        found = [record for (record,) in sql.execute(query, values)]
        counts.update(dict.fromkeys(found, level))
        if not found:
            break
    return counts
