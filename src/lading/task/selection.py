"""Choose what a request shows: the most value within a budget of tokens.

The value of a choice is the sum of the candidates' own values and, for each concept that they cover, its largest
weight among them (weighted coverage, a submodular function). A choice holds all that its members need.

The choice is made by one procedure: the greedy one (``greedy.py``) or the best single candidate with what it needs,
whichever is better; then, where at most ``MOST_SEARCHED`` candidates are in question, a branch and bound with
limited steps (``branching.py``), which proves most choices among up to 14 candidates optimal, and swaps
(``swapping.py``) where it did not end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from lading.errors import RequiredTooLarge
from lading.task.branching import search
from lading.task.candidates import Candidate, Pool
from lading.task.greedy import NEGLIGIBLE, Choice, fill
from lading.task.swapping import improve
from lading.validation import check_count

MOST_SEARCHED = 100
"""More candidates are chosen greedily only: with many, one makes little difference, and a search takes long."""

DropReason: TypeAlias = Literal["too large", "overflow", "no gain"]
"""With what it needs it exceeds the budget; others bring more for the tokens; the chosen ones cover all it has."""


class DroppedCandidate(Struct, frozen=True, gc=False):
    """A candidate that was not chosen."""

    id: str
    layer: str
    reason: DropReason


class Selection(Struct, frozen=True):
    """The chosen candidates, and why the others were dropped, both in the order of the ids."""

    chosen: tuple[str, ...]
    dropped: tuple[DroppedCandidate, ...]
    tokens: int
    value: float
    is_optimal: bool
    """Whether no other choice has a larger value; False where it is not known."""


def select(candidates: Iterable[Candidate], budget_tokens: int, *, required: Iterable[str] = ()) -> Selection:
    """Choose candidates within the budget, the ``required`` ids and what they need first. The order in which
    candidates are given changes nothing.

    Raises RequiredTooLarge if the required ones do not fit, UnknownCandidate for an id that no candidate has, and
    InputError.
    """
    check_count(budget_tokens, name="the budget")
    pool = Pool(candidates)
    base = Choice(pool, budget_tokens)
    for at in sorted(pool.locate(tuple(required), by="required")):
        base.take(base.list_missing(at))
    if base.room_tokens < 0:
        names = tuple(pool.candidates[at].id for at in sorted(base.chosen))
        raise RequiredTooLarge(required=names, tokens=budget_tokens - base.room_tokens, budget_tokens=budget_tokens)
    free = [
        at
        for at, tokens in enumerate(pool.most_closed_tokens)
        if at not in base.chosen and (tokens <= base.room_tokens or base.fits(at))
    ]
    choice, is_optimal = _find_best(base, free)
    return _report(choice, free, is_optimal=is_optimal)


def _find_best(base: Choice, free: Sequence[int]) -> tuple[Choice, bool]:
    best = fill(base.copy(), free)
    single = _find_best_single(base, free, beyond=best.value)
    if single.value > best.value + NEGLIGIBLE:
        best = fill(single, free)
    if len(free) > MOST_SEARCHED:
        return best, False
    best, is_optimal = search(base, best, free=free)
    return (best, True) if is_optimal else (improve(base, best, free=free), False)


def _find_best_single(base: Choice, free: Sequence[int], *, beyond: float) -> Choice:
    """Add the best single candidate, with what it needs, to the base, if the value can then exceed ``beyond``."""
    pool, best = base.pool, base.copy()
    least = beyond - base.value
    able = [at for at in free if pool.most_closed_gains[at] > least]
    if able:
        best.take(base.list_missing(max(able, key=lambda at: base.compute_gain(base.list_missing(at)))))
    return best


def _report(choice: Choice, free: Sequence[int], *, is_optimal: bool) -> Selection:
    pool, chosen = choice.pool, choice.chosen
    fitting = frozenset(free)
    dropped = []
    for at, candidate in enumerate(pool.candidates):
        if at not in chosen:
            reason: DropReason = "overflow"
            if at not in fitting:
                reason = "too large"
            elif candidate.value <= NEGLIGIBLE and choice.compute_gain(choice.list_missing(at)) <= NEGLIGIBLE:
                reason = "no gain"
            dropped.append(DroppedCandidate(candidate.id, candidate.layer, reason))
    return Selection(
        tuple(candidate.id for at, candidate in enumerate(pool.candidates) if at in chosen),
        tuple(dropped),
        pool.count_tokens(chosen),
        math.fsum([*(pool.values[at] for at in chosen), *choice.covered.values()]),
        is_optimal,
    )
