"""Choose the hits that a budget of tokens holds: those of the highest scores, and nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from lading.memory.near_duplicates import find_repeated
from lading.memory.scoring import Ranked, Signal
from lading.task.candidates import Candidate, Pool
from lading.task.greedy import Choice, fill

_SPARE = 2
"""Hits of as many budgets are weighed against each other; those behind them have lower scores."""


def choose(
    ranked: Sequence[Ranked],
    budget_tokens: int,
    *,
    count: Callable[[Ranked], int],
    needs: Mapping[str, str],
    signals: AbstractSet[Signal],
) -> list[tuple[Ranked, int]]:
    """Return the chosen of the hits, given best first, with their tokens, best first. ``needs``: by id the id of
    the hit without which one says nothing."""
    tokens: dict[str, int] = {}
    pool: list[Ranked] = []
    total = 0
    for hit in ranked:
        if total > _SPARE * budget_tokens:
            break
        pool.append(hit)
        tokens[hit.record.id] = max(count(hit), 1)
        total += tokens[hit.record.id]
    if "duplicates" in signals:
        repeated = find_repeated([hit.record.text for hit in pool])
        pool = [hit for at, hit in enumerate(pool) if at not in repeated]
    # Of equally good hits the first is chosen: the ids of the candidates are their ranks.
    names = {hit.record.id: f"{at:06}" for at, hit in enumerate(pool)}
    candidates = [
        Candidate(
            names[hit.record.id],
            tokens[hit.record.id],
            hit.score * tokens[hit.record.id],  # Chosen by value for its tokens: by score.
            needs=(names[needs[hit.record.id]],) if needs.get(hit.record.id) in names else (),
        )
        for hit in pool
    ]
    choice = fill(Choice(Pool(candidates), budget_tokens), range(len(candidates)))
    return [(pool[at], tokens[pool[at].record.id]) for at in sorted(choice.chosen)]
