"""Remove superseded payloads that no strategy may touch: opening and unanswered ones. The user's words stay."""

from __future__ import annotations

from lading.compaction import Pressure
from lading.history.log import Draft
from lading.history.plan import Plan
from lading.history.view import View
from lading.messages import is_spoken


def draft_superseded(plan: Plan, pressure: Pressure) -> list[Draft]:
    """Draft an edit for each payload that is not the newest, where the view does not fit; where the plan changes it
    from the opening messages on anyway, for those among them: elsewhere the cached prefix is worth more."""
    view = plan.view
    end = 0
    if view.tokens > pressure.room_tokens:
        end = len(view)
    elif plan.changed <= min(view.head, len(view) - 1):
        end = view.head
    entries = [item.entry for item in view.items[:end] if item.kind == "payload"]
    return [_draft(view, entry, pressure) for entry in entries if entry != view.payload]


def _draft(view: View, entry: int, pressure: Pressure) -> Draft:
    spoken = any(is_spoken(message) for _, message in view.raw_between(entry, entry))
    own = tuple(message for _, shown in view.admitted_between(entry, entry) for message in shown) if spoken else ()
    return Draft("dropped", entry, entry, own, "a newer payload supersedes it", (pressure.address(str(entry)),))
