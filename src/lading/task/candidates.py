"""Candidates for a request, and what each brings with it: the others that it needs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
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
    """Candidates by position, in the order of their ids, and what each needs."""

    def __init__(self, candidates: Iterable[Candidate]) -> None:
        self.candidates = sorted(candidates, key=attrgetter("id"))
        ids = [candidate.id for candidate in self.candidates]
        self.positions = dict(zip(ids, range(len(ids)), strict=True))
        if len(self.positions) < len(ids):
            raise InputError(f"Two candidates have the id {_find_twice(ids)!r}. Give each its own id.")
        self.tokens = [candidate.tokens for candidate in self.candidates]
        self.values = [candidate.value for candidate in self.candidates]
        self.concepts = [candidate.concepts for candidate in self.candidates]
        self.most_gains = [value + sum(of.values()) for value, of in zip(self.values, self.concepts, strict=True)]
        """Value of each where nothing is covered yet."""
        self.needs = self._locate_needs()
        """By position: the positions that its ``needs`` name, where there are any."""
        self.needed_by: dict[int, list[int]] = {}
        """By position: the positions of those whose ``needs`` name it, where there are any."""
        for at, needed in self.needs.items():
            for other in needed:
                self.needed_by.setdefault(other, []).append(at)
        self.closures = Closures(self.needs)
        """By position: the candidate and all that it needs."""
        self.dependents = Closures(self.needed_by)
        """By position: the candidate and all that need it."""
        self.most_closed_tokens, self.most_closed_gains = [*self.tokens], [*self.most_gains]
        """Bounds of the tokens and of the value of each with all that it needs: what several need is counted more
        than once."""
        least_tokens = self._bound_closures()
        self.most_densities = [
            gain / tokens for gain, tokens in zip(self.most_closed_gains, least_tokens, strict=True)
        ]
        """Bound of the value per token of each with all that it needs, where nothing of it is chosen."""

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
        return {member, *(other for other in self.dependents[member] if other in chosen)}

    def _locate_needs(self) -> dict[int, Sequence[int]]:
        find = self.positions.__getitem__
        try:
            return {at: [*map(find, one.needs)] for at, one in enumerate(self.candidates) if one.needs}
        except KeyError:
            return {at: self.locate(one.needs, by=one) for at, one in enumerate(self.candidates)}

    def _bound_closures(self) -> list[int]:
        """Add up the bounds of tokens and value, from those that need nothing to those that need them. Return the
        least tokens of each with all that it needs."""
        tokens, most, gains, least = self.tokens, self.most_closed_tokens, self.most_closed_gains, [*self.tokens]
        missing = {at: len(needed) for at, needed in self.needs.items()}
        ready = [at for at in self.needed_by if at not in missing]
        for at in ready:
            for other in self.needed_by[at]:
                most[other] += most[at]
                gains[other] += gains[at]
                if least[other] < tokens[other] + least[at]:
                    least[other] = tokens[other] + least[at]
                missing[other] -= 1
                if not missing[other] and other in self.needed_by:
                    ready.append(other)
        for at, count in missing.items():
            if count:  # It needs itself, or one that does.
                closure = self.closures[at]
                most[at] = least[at] = self.count_tokens(closure)
                gains[at] = sum([self.most_gains[one] for one in closure])
        return least


class Closures(dict[int, tuple[int, ...]]):
    """By position: the positions that are reached from it over ``links``, itself included, rising; found when first
    asked for. Raises InputError where they are too many together."""

    def __init__(self, links: Mapping[int, Sequence[int]]) -> None:
        super().__init__()
        self._links = links
        self._size = 0

    def __missing__(self, at: int) -> tuple[int, ...]:
        seen = {at}
        waiting = [*self._links.get(at, ())]
        while waiting:
            reached = waiting.pop()
            if reached in self:
                seen.update(self[reached])
            elif reached not in seen:
                seen.add(reached)
                waiting += self._links.get(reached, ())
        closure = self[at] = tuple(sorted(seen))
        self._size += len(closure)
        if self._size > MOST_NEEDED:
            raise InputError(
                f"With all that they need, the candidates name more than {MOST_NEEDED:,} others. Merge those that "
                "always go together into one."
            )
        return closure


def _find_twice(ordered: Sequence[str]) -> str:
    return next(one for one, other in pairwise(ordered) if one == other)
