"""A simple strategy: clip the enormous once, clear used results in batches, cut at legal points.

A voluntary edit is made when the accumulated carrying cost of used results has reached the price of clearing them;
a forced one when the window is full, and then deep enough that the next is far away. The newest part of the history
stays verbatim.
"""

from __future__ import annotations

from lading.compaction import Arrival, Compaction, Pressure, Strategy
from lading.compaction.admission import admit_calls, find_admission_cap
from lading.compaction.arguments import clip_used_calls, count_freed_tokens
from lading.compaction.clearing import NOTE_TOKENS, clear, is_worth_clearing
from lading.compaction.clipping import clip
from lading.compaction.cutting import STUB_TOKENS, carry_over, cut, find_cut_points
from lading.economics import edit_price, is_due, rent
from lading.history.log import Draft
from lading.history.view import View

VERBATIM_SHARE = 0.6
"""Results within this share of the room, counted from the newest message back, are never cleared."""
CLEARED_ENOUGH_SHARE = 0.6
"""If clearing alone brings a full view below this share of the room, nothing is cut."""
CUT_TO_SHARE = 0.5
"""A cut reduces the view to this share of the room."""


def admit(arrival: Arrival, pressure: Pressure) -> Draft | None:
    """Clip results and calls above the admission cap; unread ones that together exceed the room share it."""
    item, view = arrival.item, arrival.view
    if item.message.calls and not item.message.results:
        return admit_calls(arrival, pressure)
    if not (item.message.results or item.is_late_result):
        return None
    return clip(view, item, cap_tokens=find_admission_cap(arrival, pressure), pressure=pressure)


def compact(view: View, pressure: Pressure) -> Compaction:
    """Draft forced edits if the view exceeds the room, voluntary ones if they are due, otherwise none."""
    room = pressure.room_tokens - view.tokens_before(view.head)
    clear_to = min(view.find_tail(int(room * VERBATIM_SHARE)), view.find_consumed_end())
    if view.tokens > pressure.room_tokens:
        drafts = _make_room(view, pressure, clear_to, room)
        return Compaction(tuple(clip_used_calls(view, drafts, pressure=pressure)))
    start = view.first_clearable(view.head)
    removable = view.clearable_before(max(clear_to, view.head)) - view.clearable_before(view.head)
    if start >= clear_to or removable <= 0:
        return Compaction()
    due_rent = rent(pressure.rates, removable_tokens=removable)
    reason = "the cache was cold" if pressure.cache_cold else ""
    if not reason and is_due(pressure.account + due_rent, _find_price(view, start, clear_to, pressure=pressure)):
        reason = "keeping this part has cost as much as the edit"
    if reason:
        return Compaction(tuple(clear(view, view.items[start:clear_to], reason=reason, pressure=pressure)))
    return Compaction(rent=due_rent)


def _find_price(view: View, start: int, clear_to: int, *, pressure: Pressure) -> float:
    sent = min(pressure.sent_items, len(view))
    kept_after = view.tokens_before(max(sent, start)) - view.tokens_before(start)
    removed = view.clearable_before(clear_to) - view.clearable_before(start)
    # Every second message of a tool loop is a result; counting those worth clearing would cost a pass.
    notes_tokens = NOTE_TOKENS * (1 + (clear_to - start) // 2)
    kept = max(kept_after - removed, 0)
    return edit_price(pressure.rates, cached_suffix_tokens=kept, inserted_tokens=notes_tokens)


def _make_room(view: View, pressure: Pressure, clear_to: int, room: int) -> list[Draft]:
    clearing = [item for item in view.items[view.head : max(clear_to, view.head)] if is_worth_clearing(item)]
    freed = {id(item): item.clearable_tokens - NOTE_TOKENS for item in clearing}
    conversation = view.tokens - view.tokens_before(view.head)
    reason = "the window is full"
    is_enough = conversation - sum(freed.values()) <= room * CLEARED_ENOUGH_SHARE
    position = None if is_enough else _find_cut(view, pressure, freed, room)
    if position is not None:
        stub = cut(view, position, reason=reason, pressure=pressure)
        if count_freed_tokens(view, stub, pressure=pressure) > 0:
            kept = {id(item) for item in view.items[position:]}
            remaining = (item for item in clearing if id(item) in kept)
            return [stub, *clear(view, remaining, reason=reason, pressure=pressure)]
    return clear(view, clearing, reason=reason, pressure=pressure)


def _find_cut(view: View, pressure: Pressure, freed: dict[int, int], room: int) -> int | None:
    """Return the earliest legal cut that reaches the target, else the latest legal one; None if there is none."""
    points = find_cut_points(view, pressure)
    target = room * CUT_TO_SHARE
    remaining: dict[int, int] = {}
    tokens = STUB_TOKENS
    for position in range(len(view) - 1, view.head, -1):
        item = view.items[position]
        tokens += item.tokens - freed.get(id(item), 0)
        remaining[position] = tokens
    request = sum(map(pressure.count, carry_over(view, len(view) - 1, pressure=pressure)))
    asked_at = view.newest_request[0] if view.newest_request else -1

    def kept(point: int) -> int:
        return remaining[point] + (request if view.last_entry(point) >= asked_at else 0)

    return next((point for point in points if kept(point) <= target), points[-1] if points else None)


STRATEGY = Strategy("basic", compact, admit=admit)
