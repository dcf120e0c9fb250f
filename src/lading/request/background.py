"""Ask for a summary shortly before a compaction is due, while the agent goes on, and use the answer when it is.

While nothing is due, the strategy decides once more, as it would a few calls later. A summary that it asks for then
is asked for now. When a compaction is due, that decision is finished with the answer and made, if the messages that
it is about are still what they were. Its edits are frozen like any other, so the answer alone decides what is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from lading.compaction import Compaction, Pressure
from lading.compaction.arguments import count_freed_tokens
from lading.compaction.strategy_run import CompactCall
from lading.effects import Summarizer, Summary, SummaryRequest
from lading.errors import SummaryFailed
from lading.events import Event, SummaryDiscarded
from lading.frozen import ReadOnly
from lading.guard import attempt
from lading.history.history import History
from lading.history.log import NO_COMPACTIONS, Draft, Edit
from lading.history.view import View
from lading.request.builder import RequestBuilder
from lading.request.summarizing import SummaryRunner
from lading.request.summary_calls import SummaryCall

LEAD_CALLS = 4
"""Calls of the agent ahead of a compaction at which its summary is asked for: a summary is about as long as their
replies together, and takes about as long to write."""
MOST_LEAD_SHARE = 0.15
"""Rounds of tool results that take more of the room than this say little about the next ones."""


class AskedAhead(NamedTuple):
    """A summary that was asked for before it was due."""

    request: SummaryRequest
    compact_call: CompactCall
    """The decision that asked for it; its view stays as it was."""
    call: SummaryCall
    number: int
    """Of the agent's call at which it was asked for."""
    edits: int
    """Number of the session's edits then."""
    seen: int
    """The last entry that the summarizing model read."""

    @property
    def mark(self) -> str:
        """Ends ``Edit.summary`` of the record that has the answer."""
        return f", asked at call {self.number}"

    def is_used(self, made: Iterable[Draft | Edit]) -> bool:
        """Whether one of these has the answer."""
        return any(one.summary.endswith(self.mark) for one in made)

    def find_obstacle(self, edits: Sequence[Edit]) -> str:
        """Return why edits made since leave no place for the answer; empty if it can be used."""
        first, last = self.request.span or (0, -1)
        for edit in edits[self.edits :]:
            if edit.kind in NO_COMPACTIONS:
                is_system = bool(edit.replacement) and edit.replacement[0].role == "system"
                if edit.first <= self.seen and not is_system:
                    return f"message {edit.first}, which it is about, was changed ({edit.kind})"
            elif edit.first <= last < edit.last or edit.first < first <= edit.last:
                return f"messages {edit.first} to {edit.last} were replaced together ({edit.kind})"
        return ""

    def finish(self, answer: Summary | SummaryFailed, reason: str, *, now: Pressure) -> Compaction:
        """Return the decision with the answer, or with a record by rules. ``reason``: why it is made now."""
        compact, view, then = self.compact_call
        past = replace(then.past, calls=now.past.calls)
        decided = _answer_first(compact(view, replace(then, past=past)), answer)
        touched = now.past.edits[self.edits :]
        drafts = [
            replace(draft, reason=reason if draft.reason == self.request.reason else draft.reason)
            for draft in decided.drafts
            if draft.kind == "summarised" or not any(_overlaps(draft, edit) for edit in touched)
        ]
        if isinstance(answer, Summary):
            span = self.request.span
            drafts = [
                replace(draft, summary=draft.summary + self.mark) if (draft.first, draft.last) == span else draft
                for draft in drafts
            ]
        return replace(decided, drafts=tuple(drafts))

    def place_late(self, draft: Draft, edits: Sequence[Edit], *, others: Iterable[Draft]) -> Draft | None:
        """Return the record with the answer in place of the one by rules, which may be of fewer messages; None
        where others replace that too."""
        by_rules = [edit.last for edit in edits[self.edits :] if edit.kind == "summarised"]
        ends = [other.first - 1 for other in others if _overlaps(draft, other)]
        placed = replace(draft, last=min([draft.last, *ends]))
        return placed if by_rules and placed.last >= max(by_rules) else None


class BackgroundRunner(SummaryRunner):
    """A runner that asks ahead."""

    def __init__(
        self, summarizer: Summarizer, request: RequestBuilder, *, history: History, publish: Callable[[Event], None]
    ) -> None:
        super().__init__(summarizer, request, history=history, publish=publish)
        self._whom = summarizer
        self._ahead: AskedAhead | None = None
        self._late: AskedAhead | None = None
        """Not answered in time: a record by rules is in the place of its answer."""
        self._events: list[Event] = []

    def close(self) -> None:
        """Cancel what is asked in the background."""
        for asked in filter(None, (self._ahead, self._late)):
            asked.call.cancel()
        self._ahead = self._late = None

    def _decide(self, decided: object, compact_call: CompactCall) -> object:
        self._events = []
        self._forget_unusable(compact_call)
        outcome = super()._decide(decided, compact_call)
        if not isinstance(outcome, Compaction):
            return outcome
        if _removes(outcome):
            outcome = self._add_late(self._use_unasked(outcome, compact_call), compact_call)
        elif not outcome.drafts and self._ahead is None and not self._busy.locked():
            self._ask_ahead(compact_call, outcome.rent)
        return replace(outcome, own_events=(*outcome.own_events, *self._events))

    def _answer(self, request: SummaryRequest, compact_call: CompactCall) -> Summary | Compaction | None:
        ahead = self._ahead
        if ahead is None or ahead.compact_call.compact is not compact_call.compact or not request.reason:
            return super()._answer(request, compact_call)
        return self._use(ahead, request.reason, compact_call) or super()._answer(request, compact_call)

    def _use_unasked(self, outcome: Compaction, compact_call: CompactCall) -> Compaction:
        """Return the decision with the answer in place of one that asks for none, for its price or size."""
        ahead = self._ahead
        if ahead is None or ahead.compact_call.compact is not compact_call.compact or ahead.is_used(outcome.drafts):
            return outcome
        try:
            return self._use(ahead, outcome.drafts[0].reason, compact_call) or outcome
        except SummaryFailed as failure:
            return replace(outcome, rejected=(*outcome.rejected, str(failure)))

    def _use(self, ahead: AskedAhead, reason: str, compact_call: CompactCall) -> Compaction | None:
        """Return the decision with the answer, or with a record by rules until it comes; None where it frees too
        little. Raises SummaryFailed where there is no usable answer."""
        pressure = compact_call.pressure
        if ahead.is_used(pressure.past.edits):
            return None
        given = ahead.call.wait()
        if not ahead.call.has_answer:
            self._ahead, self._late, self._failure = None, ahead, str(given)
            by_rules = ahead.finish(SummaryFailed(self._failure), reason, now=pressure)
            if _fits(by_rules.drafts, compact_call):
                return by_rules
            raise SummaryFailed(self._failure)
        try:
            decided = ahead.finish(self._receive(ahead, pressure), reason, now=pressure)
        except SummaryFailed:
            self._ahead = None
            raise
        if decided.rejected:
            self._ahead, self._failure = None, decided.rejected[-1]
            raise SummaryFailed(self._failure)
        if _fits(decided.drafts, compact_call):
            return decided
        self._discard(ahead, "it leaves too many tokens", pressure)
        return None

    def _add_late(self, outcome: Compaction, compact_call: CompactCall) -> Compaction:
        """Add the record with an answer that came late to a decision, in place of the record by rules."""
        late = self._late
        if late is None or late.compact_call.compact is not compact_call.compact or not late.call.has_answer:
            return outcome
        try:
            answer = self._receive(late, compact_call.pressure)
        except SummaryFailed:
            self._late = None
            return outcome
        decided = late.finish(answer, late.request.reason, now=compact_call.pressure)
        draft = next((draft for draft in decided.drafts if late.is_used([draft])), None)
        draft = draft and late.place_late(draft, compact_call.pressure.past.edits, others=outcome.drafts)
        if draft is None:
            self._discard(late, "its messages are replaced again", compact_call.pressure)
        elif _fits(together := (draft, *outcome.drafts), compact_call):
            return replace(outcome, drafts=together, own_events=(*outcome.own_events, *decided.own_events))
        return outcome

    def _receive(self, asked: AskedAhead, pressure: Pressure) -> Summary:
        """Return an answer that has come, and charge it. Raises SummaryFailed."""
        if asked.request not in self._answers:
            self._answers[asked.request] = self._take(asked.request, asked.call, pressure)
        return self._answers[asked.request]

    def _forget_unusable(self, compact_call: CompactCall) -> None:
        """Forget what was used, and discard answers to messages that are not what they were."""
        for asked in filter(None, (self._ahead, self._late)):
            if asked.compact_call.compact is not compact_call.compact:
                continue
            if asked.is_used(self._last.history.edits[asked.edits :]):
                self._drop(asked)
            elif why := asked.find_obstacle(compact_call.pressure.past.edits):
                self._discard(asked, why, compact_call.pressure)

    def _discard(self, asked: AskedAhead, why: str, pressure: Pressure) -> None:
        self._drop(asked)
        self._events.append(SummaryDiscarded(pressure.past.calls + 1, why))
        if asked.call.has_answer:
            with suppress(SummaryFailed):
                self._receive(asked, pressure)
        else:
            asked.call.cancel()
            self._charge(asked.request, Summary("", output_tokens=0), pressure)

    def _drop(self, asked: AskedAhead) -> None:
        self._ahead = None if asked is self._ahead else self._ahead
        self._late = None if asked is self._late else self._late

    def _ask_ahead(self, compact_call: CompactCall, rent: float) -> None:
        """Start to ask for the summary of a compaction that is due soon. ``rent``: what this call adds to the
        carrying cost."""
        compact, view, pressure = compact_call
        near = bring_forward(view, pressure, rent=rent)
        request = attempt(partial(_find_request, compact_call._replace(pressure=near)))
        if not isinstance(request, SummaryRequest) or request.span is None:
            return
        if pressure.asks_itself and not request.instruction_for_self:
            return  # The last request does not show all of the messages yet.
        with suppress(SummaryFailed):
            call = self._start(request, self._whom, pressure)
            sent = view.last_entry(min(pressure.sent_items, len(view))) if pressure.asks_itself else -1
            # The view and the edits that a strategy is given grow with the history.
            near = replace(near, past=replace(near.past, edits=ReadOnly([*near.past.edits])))
            self._ahead = AskedAhead(
                request,
                CompactCall(compact, view.copy(), near),
                call,
                pressure.past.calls + 1,
                edits=len(self._last.history.edits),
                seen=max(request.span[1], sent),
            )


def make_runner(
    summarizer: Summarizer | None, request: RequestBuilder, *, history: History, publish: Callable[[Event], None]
) -> SummaryRunner:
    """Return the runner that a summarizer asks for. Raises InputError like both."""
    if summarizer is not None and summarizer.background:
        return BackgroundRunner(summarizer, request, history=history, publish=publish)
    return SummaryRunner(summarizer, request, history=history, publish=publish)


def bring_forward(view: View, pressure: Pressure, *, rent: float) -> Pressure:
    """Return the pressure ``LEAD_CALLS`` calls later, if they bring as many tokens as the last ones, and each adds
    ``rent`` to the carrying cost."""
    start, rounds = len(view), 0
    while start > view.records_end and rounds < LEAD_CALLS:
        start -= 1
        rounds += view.items[start].message.role == "assistant"
    tokens = min(view.tokens - view.tokens_before(start), int(pressure.room_tokens * MOST_LEAD_SHARE))
    reported = pressure.past.reported_tokens
    return replace(
        pressure,
        room_tokens=pressure.room_tokens - tokens,
        account=pressure.account + LEAD_CALLS * rent,
        past=replace(pressure.past, reported_tokens=None if reported is None else reported + tokens),
    )


def _find_request(compact_call: CompactCall) -> SummaryRequest | None:
    """Return the first summary that a strategy asks for; None if it asks for none."""
    steps = compact_call.compact(compact_call.view, compact_call.pressure)
    if not isinstance(steps, Generator):
        return None
    request: SummaryRequest | None = next(steps, None)
    steps.close()
    return request


def _answer_first(steps: object, answer: Summary | SummaryFailed) -> Compaction:
    """Run steps to their end; where they ask again, rules stand in."""
    decided = steps
    if isinstance(steps, Generator):
        try:
            next(steps)
            _ = steps.throw(answer) if isinstance(answer, SummaryFailed) else steps.send(answer)
            while True:
                steps.send(None)
        except StopIteration as ended:
            decided = ended.value
        finally:
            steps.close()
    if not isinstance(decided, Compaction):
        raise TypeError(f"compact gave a {type(decided).__name__}, not a Compaction")
    return decided


def _fits(drafts: Sequence[Draft], compact_call: CompactCall) -> bool:
    """Whether these drafts make the view fit, or save tokens where it fits already."""
    view, pressure = compact_call.view, compact_call.pressure
    freed = sum(count_freed_tokens(view, draft, pressure=pressure) for draft in drafts)
    return freed > max(view.tokens - pressure.room_tokens - 1, 0)


def _removes(decided: Compaction) -> bool:
    return any(draft.kind in ("summarised", "dropped") for draft in decided.drafts)


def _overlaps(one: Draft, other: Draft | Edit) -> bool:
    return one.first <= other.last and other.first <= one.last
