"""Run a strategy over a plan: its drafts become edits.

A strategy may be a user's own code. One that fails, breaks a rule or leaves the view too large is overruled, with
an event.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from lading.compaction import (
    Account,
    Arrival,
    Compaction,
    Pressure,
    Strategy,
    find_fault,
    run_admit,
    run_compact,
    run_show,
)
from lading.compaction.clearing import clear, find_consumed_end
from lading.compaction.cutting import draft_emergency_cut
from lading.compaction.provider_summaries import keep_summary
from lading.compaction.staging import Staged, list_admissions
from lading.effects import Steps, attempt, describe_error
from lading.errors import PackError
from lading.events import Event, StrategyOverruled, SummaryNotAsked
from lading.history.log import Draft, Edits
from lading.history.plan import Plan
from lading.history.validity import newest_block

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
    ) -> None:
        """``name``: of the strategy, in events. ``session``: the tenant and the session that pointers must belong
        to. ``strict``: raise instead of overruling. ``events``: the list that gets the strategy's events."""
        self._strategy, self._name, self._call = strategy, name, call
        self._session, self._strict = session, strict
        self.events = events

    def decide(
        self, plan: Plan, pressure: Pressure, *, account: Account, run: Callable[[Steps[Compaction]], Compaction]
    ) -> Account:
        """Add the strategy's edits to the plan; return the new account. ``run`` answers requests for summaries.

        The last part makes room, then those before it.
        """
        for part in list_admissions(self._strategy):
            self._admit(part, plan, pressure=pressure)
        staged = Staged(self._strategy, plan, account=account)
        *others, last = range(len(staged.parts))
        for index in others:
            self._compact(index, staged, pressure=staged.press(pressure, index, makes_room=False), run=run)
        for index in (last, *reversed(others)):
            if index == last or staged.plan.view.tokens > pressure.room_tokens:
                self._compact(index, staged, pressure=staged.press(pressure, index, makes_room=True), run=run)
        if staged.plan is not plan:
            for draft in staged.keep_newest():
                self.apply(draft, plan, pressure=pressure)
        self.events[:] = [*staged.decided.events(self._call, self.events), *staged.events]
        if self._strategy.changes_requests and plan.view.tokens > pressure.room_tokens:
            self._rescue(plan, pressure=pressure)
        return staged.account

    def _admit(self, part: Strategy, plan: Plan, *, pressure: Pressure) -> None:
        position = min(pressure.sent_items, len(plan.view))
        if pressure.past.is_refused:
            # The model did not see the new messages of a request that was too long.
            position = min(position, newest_block(plan.view.messages))
        items = plan.view.items.copy()
        while position < len(items):
            arrival = Arrival(items[position], plan.view)
            draft = self._guard(partial(run_admit, part, arrival, pressure=pressure), None, part=part)
            if draft is not None:
                plan.view.items[:] = items
                self.apply(draft, plan, pressure=pressure)
                position, items = position + len(plan.view) - len(items), plan.view.items.copy()
            position += 1
        # Compared once: for each message, comparing would take the length of the view.
        if plan.view.items != items:
            plan.view.items[:] = items
            self.overrule("its admit changed the items of the view; give drafts instead", part=part)

    def _compact(
        self, index: int, staged: Staged, *, pressure: Pressure, run: Callable[[Steps[Compaction]], Compaction]
    ) -> None:
        part, plan = staged.parts[index], staged.plan
        compaction = self._guard(
            partial(run_compact, part, plan.view, pressure=pressure, run=run), Compaction(), part=part
        )
        if pressure.output_price is not None and compaction.is_silent:
            why = f"the strategy {self._name_of(part)} asks for none here"
            staged.events.append(SummaryNotAsked(self._call, why))
        drafts = [self._show(draft, part) for draft in compaction.drafts]
        staged.drafts += [draft for draft in drafts if self.apply(draft, plan, pressure=pressure, part=part)]
        staged.add(index, compaction)

    def _show(self, draft: Draft, part: Strategy | None = None) -> Draft:
        """Return a draft with its messages as the other parts show them."""
        for other in self._strategy.parts:
            if other is not part:
                draft = self._guard(partial(run_show, other, draft), draft, part=other)
        return draft

    def _rescue(self, plan: Plan, *, pressure: Pressure) -> None:
        """Cut a view that still does not fit. Where no cut is legal, used results can still go."""
        pressure = replace(pressure, past=replace(pressure.past, edits=Edits(plan.edits)))
        used = plan.view.items[plan.view.head : find_consumed_end(plan.view)]
        rescue = draft_emergency_cut(plan.view, pressure)
        drafts = [rescue] if rescue else clear(plan.view, used, reason=NO_CUT, pressure=pressure)
        if drafts:
            self.overrule("they did not fit the window")
        for draft in drafts:
            self.apply(self._show(draft), plan, pressure=pressure)

    def apply(self, draft: Draft, plan: Plan, *, pressure: Pressure, part: Strategy | None = None) -> bool:
        """Add a draft to the plan if it breaks no rule; return whether it was. Raises PackError for a faulty one if
        strict."""
        entries = plan.view.last_entry(len(plan.view)) + 1
        fault = find_fault(draft, plan.view, entries=entries, session=self._session)
        if not fault:
            plan.apply(keep_summary(draft, plan.view), room_tokens=pressure.room_tokens)
        elif self._strict:
            raise PackError(f"The strategy {self._name_of(part)} drafted an edit that {fault}.")
        else:
            self.overrule(f"an edit of its {fault}", part=part)
        return not fault

    def overrule(self, why: str, *, part: Strategy | None = None) -> None:
        """Report that the decision of the strategy, or of a part of it, was overruled."""
        self.events.append(StrategyOverruled(self._call, self._name_of(part), why))

    def _name_of(self, part: Strategy | None) -> str:
        return part.name if part in self._strategy.parts else self._name

    def _guard(self, decide: Callable[[], Decided], otherwise: Decided, *, part: Strategy) -> Decided:
        result = attempt(decide)
        if not isinstance(result, Exception):
            return result
        if self._strict:
            raise result
        self.overrule(f"it failed: {describe_error(result)}", part=part)
        return otherwise
