"""Let a strategy decide over a plan: its drafts become edits.

A strategy may be a user's own code. One that fails, breaks a rule or leaves too much is overruled, with an event.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from lading.compaction import Arrival, Compaction, Pressure, Strategy, admitted, compacted, unsound
from lading.compaction.emergency import emergency
from lading.effects import Steps, attempted
from lading.errors import PackError
from lading.events import Event, StrategyOverruled
from lading.history.log import Draft
from lading.history.plan import Plan
from lading.history.validity import newest_block

Decided = TypeVar("Decided")


class Deciding:
    """The decisions of one strategy at one call."""

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
        """``name``: of the strategy in events. ``session``: the tenant and the session that pointers lead to.
        ``strict``: raise instead of overruling. ``events``: to which those of the decisions are added."""
        self._strategy, self._name, self._call = strategy, name, call
        self._session, self._strict = session, strict
        self.events = events

    def decide(self, plan: Plan, pressure: Pressure, *, run: Callable[[Steps[Compaction]], Compaction]) -> float:
        """Add the strategy's edits to the plan; returns the new account of carrying cost. ``run`` answers requests
        for summaries."""
        position = min(pressure.sent_items, len(plan.view))
        if pressure.past.is_refused:
            # The model saw nothing of what was new in a request that was too long.
            position = min(position, newest_block(plan.view.messages))
        while position < len(plan.view):
            arrival, items = Arrival(plan.view.items[position], plan.view), len(plan.view)
            draft = self._guarded(partial(admitted, self._strategy, arrival, pressure=pressure), None)
            if draft is not None:
                self.apply(draft, plan, pressure=pressure)
            position += 1 + len(plan.view) - items
        pressure = replace(pressure, past=replace(pressure.past, edits=plan.edits))
        decide = partial(compacted, self._strategy, plan.view, pressure=pressure, run=run)
        compaction = self._guarded(decide, Compaction())
        self.events[:] = compaction.events(self._call, self.events)
        for draft in compaction.drafts:
            self.apply(draft, plan, pressure=pressure)
        if self._strategy.changes_requests and plan.view.tokens > pressure.room_tokens:
            pressure = replace(pressure, past=replace(pressure.past, edits=plan.edits))
            if rescue := emergency(plan.view, pressure):
                self.overrule("they did not fit the window")
                self.apply(rescue, plan, pressure=pressure)
        return compaction.rent if compaction.drafts else pressure.account + compaction.rent

    def apply(self, draft: Draft, plan: Plan, *, pressure: Pressure) -> None:
        """Add a draft to the plan if it breaks no rule. Raises PackError for one that does, where strict."""
        fault = unsound(draft, plan.view, entries=plan.view.last_entry(len(plan.view)) + 1, session=self._session)
        if not fault:
            plan.apply(draft, room_tokens=pressure.room_tokens)
        elif self._strict:
            raise PackError(f"The strategy {self._name} drafted an edit that {fault}.")
        else:
            self.overrule(f"an edit of its {fault}")

    def overrule(self, why: str) -> None:
        """Report that the strategy's decision does not hold."""
        self.events.append(StrategyOverruled(self._call, self._name, why))

    def _guarded(self, decide: Callable[[], Decided], otherwise: Decided) -> Decided:
        outcome = attempted(decide)
        if not isinstance(outcome, Exception):
            return outcome
        if self._strict:
            raise outcome
        self.overrule(f"it failed: {type(outcome).__name__}: {outcome}")
        return otherwise
