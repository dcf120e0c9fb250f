"""Run the parts of a composition over one plan, in order. Their edits at a call are one epoch."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from lading.compaction import Account, Pressure, Strategy
from lading.compaction.basic import admit as clip_enormous
from lading.compaction.strategy_run import AnswerSteps, StrategyRun, spare
from lading.frozen import ReadOnly
from lading.history.log import Draft, Edit
from lading.history.plan import Plan


class ComposedRun(StrategyRun):
    """A run of the parts of one strategy at one call, each over the view that those before it left."""

    def decide(self, plan: Plan, pressure: Pressure, *, account: Account, answer: AnswerSteps) -> Account:
        """Decide as one strategy. Where its parts leave too much, the last makes room, then those before it."""
        runs, spared = [self._start_part(part) for part in self.strategy.parts], spare(plan.view, pressure)
        # Clipping what is enormous comes last and once: strategies without an admission of their own do it.
        admissions = {part.admit: one for part, one in zip(self.strategy.parts, runs, strict=True)}
        for admit in sorted(admissions, key=lambda admit: admit is clip_enormous):
            admissions[admit].admit(plan, spared)
        accounts, staged, room_tokens = divide_account(account, len(runs)), plan.branch(), pressure.room_tokens

        def decide(index: int, room_tokens: int) -> None:
            others = [*runs[:index], *runs[index + 1 :]]
            now = _press_part(pressure, staged, before=plan)
            now = replace(now, room_tokens=room_tokens, account=accounts[index])
            compaction = runs[index].compact(staged, now, answer=answer, others=others)
            accounts[index] = compaction.settle(accounts[index])

        *first, last = range(len(runs))
        for index in first:
            decide(index, max(room_tokens, staged.view.tokens))
        for index in (last, *reversed(first)):
            if index == last or staged.view.tokens > room_tokens:
                decide(index, room_tokens)
        for draft in _keep_newest(staged.edits[len(plan.edits) :], pressure):
            plan.apply(draft, room_tokens=room_tokens)
        if self.strategy.changes_requests:
            self.rescue(plan, pressure, others=runs)
        return join_account(accounts)

    def _start_part(self, part: Strategy) -> StrategyRun:
        return StrategyRun(
            part,
            name=part.name,
            call=self._call,
            session=self._session,
            strict=self._strict,
            events=self.events,
            tools=self._tools,
        )


def divide_account(account: Account, parts: int) -> list[float]:
    """Return the account of each part; where there were fewer or more of them, by their distance from the last."""
    found = account if isinstance(account, tuple) else (account,)
    return [*([0.0] * parts), *found][-parts:]


def join_account(accounts: Sequence[float]) -> Account:
    """Return the accounts of all parts; that of the last alone where no other has any."""
    *others, last = accounts
    return tuple(accounts) if any(others) else last


def _press_part(pressure: Pressure, staged: Plan, *, before: Plan) -> Pressure:
    """Return the pressure on the next part: behind the first change nothing counts as cached, and what earlier
    parts freed of the last request no longer counts as reported."""
    past, sent = pressure.past, min(pressure.sent_items, len(before.view))
    reported = past.reported_tokens
    if reported is not None and staged.changed < sent:
        entry = before.view.last_entry(sent) + 1
        left = staged.view.tokens_before(staged.view.span(entry, entry)[0])
        reported = max(reported - before.view.tokens_before(sent) + left, 0)
    past = replace(past, reported_tokens=reported, edits=ReadOnly(staged.edits))
    return replace(pressure, sent_items=min(pressure.sent_items, staged.changed), past=past)


def _keep_newest(edits: Sequence[Edit], pressure: Pressure) -> list[Draft]:
    """Return the edits as drafts, without those that a later one replaces. It is made of their text, so it also
    replaces the entries that only they name."""
    kept: dict[int, Draft] = {}
    for edit in edits:
        replaced = [kept.pop(entry) for entry in range(edit.first, edit.last + 1) if entry in kept]
        last = max(edit.last, *(one.last for one in replaced), -1)
        pointers = edit.pointers if last == edit.last else (pressure.address_of(edit.first, last),)
        kept[edit.first] = Draft(edit.kind, edit.first, last, edit.replacement, edit.reason, pointers, edit.summary)
    return list(kept.values())
