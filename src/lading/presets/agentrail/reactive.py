"""Reactive compaction (Agentrail): API rounds are folded when the last request filled so much of the window.

``micro`` folds the oldest few rounds, ``full`` all that may be folded; what the user asked last and the newest
rounds before and behind it stay. What differs from the document, and why: docs/reference/presets/agentrail.md.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, TypeAlias

from msgspec import Struct

from lading.compaction import Compaction, Pressure, Strategy
from lading.compaction.basic import admit
from lading.compaction.cutting import cut_points
from lading.compaction.deepening import Span, deepened, folded, is_new, span, spare, told
from lading.effects import Steps
from lading.errors import InputError
from lading.history.log import Draft
from lading.history.view import Item, View
from lading.messages import is_spoken
from lading.validation import check, check_fields

Level: TypeAlias = Literal["", "micro", "full"]
_REASONS = {"micro": "reactive_micro", "full": "reactive_full"}


class Reactive(Struct, frozen=True, forbid_unknown_fields=True):
    """The document's options, with its defaults. Raises InputError for what is no number of its kind."""

    enabled: bool = True
    """Off: only what does not fit is folded."""
    micro_trigger_pct: float = 85
    """Of the window; from there on ``micro``, once for each request of the user ..."""
    full_trigger_pct: float = 92
    """... and from there on ``full``."""
    preserve_recent_api_rounds: int = 2
    micro_batch_groups: int = 2
    max_reactive_compactions_per_request: int = 3
    """A request is what the user asked last, with all calls that follow."""

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
    """Folds when the last request filled too much or was refused, and when the view does not fit."""
    drafts = drafted(view, pressure, options=options)
    if not drafts and level(view, pressure, options=options):
        return Compaction(stuck="outside the newest rounds no compaction is legal and frees tokens")
    return told(view, drafts, pressure=pressure)


def drafted(view: View, pressure: Pressure, *, options: Reactive) -> list[Draft]:
    """What ``compact`` folds, as rules tell it."""
    wanted, why = level(view, pressure, options=options), _why(view, pressure)
    drafts = _folded(view, pressure, wanted, why, options)
    if spare(view, drafts, pressure=pressure) < 0 and wanted != "full":
        drafts = _folded(view, pressure, "full", why, options)
    if spare(view, drafts, pressure=pressure) < 0:
        return deepened(view, reason=_reason(view, "full", why), pressure=pressure)
    return drafts


def level(view: View, pressure: Pressure, *, options: Reactive = DEFAULTS) -> Level:
    """Which compaction the document asks for at this call; empty for none."""
    if pressure.past.is_refused:
        return "full"
    filled = filled_pct(view, pressure)
    if not options.enabled or filled < options.micro_trigger_pct:
        return ""
    done = {edit.call: edit.reason for edit in pressure.past.edits if _is_of_request(view, edit.reason)}
    if len(done) >= options.max_reactive_compactions_per_request:
        return ""
    had_micro = any(reason.startswith(_REASONS["micro"]) for reason in done.values())
    return "full" if filled >= options.full_trigger_pct or had_micro else "micro"


def filled_pct(view: View, pressure: Pressure) -> float:
    """How much the last request filled of what a request may take, as its provider reported; where it did not,
    how much the view fills of its room."""
    past = pressure.past
    if past.reported_tokens is not None:
        return 100 * past.reported_tokens / max(past.limit_tokens, 1)
    return 100 * view.tokens / max(pressure.room_tokens, 1)


def rounds(view: View) -> tuple[list[int], list[int]]:
    """The bounds of the API rounds between the head and what the user asked last, and of those behind it: where
    each starts, and where the last one ends. No rounds: no bounds."""
    asked, answered = _request(view)
    return _bounds(view, view.head, asked), _bounds(view, answered, len(view))


def spans(view: View, pressure: Pressure, *, wanted: Level, options: Reactive = DEFAULTS) -> list[Span]:
    """What a compaction of that level folds, each span up to the last legal cut in it."""
    legal = {view.head, *cut_points(view, pressure)}
    found: list[Span] = []
    for bounds in rounds(view):
        most = len(bounds) - 1 - options.preserve_recent_api_rounds
        if wanted == "micro":
            most = min(most, options.micro_batch_groups)
        ends = [bound for bound in bounds[1 : max(most, 0) + 1] if bound in legal]
        if ends and bounds[0] in legal and is_new(view, bounds[0], end=ends[-1]):
            found.append(span(view, bounds[0], end=ends[-1]))
    return found[:1] if wanted == "micro" else found


def _folded(view: View, pressure: Pressure, wanted: Level, why: str, options: Reactive) -> list[Draft]:
    if not wanted:
        return []
    places = spans(view, pressure, wanted=wanted, options=options)
    return folded(view, places, reason=_reason(view, wanted, why), pressure=pressure)


def _request(view: View) -> tuple[int, int]:
    """Where what the user asked last starts, and where the first round behind it does."""
    entry = view.newest_request[0] if view.newest_request else -1
    start, end = (max(position, view.head) for position in view.span(entry, entry))
    while start > view.head and _is_prompt(view.items[start - 1]):
        start -= 1
    while end < len(view) and view.items[end].message.role != "assistant":
        end += 1
    return start, end


def _is_prompt(item: Item) -> bool:
    return is_spoken(item.message) and item.kind not in ("summarised", "dropped")


def _bounds(view: View, start: int, end: int) -> list[int]:
    inner = (position for position in range(start + 1, end) if view.items[position].message.role == "assistant")
    return [start, *inner, end] if start < end else []


def _why(view: View, pressure: Pressure) -> str:
    if pressure.past.is_refused:
        return "the prompt was too long"
    return f"{filled_pct(view, pressure):.0f} % of the window"


def _reason(view: View, wanted: Literal["micro", "full"], why: str) -> str:
    return f"{_REASONS[wanted]}: {why}{_request_mark(view)}"


def _is_of_request(view: View, reason: str) -> bool:
    return reason.startswith(tuple(_REASONS.values())) and reason.endswith(_request_mark(view))


def _request_mark(view: View) -> str:
    """By which an edit's reason tells for which request of the user it was made, also after reopening."""
    return f", request {view.newest_request[0] if view.newest_request else 0}"


def strategy(options: Reactive) -> Strategy:
    """The strategy with other options. Raises InputError for what is none."""
    check(options, Reactive, advice="options are Reactive(...)")
    return Strategy("reactive", partial(compact, options=options), admit=admit)


STRATEGY = strategy(DEFAULTS)
