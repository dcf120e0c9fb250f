"""Stage the decisions that the parts of a strategy make at one call, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from lading.compaction import Account, Compaction, Pressure, Strategy
from lading.compaction.basic import admit as clip_enormous
from lading.events import Event
from lading.history.log import Draft, Edits
from lading.history.plan import Plan


class Staged:
    """The decisions of one call so far. A strategy without parts is its only part."""

    def __init__(self, strategy: Strategy, plan: Plan, *, account: Account) -> None:
        self.parts = strategy.parts or (strategy,)
        self.plan = plan.branch() if strategy.parts else plan
        """With the drafts so far."""
        self.drafts: list[Draft] = []
        """Those that broke no rule, in order."""
        self.events: list[Event] = []
        """Of decisions that removed messages without asking for a summary."""
        self.decided = Compaction()
        """All decisions as one."""
        self._before = plan
        self._accounts = divide_account(account, len(self.parts))

    @property
    def account(self) -> Account:
        """The account of carrying cost; of several parts only where one before the last has any."""
        *others, last = self._accounts
        return tuple(self._accounts) if any(others) else last

    def press(self, pressure: Pressure, index: int, *, makes_room: bool) -> Pressure:
        """Return the pressure on a part. Unless it is the one that makes room, it sees the view as fitting."""
        plan, past, sent = self.plan, pressure.past, min(pressure.sent_items, len(self._before.view))
        reported = past.reported_tokens
        if reported is not None and plan is not self._before and plan.changed < sent:
            entry = self._before.view.last_entry(sent) + 1
            left = plan.view.tokens_before(plan.view.span(entry, entry)[0])
            reported = max(reported - self._before.view.tokens_before(sent) + left, 0)
        return replace(
            pressure,
            room_tokens=pressure.room_tokens if makes_room else max(pressure.room_tokens, plan.view.tokens),
            sent_items=min(pressure.sent_items, plan.changed),
            account=self._accounts[index],
            past=replace(past, reported_tokens=reported, edits=Edits(plan.edits)),
        )

    def add(self, index: int, compaction: Compaction) -> None:
        """Add the decision of a part, whose drafts the plan has."""
        account = 0.0 if compaction.drafts else self._accounts[index]
        self._accounts[index] = account + compaction.rent
        one = self.decided
        self.decided = Compaction(
            (*one.drafts, *compaction.drafts),
            rejected=(*one.rejected, *compaction.rejected),
            stuck=one.stuck or compaction.stuck,
            own_events=(*one.own_events, *compaction.own_events),
        )

    def keep_newest(self) -> list[Draft]:
        """Return the drafts without those whose entries a later one replaces too."""
        newest = {entry: draft for draft in self.drafts for entry in range(draft.first, draft.last + 1)}
        return [draft for draft in self.drafts if newest[draft.first] is draft]


def divide_account(account: Account, parts: int) -> list[float]:
    """Return the account of each part; where there were fewer or more of them, by their distance from the last."""
    found = account if isinstance(account, tuple) else (account,)
    return [*([0.0] * parts), *found][-parts:]


def list_admissions(strategy: Strategy) -> Sequence[Strategy]:
    """Return the parts in the order in which they admit a message. Clipping what is enormous comes last and once:
    it is what strategies without an admission of their own do."""
    ordered = sorted(strategy.parts or [strategy], key=lambda part: part.admit is clip_enormous)
    return [*{part.admit: part for part in ordered}.values()]
