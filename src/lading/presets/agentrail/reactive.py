"""Agentrail's reactive compaction: summarize API rounds when the last request filled a given share of the window.

``micro`` summarizes the oldest few rounds, ``full`` all that may go; the user's last request and the newest rounds
before and after it stay. docs/reference/presets/agentrail.md lists the differences from the document, with reasons.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, TypeAlias

from msgspec import Struct

from lading.compaction import Compaction, Pressure, Strategy
from lading.compaction.basic import admit
from lading.compaction.cutting import find_cut_points
from lading.compaction.span_folding import (
    Span,
    count_spare_tokens,
    deepen,
    fold_spans,
    has_unfolded,
    limit_span,
    summarize_folds,
)
from lading.effects import Steps
from lading.errors import InputError
from lading.history.log import Draft
from lading.history.view import Item, View
from lading.messages import is_spoken
from lading.presets.agentrail.usage import compute_used_pct, describe_room
from lading.validation import check, check_fields

Level: TypeAlias = Literal["", "micro", "full"]
_REASONS = {"micro": "reactive_micro", "full": "reactive_full"}


class Reactive(Struct, frozen=True, forbid_unknown_fields=True):
    """The document's options and defaults. Raises InputError for values out of range."""

    enabled: bool = True
    """False: summarize only when the view does not fit."""
    micro_trigger_pct: float = 85
    """Percent of the whole window that triggers ``micro``, once for each request of the user;"""
    full_trigger_pct: float = 92
    """percent that triggers ``full``."""
    preserve_recent_api_rounds: int = 2
    micro_batch_groups: int = 2
    max_reactive_compactions_per_request: int = 3
    """A request is the user's last one, with all calls that follow."""

    def __post_init__(self) -> None:
        check_fields(self)
        least = min(self.preserve_recent_api_rounds, self.max_reactive_compactions_per_request)
        if least < 0 or self.micro_batch_groups < 1 or not 0 < self.micro_trigger_pct <= self.full_trigger_pct:
            raise InputError(
                "Reactive compaction takes counts from 0 on, micro batches of at least one group, and a full "
                "trigger that is not below the micro trigger."
            )


DEFAULTS = Reactive()


def compact(view: View, pressure: Pressure, *, options: Reactive = DEFAULTS) -> Compaction | Steps[Compaction]:
    """Summarize rounds if the last request filled too much or was refused, or if the view does not fit."""
    drafts = draft_edits(view, pressure, options=options)
    if not drafts and choose_level(view, pressure, options=options):
        return Compaction(stuck="outside the newest rounds no compaction is legal and frees tokens")
    return summarize_folds(view, drafts, pressure=pressure)


def draft_edits(view: View, pressure: Pressure, *, options: Reactive) -> list[Draft]:
    """Draft the rule-based summaries for ``compact``."""
    wanted = choose_level(view, pressure, options=options)
    drafts = _draft_level(view, pressure, wanted, _describe_trigger(view, pressure), options)
    if count_spare_tokens(view, drafts, pressure=pressure) >= 0:
        return drafts
    why = describe_room(pressure, trigger_pct=options.micro_trigger_pct)
    if pressure.past.is_refused:
        why = _describe_trigger(view, pressure)
    if wanted != "full":
        drafts = _draft_level(view, pressure, "full", why, options)
    if count_spare_tokens(view, drafts, pressure=pressure) < 0:
        return deepen(view, reason=_build_reason(view, "full", why), pressure=pressure)
    return drafts


def choose_level(view: View, pressure: Pressure, *, options: Reactive = DEFAULTS) -> Level:
    """Choose the document's level of compaction for this call; empty for none."""
    if pressure.past.is_refused:
        return "full"
    used = compute_used_pct(view, pressure)
    if not options.enabled or used < options.micro_trigger_pct:
        return ""
    done = {edit.call: edit.reason for edit in pressure.past.edits if _is_of_request(view, edit.reason)}
    if len(done) >= options.max_reactive_compactions_per_request:
        return ""
    had_micro = any(reason.startswith(_REASONS["micro"]) for reason in done.values())
    return "full" if used >= options.full_trigger_pct or had_micro else "micro"


def find_rounds(view: View) -> tuple[list[int], list[int]]:
    """Return the bounds of the API rounds between the opening messages and the user's last request, and of those
    after it: the start of each round, and the end of the last. Empty without rounds."""
    asked, answered = _find_request(view)
    return _find_bounds(view, view.head, asked), _find_bounds(view, answered, len(view))


def find_spans(view: View, pressure: Pressure, *, wanted: Level, options: Reactive = DEFAULTS) -> list[Span]:
    """Return the spans to summarize at a level, each up to the last legal cut in it."""
    legal = {view.head, *find_cut_points(view, pressure)}
    found: list[Span] = []
    for bounds in find_rounds(view):
        most = len(bounds) - 1 - options.preserve_recent_api_rounds
        if wanted == "micro":
            most = min(most, options.micro_batch_groups)
        ends = [bound for bound in bounds[1 : max(most, 0) + 1] if bound in legal]
        if ends and bounds[0] in legal and has_unfolded(view, bounds[0], end=ends[-1]):
            found.append(limit_span(view, bounds[0], end=ends[-1]))
    return found[:1] if wanted == "micro" else found


def _draft_level(view: View, pressure: Pressure, wanted: Level, why: str, options: Reactive) -> list[Draft]:
    if not wanted:
        return []
    places = find_spans(view, pressure, wanted=wanted, options=options)
    return fold_spans(view, places, reason=_build_reason(view, wanted, why), pressure=pressure)


def _find_request(view: View) -> tuple[int, int]:
    """Return the start of the user's last request, and the start of the first round after it."""
    entry = view.newest_request[0] if view.newest_request else -1
    start, end = (max(position, view.head) for position in view.span(entry, entry))
    while start > view.head and _is_prompt(view.items[start - 1]):
        start -= 1
    while end < len(view) and view.items[end].message.role != "assistant":
        end += 1
    return start, end


def _is_prompt(item: Item) -> bool:
    return is_spoken(item.message) and item.kind not in ("summarised", "dropped")


def _find_bounds(view: View, start: int, end: int) -> list[int]:
    inner = (position for position in range(start + 1, end) if view.items[position].message.role == "assistant")
    return [start, *inner, end] if start < end else []


def _describe_trigger(view: View, pressure: Pressure) -> str:
    if pressure.past.is_refused:
        return "the prompt was too long"
    return f"{int(compute_used_pct(view, pressure))} % of the window"


def _build_reason(view: View, wanted: Literal["micro", "full"], why: str) -> str:
    return f"{_REASONS[wanted]}: {why}{_mark_request(view)}"


def _is_of_request(view: View, reason: str) -> bool:
    return reason.startswith(tuple(_REASONS.values())) and reason.endswith(_mark_request(view))


def _mark_request(view: View) -> str:
    """Return the mark of the current request, which ends the reasons of its edits, also after reopening."""
    return f", request {view.newest_request[0] if view.newest_request else 0}"


def strategy(options: Reactive) -> Strategy:
    """Build the strategy with these options. Raises InputError if they are not a ``Reactive``."""
    check(options, Reactive, advice="options are Reactive(...)")
    return Strategy("agentrail/reactive", partial(compact, options=options), admit=admit)


STRATEGY = strategy(DEFAULTS)
