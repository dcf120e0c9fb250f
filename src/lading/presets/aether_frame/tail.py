"""The strategy ``aether_frame/conversation_tail``: the last turns stay verbatim, older ones become a conversation
summary, answered tool results become digests with pointers. With ``aether_frame/evidence_only`` a result is a
digest from its first request on.

Edits are made when the user speaks, and when a request does not fit. Differences from the document:
docs/reference/presets/aether-frame.md.
"""

from __future__ import annotations

from functools import partial

from msgspec import Struct

from lading.compaction import Arrival, Compaction, Pressure, Strategy, basic
from lading.compaction.cutting import find_cut_points
from lading.compaction.digesting import digest
from lading.compaction.span_folding import fold_spans, has_unfolded, limit_span, summarize_folds
from lading.effects import Steps
from lading.errors import InputError
from lading.history.log import Draft
from lading.history.view import View
from lading.presets.aether_frame import overflow
from lading.validation import check, check_fields

OLDER_TURNS = "conversation: older than the last {} turns"
EVIDENCE = "evidence: answered, its raw output is in the store"
RAW_OUTPUT = "evidence: raw outputs stay in the store"


class Tail(Struct, frozen=True, forbid_unknown_fields=True):
    """The document's options. Raises InputError for values out of range."""

    last_n_turns: int = 5
    """Turns that stay verbatim, including the one that the user has just begun."""
    slack_percent: float = 10
    """Share of the room, in percent, that each overflow step tries to leave free for what comes next."""
    evidence_only: bool = False
    """Whether no request shows a raw output, as the document has it: a new result is sent as its summary and
    address. False: it stays whole until it is answered and the user speaks again."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.last_n_turns < 1 or not 0 <= self.slack_percent < 100:
            raise InputError("Give last_n_turns of 1 or more, and a slack_percent from 0 to below 100.")


DEFAULTS = Tail()


def compact(view: View, pressure: Pressure, *, options: Tail = DEFAULTS) -> Compaction | Steps[Compaction]:
    """Summarize older turns and digest evidence once the user has spoken; resolve overflow at any call."""
    plan, has_spoken = overflow.OverflowPlan(view, pressure), _has_user_spoken(view)
    if has_spoken or plan.spare < 0:
        _summarize_older_turns(plan, options)
    if has_spoken:
        answered = overflow.find_answered_results(plan)
        answered = [item for item in answered if not any(result.is_error for result in item.message.results)]
        for draft in digest(view, answered, reason=EVIDENCE, pressure=pressure):
            plan.put(draft)
    if plan.spare < 0:
        overflow.resolve_overflow(plan, slack_tokens=int(pressure.room_tokens * options.slack_percent / 100))
    if any(draft.reason == overflow.STEP_SUMMARY for draft in plan.drafts):
        # A model's summary would use the tokens that were just freed.
        return Compaction(plan.drafts)
    return summarize_folds(view, plan.drafts, pressure=pressure)


def _summarize_older_turns(plan: overflow.OverflowPlan, options: Tail) -> None:
    view, pressure = plan.view, plan.pressure
    starts = overflow.find_turn_starts(view)
    if len(starts) < options.last_n_turns:
        return
    points = [point for point in find_cut_points(view, pressure) if point <= starts[-options.last_n_turns]]
    if points and has_unfolded(view, view.head, end=points[-1]):
        reason = OLDER_TURNS.format(options.last_n_turns)
        for draft in fold_spans(
            view, [limit_span(view, view.head, end=points[-1])], reason=reason, pressure=pressure
        ):
            plan.put(draft)


def _has_user_spoken(view: View) -> bool:
    """Return whether the user has spoken since the last reply."""
    position = len(view)
    while position and view.items[position - 1].message.role != "assistant":
        position -= 1
    return any(overflow.begins_turn(view, new) for new in range(position, len(view)))


def admit_evidence(arrival: Arrival, pressure: Pressure) -> Draft | None:
    """Send a new result as its summary and address; an error, and what is shorter than that, as it is."""
    if not any(result.is_error for result in arrival.item.message.results):
        for draft in digest(arrival.view, [arrival.item], reason=RAW_OUTPUT, pressure=pressure):
            return draft
    return basic.admit(arrival, pressure)


def strategy(options: Tail) -> Strategy:
    """Build the strategy with these options. Raises InputError if they are not a ``Tail``."""
    check(options, Tail, advice="options are Tail(...)")
    name, admit = "conversation_tail", basic.admit
    if options.evidence_only:
        name, admit = "evidence_only", admit_evidence
    return Strategy(f"aether_frame/{name}", partial(compact, options=options), admit=admit)


STRATEGY = strategy(DEFAULTS)
EVIDENCE_ONLY = strategy(Tail(evidence_only=True))
