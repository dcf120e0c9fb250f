"""Remove superseded payloads from the opening messages, which no strategy may touch; the user's own words stay."""

from __future__ import annotations

from lading.compaction import Pressure
from lading.history.log import Draft
from lading.history.plan import Plan
from lading.history.view import View
from lading.messages import is_spoken


def draft_superseded(plan: Plan, pressure: Pressure) -> list[Draft]:
    """Draft an edit for each payload among the opening messages that is not the newest, where the view does not fit
    or the plan changes it from there on anyway: elsewhere the cached prefix is worth more."""
    view = plan.view
    if view.tokens <= pressure.room_tokens and plan.changed > min(view.head, len(view) - 1):
        return []
    entries = [item.entry for item in view.items[: view.head] if item.kind == "payload"]
    return [_draft(view, entry, pressure) for entry in entries if entry != view.payload]


def _draft(view: View, entry: int, pressure: Pressure) -> Draft:
    spoken = any(is_spoken(message) for _, message in view.raw_between(entry, entry))
    own = tuple(message for _, shown in view.admitted_between(entry, entry) for message in shown) if spoken else ()
    return Draft("dropped", entry, entry, own, "a newer payload supersedes it", (pressure.address(str(entry)),))
