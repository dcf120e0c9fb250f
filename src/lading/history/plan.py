"""Edits that are decided for one call and not made yet, with the view as it would be with them.

A plan begins as the history is, and copies nothing before its first edit. ``branch`` tries something beside it;
whoever drops a plan or a branch has nothing to undo.
"""

from __future__ import annotations

from typing import Protocol

from lading.events import Event
from lading.history.log import Draft, Edit
from lading.history.repair import Admitted
from lading.history.view import View

UNLIMITED = 2**62
"""More tokens than any view has."""


class MakeEdit(Protocol):
    """Make a draft the edit of that index of a view."""

    def __call__(self, draft: Draft, view: View, index: int, *, room_tokens: int) -> Edit: ...


class Plan:
    """The edits of one call while they are decided."""

    def __init__(self, view: View, edits: list[Edit], *, make: MakeEdit) -> None:
        self.view = view
        """The view with the plan's edits."""
        self.edits = edits
        """All edits of the session, and after them the plan's."""
        self.closing = Admitted(())
        """How the history is mended at its end,"""
        self.repairs: list[Event] = []
        """and the events of that."""
        self.changed = len(view)
        """The first position of the view that the plan changes."""
        self._make = make
        self._is_shared = True
        """Whether view and edits are somebody else's too."""

    def branch(self) -> Plan:
        """Return a plan that goes on from this one and leaves it as it is."""
        self._is_shared = True
        branch = Plan(self.view, self.edits, make=self._make)
        branch.closing, branch.repairs, branch.changed = self.closing, self.repairs, self.changed
        return branch

    def apply(self, draft: Draft, *, room_tokens: int = UNLIMITED) -> None:
        """Add a draft as an edit."""
        if self._is_shared:
            self.view, self.edits, self._is_shared = self.view.copy(), self.edits.copy(), False
        edit = self._make(draft, self.view, len(self.edits), room_tokens=room_tokens)
        self.edits.append(edit)
        self.changed = min(self.changed, self.view.apply(edit))
