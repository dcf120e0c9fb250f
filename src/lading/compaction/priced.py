"""The default strategy: replace old rounds by a record once carrying them has cost as much as compacting them.

The newest part of the history stays verbatim, except for large results in it that were used: they become digests
while few tokens follow them, or when a compaction changes that part anyway. Compactions are rare, deep and late in
the request; records follow one another and are merged when they use too much. A full window is compacted at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from msgspec.structs import asdict, replace

from lading.compaction import Compaction, Pressure, Strategy, When
from lading.compaction.admission import admit
from lading.compaction.basic import admit as cut_at_ends
from lading.compaction.digesting import digest, find_retired
from lading.compaction.folding import FOLD_TOKENS
from lading.compaction.priced_records import FOLD_SHARE, SUMMARIES_SHARE, draft_record, limit_room, place_summary
from lading.compaction.summaries import estimate_own_call, summarize
from lading.compaction.verbatim import DEFAULT_OPTIONS, PricedOptions, find_verbatim_start, is_cached
from lading.economics import edit_price, is_due, is_worth_waiting, rent
from lading.effects import Steps
from lading.history.view import View

SUMMARIES_VERBATIM_SHARE = 0.11
"""The default of ``verbatim`` where a model writes summaries: a summary says more of what has just left."""
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


def compact(view: View, pressure: Pressure, *, options: PricedOptions = DEFAULT_OPTIONS) -> Compaction:
    """Draft a record if it is forced or due, otherwise digests that pay, otherwise nothing."""
    room = pressure.room_tokens - view.tokens_before(view.head)
    if view.tokens > pressure.room_tokens:
        return Compaction(draft_record(view, reason="the window is full", pressure=pressure, options=options))
    if options.when == "full":
        return Compaction()
    decided = _compact_when_due(view, room, pressure, options)
    may_digest = options.digests and options.when == "pays" and not decided.drafts
    if not may_digest or not is_cached(pressure):
        return decided
    used = find_retired(view, pressure, start=view.records_end, most_calls=_find_payback_calls(view))
    if not used or not (digests := digest(view, used, reason="a large result was used", pressure=pressure)):
        return decided
    # The carrying cost of the rounds that a record would replace continues.
    return Compaction(tuple(digests), rent=decided.rent, stuck=decided.stuck, keeps_account=True)


def _compact_when_due(view: View, room: int, pressure: Pressure, options: PricedOptions) -> Compaction:
    """Draft a record if it is due; otherwise return the carrying cost of not having written it."""
    tail = find_verbatim_start(view, room, verbatim=options.verbatim, keeps_rounds=is_cached(pressure))
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
    drafts = draft_record(view, reason=reason, pressure=pressure, options=options) if reason else ()
    stuck = reason and "no legal cut would free any tokens" if not drafts else ""
    return Compaction(drafts, rent=0.0 if drafts else due_rent, stuck=stuck)


def _find_payback_calls(view: View) -> float:
    """Return the number of calls within which a voluntary edit must pay for itself."""
    return (view.rounds + 1) * PAYBACK_SHARE


def _is_due(pressure: Pressure, price: float, due_rent: float, *, saving: int, ageing: Sequence[int]) -> bool:
    """Return whether an edit at this price is due and should not wait for older messages to leave the tail."""
    account = pressure.account + due_rent
    waits = is_worth_waiting(pressure.rates, removable_tokens=saving, ageing_tokens=ageing)
    return is_due(account, price, regret=LONGEST_WAIT if waits else 1.0)


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
    by_rules = draft_record(view, reason=reason, pressure=pressure, options=options) if is_default else ()
    start, most_tokens, removed = place_summary(
        view, decided.drafts, pressure=limit_room(view, pressure, options=options)
    )
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
