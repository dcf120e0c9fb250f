"""Improve a choice by swaps: leave out one candidate or force one in, then fill what is left greedily.

Forcing one in evicts those that lose the least value per token. Evicting from all candidates gives another start
than the greedy choice: only so is something found that is worth nothing alone and that many need.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from lading.task.greedy import NEGLIGIBLE, Choice, fill

MOST_ROUNDS = 8
"""Limit of the rounds over all candidates; three usually do."""


def improve(base: Choice, best: Choice, *, free: Sequence[int]) -> Choice:
    """Return the best choice that is found by swaps. ``base``: what stays chosen. ``free``: what fits beside it."""
    evicted = fill(_evict(base, base.chosen.union(free), kept=base.chosen), free)
    if evicted.value > best.value + NEGLIGIBLE:
        best = evicted
    for _ in range(MOST_ROUNDS):
        before = best
        for at in free:
            changed = _leave_out(base, best, at=at) if at in best.chosen else _force_in(base, best, at=at)
            changed = fill(changed, free, banned={at} if at in best.chosen else frozenset())
            if changed.value > best.value + NEGLIGIBLE:
                best = changed
        if best is before:
            break
    return best


def _leave_out(base: Choice, best: Choice, *, at: int) -> Choice:
    return _choose(base, best.chosen - base.pool.remove_with_dependents(best.chosen, at))


def _force_in(base: Choice, best: Choice, *, at: int) -> Choice:
    closure = base.pool.closures[at]
    return _evict(base, best.chosen.union(closure), kept=base.chosen.union(closure))


def _choose(base: Choice, members: Iterable[int]) -> Choice:
    """Return the base with these members, taken in the order of their ids."""
    choice = base.copy()
    choice.take(sorted(members))
    return choice


def _evict(base: Choice, members: AbstractSet[int], *, kept: AbstractSet[int]) -> Choice:
    """Remove members, each with those that need it, until the rest fits; always the least value per token."""
    pool = base.pool
    rest = set(members)
    room = base.room_tokens - pool.count_tokens(rest - base.chosen)
    weights: dict[str, dict[int, float]] = {}
    for member in sorted(rest):
        for concept, weight in pool.concepts[member].items():
            weights.setdefault(concept, {})[member] = weight
    while room < 0:
        options = []
        for member in rest - kept:
            leaving = pool.remove_with_dependents(rest, member)
            if leaving.isdisjoint(kept):
                tokens = pool.count_tokens(leaving)
                options.append((_compute_loss(base, leaving, weights=weights) / tokens, member))
        _, member = min(options)
        leaving = pool.remove_with_dependents(rest, member)
        rest -= leaving
        room += pool.count_tokens(leaving)
        for other in leaving:
            for concept in pool.concepts[other]:
                del weights[concept][other]
    return _choose(base, rest)


def _compute_loss(base: Choice, leaving: AbstractSet[int], *, weights: dict[str, dict[int, float]]) -> float:
    """Return the value that is lost with members. ``weights``: of each concept, by the members that cover it."""
    pool = base.pool
    loss = 0.0
    concepts: set[str] = set()
    for member in sorted(leaving):
        loss += pool.values[member]
        concepts.update(pool.concepts[member])
    for concept in sorted(concepts):
        by_member = weights[concept]
        remaining = [weight for member, weight in by_member.items() if member not in leaving]
        loss += max(by_member.values()) - max(remaining, default=0.0)
    return loss
