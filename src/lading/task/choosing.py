"""Choose what a payload shows of evidence and memories, within the budgets or in the document's overflow order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from msgspec import Struct
from msgspec.structs import replace

from lading.task.allocator import LayerBudgets
from lading.task.candidates import Candidate
from lading.task.evidence import (
    REQUEST,
    Drop,
    Evidence,
    Memory,
    find_in_each,
    measure_coverage_by_item,
    write_evidence,
    write_memory,
)
from lading.task.overflow import OverflowSteps
from lading.task.selection import select
from lading.task.task import Checklist


class Candidates(Struct, frozen=True):
    """The evidence, the oldest first, and the memories that a payload may show, with their bullets."""

    evidence: Sequence[Evidence]
    memory: Sequence[Memory]
    covers: Sequence[Mapping[str, float]]
    """Checklist items that each piece of evidence covers, with a weight of 0 to 1."""
    related: Sequence[float]
    """Shares of the words of step and request that each has."""
    bullets: Mapping[str, str]
    """By address."""
    notes: Mapping[str, str]
    """By id."""
    tokens: Mapping[str, int]
    """Of each bullet and note."""


class Shown(Struct, frozen=True):
    """The evidence and memories that are shown, the most useful last, and the drops."""

    evidence: Sequence[tuple[Evidence, Mapping[str, float]]]
    """With what each piece covers."""
    memory_ids: Sequence[str]
    bullets: Mapping[str, str]
    notes: Mapping[str, str]
    dropped: Sequence[Drop]
    values: Mapping[str, str] = {}
    """Places of the template that were shortened."""


def gather(
    evidence: Sequence[Evidence],
    memory: Sequence[Memory],
    *,
    checklist: Checklist,
    terms: Sequence[str],
    is_whole: bool,
    count: Callable[[str], int],
) -> Candidates:
    """Write the bullets of the candidates, and find what they cover. ``is_whole``: evidence is not extracted."""
    found = find_in_each(evidence, {*terms})
    bullets = {one.uri: write_evidence(one, None if is_whole else terms) for one in evidence}
    notes = {one.id: write_memory(one) for one in memory}
    return Candidates(
        evidence,
        memory,
        measure_coverage_by_item(evidence, checklist, found=found),
        [len(words) / max(len(terms), 1) for words in found],
        bullets,
        notes,
        {name: count(text) for name, text in (*bullets.items(), *notes.items())},
    )


def choose_by_value(of: Candidates, budgets: LayerBudgets) -> Shown:
    """Choose within the budget of each layer what brings the most for its tokens."""
    # Newer evidence is worth a little more: of equals the oldest is dropped first.
    worth = [share + (at + 1) / (100 * len(of.evidence)) for at, share in enumerate(of.related)]
    pieces = [
        Candidate(
            one.uri,
            max(of.tokens[one.uri], 1),
            value=worth[at] / 10,
            concepts={**of.covers[at], REQUEST: of.related[at]},
            layer="evidence",
        )
        for at, one in enumerate(of.evidence)
    ]
    memories = [
        Candidate(one.id, max(of.tokens[one.id], 1), value=max(one.score, 0.01), layer="memory")
        for one in of.memory
    ]
    recalled = select(memories, budgets.tokens["memory"])
    proving = select(pieces, budgets.tokens["evidence"])
    dropped = [(one.layer, one.reason, one.id) for one in (*recalled.dropped, *proving.dropped)]
    shown = Shown((), (), of.bullets, of.notes, dropped)
    return _order(of, {*proving.chosen}, {*recalled.chosen}, worth=worth, shown=shown)


def choose_by_document(
    of: Candidates,
    values: Mapping[str, str],
    *,
    brief: Mapping[str, str],
    terms: Sequence[str],
    room_tokens: int,
    count: Callable[[str], int],
) -> Shown:
    """Choose in the document's overflow order. ``brief``: shorter values of the places ``tools`` and ``summary``.
    ``room_tokens``: for evidence and memory, and these places."""
    values = {name: values[name] for name in brief}
    overflow = OverflowSteps(of.evidence, of.memory, values=values, room_tokens=room_tokens, count=count)
    overflow.resolve(covers=of.covers, terms=terms, brief=brief)
    shown = Shown((), (), overflow.bullets, overflow.notes, overflow.dropped, overflow.values)
    return _order(of, overflow.bullets.keys(), overflow.notes.keys(), worth=range(len(of.evidence)), shown=shown)


def _order(
    of: Candidates,
    uris: AbstractSet[str],
    ids: AbstractSet[str],
    *,
    worth: Sequence[float],
    shown: Shown,
) -> Shown:
    positions = [at for at, one in enumerate(of.evidence) if one.uri in uris]
    positions.sort(key=lambda at: (sum(of.covers[at].values()), worth[at]))
    memories = sorted((one for one in of.memory if one.id in ids), key=lambda one: (one.score, one.id))
    evidence = [(of.evidence[at], of.covers[at]) for at in positions]
    return replace(shown, evidence=evidence, memory_ids=[one.id for one in memories])
