"""How much a step is worth showing again: recency, relevance to the task, kind, urgency, pins.

The signals are those of the Reactive Agents document; the weights, which it does not give, are its code's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from lading.compaction.reactive_agents.steps import Step, StepKind

RECENCY_WEIGHT, RELEVANCE_WEIGHT, KIND_WEIGHT = 0.5, 0.2, 0.3
DECAY = 0.3
"""Recency is e to the minus this times the iterations passed."""
URGENCY = 1.5
"""A failed observation counts so many times."""
LEAST_MEMORY_RELEVANCE = 0.3
"""A memory of less is left out."""
KIND_WEIGHTS: Mapping[StepKind, float] = {
    "observation": 0.8,
    "action": 0.6,
    "thought": 0.4,
    "memory": 0.5,
    "rules": 1.0,
    "task": 1.0,
    "tool-ref": 1.0,
}
OTHER_WEIGHT = 0.5
STOP_WORDS = frozenset(
    [
        "the",
        "a",
        "an",
        "is",
        "are",
        "was",
        "were",
        "to",
        "of",
        "in",
        "for",
        "and",
        "or",
        "on",
        "at",
        "by",
        "with",
        "from",
        "that",
        "this",
        "it",
    ]
)
LEAST_WORD_CHARS = 3
MOST_TASK_CHARS = 20_000
"""No more of a task is read for its words."""
_PUNCTUATION = ".,;:!?\"'`()[]{}<>*"


class MemoryItem(Struct, frozen=True):
    """Something remembered, with how relevant it is, from 0 to 1."""

    content: str
    relevance: float


class Split(Struct, frozen=True):
    """Positions of steps by why they are shown."""

    pinned: tuple[int, ...]
    recent: tuple[int, ...]
    scored: tuple[int, ...]
    """The others, the highest score first, the newer one of equals."""


def recency(iterations_ago: int) -> float:
    """1 now, less with each iteration; the future counts as now."""
    return math.exp(-DECAY * max(iterations_ago, 0))


def task_words(task: str) -> tuple[str, ...]:
    """The words of a task that count, in lower case, punctuation around them taken off, as often as they stand
    there."""
    words = (word.strip(_PUNCTUATION) for word in task[:MOST_TASK_CHARS].lower().split())
    return tuple(word for word in words if len(word) >= LEAST_WORD_CHARS and word not in STOP_WORDS)


def relevance(words: Sequence[str], content: str) -> float:
    """The share of a task's words that stand in the content, also as part of a longer word; 0 without words."""
    lowered = content.lower()
    found = {word for word in set(words) if word in lowered}
    return sum(word in found for word in words) / len(words) if words else 0.0


def combined(step: Step, *, iterations_ago: int, relevant: float) -> float:
    """A step's score, from 0 to 1: 1 when it is pinned, else the weighted signals times the urgency."""
    if step.pinned:
        return 1.0
    total = (
        RECENCY_WEIGHT * recency(iterations_ago)
        + RELEVANCE_WEIGHT * relevant
        + KIND_WEIGHT * KIND_WEIGHTS.get(step.kind, OTHER_WEIGHT)
    )
    return min(total * (URGENCY if step.failed and step.kind == "observation" else 1.0), 1.0)


def score(step: Step, *, task: str, iteration: int) -> float:
    """The score of a step at an iteration, for a task."""
    relevant = relevance(task_words(task), step.content)
    return combined(step, iterations_ago=iteration - step.iteration, relevant=relevant)


def allocate_context_budget(steps: Sequence[Step], *, task: str, iteration: int, full_detail_steps: int) -> Split:
    """Steps by why they are shown: pinned, of the last ``full_detail_steps`` iterations, or by their score."""
    words = task_words(task)
    scores: dict[int, float] = {}
    pinned: list[int] = []
    recent: list[int] = []
    for position, step in enumerate(steps):
        ago = iteration - step.iteration
        if step.pinned:
            pinned.append(position)
        elif ago < full_detail_steps:
            recent.append(position)
        else:
            relevant = relevance(words, step.content)
            scores[position] = combined(step, iterations_ago=ago, relevant=relevant)
    ranked = sorted(scores, key=lambda position: (scores[position], position), reverse=True)
    return Split(tuple(pinned), tuple(recent), tuple(ranked))


def relevant_memories(memories: Iterable[MemoryItem]) -> tuple[MemoryItem, ...]:
    """Those that are relevant enough to be told."""
    return tuple(item for item in memories if item.relevance >= LEAST_MEMORY_RELEVANCE)
