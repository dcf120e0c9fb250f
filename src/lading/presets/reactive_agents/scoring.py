"""Score steps by recency, relevance to the task, kind and urgency; pinned steps score 1.

The signals are those of the Reactive Agents document; the weights, which it does not state, are from its code.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lading.history.view import View
from lading.presets.reactive_agents.steps import Step, StepKind, StepReader, read_steps

RECENCY_WEIGHT, RELEVANCE_WEIGHT, KIND_WEIGHT = 0.5, 0.2, 0.3
DECAY = 0.3
"""Recency is e to the power of minus this times the iterations passed."""
URGENCY = 1.5
"""Factor of a failed observation."""
LEAST_MEMORY_RELEVANCE = 0.3
"""A less relevant memory is left out."""
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
"""Characters of a task that are read for its words."""
_PUNCTUATION = ".,;:!?\"'`()[]{}<>*"


class MemoryItem(Struct, frozen=True):
    """A memory with its relevance, from 0 to 1."""

    content: str
    relevance: float


class ScoreSignals(Struct, frozen=True, order=True):
    """A score and its components; the greater of two is shown first."""

    is_pinned: bool
    score: float
    """From 0 to 1."""
    recency: float
    relevance: float
    weight: float
    """Weight of the step's kind."""
    urgency: float
    """Factor of the weighted sum of the three."""


class StepSelection(Struct, frozen=True):
    """Positions of steps by the reason for showing them."""

    pinned: tuple[int, ...]
    recent: tuple[int, ...]
    scored: tuple[int, ...]
    """The others by descending score, newer ones first among equals."""


def compute_recency(iterations_ago: int) -> float:
    """Return 1 for now and less for each iteration passed; the future counts as now."""
    return math.exp(-DECAY * max(iterations_ago, 0))


def extract_task_words(task: str) -> tuple[str, ...]:
    """Return the significant words of a task in lower case, with repetitions, without punctuation around them."""
    words = (word.strip(_PUNCTUATION) for word in task[:MOST_TASK_CHARS].lower().split())
    return tuple(word for word in words if len(word) >= LEAST_WORD_CHARS and word not in STOP_WORDS)


def compute_relevance(words: Sequence[str], content: str) -> float:
    """Return the share of a task's words that the content contains, also within longer words; 0 without words."""
    lowered = content.lower()
    found = {word for word in set(words) if word in lowered}
    return sum(word in found for word in words) / len(words) if words else 0.0


def compute_signals(step: Step, *, iterations_ago: int, relevant: float) -> ScoreSignals:
    """Compute a step's signals; it scores 1 if pinned, else the weighted sum times the urgency, at most 1."""
    recent, weight = compute_recency(iterations_ago), KIND_WEIGHTS.get(step.kind, OTHER_WEIGHT)
    urgency = URGENCY if step.failed and step.kind == "observation" else 1.0
    total = RECENCY_WEIGHT * recent + RELEVANCE_WEIGHT * relevant + KIND_WEIGHT * weight
    score = 1.0 if step.pinned else min(total * urgency, 1.0)
    return ScoreSignals(step.pinned, score, recent, relevant, weight, urgency)


def score(step: Step, *, task: str, iteration: int) -> float:
    """Return the score of a step at an iteration, for a task."""
    relevant = compute_relevance(extract_task_words(task), step.content)
    return compute_signals(step, iterations_ago=iteration - step.iteration, relevant=relevant).score


def find_best_by_entry(
    steps: Sequence[Step], relevances: Sequence[float], *, iteration: int
) -> dict[int, ScoreSignals]:
    """Return the signals of each entry's best step. ``relevances`` are those of the steps, in order."""
    best: dict[int, ScoreSignals] = {}
    for step, relevant in zip(steps, relevances, strict=True):
        found = compute_signals(step, iterations_ago=iteration - step.iteration, relevant=relevant)
        best[step.entry] = max(best.get(step.entry, found), found)
    return best


def scores(view: View, *, task: str | None = None) -> dict[int, ScoreSignals]:
    """Score each entry after the opening messages for the next call: advice, without effect by itself.

    ``task``: what relevance is measured against; None: the user's last request. Only entries with content have one.
    """
    request = view.newest_request[1].text if view.newest_request else ""
    words, reader = extract_task_words(request if task is None else task), StepReader()
    steps = read_steps(view, reader)
    found = find_best_by_entry(
        steps, [compute_relevance(words, step.content) for step in steps], iteration=reader.iteration
    )
    for entry, signal in found.items():
        if any(view.pinned_between(entry, entry)):
            found[entry] = replace(signal, is_pinned=True, score=1.0)
    return found


def allocate_context_budget(
    steps: Sequence[Step], *, task: str, iteration: int, full_detail_steps: int
) -> StepSelection:
    """Select steps that are pinned, of the last ``full_detail_steps`` iterations, or by score."""
    words = extract_task_words(task)
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
            relevant = compute_relevance(words, step.content)
            worth[position] = compute_signals(step, iterations_ago=ago, relevant=relevant).score
    ranked = sorted(worth, key=lambda position: (worth[position], position), reverse=True)
    return StepSelection(tuple(pinned), tuple(recent), tuple(ranked))


def select_relevant_memories(memories: Iterable[MemoryItem]) -> tuple[MemoryItem, ...]:
    """Return the memories that are relevant enough to be shown."""
    return tuple(item for item in memories if item.relevance >= LEAST_MEMORY_RELEVANCE)
