"""Consolidate the records of a namespace: what says nothing more than another record becomes its history.

Nothing is removed: each folded record keeps its words and names its successor. Each group is one transaction, so
that a run that is cut short has done whole groups, and the next one goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import Struct

from lading.errors import InputError, MemoryFull, SummaryFailed
from lading.memory.fold_rules import FoldGroup, Reason, find_groups
from lading.memory.merging import Merge, find_alike, merge
from lading.memory.records import MemoryRecord, Namespace
from lading.memory.store import RecordStore, Vectors

MOST_GROUPS = 1_000
"""Groups of one run."""
_ALL = 1_000_000_000


class FoldReport(Struct, frozen=True):
    """A group of records that was folded, or would be."""

    reason: Reason
    """``duplicate``: the same words; ``superseded``: an older record of the same key, spelled otherwise;
    ``expired``: long ago; ``merged``: a model wrote one text for all."""
    namespace: Namespace
    folded: tuple[str, ...]
    """Ids of the records that are history."""
    into: str = ""
    """The id of the record in their place; empty for expired ones, and before a merge is done."""
    text: str = ""
    """Its text; of the first expired one where there is none."""


class Consolidation(Struct, frozen=True):
    """The outcome of a run."""

    folds: tuple[FoldReport, ...] = ()
    left: int = 0
    """Groups beyond the limit of one run: the next one has them."""
    refused: tuple[str, ...] = ()
    """Why groups were left as they are: the answer of the model fails a check, a record changed meanwhile."""
    is_dry_run: bool = False

    @property
    def records(self) -> int:
        """The number of folded records."""
        return sum(len(fold.folded) for fold in self.folds)


class ConsolidationMeans(NamedTuple):
    """The means of a run besides the rules."""

    ask: Merge | None = None
    """Asks a model to merge what is nearly the same; None: nothing is merged."""
    embed: Callable[[Sequence[str]], Vectors | None] = lambda _: None
    """Makes the vectors of merged texts."""
    advance: Callable[[int], object] = lambda _: None
    """Called with 1 after each group."""


def consolidate(
    store: RecordStore,
    namespace: Namespace,
    *,
    at_s: float,
    dry_run: bool = False,
    most_groups: int = MOST_GROUPS,
    means: ConsolidationMeans = ConsolidationMeans(),  # noqa: B008 - immutable
) -> Consolidation:
    """Fold records of exactly this namespace. ``at_s``: now, in seconds since 1970. With ``dry_run`` nothing is
    changed and no model is asked. Raises StoreError; groups before it are done."""
    records = [
        one
        for one in store.list_records(namespace, at_s=at_s, with_history=True, limit=_ALL)
        if one.namespace == namespace and not one.superseded_by
    ]
    rules = find_groups(records, at_s=at_s)
    gone = {one.id for group in rules for one in group.older}
    alike = find_alike([one for one in records if one.id not in gone], at_s=at_s) if means.ask else []
    folds: list[FoldReport] = []
    refused: list[str] = []
    todo: list[FoldGroup | tuple[MemoryRecord, ...]] = [*rules, *alike]
    for found in todo[:most_groups]:
        try:
            group = found if isinstance(found, FoldGroup) else _merge(found, None if dry_run else means.ask)
            kept = group.into if dry_run else _fold(store, group, at_s=at_s, means=means)
            folds.append(_describe(group, kept))
        except (InputError, MemoryFull, SummaryFailed) as error:
            refused.append(f"{found[0].id}: {error}" if isinstance(found, tuple) else str(error))
        means.advance(1)
    return Consolidation(tuple(folds), max(len(todo) - most_groups, 0), tuple(refused), dry_run)


def _merge(records: tuple[MemoryRecord, ...], ask: Merge | None) -> FoldGroup:
    return merge(records, ask) if ask else FoldGroup("merged", records)


def _fold(store: RecordStore, group: FoldGroup, *, at_s: float, means: ConsolidationMeans) -> MemoryRecord | None:
    is_new = group.into is not None and not group.into.id
    vectors = means.embed([group.into.text]) if group.into is not None and is_new else None
    ids = [one.id for one in group.older]
    return store.fold(group.older[0].namespace, ids, into=group.into, vectors=vectors, at_s=at_s)


def _describe(group: FoldGroup, kept: MemoryRecord | None) -> FoldReport:
    ids = tuple(one.id for one in group.older)
    return FoldReport(
        group.reason, group.older[0].namespace, ids, kept.id if kept else "", (kept or group.older[0]).text
    )


def join_runs(runs: Sequence[Consolidation]) -> Consolidation:
    """Return the runs of several namespaces as one."""
    return Consolidation(
        tuple(fold for run in runs for fold in run.folds),
        sum(run.left for run in runs),
        tuple(why for run in runs for why in run.refused),
        any(run.is_dry_run for run in runs),
    )
