"""The cut that stands in when a strategy's own edits break a rule or do not fit."""

from __future__ import annotations

from lading.compaction import Draft, Pressure
from lading.compaction.cutting import STUB_TOKENS, cut, cut_points
from lading.view import View


def emergency(view: View, pressure: Pressure) -> Draft | None:
    """The shallowest legal cut after which the view fits its room; None when no legal cut makes it fit."""
    points = cut_points(view, pressure)
    head = view.tokens_before(view.head)

    def fits(position: int) -> bool:
        kept = view.tokens - view.tokens_before(position)
        return head + STUB_TOKENS + kept <= pressure.room_tokens

    position = next(filter(fits, points), None)
    return None if position is None else cut(view, position, "the strategy's own edits could not be used", pressure)
