"""The cut that stands in when a strategy's own edits break a rule or do not fit."""

from __future__ import annotations

from lading.compaction import Draft, Pressure
from lading.compaction.cutting import cut, cut_points
from lading.view import View


def emergency(view: View, pressure: Pressure) -> Draft | None:
    """The shallowest legal cut after which the view fits its room; None when no legal cut makes it fit."""
    head = view.tokens_before(view.head)
    for position in cut_points(view, pressure):
        left = pressure.room_tokens - head - (view.tokens - view.tokens_before(position))
        if left > 0:
            draft = cut(view, position, reason="the strategy's own edits could not be used", pressure=pressure)
            if sum(map(pressure.count, draft.replacement)) <= left:
                return draft
    return None
