"""Staged edits: decided for one call, not yet part of the history.

A plan shares the history's view until its first edit. ``branch`` starts an alternative; a plan or branch that is
dropped leaves nothing to undo.
"""

from __future__ import annotations

from typing import Protocol

from lading.events import Compacted, CompactionApplied, Event
from lading.history.log import NO_COMPACTIONS, Draft, Edit
from lading.history.repair_rules import RepairResult
from lading.history.view import View, apply_edit

UNLIMITED = 2**62
"""More tokens than any view has."""


class MakeEdit(Protocol):
    """Make an edit of a draft, with this index, for this view."""

    def __call__(self, draft: Draft, view: View, index: int, *, room_tokens: int) -> Edit: ...


class Plan:
    """The staged edits of one call and the view that they give."""

    def __init__(self, view: View, edits: list[Edit], *, make: MakeEdit) -> None:
        self.view = view
        """With the plan's edits applied."""
        self.edits = edits
        """All edits of the session, followed by the plan's."""
        self.closing = RepairResult(())
        """The repairs at the end of the history."""
        self.repairs: list[Event] = []
        """The events of repairs."""
        self.fitted = 0
        """Number of entries that are shown as the request's fields allow, if these allow less than its format."""
        self.changed = len(view)
        """First position of the view that the plan changes."""
        self._make = make
        self._is_shared = True
        """Whether another plan or the history uses the same view and edits."""

    def branch(self) -> Plan:
        """Return a plan that continues from this one without changing it."""
        self._is_shared = True
        branch = Plan(self.view, self.edits, make=self._make)
        branch.closing, branch.repairs, branch.changed = self.closing, self.repairs, self.changed
        branch.fitted = self.fitted
        return branch

    def apply(self, draft: Draft, *, room_tokens: int = UNLIMITED) -> None:
        """Apply a draft to the plan's view."""
        if self._is_shared:
            self.view, self.edits, self._is_shared = self.view.copy(), self.edits.copy(), False
        edit = self._make(draft, self.view, len(self.edits), room_tokens=room_tokens)
        self.edits.append(edit)
        self.changed = min(self.changed, apply_edit(self.view, edit))

    def list_applied(self, since: int, *, before: int) -> list[Event]:
        """List the events of a strategy's edits from number ``since`` on. ``before``: messages of the view without
        them."""
        edits = [edit for edit in self.edits[since:] if edit.kind not in NO_COMPACTIONS]
        events: list[Event] = [
            CompactionApplied(
                edit.call,
                edit.index,
                edit.kind,
                edit.reason,
                edit.tokens_before,
                edit.tokens_after,
                edit.forced_tokens,
            )
            for edit in edits
        ]
        if edits and before != len(self.view):
            events.append(Compacted(edits[-1].call, before, len(self.view)))
        return events
