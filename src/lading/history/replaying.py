"""Replay a history through a new repairer, so that what comes is repaired as if nothing had been reopened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lading.history.log import Edit, Entry
from lading.history.repair import Repairer
from lading.history.repair_rules import Needs, RepairResult
from lading.history.view import View
from lading.messages import Message

CLOSING = "before the request: "
"""Starts the reason of a repair made at the end of the history, for a request."""


def find_withdrawn(edits: Iterable[Edit]) -> set[int]:
    """Return the entries that the caller removed from the history."""
    return {entry for edit in edits if edit.withdraws for entry in range(edit.first, edit.last + 1)}


def replay(
    needs: Needs, entries: Sequence[Entry], *, edits: Sequence[Edit]
) -> tuple[Repairer, Mapping[int, Sequence[str]]]:
    """Return the repairer after these entries and edits, and by entry the ids of its calls as that shows them."""
    repairer, withdrawn = Repairer(needs), find_withdrawn(edits)
    calls: dict[int, list[str]] = {}
    closed = _list_closed(edits)
    for entry in entries:
        if entry.index not in withdrawn:
            repaired = repairer.repair(entry.message)
            if entry.message.calls:
                calls[entry.index] = [part.id for message in repaired.messages for part in message.calls]
        if shown := closed.get(entry.index, ()):
            answered = {result.call_id for message in shown for result in message.results}
            if needs.calls.may_be_apart:
                # Other calls may have had their results, which are withdrawn since.
                repairer.settle(repairer.unanswered - answered)
            else:
                repairer.close(RepairResult(shown[-1:]))
    return repairer, calls


def _list_closed(edits: Iterable[Edit]) -> dict[int, tuple[Message, ...]]:
    """Return by entry what is shown of it since a request ended behind it, unless it was withdrawn since."""
    closed: dict[int, tuple[Message, ...]] = {}
    for edit in edits:
        if edit.withdraws:
            span = range(edit.first, edit.last + 1)
            closed = {entry: shown for entry, shown in closed.items() if entry not in span}
        elif edit.kind == "repaired" and edit.reason.startswith(CLOSING):
            closed[edit.first] = edit.replacement
    return closed


def find_renamed(view: View, edits: Sequence[Edit], *, replayed: Mapping[int, Sequence[str]]) -> dict[str, str]:
    """Return the ids of calls in a view by those of the replay, where they differ: another provider format may have
    needed others, and those of the view stand."""
    names: dict[str, str] = {}
    for item in view.items:
        calls, before = item.message.calls, replayed.get(item.entry, ())
        is_alone = item.edit < 0 or edits[item.edit].first == edits[item.edit].last
        if is_alone and len(calls) == len(before):
            names |= {old: part.id for old, part in zip(before, calls, strict=True) if old != part.id}
    return names
