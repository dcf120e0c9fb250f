"""Candidates for a request, and what each brings with it: the others that it needs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

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
        self.candidates = sorted(candidates, key=lambda candidate: candidate.id)
        self.positions = {candidate.id: at for at, candidate in enumerate(self.candidates)}
        if len(self.positions) < len(self.candidates):
            raise InputError(f"Two candidates have the id {_find_twice(self.candidates)!r}. Give each its own id.")
        self.tokens = [candidate.tokens for candidate in self.candidates]
        self.values = [candidate.value for candidate in self.candidates]
        self.concepts = [candidate.concepts for candidate in self.candidates]
        self.most_gains = [
            candidate.value + sum(candidate.concepts.values()) if candidate.concepts else candidate.value
            for candidate in self.candidates
        ]
        """Value of each where nothing is covered yet."""
        self.closures = self._close_all()
        """By position: the positions of the candidate and of all that it needs, rising."""
        self.dependents: dict[int, list[int]] = {}
        """By position: the positions of those that need it."""
        for at, closure in enumerate(self.closures):
            if len(closure) > 1:
                for member in closure:
                    if member != at:
                        self.dependents.setdefault(member, []).append(at)

    def locate(self, ids: Iterable[str], *, by: str) -> list[int]:
        """Return the positions of the ids that ``by`` names. Raises UnknownCandidate for one without candidate."""
        ids = tuple(ids)
        unknown = tuple(dict.fromkeys(name for name in ids if name not in self.positions))
        if unknown:
            raise UnknownCandidate(by=by, unknown=unknown)
        return [self.positions[name] for name in ids]

    def count_tokens(self, members: Iterable[int]) -> int:
        """Return the tokens of these positions together."""
        return sum([self.tokens[member] for member in members])

    def remove_with_dependents(self, chosen: Collection[int], member: int) -> set[int]:
        """Return what has to leave with a member: itself and those chosen that need it."""
        return {member, *(other for other in self.dependents.get(member, ()) if other in chosen)}

    def _close_all(self) -> list[tuple[int, ...]]:
        closures: list[tuple[int, ...]] = [(at,) for at in range(len(self.candidates))]
        needs = {
            at: self.locate(candidate.needs, by=f"the candidate {candidate.id!r}")
            for at, candidate in enumerate(self.candidates)
            if candidate.needs
        }
        size = 0
        for at in needs:
            closures[at] = _close(at, needs)
            size += len(closures[at])
            if size > MOST_NEEDED:
                raise InputError(
                    f"With all that they need, the candidates name more than {MOST_NEEDED:,} others. Merge those "
                    "that always go together into one."
                )
        return closures


def _close(start: int, needs: Mapping[int, Sequence[int]]) -> tuple[int, ...]:
    seen = {start}
    waiting = [start]
    while waiting:
        for needed in needs.get(waiting.pop(), ()):
            if needed not in seen:
                seen.add(needed)
                waiting.append(needed)
    return tuple(sorted(seen))


def _find_twice(ordered: Sequence[Candidate]) -> str:
    return next(one.id for one, other in pairwise(ordered) if one.id == other.id)
