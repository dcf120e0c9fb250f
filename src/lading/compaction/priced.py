"""The default strategy: replace old rounds by a record once carrying them has cost as much as compacting them.

The newest part of the history stays verbatim, except for large results in it that were used: they become digests
while few tokens follow them, or when a compaction changes that part anyway. Compactions are rare, deep and late in
the request; records follow one another and are merged when they use too much. A full window is compacted at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import asdict, replace

from lading.compaction import Compaction, Pressure, Strategy, When
from lading.compaction.admission import admit
from lading.compaction.arguments import clip_used_calls, count_freed_tokens
from lading.compaction.basic import admit as cut_at_ends
from lading.compaction.clearing import clear, is_worth_clearing
from lading.compaction.cutting import MOST_STUB_TOKENS, carry_over, find_cut_points
from lading.compaction.digesting import USED_ROUNDS, digest, estimate_digest_tokens, find_retired
from lading.compaction.folding import FOLD_TOKENS, fold
from lading.compaction.summaries import count_beside_words, estimate_own_call, summarize
from lading.economics import edit_price, is_due, is_worth_waiting, rent
from lading.effects import Steps
from lading.errors import InputError
from lading.history.log import Draft
from lading.history.view import Item, View

VERBATIM_SHARE = 0.145
"""Share of the room, counted from the newest message back, that stays verbatim; the default of ``verbatim``."""
SUMMARIES_VERBATIM_SHARE = 0.11
"""The default of ``verbatim`` where a model writes summaries: a summary says more of what has just left."""
MOST_CHOSEN_SHARE = 0.9
"""The largest ``verbatim`` that a caller may choose."""
VERBATIM_ROUNDS = 2
"""The newest rounds also stay verbatim if the window is full or nothing is cached ..."""
MOST_VERBATIM_SHARE = 0.4
"""... while they use at most this share of the room. Otherwise the newest ``USED_ROUNDS`` stay."""
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
LEAST_SAVING_SHARE = 0.02
"""An edit that saves less than this share of the room is not made."""
PAYBACK_SHARE = 0.25
"""A session goes on about as long as it has lasted, by the best available guess; a voluntary edit must pay for
itself within this share of that."""
LONGEST_WAIT = 2.0
"""A due edit waits for tokens that leave the verbatim part next, until the carrying cost is this multiple of its
price."""
CALL_SHARE = 0.125
"""A summary is asked for if its call costs at most this share of what the requests cost so far and what the edit
saves until it has paid for itself; at any price if the caller chose another trigger. It is asked for what the model
still knows, not for the price: in sessions of less than 50 rounds the calls took a fifth of the whole cost, so that
compacting cost more than sending everything."""
LARGE_SHARE = 0.5
"""A used result above this share of the verbatim part becomes a digest."""
DIGESTS_SHARE = 0.3
"""If digests use more than this share of the room, or than is free, the oldest become notes ..."""
NOTED_SHARE = 0.5
"""... until the digests use this share of that limit. It happens where a tool loop may not be cut."""


class PricedOptions(Struct, frozen=True):
    """Options of the strategy: when it compacts, how much stays verbatim, and parts that can be switched off to
    measure their effect. Raises InputError for an invalid ``when`` or ``verbatim``."""

    admission: bool = True
    """Off: enormous results keep only their start and end."""
    digests: bool = True
    calls: bool = True
    """The lines of calls in a record."""
    replies: bool = True
    """The assistant's words in a record."""
    when: When = "pays"
    verbatim: float = VERBATIM_SHARE

    def __post_init__(self) -> None:
        if self.when not in ("pays", "full") and not _is_share(self.when):
            choices = "'pays', 'full' or a share of the window between 0 and 1, such as 0.8"
            raise InputError(f"when is {self.when!r}; give {choices}.")
        if not _is_share(self.verbatim) or self.verbatim > MOST_CHOSEN_SHARE:
            most = f"a share of the window of at most {MOST_CHOSEN_SHARE}, such as 0.3"
            raise InputError(
                f"verbatim is {self.verbatim!r}; give {most}: the rest holds the record of older messages."
            )
        if isinstance(self.when, float) and self.when <= self.verbatim:
            both = f"when={self.when} is not above verbatim={self.verbatim}, so that nothing could be taken out"
            raise InputError(f"{both}. Give a larger when, or a smaller verbatim.")


def _is_share(value: object) -> bool:
    return isinstance(value, float) and 0 < value < 1


DEFAULT_OPTIONS = PricedOptions()


def compact(view: View, pressure: Pressure, *, options: PricedOptions = DEFAULT_OPTIONS) -> Compaction:
    """Draft a record if it is forced or due, otherwise digests that pay, otherwise nothing."""
    room = pressure.room_tokens - view.tokens_before(view.head)
    if view.tokens > pressure.room_tokens:
        return Compaction(_draft_record(view, reason="the window is full", pressure=pressure, options=options))
    if options.when == "full":
        return Compaction()
    decided = _compact_when_due(view, room, pressure, options)
    may_digest = options.digests and options.when == "pays" and not decided.drafts
    if not may_digest or not _is_cached(pressure):
        return decided
    used = find_retired(view, pressure, start=view.records_end, most_calls=_find_payback_calls(view))
    if not used or not (digests := digest(view, used, reason="a large result was used", pressure=pressure)):
        return decided
    # The carrying cost of the rounds that a record would replace continues.
    return Compaction(tuple(digests), rent=pressure.account + decided.rent, stuck=decided.stuck)


def _compact_when_due(view: View, room: int, pressure: Pressure, options: PricedOptions) -> Compaction:
    """Draft a record if it is due; otherwise return the carrying cost of not having written it."""
    tail = _find_tail(view, room, options.verbatim, keeps_rounds=_is_cached(pressure))
    removable = view.tokens_before(tail) - view.tokens_before(view.records_end)
    inserted = by_rules = int(removable * FOLD_SHARE) + FOLD_TOKENS
    if pressure.output_price is not None:
        inserted = int(removable * FOLD_SHARE * SUMMARIES_SHARE) + FOLD_TOKENS
    if removable - inserted < room * LEAST_SAVING_SHARE:
        return Compaction()
    due_rent = rent(pressure.rates, removable_tokens=removable - inserted)
    cached = view.tokens_before(max(min(pressure.sent_items, len(view.items)), tail)) - view.tokens_before(tail)
    own = estimate_own_call(view, view.records_end, end=tail, fold_tokens=by_rules, pressure=pressure)
    # Waiting does not save what the model reads of the new messages: a later question reads them too.
    price = edit_price(pressure.rates, cached_suffix_tokens=cached, inserted_tokens=inserted, own_calls=own.once)
    ageing = (view.tokens - view.tokens_before(tail) - int(room * options.verbatim),)
    reason = "the cache was cold" if pressure.cache_cold else ""
    if isinstance(options.when, float):
        is_above = pressure.room_tokens - view.tokens < (1 - options.when) * pressure.past.limit_tokens
        reason = f"the request took more than {100 * options.when:g} % of the window" if is_above else ""
        due_rent = 0.0
    elif (
        not reason
        and price + own.reading <= due_rent * _find_payback_calls(view)
        and _is_due(pressure, price, due_rent, saving=removable - inserted, ageing=ageing)
    ):
        reason = "keeping this part has cost as much as the edit"
    drafts = _draft_record(view, reason=reason, pressure=pressure, options=options) if reason else ()
    stuck = reason and "no legal cut would free any tokens" if not drafts else ""
    return Compaction(drafts, rent=0.0 if drafts else due_rent, stuck=stuck)


def _is_cached(pressure: Pressure) -> bool:
    """Return whether reading a cached token is cheaper than writing it to the cache again."""
    return pressure.rates.read < pressure.rates.write


def _find_payback_calls(view: View) -> float:
    """Return the number of calls within which a voluntary edit must pay for itself."""
    return (view.rounds + 1) * PAYBACK_SHARE


def _limit_room(view: View, pressure: Pressure, options: PricedOptions) -> Pressure:
    """Return the pressure by which a record is sized: with a share as trigger, the room is that share."""
    if not isinstance(options.when, float) or view.tokens > pressure.room_tokens:
        return pressure
    head = view.tokens_before(view.head)
    return replace(pressure, room_tokens=head + int((pressure.room_tokens - head) * options.when))


def _is_due(pressure: Pressure, price: float, due_rent: float, *, saving: int, ageing: Sequence[int]) -> bool:
    """Return whether an edit at this price is due and should not wait for older messages to leave the tail."""
    account = pressure.account + due_rent
    waits = is_worth_waiting(pressure.rates, removable_tokens=saving, ageing_tokens=ageing)
    return is_due(account, price, regret=LONGEST_WAIT if waits else 1.0)


def _find_tail(view: View, room: int, verbatim: float, *, keeps_rounds: bool) -> int:
    """Return the start of the part that stays verbatim: its share of the room, and the newest ``USED_ROUNDS`` if
    ``keeps_rounds``. Otherwise unread messages, and the newest ``VERBATIM_ROUNDS`` as far as they are small
    enough."""
    share = view.find_tail(int(room * verbatim))
    if keeps_rounds:
        return min(share, view.find_consumed_end(USED_ROUNDS))
    position, rounds = len(view), 0
    least = view.tokens - room * MOST_VERBATIM_SHARE
    while position and rounds < VERBATIM_ROUNDS and view.tokens_before(position - 1) >= least:
        position -= 1
        rounds += view.items[position].message.role == "assistant"
    return min(position, share, view.find_consumed_end())


def _draft_record(view: View, *, reason: str, pressure: Pressure, options: PricedOptions) -> tuple[Draft, ...]:
    """Draft a record of the rounds before the verbatim part, and what else a full window needs."""
    room, sized = pressure.room_tokens - view.tokens_before(view.head), _limit_room(view, pressure, options)
    drafts = _fold_old(view, room, reason=reason, pressure=sized, options=options)
    is_full = view.tokens > pressure.room_tokens
    return tuple(clip_used_calls(view, drafts, pressure=pressure) if is_full else drafts)


def _fold_old(view: View, room: int, *, reason: str, pressure: Pressure, options: PricedOptions) -> list[Draft]:
    """Draft a record up to the verbatim part; further if the messages after it leave no room for a record."""
    records_end, is_forced = view.records_end, view.tokens > pressure.room_tokens
    keeps_rounds = not is_forced and _is_cached(pressure)
    tail = _find_tail(view, room, options.verbatim, keeps_rounds=keeps_rounds)
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


def _decide(view: View, pressure: Pressure, *, options: PricedOptions) -> Compaction | Steps[Compaction]:
    """Decide as ``compact``, with a model's summary as the record where it can be asked and its answer passes."""
    if pressure.output_price is None:
        return compact(view, pressure, options=options)
    is_default = options.verbatim == DEFAULT_OPTIONS.verbatim
    shorter = replace(options, verbatim=SUMMARIES_VERBATIM_SHARE) if is_default else options
    decided = compact(view, pressure, options=shorter)
    if not decided.drafts or decided.drafts[0].kind != "summarised":
        return decided
    reason = decided.drafts[0].reason
    by_rules = _draft_record(view, reason=reason, pressure=pressure, options=options) if is_default else ()
    folded, *digests = decided.drafts
    first, point = view.span(folded.first, folded.last)
    sized = _limit_room(view, pressure, options)
    start, most_tokens, left = _place_record(view, point, sized)
    left += sum(count_freed_tokens(view, draft, pressure=sized) for draft in digests)
    records = [*(item.message for item in view.items[view.head : first]), folded.replacement[0]]
    beside, total = count_beside_words(records, pressure), sum(map(pressure.count, records))
    most_of_all = _limit_records(view, sized)
    if beside > (most_of_all - total + beside) * SUMMARIES_SHARE:
        start, most_tokens = view.head, int(most_of_all * MERGED_SHARE)
        left += view.tokens_before(first) - view.tokens_before(view.head)
    most_tokens = min(most_tokens, max(left, FOLD_TOKENS))
    removed = view.tokens_before(point) - view.tokens_before(start) - most_tokens
    worth = _estimate_spent(view, pressure) + _find_payback_calls(view) * pressure.rates.read * removed
    most_cost = worth * CALL_SHARE if options.when == "pays" else math.inf
    return summarize(
        view,
        decided,
        by_rules=by_rules,
        most_tokens=most_tokens,
        pressure=pressure,
        start=start,
        most_cost=most_cost,
    )


def _estimate_spent(view: View, pressure: Pressure) -> float:
    """Estimate what the requests of the session cost so far, in base input tokens: each wrote what was new and what
    an edit moved, and read the rest, on average half of a view that is about to be compacted."""
    epochs = 1 + sum(edit.kind == "summarised" for edit in pressure.past.edits)
    return view.tokens * (pressure.rates.write * epochs + pressure.rates.read * view.rounds / 2)


def configured(
    when: When | None = None, verbatim: float | None = None, *, options: PricedOptions = DEFAULT_OPTIONS
) -> Strategy:
    """Return the strategy with the caller's trigger and verbatim share, and with these in its name; None: as in
    ``options``. Raises InputError for invalid values."""
    asked = {"when": when, "verbatim": verbatim}
    options = replace(options, **{name: value for name, value in asked.items() if value is not None})
    changed = {name: value for name, value in asdict(options).items() if value != getattr(DEFAULT_OPTIONS, name)}
    chosen = ", ".join(f"{name}={changed.pop(name)}" for name in asked if name in changed)
    name = "-without-".join(["priced", *changed]) + (f"({chosen})" if chosen else "")
    admitting = admit if options.admission else cut_at_ends
    return Strategy(
        name, partial(_decide, options=options), admitting, with_options=partial(configured, options=options)
    )


def without(part: str) -> Strategy:
    """Return the strategy without one of its parts, by its name in ``PricedOptions``."""
    return configured(options=PricedOptions(**{part: False}))


STRATEGY = configured()
ADMISSION = without("admission")
CALLS = without("calls")
DIGESTS = without("digests")
REPLIES = without("replies")
WITHOUT: dict[str, str] = {
    "without-admission": "lading.compaction.priced:ADMISSION",
    "without-calls": "lading.compaction.priced:CALLS",
    "without-digests": "lading.compaction.priced:DIGESTS",
    "without-replies": "lading.compaction.priced:REPLIES",
}
"""Dotted paths of the strategy without one of its parts, by short name."""
