"""Branch and bound: prove a choice the best one, or find a better one, within a limited number of steps.

Each node of the search has candidates chosen and others ruled out. It takes the one with the most value per token,
once chosen and once ruled out. The bound of a node is a fractional knapsack: what each candidate left would add
alone, by value per token, the last one in part. Values that overlap add less together, so nothing below exceeds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lading.task.greedy import NEGLIGIBLE, Choice

MOST_GAINS = 15_000
"""Limit of the work, in candidates looked at: 1,000 nodes with 14 candidates, 250 with 60."""


class _Node(NamedTuple):
    choice: Choice
    left: tuple[int, ...]
    """Candidates neither chosen nor ruled out."""


class Found(NamedTuple):
    """The best choice found."""

    choice: Choice
    is_optimal: bool
    """Whether the search ended, so that no choice has a larger value."""


def search(base: Choice, best: Choice, *, free: Sequence[int]) -> Found:
    """Search for a choice better than ``best``. ``base``: what stays chosen. ``free``: what fits beside it."""
    waiting = [_Node(base, tuple(free))]
    gains = 0
    while waiting and gains < MOST_GAINS:
        node = waiting.pop()
        gains += len(node.left) + 1
        if node.choice.value > best.value + NEGLIGIBLE:
            best = node.choice
        left = _drop_impossible(node)
        alone = {at: node.choice.compute_gain((at,)) for at in left}
        if _compute_bound(node.choice, alone) <= best.value + NEGLIGIBLE:
            continue
        at = _find_densest(node.choice, alone)
        waiting.append(_Node(node.choice, _rule_out(node.choice, left, at=at)))
        chosen = node.choice.copy()
        chosen.take(node.choice.list_missing(at))
        waiting.append(_Node(chosen, tuple(other for other in left if other not in chosen.chosen)))
    return Found(best, not waiting)


def _drop_impossible(node: _Node) -> tuple[int, ...]:
    """Return those that fit and whose needs are not ruled out."""
    choice, possible = node.choice, node.choice.chosen.union(node.left)
    pool = choice.pool
    return tuple(
        at
        for at in node.left
        if pool.count_tokens(missing := choice.list_missing(at)) <= choice.room_tokens
        and possible.issuperset(missing)
    )


def _rule_out(choice: Choice, left: tuple[int, ...], *, at: int) -> tuple[int, ...]:
    return tuple(other for other in left if at not in choice.pool.closures[other])


def _compute_bound(choice: Choice, alone: dict[int, float]) -> float:
    tokens = choice.pool.tokens
    bound, room = choice.value, choice.room_tokens
    for at in sorted(alone, key=lambda at: (-alone[at] / tokens[at], at)):
        if tokens[at] > room:
            return bound + alone[at] * room / tokens[at]
        room -= tokens[at]
        bound += alone[at]
    return bound


def _find_densest(choice: Choice, alone: dict[int, float]) -> int:
    """Return the candidate that, with what it needs, adds the most value per token."""

    def rate(at: int) -> tuple[float, int]:
        members = choice.list_missing(at)
        gain = alone[at] if len(members) == 1 else choice.compute_gain(members)
        return -gain / choice.pool.count_tokens(members), at

    return min(alone, key=rate)
