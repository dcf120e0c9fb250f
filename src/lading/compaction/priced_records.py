"""Draft the records of the default strategy: the rounds that one replaces, the tokens that it may use, and shorter
forms of the large results behind it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from lading.compaction import Pressure
from lading.compaction.arguments import clip_used_calls, count_freed_tokens
from lading.compaction.clearing import clear, is_worth_clearing
from lading.compaction.cutting import MOST_STUB_TOKENS, carry_over, find_cut_points
from lading.compaction.digesting import USED_ROUNDS, digest, estimate_digest_tokens
from lading.compaction.folding import FOLD_TOKENS, fold
from lading.compaction.span_folding import count_spare_tokens
from lading.compaction.summaries import count_beside_words
from lading.compaction.verbatim import PricedOptions, find_verbatim_start, is_cached
from lading.history.log import Draft
from lading.history.validity import relax
from lading.history.view import Item, View

FOLD_SHARE = 0.25
"""A record has at most this share of the tokens that it replaces ..."""
SMALL_SHARE = 0.5
SMALL_TOKENS = 800
"""... and the first one at least ``SMALL_SHARE`` of them, up to ``SMALL_TOKENS``: a short dialogue is mostly values
that are named again."""
FOLDS_SHARE = 0.45
"""All records together use at most this share of the room ..."""
FOLDS_POWER, FOLDS_FACTOR = 0.55, 28.5
"""... and at most this factor times a power of the room, in tokens: twice the history does not have twice the
values that matter."""
SUMMARIES_SHARE = 0.4
"""Records with a model's summary have this share of the tokens of rules' records beside the user's words."""
MERGED_SHARE = 0.8
"""Share of that limit that merged records use."""
LARGE_SHARE = 0.5
"""A used result above this share of the verbatim part becomes a digest."""
DIGESTS_SHARE = 0.3
"""If digests use more than this share of the room, or than is free, the oldest become notes ..."""
NOTED_SHARE = 0.5
"""... until the digests use this share of that limit. It happens where a tool loop may not be cut."""


def limit_room(view: View, pressure: Pressure, *, options: PricedOptions) -> Pressure:
    """Return the pressure by which a record is sized: with a share as trigger, the room is that share."""
    if not isinstance(options.when, float) or view.tokens > pressure.room_tokens:
        return pressure
    head = view.tokens_before(view.head)
    return replace(pressure, room_tokens=head + int((pressure.room_tokens - head) * options.when))


def draft_record(view: View, *, reason: str, pressure: Pressure, options: PricedOptions) -> tuple[Draft, ...]:
    """Draft a record of the rounds before the verbatim part, and what else a full window needs."""
    room, sized = pressure.room_tokens - view.tokens_before(view.head), limit_room(view, pressure, options=options)
    drafts = _fold_old(view, room, reason=reason, pressure=sized, options=options)
    if view.tokens <= pressure.room_tokens:
        return tuple(drafts)
    drafts = clip_used_calls(view, drafts, pressure=pressure)
    relaxed = replace(pressure, invariants=relax(pressure.invariants))
    if relaxed.invariants != pressure.invariants and count_spare_tokens(view, drafts, pressure=pressure) < 0:
        # A running loop that alone fills the window goes on behind a record of its first rounds.
        deeper = _fold_old(view, room, reason=reason, pressure=relaxed, options=options)
        drafts = clip_used_calls(view, deeper, pressure=pressure)
    return tuple(drafts)


def _fold_old(view: View, room: int, *, reason: str, pressure: Pressure, options: PricedOptions) -> list[Draft]:
    """Draft a record up to the verbatim part; further if the messages after it leave no room for a record."""
    records_end, is_forced = view.records_end, view.tokens > pressure.room_tokens
    keeps_rounds = not is_forced and is_cached(pressure)
    tail = find_verbatim_start(view, room, verbatim=options.verbatim, keeps_rounds=keeps_rounds)
    points = [point for point in find_cut_points(view, pressure) if point > records_end]
    points = [point for point in points if point >= tail] or points[-1:] or [records_end]
    end = view.find_consumed_end(USED_ROUNDS if keeps_rounds else 1)
    attempts = (
        _fold_at(view, point, room, end=end, reason=reason, pressure=pressure, options=options) for point in points
    )
    drafts, left = next(attempts)
    while is_forced and left < FOLD_TOKENS and (deeper := next(attempts, None)):
        # A deeper record is used only if it helps.
        drafts, left = deeper if deeper[1] >= FOLD_TOKENS else (drafts, left)
    return drafts


def _fold_at(
    view: View, point: int, room: int, *, end: int, reason: str, pressure: Pressure, options: PricedOptions
) -> tuple[list[Draft], int]:
    """Draft a record up to ``point`` and shorter forms of large results between it and ``end``; also return the
    tokens that were left for the record."""
    start, most_tokens, left = _place_record(view, point, pressure)
    large_tokens = room * options.verbatim * LARGE_SHARE if left >= MOST_STUB_TOKENS else 0
    used = [item for item in view.items[point:end] if item.clearable_tokens > large_tokens]
    used = used if options.digests or not large_tokens else []
    most_digests = min(int(room * DIGESTS_SHARE), left + sum(item.tokens for item in used))
    shorter = _shorten_results(view, used, most_tokens=most_digests, reason=reason, pressure=pressure)
    left += sum(count_freed_tokens(view, draft, pressure=pressure) for draft in shorter)
    if point == view.records_end:
        return shorter, left
    speakers = frozenset(
        ["User", "System", *(["Assistant"] if options.replies else []), *([""] if options.calls else [])]
    )
    most_tokens = min(most_tokens, max(left, FOLD_TOKENS))
    folded = fold(
        view, point, start=start, most_tokens=most_tokens, reason=reason, pressure=pressure, speakers=speakers
    )
    return [folded, *shorter], left


def _shorten_results(
    view: View, used: list[Item], *, most_tokens: int, reason: str, pressure: Pressure
) -> list[Draft]:
    """Draft digests of used results; if all digests use too much, notes instead of the oldest."""
    used = [item for item in used if is_worth_clearing(item)]
    left, noted = sum(map(estimate_digest_tokens, used)), 0
    most_left = most_tokens * NOTED_SHARE if left > most_tokens else left
    while noted < len(used) and left > most_left:
        left -= estimate_digest_tokens(used[noted])
        noted += 1
    notes = clear(view, used[:noted], reason=reason, pressure=pressure)
    return [*notes, *digest(view, used[noted:], reason=reason, pressure=pressure)]


def _place_record(view: View, point: int, pressure: Pressure) -> tuple[int, int, int]:
    """Return where a record of everything before ``point`` starts, the tokens it may use, and those left for it."""
    start = view.records_end
    tokens = view.tokens_before(point) - view.tokens_before(start)
    least = min(tokens * SMALL_SHARE, SMALL_TOKENS) if start == view.head else 0
    most_tokens = int(max(tokens * FOLD_SHARE, least)) + FOLD_TOKENS
    most_of_all = _limit_records(view, pressure)
    left = _count_left(view, point, start=start, pressure=pressure)
    too_much = view.tokens_before(start) - view.tokens_before(view.head) + most_tokens > most_of_all
    if too_much or (left < MOST_STUB_TOKENS and start > view.head):
        start, most_tokens = view.head, int(most_of_all * MERGED_SHARE)
        left = _count_left(view, point, start=start, pressure=pressure)
    return start, most_tokens, left


def _limit_records(view: View, pressure: Pressure) -> int:
    """Return the most tokens of all records together."""
    room = max(pressure.room_tokens - view.tokens_before(view.head), 0)
    return int(min(room * FOLDS_SHARE, room**FOLDS_POWER * FOLDS_FACTOR))


def _count_left(view: View, point: int, *, start: int, pressure: Pressure) -> int:
    """Return the tokens for a record from ``start`` to ``point``, beside the carried messages, if the view is to
    fit."""
    kept = view.tokens - view.tokens_before(point) + view.tokens_before(start)
    carried = carry_over(view, point, start=start, pressure=pressure)
    return pressure.room_tokens - kept - sum(map(pressure.count, carried))


def place_summary(view: View, drafts: Sequence[Draft], *, pressure: Pressure) -> tuple[int, int, int]:
    """Return where a record with a model's summary starts, the tokens that it may use, and those by which it
    shortens the view. ``drafts``: the record by rules, and the shorter forms beside it."""
    folded, *digests = drafts
    first, point = view.span(folded.first, folded.last)
    start, most_tokens, left = _place_record(view, point, pressure)
    left += sum(count_freed_tokens(view, draft, pressure=pressure) for draft in digests)
    records = [*(item.message for item in view.items[view.head : first]), folded.replacement[0]]
    beside, total = count_beside_words(records, pressure), sum(map(pressure.count, records))
    most_of_all = _limit_records(view, pressure)
    if beside > (most_of_all - total + beside) * SUMMARIES_SHARE:
        start, most_tokens = view.head, int(most_of_all * MERGED_SHARE)
        left += view.tokens_before(first) - view.tokens_before(view.head)
    most_tokens = min(most_tokens, max(left, FOLD_TOKENS))
    return start, most_tokens, view.tokens_before(point) - view.tokens_before(start) - most_tokens
