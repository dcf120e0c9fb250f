"""Candidates for a request, and what each brings with it: the others that it needs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, pairwise
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import force_setattr

from lading.errors import InputError, UnknownCandidate
from lading.frozen import FrozenDict
from lading.validation import check, check_count

MOST_NEEDED = 1_000_000
"""Limit of the sizes of all closures together; a deep chain of needs would fill the memory."""


class Candidate(Struct, frozen=True):
    """An item that a request may show. Raises InputError for fields that cannot be used."""

    id: str
    tokens: int
    """At least 1."""
    value: float = 0.0
    """Worth by itself, in the unit of the concept weights."""
    concepts: Mapping[str, float] = FrozenDict()
    """Weights of the concepts that it covers. Among chosen candidates a concept counts once, by its largest
    weight."""
    needs: tuple[str, ...] = ()
    """Ids of the candidates without which it is useless."""
    layer: str = ""
    """The layer that it is for, as the receipt reports it."""

    def __post_init__(self) -> None:
        check(self.id, str, advice="give a candidate's id as a text")
        check_count(self.tokens, name=f"tokens of the candidate {self.id!r}", least=1)
        check(self.needs, tuple, advice="give a candidate's needs as a tuple of ids")
        check(self.concepts, Mapping, advice="give a candidate's concepts as weights by name")
        for weight in (self.value, *self.concepts.values()):
            check(weight, (int, float), advice="give values and weights of concepts as numbers")
            if not 0 <= weight < math.inf:
                raise InputError(
                    f"The candidate {self.id!r} has the value or weight {weight!r}; give a finite number from 0 on."
                )
        # Sums of the weights must not depend on the order in which the caller named the concepts.
        force_setattr(self, "concepts", FrozenDict(sorted(self.concepts.items())))


class Pool:
    """Candidates by position, in the order of their ids, with their closures: each with all that it needs."""

    def __init__(self, candidates: Iterable[Candidate]) -> None:
        self.candidates = sorted(candidates, key=attrgetter("id"))
        self.positions = {candidate.id: at for at, candidate in enumerate(self.candidates)}
        if len(self.positions) < len(self.candidates):
            raise InputError(f"Two candidates have the id {_find_twice(self.candidates)!r}. Give each its own id.")
        self.tokens = [candidate.tokens for candidate in self.candidates]
        self.values = [candidate.value for candidate in self.candidates]
        self.concepts = [candidate.concepts for candidate in self.candidates]
        self.uncovered: Mapping[str, float] = dict.fromkeys(chain.from_iterable(self.concepts), 0.0)
        """The concepts, with the weight of each where nothing is chosen."""
        self.most_gains = [value + sum(of.values()) for value, of in zip(self.values, self.concepts, strict=True)]
        """Value of each where nothing is covered yet."""
        self.dependents: dict[int, list[int]] = {}
        """By position: the positions of those that need it."""
        self.closures = self._close_all()
        """By position: the positions of the candidate and of all that it needs, rising."""
        self.closed_tokens, self.closed_gains = [*self.tokens], [*self.most_gains]
        """By position: tokens of the closure, and the most that it can add."""
        for at, closure in enumerate(self.closures):
            if len(closure) > 1:
                self.closed_tokens[at] = sum([self.tokens[member] for member in closure])
                self.closed_gains[at] = sum([self.most_gains[member] for member in closure])

    def locate(self, ids: Sequence[str], *, by: Candidate | str) -> list[int]:
        """Return the positions of the ids that ``by`` names. Raises UnknownCandidate for one without candidate."""
        try:
            return [self.positions[name] for name in ids]
        except KeyError:
            unknown = tuple(dict.fromkeys(name for name in ids if name not in self.positions))
            named = by if isinstance(by, str) else f"the candidate {by.id!r}"
            raise UnknownCandidate(by=named, unknown=unknown) from None

    def count_tokens(self, members: Iterable[int]) -> int:
        """Return the tokens of these positions together."""
        return sum([self.tokens[member] for member in members])

    def remove_with_dependents(self, chosen: Collection[int], member: int) -> set[int]:
        """Return what has to leave with a member: itself and those chosen that need it."""
        return {member, *(other for other in self.dependents.get(member, ()) if other in chosen)}

    def _close_all(self) -> list[tuple[int, ...]]:
        closures: list[tuple[int, ...]] = [(at,) for at in range(len(self.candidates))]
        needs = {
            at: self.locate(candidate.needs, by=candidate)
            for at, candidate in enumerate(self.candidates)
            if candidate.needs
        }
        closed: dict[int, set[int]] = {}
        size = 0
        for at in needs:
            closed[at] = others = _close(at, needs, closed)
            closures[at] = tuple(sorted(others))
            for member in others:
                if member != at:
                    self.dependents.setdefault(member, []).append(at)
            size += len(closures[at])
            if size > MOST_NEEDED:
                raise InputError(
                    f"With all that they need, the candidates name more than {MOST_NEEDED:,} others. Merge those "
                    "that always go together into one."
                )
        return closures


def _close(start: int, needs: Mapping[int, Sequence[int]], closed: Mapping[int, AbstractSet[int]]) -> set[int]:
    """Return a position with all that it needs. ``closed``: what is known of others."""
    seen = {start}
    waiting = [*needs[start]]
    while waiting:
        needed = waiting.pop()
        if needed in closed:
            seen |= closed[needed]
        elif needed not in seen:
            seen.add(needed)
            waiting += needs.get(needed, ())
    return seen


def _find_twice(ordered: Sequence[Candidate]) -> str:
    return next(one.id for one, other in pairwise(ordered) if one.id == other.id)
