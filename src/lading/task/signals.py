"""Signals of a task, measured from messages and texts: how much evidence, memory and conversation a step needs.

Ratios are between 0 and 1, counts are counts; ``scale`` makes all of them comparable.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from statistics import median

import msgspec
from msgspec import Struct

from lading.compaction.identifiers import find_tokens, weigh
from lading.errors import InputError
from lading.messages import Message, extract_words, is_spoken
from lading.validation import check, check_count, check_fields

HALF_COUNTS: Mapping[str, int] = {"expected_tool_calls": 3, "unresolved_questions": 4, "dialogue_depth": 7}
"""Counts that scale to one half: the examples of the document's table."""
HALF_LIFE_DAYS = 7.0
"""Age at which a memory counts half."""
RISK_WORDS: Mapping[str, float] = {"low": 0.0, "medium": 0.5, "high": 1.0}
LEAST_WEIGHT = 1.0
"""Lower weights (``identifiers.weigh``) are words with a hyphen and numbers; both occur by chance."""
LEAST_DIGITS = 3
"""Numbers with at least this number of digits are values in spite of their weight."""
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_WORD = re.compile(r"[^\W_]{3,}")
_MOST_LOOKED_UP = 100


class AllocatorSignals(Struct, frozen=True, kw_only=True):
    """The signals of one step. Raises InputError for ratios outside of 0 to 1 and for negative counts."""

    checklist_evidence_ratio: float = 0.0
    """Share of the checklist items that need evidence."""
    expected_tool_calls: int = 0
    risk_weight: float = 0.0
    retrieval_hit_rate: float = 0.0
    """Share of the memories shown lately that were used."""
    similarity: float = 0.0
    """How well the memories match the step."""
    freshness: float = 0.0
    """How new the memories are."""
    unresolved_questions: int = 0
    dialogue_depth: int = 0
    """Turns of the user."""

    def __post_init__(self) -> None:
        check_fields(self)
        for name, value in msgspec.structs.asdict(self).items():
            if name in HALF_COUNTS:
                check_count(value, name=name)
            else:
                _check_ratio(value, name=name)


def scale(signals: AllocatorSignals) -> dict[str, float]:
    """Scale each signal to 0..1: ratios as they are, a count n to n / (n + h), with h of ``HALF_COUNTS``."""
    return {
        name: value / (value + HALF_COUNTS[name]) if name in HALF_COUNTS else float(value)
        for name, value in msgspec.structs.asdict(signals).items()
    }


def measure_checklist_evidence_ratio(needs_evidence: Sequence[bool]) -> float:
    """Return the share of the checklist items that need evidence; 0 without items."""
    return sum(map(bool, needs_evidence)) / len(needs_evidence) if needs_evidence else 0.0


def measure_coverage(wanted: AbstractSet[str], covered: AbstractSet[str]) -> float:
    """Return the share of the wanted items that are covered; 1 where nothing is wanted."""
    return len(wanted & covered) / len(wanted) if wanted else 1.0


def count_expected_tool_calls(messages: Iterable[Message], *, tools: int) -> int:
    """Return the median of the tool calls of the turns that are complete, rounded up; without one, the number of
    tools that the step may use."""
    turns: list[int] = []
    for message in messages:
        if is_spoken(message):
            turns.append(0)
        elif turns:
            turns[-1] += len(message.calls)
    return math.ceil(median(turns[:-1])) if len(turns) > 1 else tools


def weigh_risk(risk: str | float) -> float:
    """Return the weight of a risk: low 0, medium 0.5, high 1 in any case, or a number from 0 to 1 as it is. Raises
    InputError for anything else."""
    if isinstance(risk, str):
        if (word := risk.strip().lower()) in RISK_WORDS:
            return RISK_WORDS[word]
        raise InputError(f"The risk {risk!r} is not known. Give low, medium, high, or a number from 0 to 1.")
    _check_ratio(risk, name="risk")
    return float(risk)


def measure_retrieval_hit_rate(shown: Mapping[str, str], answer: str, *, known: str = "") -> float:
    """Return the share of the shown items (texts by id) that the answer used, as ``find_used`` says; 0 where
    nothing was shown."""
    return len(find_used(shown, answer, known=known)) / len(shown) if shown else 0.0


def find_used(shown: Mapping[str, str], answer: str, *, known: str = "") -> set[str]:
    """Return the ids of the shown items (texts by id) that the answer used.

    An item is used if the answer names its id or one of its values: identifiers, paths, URLs and numbers, at word
    boundaries. Values in ``known``, such as the user's request, are no sign of use.
    """
    said = {token for _, token in find_tokens(answer)}
    new = said - {token for _, token in find_tokens(known)}
    return {name for name, text in shown.items() if _names(answer, name) or not new.isdisjoint(_find_values(text))}


def measure_similarity(query: str, texts: Iterable[str]) -> float:
    """Return how well the best of the texts matches: the share of the query's words that it contains, 0 to 1."""
    wanted = find_words(query)
    return (
        max((len(find_known_words(text, wanted)) / len(wanted) for text in texts), default=0.0) if wanted else 0.0
    )


def measure_freshness(ages_days: Collection[float]) -> float:
    """Return the mean freshness of memories: 1 when new, one half after ``HALF_LIFE_DAYS``; 0 without memories.

    Raises InputError for an age that is negative or not a number.
    """
    for age in ages_days:
        check(age, (int, float), advice="give ages in days, as numbers")
        if not age >= 0:
            raise InputError(f"An age is {age!r}; give days from 0 on.")
    return math.fsum(2.0 ** (-age / HALF_LIFE_DAYS) for age in ages_days) / len(ages_days) if ages_days else 0.0


def count_unresolved_questions(messages: Iterable[Message]) -> int:
    """Return the number of questions that have no later answer.

    A question is a sentence that ends in a question mark, outside of code. One of the user is answered by a later
    message of the assistant that calls no tool and holds more than questions; one of the assistant by the user's
    next message.
    """
    open_of_user = open_of_assistant = 0
    for message in messages:
        if is_spoken(message) or extract_words(message):
            open_of_assistant = 0
            open_of_user += _count_sentences(message.text)[0]
        elif message.role == "assistant" and message.text.strip():
            questions, others = _count_sentences(message.text)
            if others and not message.calls:
                open_of_user = 0
            open_of_assistant += questions
    return open_of_user + open_of_assistant


def count_dialogue_depth(messages: Iterable[Message]) -> int:
    """Return the number of turns: messages in which the user speaks."""
    return sum(map(is_spoken, messages))


def _check_ratio(value: float, *, name: str) -> None:
    check(value, (int, float), advice=f"give {name} as a number from 0 to 1")
    if not 0 <= value <= 1:
        raise InputError(f"{name} is {value!r}; give a number from 0 to 1.")


def _names(answer: str, name: str) -> bool:
    return bool(name) and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", answer) is not None


def _find_values(text: str) -> set[str]:
    """Return the tokens of a text that hardly occur in another by chance."""
    return {
        token
        for _, token in find_tokens(text)
        if weigh(token) >= LEAST_WEIGHT
        or (token[0].isdigit() and weigh(token) and sum(map(str.isdigit, token)) >= LEAST_DIGITS)
    }


def find_words(text: str) -> set[str]:
    """Return the words of a text with three letters or digits or more, casefolded."""
    return set(_WORD.findall(text.casefold()))


def find_known_words(text: str, words: AbstractSet[str]) -> set[str]:
    """Return those of the words that ``find_words`` finds in a text. Few words are looked up one by one."""
    if len(words) > _MOST_LOOKED_UP:
        return find_words(text) & words
    folded = text.casefold()
    return {word for word in words if _has_word(folded, word)}


def _has_word(folded: str, word: str) -> bool:
    at = folded.find(word)
    while at >= 0:
        end = at + len(word)
        if not folded[at - 1 : at].isalnum() and not folded[end : end + 1].isalnum():
            return True
        at = folded.find(word, end)
    return False


def _count_sentences(text: str) -> tuple[int, int]:
    """Count the questions and the other sentences of a text, code left out."""
    sentences = [part.strip() for part in _SENTENCE_END.split(_CODE.sub("", text)) if re.search(r"\w", part)]
    questions = sum(sentence.rstrip("\"')]*_”’").endswith(("?", "？")) for sentence in sentences)
    return questions, len(sentences) - questions
