"""Shrink a view that does not fit, in the document's order: digest older evidence, shorten the conversation
summary, drop the oldest evidence, drop the oldest turns.

A step runs only if those before it left less than the slack free. It shortens the oldest items first and stops once
the slack is free, so that the next calls need no edit. The engine reduces tool schemas after these steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product

from lading.compaction import Pressure
from lading.compaction.arguments import count_freed_tokens
from lading.compaction.clearing import clear, is_worth_clearing
from lading.compaction.cutting import MOST_CARRIED_SHARE, MOST_STUB_TOKENS, carry_over, cut, find_cut_points
from lading.compaction.digesting import digest
from lading.compaction.span_folding import Span, fold_spans, limit_span
from lading.history.log import Draft
from lading.history.view import Item, View
from lading.messages import is_spoken as speaks

OLDER_EVIDENCE = "evidence: overflow (ii), older evidence becomes a summary"
STEP_SUMMARY = "conversation: overflow (iv), the summary is tightened"
OLDEST_EVIDENCE = "evidence: overflow, the oldest is dropped"
OLDEST_TURNS = "conversation: overflow, the oldest turns are dropped"
TIGHTENED_SHARE = 0.5
"""Smallest share of its size to which one step shortens a summary; the step may be repeated."""


class OverflowPlan:
    """The drafts so far, which never overlap, and the room that they leave."""

    def __init__(self, view: View, pressure: Pressure) -> None:
        self.view = view
        self.pressure = pressure
        self.spare = pressure.room_tokens - view.tokens
        """Free tokens with the drafts applied; negative if the view does not fit."""
        self._drafts: dict[int, tuple[Draft, int]] = {}
        """By first entry, each with the tokens that it saves."""

    @property
    def drafts(self) -> tuple[Draft, ...]:
        """The drafts, in the order of the log."""
        return tuple(self._drafts[first][0] for first in sorted(self._drafts))

    @property
    def summary_end(self) -> int:
        """Position after the conversation summary, or after the opening messages if there is none."""
        summaries = [draft for draft in self.drafts if draft.kind == "summarised"]
        return max([self.view.records_end, *(self.view.span(draft.first, draft.last)[1] for draft in summaries)])

    def put(self, draft: Draft) -> None:
        """Add a draft, replacing those on its entries."""
        for first in [first for first in self._drafts if draft.first <= first <= draft.last]:
            self.spare -= self._drafts.pop(first)[1]
        saved = count_freed_tokens(self.view, draft, pressure=self.pressure)
        self._drafts[draft.first] = draft, saved
        self.spare += saved

    def count_saved_from(self, position: int) -> int:
        """Return the tokens that the drafts on items from that position on save."""
        entry = self.view.items[position].entry
        return sum(saved for first, (_, saved) in self._drafts.items() if first >= entry)


def find_turn_starts(view: View) -> list[int]:
    """Return the positions at which visible turns start: messages in which the user speaks."""
    return [position for position in range(len(view)) if begins_turn(view, position)]


def begins_turn(view: View, position: int) -> bool:
    """Return whether the user speaks in the message at that position, so that a turn begins."""
    item = view.items[position]
    if item.message.role != "user" or item.kind in ("summarised", "dropped") or not view.starts_entry(position):
        return False
    # A repair may insert a user message that the user did not write.
    messages = (message for _, message in view.raw_between(item.entry, item.entry))
    return any(map(speaks, messages))


def find_answered_results(plan: OverflowPlan) -> list[Item]:
    """Return the results after the conversation summary that were answered, oldest first."""
    items = plan.view.items[plan.summary_end : plan.view.find_consumed_end()]
    return [item for item in items if is_worth_clearing(item)]


def resolve_overflow(plan: OverflowPlan, *, slack_tokens: int) -> None:
    """Run the steps that are needed for the view to fit and the slack to be free."""
    for step in (_summarize_evidence, _tighten_summary, _drop_evidence, _drop_turns):
        if plan.spare < slack_tokens:
            step(plan, slack_tokens)


def _summarize_evidence(plan: OverflowPlan, slack_tokens: int) -> None:
    _shorten(plan, slack_tokens, lambda item: _digest(plan, item))


def _drop_evidence(plan: OverflowPlan, slack_tokens: int) -> None:
    _shorten(plan, slack_tokens, lambda item: _clear(plan, item))


def _shorten(plan: OverflowPlan, slack_tokens: int, shorten: Callable[[Item], Iterable[Draft]]) -> None:
    for item in find_answered_results(plan):
        if plan.spare >= slack_tokens:
            return
        for draft in shorten(item):
            plan.put(draft)


def _digest(plan: OverflowPlan, item: Item) -> list[Draft]:
    return digest(plan.view, [item], reason=OLDER_EVIDENCE, pressure=plan.pressure)


def _clear(plan: OverflowPlan, item: Item) -> list[Draft]:
    return clear(plan.view, [item], reason=OLDEST_EVIDENCE, pressure=plan.pressure)


def _tighten_summary(plan: OverflowPlan, slack_tokens: int) -> None:
    view, pressure, end = plan.view, plan.pressure, plan.summary_end
    if end == view.head:
        return
    shown = view.tokens_before(end) - view.tokens_before(view.head)
    first = view.items[view.head].entry
    shown -= sum(
        count_freed_tokens(view, draft, pressure=pressure) for draft in plan.drafts if draft.first == first
    )
    stays = sum(map(pressure.count, carry_over(view, end, pressure=pressure)))
    most_tokens = shown - stays - (slack_tokens - plan.spare)
    most_tokens = max(most_tokens, int((shown - stays) * TIGHTENED_SHARE), MOST_STUB_TOKENS)
    if most_tokens < shown - stays:
        place = Span(view.head, end, most_tokens)
        for draft in fold_spans(view, [place], reason=STEP_SUMMARY, pressure=pressure):
            plan.put(draft)


def _drop_turns(plan: OverflowPlan, slack_tokens: int) -> None:
    """Drop the oldest turns, or rounds of the newest; a summary replaces them if there is room for it."""
    points = find_cut_points(plan.view, plan.pressure)
    starts = set(find_turn_starts(plan.view))
    whole = [point for point in points if point in starts]
    inside = [point for point in points if point > max(whole, default=plan.view.head)]
    tries = [(slack_tokens, whole)]
    if _is_request_carried(plan):
        tries.append((slack_tokens, inside))
    if plan.spare < 0:
        tries += [(0, whole), (0, inside)]
    for (free_tokens, tried), drop in product(tries, (_summarize_before, _cut_before)):
        for point in tried:
            left = _count_allowed(plan, point, free_tokens)
            for draft in drop(plan, point, left) if left > 0 else ():
                if sum(map(plan.pressure.count, draft.replacement)) <= left:
                    plan.put(draft)
                    return


def _is_request_carried(plan: OverflowPlan) -> bool:
    """Return whether what the user asks for remains visible when its entries are dropped."""
    view, pressure = plan.view, plan.pressure
    most_tokens = pressure.room_tokens * MOST_CARRIED_SHARE
    return all(
        view.span(entry, entry)[0] < view.head or pressure.count(message) <= most_tokens
        for entry, message in view.requests.items()
    )


def _count_allowed(plan: OverflowPlan, point: int, free_tokens: int) -> int:
    """Return the tokens that a replacement of everything between the opening messages and ``point`` may use."""
    view = plan.view
    behind = view.tokens - view.tokens_before(point) - plan.count_saved_from(point)
    return plan.pressure.room_tokens - free_tokens - view.tokens_before(view.head) - behind


def _summarize_before(plan: OverflowPlan, point: int, left: int) -> list[Draft]:
    view, pressure = plan.view, plan.pressure
    left -= sum(map(pressure.count, carry_over(view, point, pressure=pressure)))
    place = limit_span(view, view.head, end=point)
    place = Span(place.start, place.end, min(place.most_tokens, left))
    return fold_spans(view, [place], reason=OLDEST_TURNS, pressure=pressure) if left >= MOST_STUB_TOKENS else []


def _cut_before(plan: OverflowPlan, point: int, _left: int) -> list[Draft]:
    return [cut(plan.view, point, reason=OLDEST_TURNS, pressure=plan.pressure)]
