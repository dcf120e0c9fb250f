"""The cut that stands in when a strategy's own edits break a rule or do not fit."""

from __future__ import annotations

from lading.compaction import Pressure
from lading.compaction.cutting import cut, cut_points
from lading.history.log import Draft
from lading.history.view import View

SPARE_SHARE = 0.25
"""So much of the room a forced edit leaves free where it can: with none left the next call would force another, and
each makes the prompt new for the provider's cache."""


def emergency(view: View, pressure: Pressure) -> Draft | None:
    """The shallowest legal cut that leaves room to spare, else the shallowest after which the view fits; None when
    no legal cut makes it fit."""
    spared = _shallowest(view, pressure, most_tokens=int(pressure.room_tokens * (1 - SPARE_SHARE)))
    return spared or _shallowest(view, pressure, most_tokens=pressure.room_tokens)


def _shallowest(view: View, pressure: Pressure, *, most_tokens: int) -> Draft | None:
    head = view.tokens_before(view.head)
    for position in cut_points(view, pressure):
        left = most_tokens - head - (view.tokens - view.tokens_before(position))
        if left > 0:
            draft = cut(view, position, reason="the strategy's own edits could not be used", pressure=pressure)
            if sum(map(pressure.count, draft.replacement)) <= left:
                return draft
    return None
