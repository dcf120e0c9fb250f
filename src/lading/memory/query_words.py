"""Find the words of a question by which records are searched, each with a weight."""

from __future__ import annotations

import re
from typing import NamedTuple

from lading.memory.terms import query_terms

MOST_CHARS = 4_000
"""Of a longer question the start and the end are read, this many characters together."""
MOST_WORDS = 64
PART_WEIGHT = 0.5
"""Weight of a part of an identifier; a word of the question weighs 1."""
FUNCTION_WORDS = frozenset(
    """
    a about after again ago all also am an and any are as at be because been before being both but by can could did
    do does doing don down during each ever few for from further had has have having he her here hers him his how i
    if in into is it its itself just let like many may me might more most much must my no nor not now of off on once
    only or other our out over own please same shall she should so some such tell than that the their them then
    there these they this those through to too under until up us very was we were what when where whether which
    while who whom whose why will with would yes you your yours s t d m ll re ve
    """.split()  # noqa: SIM905 - a list of words reads as words
)
"""English words of grammar, of questions, and the rests of contractions. Those of other languages count little by
themselves, as all words that many records have."""
_WORD = re.compile("[^\\W_](?:[^\\W_]|[\u0300-\u036f\u0900-\u0dff\u0e00-\u0eff\u1000-\u109f\u1780-\u17d3])*")
"""With the vowel signs of India and Southeast Asia, which are no letters to ``re``."""
_PART_END = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class QueryWord(NamedTuple):
    """A word of a question, casefolded."""

    word: str
    weight: float = 1.0


def find_query_words(question: str) -> tuple[QueryWord, ...]:
    """Return the words of a question, each once, in its order: without words of grammar unless there are no others,
    identifiers also by their parts. At most ``MOST_WORDS``."""
    words: dict[str, float] = {}
    for word in _WORD.findall(_shorten(question)):
        words[word.casefold()] = 1.0
        for part in _split_identifier(word):
            words.setdefault(part, PART_WEIGHT)
    said = {word: weight for word, weight in words.items() if word not in FUNCTION_WORDS} or words
    # Two forms of one word are found together, and count once.
    distinct = {tuple(query_terms(word)): QueryWord(word, weight) for word, weight in reversed(said.items())}
    return tuple(reversed(distinct.values()))[:MOST_WORDS]


def _shorten(question: str) -> str:
    if len(question) <= MOST_CHARS:
        return question
    half = MOST_CHARS // 2
    return f"{question[:half]} {question[-half:]}"


def _split_identifier(word: str) -> list[str]:
    """Return the parts of a name such as ``camelCase``; nothing for a plain word."""
    parts = _PART_END.sub(" ", word).casefold().split()
    return parts if len(parts) > 1 else []
