"""The plain good strategy: clip the enormous once, clear consumed results in batches, cut at legal points.

Nothing is edited while nothing presses. A voluntary edit happens when the rent paid for carrying
consumed results has reached the price of clearing them; a forced one when the window is full, and then
deep enough that the next is far away. The newest part of the history stays verbatim either way.
"""

from __future__ import annotations

from lading.compaction import Arrival, Compaction, Pressure, Strategy
from lading.compaction.admission import admission_cap, admit_calls
from lading.compaction.arguments import clip_used
from lading.compaction.clearing import NOTE_TOKENS, clear, consumed_before, worth_clearing
from lading.compaction.clipping import clip, is_late_result
from lading.compaction.cutting import STUB_TOKENS, carried, cut, cut_points
from lading.economics import due, edit_price, rent
from lading.history.log import Draft
from lading.history.view import View

VERBATIM_SHARE = 0.6
"""Results within this share of the room, counted from the newest message back, are never cleared."""
CLEARED_ENOUGH_SHARE = 0.6
"""When clearing alone brings a full view below this share of the room, nothing is cut."""
CUT_TO_SHARE = 0.5
"""A cut goes down to this share of the room."""


def admit(arrival: Arrival, pressure: Pressure) -> Draft | None:
    """Clip results and calls above the admission cap; unread ones that together exceed the room share it."""
    item, view = arrival.item, arrival.view
    if item.message.calls and not item.message.results:
        return admit_calls(arrival, pressure)
    if not (item.message.results or is_late_result(item)):
        return None
    return clip(view, item, cap_tokens=admission_cap(arrival, pressure), pressure=pressure)


def compact(view: View, pressure: Pressure) -> Compaction:
    """Forced edits when the view exceeds the room, voluntary ones when they are due, otherwise none."""
    room = pressure.room_tokens - view.tokens_before(view.head)
    clear_to = min(view.position_with_tail(int(room * VERBATIM_SHARE)), consumed_before(view))
    if view.tokens > pressure.room_tokens:
        drafts = _make_room(view, pressure, clear_to, room)
        return Compaction(tuple(clip_used(view, drafts, pressure=pressure)))
    start = view.first_clearable(view.head)
    removable = view.clearable_before(max(clear_to, view.head)) - view.clearable_before(view.head)
    if start >= clear_to or removable <= 0:
        return Compaction()
    due_rent = rent(pressure.rates, removable_tokens=removable)
    reason = "the cache was cold" if pressure.cache_cold else ""
    if not reason and due(pressure.account + due_rent, _price(view, start, clear_to, pressure=pressure)):
        reason = "keeping this part has cost as much as the edit"
    if reason:
        return Compaction(tuple(clear(view, view.items[start:clear_to], reason=reason, pressure=pressure)))
    return Compaction(rent=due_rent)


def _price(view: View, start: int, clear_to: int, *, pressure: Pressure) -> float:
    sent = min(pressure.sent_items, len(view))
    kept_after = view.tokens_before(max(sent, start)) - view.tokens_before(start)
    removed = view.clearable_before(clear_to) - view.clearable_before(start)
    # Every second message of a tool loop is a result; counting those worth clearing would cost a pass.
    notes_tokens = NOTE_TOKENS * (1 + (clear_to - start) // 2)
    kept = max(kept_after - removed, 0)
    return edit_price(pressure.rates, cached_suffix_tokens=kept, inserted_tokens=notes_tokens)


def _make_room(view: View, pressure: Pressure, clear_to: int, room: int) -> list[Draft]:
    clearing = [item for item in view.items[view.head : max(clear_to, view.head)] if worth_clearing(item)]
    freed = {id(item): item.clearable_tokens - NOTE_TOKENS for item in clearing}
    conversation = view.tokens - view.tokens_before(view.head)
    if conversation - sum(freed.values()) <= room * CLEARED_ENOUGH_SHARE:
        return clear(view, clearing, reason="the window is full", pressure=pressure)
    position = _cut_position(view, pressure, freed, room)
    if position is None:
        return clear(view, clearing, reason="the window is full", pressure=pressure)
    stub = cut(view, position, reason="the window is full", pressure=pressure)
    if sum(map(pressure.count, stub.replacement)) >= view.tokens_before(position) - view.tokens_before(view.head):
        return clear(view, clearing, reason="the window is full", pressure=pressure)
    kept = {id(item) for item in view.items[position:]}
    still_there = [item for item in clearing if id(item) in kept]
    drafts = clear(view, still_there, reason="the window is full", pressure=pressure)
    return [stub, *drafts]


def _cut_position(view: View, pressure: Pressure, freed: dict[int, int], room: int) -> int | None:
    """The earliest legal cut that reaches the target; the latest legal one when none does."""
    points = cut_points(view, pressure)
    target = room * CUT_TO_SHARE
    remaining: dict[int, int] = {}
    tokens = STUB_TOKENS
    for position in range(len(view) - 1, view.head, -1):
        item = view.items[position]
        tokens += item.tokens - freed.get(id(item), 0)
        remaining[position] = tokens
    request = sum(map(pressure.count, carried(view, len(view) - 1, pressure=pressure)))
    asked_at = view.newest_request[0] if view.newest_request else -1

    def kept(point: int) -> int:
        return remaining[point] + (request if view.last_entry(point) >= asked_at else 0)

    return next((point for point in points if kept(point) <= target), points[-1] if points else None)


STRATEGY = Strategy("basic", compact, admit=admit)
