"""Run a strategy over a plan: its drafts become edits.

A strategy may be a user's own code. One that fails, breaks a rule or leaves the view too large is overruled, with
an event.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias, TypeVar

from msgspec.structs import replace

from lading import jsonbytes
from lading.compaction import Account, Arrival, Compaction, Pressure, Strategy
from lading.compaction.clearing import clear
from lading.compaction.cutting import SPARE_SHARE, draft_emergency_cut
from lading.compaction.faults import find_fault
from lading.compaction.provider_summaries import keep_summary
from lading.compaction.superseded import draft_superseded
from lading.errors import PackError
from lading.events import Event, StrategyOverruled, SummaryDiscarded, SummaryNotAsked, SummaryRejected
from lading.frozen import ReadOnly
from lading.guard import attempt, describe_error
from lading.history.log import Draft
from lading.history.plan import Plan
from lading.history.validity import newest_block
from lading.history.view import View
from lading.messages import Tool
from lading.models.card import Tier

Decided = TypeVar("Decided")

NO_CUT = "the strategy's own edits did not fit, and no cut is legal"


class StrategyRun:
    """A run of one strategy at one call."""

    def __init__(
        self,
        strategy: Strategy,
        *,
        name: str,
        call: int,
        session: tuple[str, str],
        strict: bool,
        events: list[Event],
        tools: tuple[Tool, ...],
    ) -> None:
        """``name``: of the strategy, in events. ``session``: the tenant and the session that pointers must belong
        to. ``strict``: raise instead of overruling. ``events``: the list that gets the strategy's events.
        ``tools``: of the request."""
        self.strategy, self._name, self._call = strategy, name, call
        self._session, self._strict = session, strict
        self.events = events
        self._tools = tools

    def write_tail(self, view: View, tier: Tier) -> str:
        """Return the strategy's text for the end of this request alone."""
        write = self.strategy.write_tail
        text: object = self._guard(partial(write, view, tier), "") if write else ""
        return text if isinstance(text, str) else ""

    def decide(self, plan: Plan, pressure: Pressure, *, account: Account, answer: AnswerSteps) -> Account:
        """Add the strategy's edits to the plan; return the new account."""
        self.admit(plan, spare(plan.view, pressure))
        before = account[-1] if isinstance(account, tuple) else account
        pressure = replace(pressure, account=before, past=replace(pressure.past, edits=ReadOnly(plan.edits)))
        compaction = self.compact(plan, pressure, answer=answer)
        if self.strategy.changes_requests and (compaction.drafts or plan.view.tokens > pressure.room_tokens):
            self.rescue(plan, pressure)
        return compaction.settle(before)

    def admit(self, plan: Plan, pressure: Pressure) -> None:
        """Add the strategy's edits of messages that the model has not seen; where the view does not fit, also of
        those that it has not answered, because it reads more first."""
        sent = _count_seen(plan.view, pressure)
        position = sent if plan.view.tokens <= pressure.room_tokens else min(sent, _find_unread(plan.view))
        while position < (length := len(plan.view)):
            if position >= sent or plan.view.tokens > pressure.room_tokens:
                arrival = Arrival(plan.view.items[position], plan.view, self._tools)
                draft = self._guard(partial(run_admit, self.strategy, arrival, pressure=pressure), None)
                if draft is not None:
                    self.apply(draft, plan, pressure=pressure)
            position += 1 + len(plan.view) - length

    def compact(
        self, plan: Plan, pressure: Pressure, *, answer: AnswerSteps, others: Sequence[StrategyRun] = ()
    ) -> Compaction:
        """Add the strategy's edits of the view, with messages as ``others`` show them; return its decision."""
        decide = partial(run_compact, self.strategy, plan.view, pressure=pressure, answer=answer)
        compaction = self._guard(decide, Compaction())
        self.events[:] = compaction.events(self._call, self.events)
        if compaction.is_silent:
            self.tell_unasked(f"the strategy {self._name} asks for none here", pressure)
        for draft in compaction.drafts:
            self.apply(draft, plan, pressure=pressure, others=others)
        return compaction

    def rescue(self, plan: Plan, pressure: Pressure, *, others: Sequence[StrategyRun] = ()) -> None:
        """Remove superseded payloads and cut a view that does not fit; where no cut is legal, clear results."""
        for draft in draft_superseded(plan, pressure):
            plan.apply(draft, room_tokens=pressure.room_tokens)
        if plan.view.tokens <= pressure.room_tokens:
            return
        pressure = replace(pressure, past=replace(pressure.past, edits=ReadOnly(plan.edits)))
        used = plan.view.items[plan.view.head : plan.view.find_consumed_end()]
        rescue = draft_emergency_cut(plan.view, pressure)
        drafts = [rescue] if rescue else clear(plan.view, used, reason=NO_CUT, pressure=pressure)
        if drafts:
            self.overrule("they did not fit the window")
            self.tell_unasked("what did not fit the window was cut by rules", pressure)
        for draft in drafts:
            self.apply(draft, plan, pressure=pressure, others=others)

    def apply(self, draft: Draft, plan: Plan, *, pressure: Pressure, others: Sequence[StrategyRun] = ()) -> None:
        """Add a draft, as ``others`` show it, to the plan if it breaks no rule. Raises PackError if it does and
        strict."""
        for other in others:
            draft = other._guard(partial(run_show, other.strategy, draft), draft)
        entries = plan.view.last_entry(len(plan.view)) + 1
        fault = find_fault(draft, plan.view, entries=entries, session=self._session)
        if not fault:
            plan.apply(keep_summary(draft, plan.view), room_tokens=pressure.room_tokens)
        elif self._strict:
            raise PackError(f"The strategy {self._name} drafted an edit that {fault}.")
        else:
            self.overrule(f"an edit of its {fault}")

    def drop_events(self, *, since: Sequence[Event]) -> None:
        """Drop the events of an abandoned attempt, except those of calls of the summarizer: these were made."""
        made = [event for event in self.events if isinstance(event, SummaryRejected | SummaryDiscarded)]
        self.events[:] = [*since, *(event for event in made if event not in since)]

    def tell_unasked(self, why: str, pressure: Pressure) -> None:
        """Report that messages leave without a question to the summarizer, if there is one."""
        if pressure.output_price is not None:
            self.events.append(SummaryNotAsked(self._call, why))

    def overrule(self, why: str) -> None:
        """Report that the strategy's decision was overruled."""
        self.events.append(StrategyOverruled(self._call, self._name, why))

    def _guard(self, decide: Callable[[], Decided], otherwise: Decided) -> Decided:
        result = attempt(decide)
        if not isinstance(result, Exception):
            return result
        if self._strict:
            raise result
        self.overrule(f"it failed: {describe_error(result)}")
        return otherwise


def spare(view: View, pressure: Pressure) -> Pressure:
    """Return the pressure under which to admit: with less room where the view does not fit because the model reads
    more of what it has not answered. Otherwise each page of that would have it cut once more."""
    if view.tokens <= pressure.room_tokens or (unread := _find_unread(view)) >= _count_seen(view, pressure):
        return pressure
    spare_tokens = int(pressure.room_tokens * SPARE_SHARE)
    older = view.tokens_before(unread) - view.tokens_before(view.head)
    # Older messages leave only where the view does not fit without that.
    spare_tokens += older if older < spare_tokens else 0
    return replace(pressure, room_tokens=pressure.room_tokens - spare_tokens)


def _find_unread(view: View) -> int:
    return max(view.find_consumed_end(), view.head)


def _count_seen(view: View, pressure: Pressure) -> int:
    sent = min(pressure.sent_items, len(view))
    # The model did not see the new messages of a request that was too long.
    return min(sent, newest_block(view.messages)) if pressure.past.is_refused else sent


class CompactCall(NamedTuple):
    """A call of a strategy's ``compact``: the function and its arguments."""

    compact: Callable[[View, Pressure], object]
    view: View
    pressure: Pressure


AnswerSteps: TypeAlias = Callable[[object, CompactCall], object]
"""Return the decision for what a call of ``compact`` returned: steps that ask for summaries are answered."""


def run_admit(chosen: Strategy, arrival: Arrival, *, pressure: Pressure) -> Draft | None:
    """Run the strategy's ``admit`` and check its draft. Raises TypeError or ValueError when it is not storable or
    changes other entries than the new one."""
    draft = chosen.admit(arrival, pressure)
    if draft is None:
        return None
    _check_storable(draft)
    if not draft.first == draft.last == arrival.item.entry:
        raise ValueError(f"entry {arrival.item.entry} arrived, the draft touches {draft.first} to {draft.last}")
    return draft


def run_compact(chosen: Strategy, view: View, *, pressure: Pressure, answer: AnswerSteps) -> Compaction:
    """Run the strategy's ``compact`` and check its decision. Raises TypeError or ValueError unless it is a
    Compaction with a finite carrying cost and storable drafts."""
    decided: object = chosen.compact(view, pressure)
    if isinstance(decided, Generator) or pressure.output_price is not None:
        decided = answer(decided, CompactCall(chosen.compact, view, pressure))
    if not isinstance(decided, Compaction):
        raise TypeError(f"compact gave a {type(decided).__name__}, not a Compaction")
    if not math.isfinite(decided.settle(pressure.account)):
        raise ValueError(f"its rent (carrying cost) is {decided.rent}, not a finite number")
    if not all(isinstance(why, str) for why in (decided.stuck, *decided.rejected)):
        raise TypeError("stuck and rejected must be texts, the reasons")
    for draft in decided.drafts:
        _check_storable(draft)
    for event in decided.own_events:
        if not isinstance(event, Event):
            raise TypeError(f"own_events has a {type(event).__name__}, not an Event")
        jsonbytes.load_value(jsonbytes.dump_value(event), type(event))
    return decided


def run_show(chosen: Strategy, draft: Draft) -> Draft:
    """Run the strategy's ``show`` on the messages of another's draft, and check them as ``run_admit`` does."""
    if chosen.show is None:
        return draft
    shown = replace(draft, replacement=tuple(map(chosen.show, draft.replacement)))
    _check_storable(shown)
    return shown


def _check_storable(draft: object) -> None:
    if not isinstance(draft, Draft):
        raise TypeError(f"it gave a {type(draft).__name__}, not a Draft")
    jsonbytes.load_value(jsonbytes.dump_value(draft), Draft)
