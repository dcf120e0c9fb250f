"""What gives way where a request does not fit, in the document's order: older evidence becomes summaries, the
conversation summary gets shorter, then the oldest evidence leaves, then the oldest turns.

A step is taken only where all before it do not leave the slack free, and goes on, the oldest first, until it is: so
the next calls need none. Memory has no place in a history, and tools give way after all of this, in the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product

from lading.compaction import Pressure
from lading.compaction.clearing import clear, consumed_before, worth_clearing
from lading.compaction.cutting import MOST_CARRIED_SHARE, MOST_STUB_TOKENS, carried, cut, cut_points
from lading.compaction.deepening import Span, folded, saving, span
from lading.compaction.digesting import digest
from lading.compaction.folding import folds
from lading.history.log import Draft
from lading.history.view import Item, View
from lading.messages import is_spoken as speaks

OLDER_EVIDENCE = "evidence: overflow (ii), older evidence becomes a summary"
STEP_SUMMARY = "conversation: overflow (iv), the summary is tightened"
OLDEST_EVIDENCE = "evidence: overflow, the oldest is dropped"
OLDEST_TURNS = "conversation: overflow, the oldest turns are dropped"
TIGHTENED_SHARE = 0.5
"""A summary that is tightened keeps so much of its size: it may be tightened again."""


class Plan:
    """The drafts so far, none of which touches another's entries, and the room that they leave."""

    def __init__(self, view: View, pressure: Pressure) -> None:
        self.view = view
        self.pressure = pressure
        self.spare = pressure.room_tokens - view.tokens
        """Tokens that are free once the drafts apply; negative where they do not fit."""
        self._drafts: dict[int, tuple[Draft, int]] = {}
        """By first entry, each with what it saves."""

    @property
    def drafts(self) -> tuple[Draft, ...]:
        """The drafts, in the order of the log."""
        return tuple(self._drafts[first][0] for first in sorted(self._drafts))

    @property
    def summary_end(self) -> int:
        """The position behind the conversation summary; the head's end where there is none."""
        summaries = [draft for draft in self.drafts if draft.kind == "summarised"]
        return max([folds(self.view), *(self.view.span(draft.first, draft.last)[1] for draft in summaries)])

    def put(self, draft: Draft) -> None:
        """Take in a draft, in place of those on its entries."""
        for first in [first for first in self._drafts if draft.first <= first <= draft.last]:
            self.spare -= self._drafts.pop(first)[1]
        saved = saving(self.view, draft, pressure=self.pressure)
        self._drafts[draft.first] = draft, saved
        self.spare += saved

    def saved_from(self, position: int) -> int:
        """What the drafts on the items from there on save."""
        entry = self.view.items[position].entry
        return sum(saved for first, (_, saved) in self._drafts.items() if first >= entry)


def turns(view: View) -> list[int]:
    """Where each turn starts that is shown: at a message in which the user speaks."""
    return [position for position in range(len(view)) if is_spoken(view, position)]


def is_spoken(view: View, position: int) -> bool:
    """Whether the user speaks in the message there, and a turn begins."""
    item = view.items[position]
    if item.message.role != "user" or item.kind in ("summarised", "dropped") or not view.starts_entry(position):
        return False
    # A repair may put words of a user where nobody spoke.
    said = (message for _, message in view.raw_between(item.entry, item.entry))
    return any(map(speaks, said))


def used(plan: Plan) -> list[Item]:
    """The results behind the conversation summary that were answered, the oldest first."""
    items = plan.view.items[plan.summary_end : consumed_before(plan.view)]
    return [item for item in items if worth_clearing(item)]


def overflow(plan: Plan, *, slack_tokens: int) -> None:
    """Take the steps that the plan needs to fit and to leave the slack free."""
    for step in (_summarise_evidence, _tighten_summary, _drop_evidence, _drop_turns):
        if plan.spare < slack_tokens:
            step(plan, slack_tokens)


def _summarise_evidence(plan: Plan, slack_tokens: int) -> None:
    _shorten(plan, slack_tokens, lambda item: _digested(plan, item))


def _drop_evidence(plan: Plan, slack_tokens: int) -> None:
    _shorten(plan, slack_tokens, lambda item: _cleared(plan, item))


def _shorten(plan: Plan, slack_tokens: int, shorten: Callable[[Item], Iterable[Draft]]) -> None:
    for item in used(plan):
        if plan.spare >= slack_tokens:
            return
        for draft in shorten(item):
            plan.put(draft)


def _digested(plan: Plan, item: Item) -> list[Draft]:
    return digest(plan.view, [item], reason=OLDER_EVIDENCE, pressure=plan.pressure)


def _cleared(plan: Plan, item: Item) -> list[Draft]:
    return clear(plan.view, [item], reason=OLDEST_EVIDENCE, pressure=plan.pressure)


def _tighten_summary(plan: Plan, slack_tokens: int) -> None:
    view, pressure, end = plan.view, plan.pressure, plan.summary_end
    if end == view.head:
        return
    shown = view.tokens_before(end) - view.tokens_before(view.head)
    first = view.items[view.head].entry
    shown -= sum(saving(view, draft, pressure=pressure) for draft in plan.drafts if draft.first == first)
    stays = sum(map(pressure.count, carried(view, end, pressure=pressure)))
    most_tokens = shown - stays - (slack_tokens - plan.spare)
    most_tokens = max(most_tokens, int((shown - stays) * TIGHTENED_SHARE), MOST_STUB_TOKENS)
    if most_tokens < shown - stays:
        place = Span(view.head, end, most_tokens)
        for draft in folded(view, [place], reason=STEP_SUMMARY, pressure=pressure):
            plan.put(draft)


def _drop_turns(plan: Plan, slack_tokens: int) -> None:
    """Drop whole turns, the oldest first; rounds of the newest turn where it holds too much itself. The summary
    tells of them where there is room for it."""
    points = cut_points(plan.view, plan.pressure)
    starts = set(turns(plan.view))
    whole = [point for point in points if point in starts]
    inside = [point for point in points if point > max(whole, default=plan.view.head)]
    tries = [(slack_tokens, whole)]
    if _stays_asked(plan):
        tries.append((slack_tokens, inside))
    if plan.spare < 0:
        tries += [(0, whole), (0, inside)]
    for (free_tokens, tried), drop in product(tries, (_folded_before, _cut_before)):
        for point in tried:
            left = _left(plan, point, free_tokens)
            for draft in drop(plan, point, left) if left > 0 else ():
                if sum(map(plan.pressure.count, draft.replacement)) <= left:
                    plan.put(draft)
                    return


def _stays_asked(plan: Plan) -> bool:
    """Whether what the user asked last is shown again where its place in the history leaves."""
    asked, pressure = plan.view.newest_request, plan.pressure
    is_head = asked is not None and plan.view.span(asked[0], asked[0])[0] < plan.view.head
    return is_head or asked is None or pressure.count(asked[1]) <= pressure.room_tokens * MOST_CARRIED_SHARE


def _left(plan: Plan, point: int, free_tokens: int) -> int:
    """What may stand in place of everything between the head and that point."""
    view = plan.view
    behind = view.tokens - view.tokens_before(point) - plan.saved_from(point)
    return plan.pressure.room_tokens - free_tokens - view.tokens_before(view.head) - behind


def _folded_before(plan: Plan, point: int, left: int) -> list[Draft]:
    view, pressure = plan.view, plan.pressure
    left -= sum(map(pressure.count, carried(view, point, pressure=pressure)))
    place = span(view, view.head, end=point)
    place = Span(place.start, place.end, min(place.most_tokens, left))
    return folded(view, [place], reason=OLDEST_TURNS, pressure=pressure) if left >= MOST_STUB_TOKENS else []


def _cut_before(plan: Plan, point: int, _left: int) -> list[Draft]:
    return [cut(plan.view, point, reason=OLDEST_TURNS, pressure=plan.pressure)]
