"""``conversation-tail`` (aether-frame): the last turns stay verbatim, older ones are a conversation summary, tool
outputs that were answered are summaries with pointers.

That is decided when the user speaks, and where a request does not fit. What differs from the document, and why:
docs/reference/presets/aether-frame.md.
"""

from __future__ import annotations

from functools import partial

from msgspec import Struct

from lading.compaction import Compaction, Pressure, Strategy
from lading.compaction.basic import admit
from lading.compaction.cutting import cut_points
from lading.compaction.deepening import folded, is_new, span, told
from lading.compaction.digesting import digest
from lading.effects import Steps
from lading.errors import InputError
from lading.history.view import View
from lading.presets.aether_frame.overflow import STEP_SUMMARY, Plan, is_spoken, overflow, turns, used
from lading.validation import check, check_fields

OLDER_TURNS = "conversation: older than the last {} turns"
EVIDENCE = "evidence: answered, its raw output is in the store"


class Tail(Struct, frozen=True, forbid_unknown_fields=True):
    """The document's numbers. Raises InputError for ones that mean nothing."""

    last_n_turns: int = 5
    """Turns that stay verbatim; the one that the user has just begun is the newest of them."""
    slack_percent: float = 10
    """Of the room, what each overflow step tries to leave free: it takes in what comes next."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.last_n_turns < 1 or not 0 <= self.slack_percent < 100:
            raise InputError("Give last_n_turns of 1 or more, and a slack_percent from 0 to below 100.")


DEFAULTS = Tail()


def compact(view: View, pressure: Pressure, *, options: Tail = DEFAULTS) -> Compaction | Steps[Compaction]:
    """The tail and the evidence when the user has spoken; what a full window asks for beyond that."""
    plan, has_spoken = Plan(view, pressure), _has_spoken(view)
    if has_spoken or plan.spare < 0:
        _summarise_older_turns(plan, options)
    if has_spoken:
        answered = [item for item in used(plan) if not any(result.is_error for result in item.message.results)]
        for draft in digest(view, answered, reason=EVIDENCE, pressure=pressure):
            plan.put(draft)
    if plan.spare < 0:
        overflow(plan, slack_tokens=int(pressure.room_tokens * options.slack_percent / 100))
    if any(draft.reason == STEP_SUMMARY for draft in plan.drafts):
        # A model's words would take what was just made free.
        return Compaction(plan.drafts)
    return told(view, plan.drafts, pressure=pressure)


def _summarise_older_turns(plan: Plan, options: Tail) -> None:
    view, pressure = plan.view, plan.pressure
    starts = turns(view)
    if len(starts) < options.last_n_turns:
        return
    points = [point for point in cut_points(view, pressure) if point <= starts[-options.last_n_turns]]
    if points and is_new(view, view.head, end=points[-1]):
        reason = OLDER_TURNS.format(options.last_n_turns)
        for draft in folded(view, [span(view, view.head, end=points[-1])], reason=reason, pressure=pressure):
            plan.put(draft)


def _has_spoken(view: View) -> bool:
    """Whether the next call is the first that answers what the user says."""
    position = len(view)
    while position and view.items[position - 1].message.role != "assistant":
        position -= 1
    return any(is_spoken(view, new) for new in range(position, len(view)))


def strategy(options: Tail) -> Strategy:
    """The strategy with other options. Raises InputError for what is none."""
    check(options, Tail, advice="options are Tail(...)")
    return Strategy("conversation-tail", partial(compact, options=options), admit=admit)


STRATEGY = strategy(DEFAULTS)
