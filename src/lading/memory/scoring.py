"""Score records from 0 to 1 by what they have of a question: its words, its meaning, who and when it is about."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Literal, NamedTuple, TypeAlias, get_args

from lading.memory.query_times import TimeSpan, find_spans, meets_any, span_of_day
from lading.memory.query_words import QueryWord
from lading.memory.records import MemoryRecord

Signal: TypeAlias = Literal["neighbours", "entities", "times", "vectors", "distinct words", "cost", "duplicates"]
"""What a search goes by besides the words: those lent by neighbours, names of who it is about, dates, vectors, how
many of the words are there, tokens, and that texts like another one add nothing."""
SIGNALS: frozenset[Signal] = frozenset(get_args(Signal))
RAISE = 1.25
"""A record about someone whom the question names, or of a time that it names, misses that much less of the score."""
MEANING_SHARE = 0.5
"""The share of the score that nearness of vectors brings where the words bring nothing."""


class Scoring(NamedTuple):
    """What records are scored by: a question, read."""

    words: tuple[QueryWord, ...]
    names: frozenset[str]
    """Its words, casefolded."""
    spans: tuple[TimeSpan, ...]
    """The times that it speaks of."""
    best: Mapping[str, float]
    """The best score that any record has for each word."""
    signals: AbstractSet[Signal]
