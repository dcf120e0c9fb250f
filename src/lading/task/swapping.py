"""Improve a choice by swaps: leave out one candidate or force one in, then choose the others anew.

The others are found from both sides: greedily from what stays, and by evicting from all that could be had beside
it. Only eviction finds what is worth nothing alone and many need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lading.task.eviction import evict
from lading.task.greedy import NEGLIGIBLE, Choice, fill

MOST_ROUNDS = 8
"""Limit of the rounds over all candidates; three usually do."""


def improve(base: Choice, best: Choice, *, free: Sequence[int]) -> Choice:
    """Return the best choice that is found by swaps. ``base``: what stays chosen. ``free``: what fits beside it."""
    best = max(best, fill(evict(base, free, kept=base.chosen), free), key=lambda choice: choice.value)
    for _ in range(MOST_ROUNDS):
        before = best
        for at in free:
            swaps = _leave_out if at in best.chosen else _force_in
            for changed in swaps(base, best, free=free, at=at):
                if changed.value > best.value + NEGLIGIBLE:
                    best = changed
        if best is before:
            break
    return best


def _leave_out(base: Choice, best: Choice, *, free: Sequence[int], at: int) -> Iterator[Choice]:
    pool, banned = base.pool, frozenset((at,))
    stays = base.copy()
    stays.take(sorted(best.chosen - pool.remove_with_dependents(best.chosen, at)))
    yield fill(stays, free, banned=banned)
    others = [other for other in free if at not in pool.closures[other]]
    yield fill(evict(base, others, kept=base.chosen), free, banned=banned)


def _force_in(base: Choice, best: Choice, *, free: Sequence[int], at: int) -> Iterator[Choice]:
    kept = base.chosen.union(base.pool.closures[at])
    yield fill(evict(base, best.chosen | kept, kept=kept), free)
