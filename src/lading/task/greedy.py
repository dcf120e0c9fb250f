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
        self.covered = dict(pool.uncovered)
        """The best weight of each concept."""
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
            self.value += pool.values[member]
            for concept, weight in pool.concepts[member].items():
                best = covered[concept]
                if weight > best:
                    covered[concept] = weight
                    self.value += weight - best

    def list_missing(self, at: int) -> Sequence[int]:
        """Return what choosing a candidate would add: itself and what it needs."""
        closure, chosen = self.pool.closures[at], self.chosen
        return closure if len(closure) == 1 else [member for member in closure if member not in chosen]

    def compute_gain(self, members: Sequence[int]) -> float:
        """Return the value that these positions, none of them chosen, would add together."""
        pool, covered = self.pool, self.covered
        gain = 0.0
        if len(members) == 1:
            [member] = members
            for concept, weight in pool.concepts[member].items():
                best = covered[concept]
                if weight > best:
                    gain += weight - best
            return gain + pool.values[member]
        raised: dict[str, float] = {}
        concepts, values = pool.concepts, pool.values
        for member in members:
            gain += values[member]
            for concept, weight in concepts[member].items():
                best = raised[concept] if concept in raised else covered[concept]
                if weight > best:
                    gain += weight - best
                    raised[concept] = weight
        return gain


def fill(choice: Choice, free: Sequence[int], *, banned: AbstractSet[int] = frozenset()) -> Choice:
    """Add the best candidates of ``free`` to the choice until none fits or none adds value, and return it.

    ``free``: positions, rising. ``banned``: those that stay out, with those that need them. Of equally good ones
    the first by id is taken.
    """
    return _Filling(choice, banned).run(free)


class _Filling:
    """A choice while it is filled, of whose candidates ``densities`` has the current ones."""

    def __init__(self, choice: Choice, banned: AbstractSet[int]) -> None:
        self.choice = choice
        self.banned = banned
        self.densities: dict[int, float] = {}
        """Value per token, negated, of those that may still be chosen, or a bound of it; other entries are void."""

    def run(self, free: Sequence[int]) -> Choice:
        """Fill the choice."""
        choice, densities = self.choice, self.densities
        densities.update(zip(free, self._bound(free), strict=True))
        # Most candidates are never looked at again: sorting their bounds is cheaper than a heap of all.
        order = sorted(free, key=densities.__getitem__)
        waiting = zip([densities[at] for at in order], order, strict=True)
        first = next(waiting, _END)
        heap: list[tuple[float, int]] = []
        least = min([choice.pool.tokens[at] for at in free], default=0)
        while choice.room_tokens >= least:
            if heap and heap[0] < first:
                density, at = heappop(heap)
            elif first is _END:
                break
            else:
                (density, at), first = first, next(waiting, _END)
            if densities.get(at) != density:
                continue
            now = self._update(at)
            if now is None:
                continue
            if now > density and ((now, at) > first or (heap and (now, at) > heap[0])):
                heappush(heap, (now, at))
                continue
            members = choice.list_missing(at)
            choice.take(members)
            for member in members:
                densities.pop(member, None)
            for other in self._list_cheaper(members):
                changed = self._update(other)
                if changed is not None:
                    heappush(heap, (changed, other))
        return choice

    def _bound(self, free: Sequence[int]) -> list[float]:
        """Return a bound of each density: of candidates together, it does not exceed the largest of one alone."""
        pool = self.choice.pool
        alone = [-gain / tokens for gain, tokens in zip(pool.most_gains, pool.tokens, strict=True)]
        closures = pool.closures
        return [
            alone[at] if len(closures[at]) == 1 else min([alone[member] for member in closures[at]]) for at in free
        ]

    def _update(self, at: int) -> float | None:
        """Compute the density of a candidate; None where it is chosen, does not fit or adds nothing."""
        choice = self.choice
        self.densities.pop(at, None)
        if at in choice.chosen:
            return None
        members = choice.list_missing(at)
        tokens = choice.pool.tokens[at] if len(members) == 1 else choice.pool.count_tokens(members)
        if tokens > choice.room_tokens or not self.banned.isdisjoint(members):
            return None
        gain = choice.compute_gain(members)
        if gain <= NEGLIGIBLE:
            return None
        density = self.densities[at] = -gain / tokens
        return density

    def _list_cheaper(self, members: Sequence[int]) -> list[int]:
        """Return those that need one of the members just chosen."""
        dependents = self.choice.pool.dependents
        return sorted({other for member in members for other in dependents.get(member, ())})
