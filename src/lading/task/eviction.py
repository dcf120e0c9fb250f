"""Eviction: from candidates that do not fit, remove again and again the one that loses the least value per token.

With a candidate leave those that need it. The mirror image of the greedy choice (``greedy.py``), and as lazy: the
loss of a candidate can only grow while others leave, but for one whose dependents leave, which is computed anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from heapq import heapify, heappop, heappush

from lading.task.greedy import Choice


def evict(base: Choice, members: Iterable[int], *, kept: AbstractSet[int]) -> Choice:
    """Remove members until the rest fits, and return it as a choice. ``base``: what is chosen already. ``kept``:
    what must stay; it has to fit."""
    return _Eviction(base, members, kept).run()


class _Eviction:
    """Members that remain, and a heap of them, of which ``densities`` has the current entries."""

    def __init__(self, base: Choice, members: Iterable[int], kept: AbstractSet[int]) -> None:
        self.base = base
        self.pool = base.pool
        self.kept = kept
        self.rest = {*members, *base.chosen}
        self.weights: dict[str, dict[int, float]] = {}
        """Of each concept, by the members that cover it."""
        for member in sorted(self.rest):
            for concept, weight in self.pool.concepts[member].items():
                self.weights.setdefault(concept, {})[member] = weight
        self.densities: dict[int, float] = {}
        """Loss per token of the members that may leave, or a lower bound of it."""

    def run(self) -> Choice:
        """Remove members until the rest fits."""
        room = self.base.room_tokens - self.pool.count_tokens(self.rest - self.base.chosen)
        if room < 0:
            for member in sorted(self.rest - self.kept):
                self._update(member)
        heap = [(density, member) for member, density in self.densities.items()]
        heapify(heap)
        while room < 0:
            density, member = heappop(heap)
            if self.densities.get(member) != density:
                continue
            now = self._update(member)
            if now > density and heap and (now, member) > heap[0]:
                heappush(heap, (now, member))
                continue
            leaving = self.pool.remove_with_dependents(self.rest, member)
            room += self.pool.count_tokens(leaving)
            self._remove(leaving)
            for other in self._list_needed(leaving):
                heappush(heap, (self._update(other), other))
        choice = self.base.copy()
        choice.take(sorted(self.rest))
        return choice

    def _update(self, member: int) -> float:
        """Compute the loss per token of a member with those that need it; without bound if one of them is kept."""
        leaving = self.pool.remove_with_dependents(self.rest, member)
        density = float("inf")
        if leaving.isdisjoint(self.kept):
            density = self._compute_loss(leaving) / self.pool.count_tokens(leaving)
        self.densities[member] = density
        return density

    def _compute_loss(self, leaving: AbstractSet[int]) -> float:
        loss = 0.0
        concepts: set[str] = set()
        for member in sorted(leaving):
            loss += self.pool.values[member]
            concepts.update(self.pool.concepts[member])
        for concept in sorted(concepts):
            by_member = self.weights[concept]
            remaining = [weight for member, weight in by_member.items() if member not in leaving]
            loss += max(by_member.values()) - max(remaining, default=0.0)
        return loss

    def _remove(self, leaving: AbstractSet[int]) -> None:
        self.rest -= leaving
        for member in leaving:
            self.densities.pop(member, None)
            for concept in self.pool.concepts[member]:
                del self.weights[concept][member]

    def _list_needed(self, leaving: AbstractSet[int]) -> list[int]:
        """Return the members that may leave and that one of those just removed needs."""
        needed = {other for member in leaving for other in self.pool.closures[member]}
        return sorted(needed & self.densities.keys())
