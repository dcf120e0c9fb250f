"""Greedy choice: again and again the candidate that brings the most value per token, with all that it needs.

A candidate brings its own value and, of each concept, what exceeds the best weight that is already covered. What it
brings can only shrink while others are chosen, so it is computed again only when it is the next to be chosen (lazy
evaluation). A candidate becomes cheaper once something that it needs is chosen: those are computed anew at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from heapq import heappop, heappush

from lading.task.candidates import Pool

NEGLIGIBLE = 1e-9
"""Values that differ by less are equal: sums of floats are not exact."""
_END = (float("inf"), -1)
"""After the last bound."""


class Choice:
    """Chosen candidates of a pool, by position, and the tokens that are left."""

    def __init__(self, pool: Pool, room_tokens: int, members: Iterable[int] = ()) -> None:
        self.pool = pool
        self.room_tokens = room_tokens
        self.chosen: set[int] = set()
        self.covered: dict[str, float] = {}
        """The best weight of each concept that is covered."""
        self.value = 0.0
        self.take(members)

    def copy(self) -> Choice:
        """Return an independent copy."""
        other = Choice(self.pool, self.room_tokens)
        other.chosen, other.covered, other.value = set(self.chosen), dict(self.covered), self.value
        return other

    def take(self, members: Iterable[int]) -> None:
        """Choose these positions; those chosen already change nothing."""
        pool, covered = self.pool, self.covered
        for member in members:
            if member in self.chosen:
                continue
            self.chosen.add(member)
            self.room_tokens -= pool.tokens[member]
            concepts = pool.concepts[member]
            if covered.keys().isdisjoint(concepts):
                self.value += pool.most_gains[member]
                covered.update(concepts)
                continue
            self.value += pool.values[member]
            for concept, weight in concepts.items():
                best = covered.get(concept, 0.0)
                if weight > best:
                    covered[concept] = weight
                    self.value += weight - best

    def list_missing(self, at: int) -> Sequence[int]:
        """Return what choosing a candidate would add: itself and what it needs."""
        if at not in self.pool.needs:
            return (at,)
        chosen = self.chosen
        return [member for member in self.pool.closures[at] if member not in chosen]

    def fits(self, at: int) -> bool:
        """Return whether a candidate fits, with what it needs."""
        pool, room = self.pool, self.room_tokens
        if pool.tokens[at] > room:
            return False
        return pool.most_closed_tokens[at] <= room or pool.count_tokens(self.list_missing(at)) <= room

    def compute_gain(self, members: Sequence[int]) -> float:
        """Return the value that these positions, none of them chosen, would add together."""
        if len(members) == 1:
            return self.compute_own_gain(members[0])
        pool, covered = self.pool, self.covered
        gain = 0.0
        raised: dict[str, float] = {}
        concepts, values = pool.concepts, pool.values
        for member in members:
            gain += values[member]
            for concept, weight in concepts[member].items():
                best = raised[concept] if concept in raised else covered.get(concept, 0.0)
                if weight > best:
                    gain += weight - best
                    raised[concept] = weight
        return gain

    def compute_own_gain(self, at: int) -> float:
        """Return the value that one position, not chosen, would add without what it needs."""
        concepts, covered = self.pool.concepts[at], self.covered
        if covered.keys().isdisjoint(concepts):
            return self.pool.most_gains[at]
        gain = self.pool.values[at]
        for concept, weight in concepts.items():
            best = covered.get(concept, 0.0)
            if weight > best:
                gain += weight - best
        return gain


def fill(choice: Choice, free: Sequence[int], *, banned: AbstractSet[int] = frozenset()) -> Choice:
    """Add the best candidates of ``free`` to the choice until none fits or none adds value, and return it.

    ``free``: positions, rising. ``banned``: those that stay out, with those that need them. Of equally good ones
    the first by id is taken.
    """
    return _Filling(choice, banned).run(free)


class _Filling:
    """A choice while it is filled, and a heap of the candidates whose density was computed."""

    def __init__(self, choice: Choice, banned: AbstractSet[int]) -> None:
        self.choice = choice
        self.banned = banned
        self.heap: list[tuple[float, int]] = []
        """Value per token, negated, or a bound of it."""
        self.densities = dict.fromkeys([*choice.chosen, *banned], 0.0)
        """Of those in the heap or out of question (0): the current one. Other entries of the heap are void."""

    def run(self, free: Sequence[int]) -> Choice:
        choice, heap, densities = self.choice, self.heap, self.densities
        needs, tokens, bounds = choice.pool.needs, choice.pool.tokens, choice.pool.most_densities
        least = min([tokens[at] for at in free], default=0)
        self._update_dependents(choice.chosen)
        # Most candidates are never looked at again: sorting their bounds is cheaper than a heap of all.
        order = sorted(free, key=bounds.__getitem__, reverse=True)
        waiting = iter(zip([-bounds[at] for at in order], order, strict=True))
        first = next(waiting, _END)
        while choice.room_tokens >= least:
            if heap and heap[0] < first:
                density, at = heappop(heap)
                if densities[at] != density:
                    continue
            elif first is _END:
                break
            else:
                (density, at), first = first, next(waiting, _END)
                if at in densities:
                    continue
            if tokens[at] > choice.room_tokens:
                continue
            if at in needs:
                now = self._update(at)
            else:
                gain = choice.compute_own_gain(at)
                now = densities[at] = -gain / tokens[at] if gain > NEGLIGIBLE else 0.0
            if now > density and ((now, at) > first or (heap and (now, at) > heap[0])):
                if now:
                    heappush(heap, (now, at))
            elif now:
                self._take(at)
        return choice

    def _take(self, at: int) -> None:
        members = self.choice.list_missing(at)
        self.choice.take(members)
        for member in members:
            self.densities[member] = 0.0
        if len(members) > 1 or at in self.choice.pool.needed_by:
            self._update_dependents(members)

    def _update_dependents(self, members: Iterable[int]) -> None:
        """Compute anew those that become cheaper because these members are chosen."""
        pool = self.choice.pool
        cheaper = [pool.dependents[member] for member in members if member in pool.needed_by]
        for other in sorted(set().union(*cheaper)):
            if now := self._update(other):
                heappush(self.heap, (now, other))

    def _update(self, at: int) -> float:
        """Compute the density of a candidate; 0 where it is chosen, does not fit or adds nothing."""
        choice, density = self.choice, 0.0
        if at not in choice.chosen:
            members = choice.list_missing(at)
            tokens = choice.pool.tokens[at] if len(members) == 1 else choice.pool.count_tokens(members)
            if tokens <= choice.room_tokens and self.banned.isdisjoint(members):
                gain = choice.compute_gain(members)
                density = -gain / tokens if gain > NEGLIGIBLE else 0.0
        self.densities[at] = density
        return density
