"""Score records from 0 to 1 by what they have of a question: its words, its meaning, its persons and times."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias, get_args

from lading.memory.query_times import TimeSpan, find_spans, meets_any, span_of_day
from lading.memory.query_words import QueryWord, find_query_words
from lading.memory.records import MemoryRecord

Signal: TypeAlias = Literal["neighbours", "coordination", "entities", "times", "vectors", "duplicates"]
"""Signs that a search goes by besides the words of each record: those lent by neighbours, how many of the words it
has, names of its persons, dates, vectors, and that a text like another one adds nothing."""
SIGNALS: frozenset[Signal] = frozenset(get_args(Signal))
MEANING = ""
"""The key of the nearness of vectors among the words of a record."""
RAISE = 1.5
"""A record about someone that the question names, or of a time that it names, counts that much more."""
_REASON_WORDS = 4
_MOST_CHARS = 4_000
_WORD = re.compile(r"\w+")


class ReadQuestion(NamedTuple):
    """A question, read."""

    words: tuple[QueryWord, ...]
    names: frozenset[str]
    """Its words, casefolded, as entities are compared with them."""
    spans: tuple[TimeSpan, ...]
    """The times that it speaks of."""


class Ranked(NamedTuple):
    """A record with its score."""

    record: MemoryRecord
    score: float
    signs: tuple[str, ...] = ()
    """The reasons besides words and vectors."""


def read_question(text: str, *, at_s: float) -> ReadQuestion:
    """Read a question that is asked at that time, in seconds since 1970."""
    words = find_query_words(text)
    return ReadQuestion(words, frozenset(_split(text)), find_spans(text, at_s=at_s))


class ScoreScale(NamedTuple):
    """The measure of a full score."""

    best: Mapping[str, float]
    """The best score of any record by word."""
    weights: Mapping[str, float]
    """The weight of each word, 0 to 1."""
    meaning_share: float
    """Score of the nearest record where words bring nothing."""
    whole: float
    """The score of a record that has each word as the best one does; a word that no record has counts as the best
    of the others."""
    total: float
    """The sum of ``weights``."""


def make_score_scale(
    words: Iterable[QueryWord], found: Iterable[Mapping[str, float]], *, meaning_share: float
) -> ScoreScale:
    """Make the scale of a search from the words and what was found."""
    weights = {word.word: word.weight for word in words}
    best = dict.fromkeys(weights, 0.0)
    for by_word in found:
        for word, score in by_word.items():
            if word in weights and score > best[word]:
                best[word] = score
    most = max(best.values(), default=0.0)
    whole = math.fsum(weight * (best[word] or most) for word, weight in weights.items())
    return ScoreScale(best, weights, meaning_share, whole, math.fsum(weights.values()))


def score_words(by_word: Mapping[str, float], scale: ScoreScale, *, signals: AbstractSet[Signal]) -> float:
    """Return the score of a record by its words and vectors, from 0 to 1."""
    found = [(scale.weights[word], score) for word, score in by_word.items() if word in scale.weights]
    said = math.fsum([weight * score for weight, score in found])
    score = min(said / scale.whole, 1.0) if scale.whole else 0.0
    if "coordination" in signals and score:
        has = math.fsum([weight for weight, _ in found])
        score *= math.sqrt(min(has / scale.total, 1.0))
    return 1 - (1 - score) * (1 - scale.meaning_share * by_word.get(MEANING, 0.0))


def raise_score(
    record: MemoryRecord, score: float, *, question: ReadQuestion, signals: AbstractSet[Signal]
) -> Ranked:
    """Raise the score of a record that is about someone or of a time that the question names."""
    missing, signs = 1 - score, []
    if "entities" in signals and record.entities and (about := _find_named(record, question.names)):
        missing **= RAISE
        signs.append(f"about {', '.join(about)}")
    if "times" in signals and question.spans and meets_any(list_times(record), question.spans):
        missing **= RAISE
        signs.append("time")
    return Ranked(record, 1 - missing, tuple(signs))


def explain(own: Mapping[str, float], reached: Mapping[str, float], *, signs: Iterable[str]) -> str:
    """Say in a few words why a record was found. ``own``: what it has itself; ``reached``: with what is lent."""
    ranked = sorted((-value, word) for word, value in reached.items() if word != MEANING)
    words = [word if word in own else f"{word} (beside it)" for _, word in ranked[:_REASON_WORDS]]
    said = [f"words: {', '.join(words)}"] if words else []
    return "; ".join([*said, *(["meaning"] if reached.get(MEANING) else []), *signs])


def list_times(record: MemoryRecord) -> tuple[TimeSpan, ...]:
    """Return the times that a record is of: since when it holds, else the day on which it was written; and those
    that it speaks of."""
    written_s = record.created_s
    valid = record.validity
    if valid.from_s is not None:
        own = TimeSpan(valid.from_s, valid.until_s if valid.until_s is not None else math.inf)
    else:
        own = span_of_day(written_s)
    return (own, *find_spans(record.text, at_s=written_s))


def _find_named(record: MemoryRecord, names: AbstractSet[str]) -> list[str]:
    return [name for name in record.entities if (words := _split_name(name)) and names >= words]


@lru_cache(10_000)
def _split_name(name: str) -> frozenset[str]:
    return frozenset(_split(name))


def _split(text: str) -> list[str]:
    return _WORD.findall(text[:_MOST_CHARS].casefold())
