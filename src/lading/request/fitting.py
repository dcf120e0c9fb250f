"""Make a request fit: the strategy decides within the room, and tools lose detail while that is not enough."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lading.addresses import relative
from lading.compaction import Account, Pressure
from lading.compaction.cutting import draft_emergency_cut
from lading.compaction.strategy_run import AnswerSteps, StrategyRun
from lading.errors import WindowExceeded
from lading.events import ToolsReduced
from lading.history.history import History
from lading.history.plan import Plan
from lading.history.view import View
from lading.messages import Message
from lading.models.profiles import Detail
from lading.request.layers import layer_counts, make_window_error
from lading.request.manifest import totals
from lading.request.state import RequestState
from lading.request.tools import LADDER, Offer, lower_detail
from lading.request.transient import count_transient
from lading.settings import Settings
from lading.wire import Wire

MOST_ATTEMPTS = 3
"""Decisions of a strategy for one call and detail of the tools, each within less room than the one before."""


class Conditions(NamedTuple):
    """The circumstances of a call."""

    at_s: float | None
    most_tokens: int | None
    """An additional limit, by the session's counter."""
    is_refused: bool
    """The provider rejected the last request as too long."""


class FittedPlan(NamedTuple):
    """A plan whose view fits."""

    plan: Plan
    state: RequestState
    """The state under which it fits."""
    offer: Offer
    """With the text for this request beside which it fits."""
    detail: Detail
    account: Account
    room_tokens: int
    """The input budget, with tools and text for this request."""


class Fitting(Struct, frozen=True, kw_only=True):
    """The search for a view that fits: what the decisions of one call depend on."""

    settings: Settings
    history: History
    strategy_run: StrategyRun
    answer: AnswerSteps
    """Answers what the strategy asks a model."""
    state: RequestState
    offer: Offer
    last_tools: str
    """Digest of the tools in the last request."""
    detail: Detail
    """Of the tools in the last request."""
    account: Account
    count: Callable[[Message], int]
    wire: Wire
    conditions: Conditions

    def fit_with_text(self, plan: Plan) -> FittedPlan:
        """Make the view fit beside the strategy's text for this request, or without it. Raises like ``fit``."""
        given = self.offer.transient
        if text := self.strategy_run.write_tail(plan.view, self.settings.card.tier):
            with suppress(WindowExceeded):
                room, tails = self.settings.budget.room_tokens, (text, given.text.tail)
                both = count_transient(tails, given.text.front, count=self.count, room_tokens=room)
                return replace(self, offer=replace(self.offer, transient=both)).fit(plan)
        return self.fit(plan)

    def fit(self, plan: Plan) -> FittedPlan:
        """Make the view fit. Where a calibration from a few reports leaves no room, try without it. Raises
        WindowExceeded."""
        try:
            return self._fit(plan)
        except WindowExceeded:
            distrust = self.state.distrust()
            if distrust is None:
                raise
        return replace(self, state=distrust)._fit(plan)

    def _fit(self, plan: Plan) -> FittedPlan:
        """Let the strategy decide; lower the detail of the tools while the view does not fit."""
        run, state, last = self.strategy_run, self.state, self.state.last
        most = lower_detail(self.detail, self.settings.tool_detail)
        rungs = LADDER[LADDER.index(most) :] if run.strategy.changes_requests else (most,)
        for detail in rungs:
            beside = self.offer.count_beside(detail)
            if self.last_tools and (self.last_tools, self.detail) != (self.offer.tools_digest, detail):
                state = state.for_other_tools()
            kept, repacked = rooms = self._rooms(plan, state, beside_tokens := sum(beside.values()))
            if is_hopeless := plan.view.tokens > kept and self._is_hopeless(plan.view, state, max(rooms)):
                room, opening = kept + beside_tokens, plan.view.head
                counts = layer_counts(plan.view, beside=beside, room_tokens=room, items=opening)
                continue
            # The count of a request that diverges from the last one is less certain.
            attempts = [*dict.fromkeys((kept, min(kept, repacked)))]
            for room in attempts:
                tried, events = plan.branch(), [*run.events]
                account = self._decide(tried, state, room)
                # Fewer messages leave more room: each has a fixed cost.
                changes_sent = any(edit.first < last.entries for edit in tried.edits[last.edits :])
                left = rooms if tried.view is plan.view else self._rooms(tried, state, beside_tokens)
                fits = left[changes_sent or detail != self.detail]
                if tried.view.tokens <= fits:
                    if detail != self.detail:
                        before, after = self.offer.levels[self.detail].tokens, self.offer.levels[detail].tokens
                        run.events.append(ToolsReduced(last.call + 1, detail, before, after))
                    return FittedPlan(tried, state, self.offer, detail, account, max(room, fits) + beside_tokens)
                counts = layer_counts(tried.view, beside=beside, room_tokens=room + beside_tokens)
                run.drop_events(since=events)
                # What the strategy shows again are more messages, which leave less room.
                if room == attempts[-1] > fits and len(attempts) < MOST_ATTEMPTS:
                    attempts.append(fits)
        room, name = totals(counts) + counts["slack"], self.settings.strategy_name
        raise make_window_error(counts, room, strategy=name, is_least=is_hopeless)

    def _is_hopeless(self, view: View, state: RequestState, room_tokens: int) -> bool:
        """Whether the opening messages, which no edit may touch, exceed a room that depends on nothing else. A
        payload among them may be superseded."""
        if state.calibration.seen or view.tokens_before(view.head) <= room_tokens:
            return False
        opening = view.items[: view.head]
        return self.strategy_run.strategy.changes_requests and all(item.kind != "payload" for item in opening)

    def _rooms(self, plan: Plan, state: RequestState, beside_tokens: int) -> tuple[int, int]:
        """Return the most tokens that the view may count: where the request extends the last one, and where it
        diverges."""
        has_tail, items = bool(self.offer.transient.counts), len(plan.view.items)
        rooms = state.rooms(self.settings, items=items, most_tokens=self.conditions.most_tokens, has_tail=has_tail)
        return rooms[0] - beside_tokens, rooms[1] - beside_tokens

    def _decide(self, plan: Plan, state: RequestState, room_tokens: int) -> Account:
        is_unchanged = state.is_unchanged(entries=len(self.history.entries), edits=len(plan.edits))
        if is_unchanged and not self.conditions.is_refused and plan.view.tokens <= room_tokens:
            # Nothing was answered since: no call has cost anything, and the request stays the same.
            return self.account
        pressure = self._press(plan, state, room_tokens)
        return self.strategy_run.decide(plan, pressure, account=self.account, answer=self.answer)

    def _press(self, plan: Plan, state: RequestState, room_tokens: int) -> Pressure:
        settings, card = self.settings, self.settings.card
        return Pressure(
            room_tokens=room_tokens,
            sent_items=state.last.counted.messages,
            rates=settings.rates,
            cache_cold=state.is_cold(settings, self.conditions.at_s),
            count=self.count,
            address=relative,
            invariants=self.wire.invariants(card),
            tier=card.tier,
            output_price=card.prices.output if settings.summarizer else None,
            asks_itself=bool(settings.summarizer and settings.summarizer.is_self),
            past=state.past(settings, self.history, edits=plan.edits, refused=self.conditions.is_refused),
        )

    def cut(self, fitted: FittedPlan) -> None:
        """Cut the plan of a fitted one that fits no longer, because its edits were dropped. Raises
        WindowExceeded."""
        plan, beside = fitted.plan, fitted.offer.count_beside(fitted.detail)
        room = min(self._rooms(plan, fitted.state, sum(beside.values())))
        if plan.view.tokens > room:
            pressure = self._press(plan, fitted.state, room)
            rescue = draft_emergency_cut(plan.view, pressure)
            if rescue is None:
                counts = layer_counts(plan.view, beside=beside, room_tokens=fitted.room_tokens)
                raise make_window_error(counts, fitted.room_tokens, strategy=self.settings.strategy_name)
            self.strategy_run.apply(rescue, plan, pressure=pressure)
