"""How much a step is worth showing again: recency, relevance to the task, kind, urgency, pins.

The signals are those of the Reactive Agents document; the weights, which it does not give, are its code's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lading.history.view import View
from lading.presets.reactive_agents.steps import Step, StepKind, StepReader, read

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
    {"the", "a", "an", "is", "are", "was", "were", "to", "of", "in", "for", "and", "or", "on", "at", "by", "with"}
    | {"from", "that", "this", "it"}
)
LEAST_WORD_CHARS = 3
MOST_TASK_CHARS = 20_000
"""No more of a task is read for its words."""
_PUNCTUATION = ".,;:!?\"'`()[]{}<>*"


class MemoryItem(Struct, frozen=True):
    """Something remembered, with how relevant it is, from 0 to 1."""

    content: str
    relevance: float


class Signals(Struct, frozen=True, order=True):
    """A score and what it is made of. Of two, the greater is shown sooner."""

    is_pinned: bool
    score: float
    """From 0 to 1."""
    recency: float
    relevance: float
    weight: float
    """Of the step's kind."""
    urgency: float
    """By which the weighted sum of the three was multiplied."""


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


def signals(step: Step, *, iterations_ago: int, relevant: float) -> Signals:
    """A step's signals: it scores 1 when it is pinned, else the weighted signals times the urgency, at most 1."""
    recent, weight = recency(iterations_ago), KIND_WEIGHTS.get(step.kind, OTHER_WEIGHT)
    urgency = URGENCY if step.failed and step.kind == "observation" else 1.0
    total = RECENCY_WEIGHT * recent + RELEVANCE_WEIGHT * relevant + KIND_WEIGHT * weight
    score = 1.0 if step.pinned else min(total * urgency, 1.0)
    return Signals(step.pinned, score, recent, relevant, weight, urgency)


def score(step: Step, *, task: str, iteration: int) -> float:
    """The score of a step at an iteration, for a task."""
    relevant = relevance(task_words(task), step.content)
    return signals(step, iterations_ago=iteration - step.iteration, relevant=relevant).score


def best_of_entries(steps: Sequence[Step], relevances: Sequence[float], *, iteration: int) -> dict[int, Signals]:
    """The signals of each log entry: those of its best step. ``relevances``: of the steps, in order."""
    best: dict[int, Signals] = {}
    for step, relevant in zip(steps, relevances, strict=True):
        found = signals(step, iterations_ago=iteration - step.iteration, relevant=relevant)
        best[step.entry] = max(best.get(step.entry, found), found)
    return best


def scores(view: View, *, task: str | None = None) -> dict[int, Signals]:
    """What each log entry behind the head is worth showing again at the next call, whether it is shown now or
    not: advice for a strategy or a caller. It decides nothing.

    ``task``: what relevance is measured against; None: what the user asked last. An entry in which nothing is
    said or called has no score.
    """
    asked = view.newest_request[1].text if view.newest_request else ""
    words, reader = task_words(asked if task is None else task), StepReader()
    steps = read(view, reader)
    found = best_of_entries(steps, [relevance(words, step.content) for step in steps], iteration=reader.iteration)
    for entry, signal in found.items():
        if any(view.pinned_between(entry, entry)):
            found[entry] = replace(signal, is_pinned=True, score=1.0)
    return found


def allocate_context_budget(steps: Sequence[Step], *, task: str, iteration: int, full_detail_steps: int) -> Split:
    """Steps by why they are shown: pinned, of the last ``full_detail_steps`` iterations, or by their score."""
    words = task_words(task)
    worth: dict[int, float] = {}
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
            worth[position] = signals(step, iterations_ago=ago, relevant=relevant).score
    ranked = sorted(worth, key=lambda position: (worth[position], position), reverse=True)
    return Split(tuple(pinned), tuple(recent), tuple(ranked))


def relevant_memories(memories: Iterable[MemoryItem]) -> tuple[MemoryItem, ...]:
    """Those that are relevant enough to be told."""
    return tuple(item for item in memories if item.relevance >= LEAST_MEMORY_RELEVANCE)
