"""Which calls of a session show which of its entries and edits, and how much of each kind a request holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from lading.history.log import NO_COMPACTIONS
from lading.report.data import CallData, EditData, EntryData, SessionData

KINDS = ("messages", "results", "stand-ins")
"""The conversation of a request by kind: what was said, results of tools, what edits left in their place."""


def add_timeline(session: SessionData) -> SessionData:
    """Say of each entry and edit which calls show it, and of each call what its conversation is made of."""
    timeline = _Timeline(session.entries, session.edits)
    calls = tuple(timeline.add(position, call) for position, call in enumerate(session.calls))
    end = len(calls)
    return replace(
        session,
        entries=tuple(replace(item, shown=timeline.span(at, end)) for at, item in enumerate(session.entries)),
        edits=tuple(replace(item, shown=timeline.span(~at, end)) for at, item in enumerate(session.edits)),
        calls=calls,
    )


class _Timeline:
    """The view of a session, call by call. An item of the view is an entry, or an edit as the complement of its
    index; it stands at the first entry that it covers."""

    def __init__(self, entries: Sequence[EntryData], edits: Sequence[EditData]) -> None:
        self._entries, self._edits = entries, edits
        self._seen_entries = self._seen_edits = 0
        self._view: dict[int, int] = {}
        """The item at each entry that still has one."""
        self._kinds: dict[int, str] = {}
        self._tokens: Counter[str] = Counter()
        self._starts: dict[int, int] = {}
        self._ends: dict[int, int] = {}

    def span(self, item: int, end: int) -> tuple[int, int]:
        """The position of the first call that shows the item, and of the first that does not any more."""
        start = self._starts.get(item, -1)
        return start, self._ends.get(item, end) if start >= 0 else -1

    def add(self, position: int, call: CallData) -> CallData:
        """Go on to this call."""
        for at in range(self._seen_entries, call.shows.entries):
            pieces = self._entries[at].message.pieces
            self._show(at, at, position, kind=KINDS[any(piece.kind == "result" for piece in pieces)])
        for number in range(self._seen_edits, call.shows.edits):
            edit = self._edits[number]
            kind = self._kinds[edit.first] if edit.kind in NO_COMPACTIONS else KINDS[2]
            for at in range(edit.first, edit.last + 1):
                self._hide(at, position)
                self._kinds[at] = kind
            self._show(edit.first, ~number, position, kind=kind)
        self._seen_entries = max(self._seen_entries, call.shows.entries)
        self._seen_edits = max(self._seen_edits, call.shows.edits)
        if "conversation" not in call.layers:
            return call
        room = call.layers["conversation"]
        left = min(self._tokens["stand-ins"], room)
        results = min(self._tokens["results"], room - left)
        return replace(call, conversation=(room - left - results, results, left))

    def _show(self, at: int, item: int, position: int, *, kind: str) -> None:
        self._view[at], self._kinds[at], self._starts[item] = item, kind, position
        self._tokens[kind] += self._weight(item)

    def _hide(self, at: int, position: int) -> None:
        if (item := self._view.pop(at, None)) is not None:
            self._ends[item] = position
            self._tokens[self._kinds[at]] -= self._weight(item)

    def _weight(self, item: int) -> int:
        return self._entries[item].tokens if item >= 0 else sum(self._edits[~item].tokens)
