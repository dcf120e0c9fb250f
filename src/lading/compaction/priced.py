"""The default: what is old is folded into its state when carrying it has cost as much as folding it.

The newest part of the history stays as it is, but for large results in it that were used: they become digests
while little stands behind them, or when a fold writes that part anew anyway. Folds are rare, deep and late in the
request; they stand one behind the other and are merged when they take too much. A full window folds at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from lading.compaction import Compaction, Draft, Pressure, Strategy
from lading.compaction.admission import admit
from lading.compaction.arguments import clip_used, freed_tokens
from lading.compaction.basic import admit as cut_at_ends
from lading.compaction.clearing import clear, consumed_before, worth_clearing
from lading.compaction.cutting import MOST_STUB_TOKENS, carried, cut_points
from lading.compaction.digesting import digest, digested_tokens
from lading.compaction.folding import FOLD_TOKENS, fold, folds, note_down
from lading.compaction.retiring import USED_ROUNDS, retired
from lading.compaction.summaries import own_calls, summarised
from lading.economics import due, edit_price, rent, worth_waiting
from lading.effects import Steps
from lading.view import Item, View

VERBATIM_SHARE = 0.145
"""This share of the room, counted from the newest message back, stays as it is."""
VERBATIM_ROUNDS = 2
"""The newest rounds stay too where the window is full or nothing is cached ..."""
MOST_VERBATIM_SHARE = 0.4
"""... as far as they take no more than this share of the room. Else the newest ``USED_ROUNDS`` stay."""
FOLD_SHARE = 0.25
"""A fold takes no more than this share of what it folds."""
FOLDS_SHARE = 0.45
"""All folds together take no more than this share of the room ..."""
FOLDS_ROOT = 46
"""... and no more tokens than this times its root: twice the history does not name twice the values that count."""
MERGED_SHARE = 0.8
"""What merged folds take of what they may."""
LEAST_SAVING_SHARE = 0.02
"""Of the room; less is not worth an edit."""
PAYBACK_SHARE = 0.25
"""A session goes on about as long as it has lasted, by the best guess there is; a voluntary edit must have paid
for itself within this share of that."""
LONGEST_WAIT = 2.0
"""A due edit waits for what leaves the verbatim part next, until its rent is so many times its price."""
LARGE_SHARE = 0.5
"""Of the verbatim part; a result above it that was used becomes a digest."""
DIGESTS_SHARE = 0.3
"""Digests that take more than this share of the room, or than is free, become notes, the oldest first ..."""
NOTED_SHARE = 0.5
"""... down to this share of that. It happens where a tool loop may not be cut."""


class Parts(Struct, frozen=True):
    """What the strategy is made of. Each part can be left out, to measure what it does."""

    admission: bool = True
    """Off: enormous results are cut at their ends only."""
    digests: bool = True
    calls: bool = True
    """The lines of calls in a record."""
    replies: bool = True
    """The assistant's words in a record."""
    price_rule: bool = True
    """Off: only a full window is edited."""


ALL = Parts()


def compact(view: View, pressure: Pressure, *, parts: Parts = ALL) -> Compaction:
    """A fold when it is forced or due, otherwise none."""
    # Each message is read when it arrives, so that a compaction costs no more than what it writes.
    note_down(view, pressure)
    room = pressure.room_tokens - view.tokens_before(view.head)
    if view.tokens > pressure.room_tokens:
        drafts = _folded(view, room, reason="the window is full", pressure=pressure, parts=parts)
        return Compaction(tuple(clip_used(view, drafts, pressure=pressure)))
    if not parts.price_rule:
        return Compaction()
    decided = _saving(view, room, pressure, parts)
    if decided.drafts or not parts.digests or not _is_cached(pressure):
        return decided
    used = retired(view, pressure, start=max(folds(view), view.head), most_calls=_most_calls(view))
    digests = digest(view, used, reason="a large result was used", pressure=pressure)
    if not digests:
        return decided
    # The rent of what a fold would take out goes on.
    return Compaction(tuple(digests), rent=pressure.account + decided.rent, stuck=decided.stuck)


def _saving(view: View, room: int, pressure: Pressure, parts: Parts) -> Compaction:
    """A fold when it is due, otherwise the rent for not having made it."""
    tail = _tail(view, room, is_whole=_is_cached(pressure))
    removable = view.tokens_before(tail) - view.tokens_before(folds(view))
    inserted = int(removable * FOLD_SHARE) + FOLD_TOKENS
    if removable - inserted < room * LEAST_SAVING_SHARE:
        return Compaction()
    due_rent = rent(pressure.rates, removable_tokens=removable - inserted)
    cached = view.tokens_before(max(min(pressure.sent_items, len(view)), tail)) - view.tokens_before(tail)
    own = own_calls(view, folds(view), end=tail, fold_tokens=inserted, pressure=pressure)
    price = edit_price(pressure.rates, cached_suffix_tokens=cached, inserted_tokens=inserted, own_calls=own)
    ageing = (view.tokens - view.tokens_before(tail) - int(room * VERBATIM_SHARE),)
    reason = "the cache was cold" if pressure.cache_cold else ""
    if not reason and _pays(
        pressure, price, due_rent, most_calls=_most_calls(view), saving=removable - inserted, ageing=ageing
    ):
        reason = "the rent reached the price of the edit"
    drafts = _folded(view, room, reason=reason, pressure=pressure, parts=parts) if reason else []
    stuck = reason and "no legal place to cut leaves anything to take out" if not drafts else ""
    return Compaction(tuple(drafts), rent=0.0 if drafts else due_rent, stuck=stuck)


def _is_cached(pressure: Pressure) -> bool:
    """Whether carrying what was sent costs less than sending it anew."""
    return pressure.rates.read < pressure.rates.write


def _most_calls(view: View) -> float:
    """Within so many calls a voluntary edit must have paid for itself."""
    return (view.rounds + 1) * PAYBACK_SHARE


def _pays(
    pressure: Pressure, price: float, due_rent: float, *, most_calls: float, saving: int, ageing: Sequence[int]
) -> bool:
    """Whether an edit at this price is due, will have paid for itself soon, and had not better wait."""
    account = pressure.account + due_rent
    if price > due_rent * most_calls or not due(account, price):
        return False
    waits = worth_waiting(pressure.rates, removable_tokens=saving, ageing_tokens=ageing)
    return not waits or due(account, price, regret=LONGEST_WAIT)


def _tail(view: View, room: int, *, is_whole: bool) -> int:
    """Where the part begins that stays as it is: its share of the room and the newest rounds. Unless ``is_whole``,
    of the latter only what was not read yet and what is not far more."""
    share = view.position_with_tail(int(room * VERBATIM_SHARE))
    if is_whole:
        return min(share, consumed_before(view, USED_ROUNDS))
    position, rounds = len(view), 0
    least = view.tokens - room * MOST_VERBATIM_SHARE
    while position and rounds < VERBATIM_ROUNDS and view.tokens_before(position - 1) >= least:
        position -= 1
        rounds += view.items[position].message.role == "assistant"
    return min(position, share, consumed_before(view))


def _folded(view: View, room: int, *, reason: str, pressure: Pressure, parts: Parts) -> list[Draft]:
    behind, is_whole = folds(view), view.tokens <= pressure.room_tokens and _is_cached(pressure)
    tail = _tail(view, room, is_whole=is_whole)
    points = [point for point in cut_points(view, pressure) if point > behind]
    point = next((point for point in points if point >= tail), points[-1] if points else behind)
    start, _, left = _place(view, point, (), pressure)
    large_tokens = room * VERBATIM_SHARE * LARGE_SHARE if left >= MOST_STUB_TOKENS else 0
    end = consumed_before(view, USED_ROUNDS if is_whole else 1)
    used = [item for item in view.items[point:end] if item.clearable_tokens > large_tokens]
    used = used if parts.digests or not large_tokens else []
    most_digests = min(int(room * DIGESTS_SHARE), left + sum(item.tokens for item in used))
    shorter = _shorter(view, used, most_tokens=most_digests, reason=reason, pressure=pressure)
    if point == behind:
        return shorter
    _, most_tokens, _ = _place(view, point, shorter, pressure)
    speakers = frozenset(["User", *(["Assistant"] if parts.replies else []), *([""] if parts.calls else [])])
    folded = fold(
        view, point, start=start, most_tokens=most_tokens, reason=reason, pressure=pressure, speakers=speakers
    )
    return [folded, *shorter]


def _shorter(view: View, used: list[Item], *, most_tokens: int, reason: str, pressure: Pressure) -> list[Draft]:
    """Digests of results that were used; where all digests take too much, notes in place of the oldest."""
    used = [item for item in used if worth_clearing(item)]
    left, noted = sum(map(digested_tokens, used)), 0
    most_left = most_tokens * NOTED_SHARE if left > most_tokens else left
    while noted < len(used) and left > most_left:
        left -= digested_tokens(used[noted])
        noted += 1
    notes = clear(view, used[:noted], reason=reason, pressure=pressure)
    return [*notes, *digest(view, used[noted:], reason=reason, pressure=pressure)]


def _place(view: View, point: int, digests: Sequence[Draft], pressure: Pressure) -> tuple[int, int, int]:
    """Where a fold of what stands before ``point`` starts, the tokens it may take beside these digests, and those
    left for it without them."""
    start, room = folds(view), pressure.room_tokens - view.tokens_before(view.head)
    most_tokens = int((view.tokens_before(point) - view.tokens_before(start)) * FOLD_SHARE) + FOLD_TOKENS
    most_of_all = int(min(room * FOLDS_SHARE, math.sqrt(max(room, 0)) * FOLDS_ROOT))
    left = _left(view, point, start=start, pressure=pressure)
    too_much = view.tokens_before(start) - view.tokens_before(view.head) + most_tokens > most_of_all
    if too_much or (left < MOST_STUB_TOKENS and start > view.head):
        start, most_tokens = view.head, int(most_of_all * MERGED_SHARE)
        left = _left(view, point, start=start, pressure=pressure)
    freed = sum(freed_tokens(view, draft, pressure=pressure) for draft in digests)
    return start, min(most_tokens, max(left + freed, FOLD_TOKENS)), left


def _left(view: View, point: int, *, start: int, pressure: Pressure) -> int:
    """What a fold from ``start`` to ``point`` may take beside what it carries, for the view to fit."""
    kept = view.tokens - view.tokens_before(point) + view.tokens_before(start)
    stays = carried(view, point, start=start, pressure=pressure)
    return pressure.room_tokens - kept - sum(map(pressure.count, stays))


def _told(view: View, pressure: Pressure) -> Compaction | Steps[Compaction]:
    """What ``compact`` decides; a fold in a model's words, where one can be asked and they pass."""
    decided = compact(view, pressure)
    if pressure.output_price is None or not decided.drafts or decided.drafts[0].kind != "summarised":
        return decided
    folded, *digests = decided.drafts
    _, point = view.span(folded.first, folded.last)
    _, most_tokens, _ = _place(view, point, digests, pressure)
    return summarised(view, decided, most_tokens=most_tokens, pressure=pressure)


def without(part: str) -> Strategy:
    """The strategy without one of its parts, by the part's name in ``Parts``."""
    parts = Parts(**{part: False})
    admitting = admit if parts.admission else cut_at_ends
    return Strategy(f"priced-without-{part}", partial(compact, parts=parts), admit=admitting)


STRATEGY = Strategy("priced", _told, admit=admit)
