"""Agentrail's request-boundary compaction: summarize the oldest third of a large history when the user makes a
new request. docs/reference/presets/agentrail.md lists the differences from the document, with reasons."""

from __future__ import annotations

from functools import partial

from msgspec import Struct

from lading.compaction import Compaction, Pressure, Strategy
from lading.compaction.basic import admit
from lading.compaction.cutting import find_cut_points
from lading.compaction.span_folding import (
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
from lading.history.view import View
from lading.validation import check, check_fields

REASON = "session_compaction"


class Boundary(Struct, frozen=True, forbid_unknown_fields=True):
    """The document's options, with the numbers of its example. Raises InputError for values out of range."""

    trigger_tokens: int = 80_000
    min_messages: int = 20
    compact_fraction: float = 1 / 3
    """Share of the messages that is summarized, the oldest ones."""

    def __post_init__(self) -> None:
        check_fields(self)
        if min(self.trigger_tokens, self.min_messages) < 0 or not 0 < self.compact_fraction <= 1:
            raise InputError("Give trigger_tokens and min_messages from 0 on, and a compact_fraction up to 1.")


DEFAULTS = Boundary()


def compact(view: View, pressure: Pressure, *, options: Boundary = DEFAULTS) -> Compaction | Steps[Compaction]:
    """Summarize the oldest messages at the first call after a user request; more if the view does not fit."""
    drafts = draft_edits(view, pressure, options=options)
    if count_spare_tokens(view, drafts, pressure=pressure) < 0:
        drafts = deepen(view, reason=f"{REASON}: the window is full", pressure=pressure)
    return summarize_folds(view, drafts, pressure=pressure)


def draft_edits(view: View, pressure: Pressure, *, options: Boundary) -> list[Draft]:
    """Draft the rule-based summary; an empty list if none is due."""
    if pressure.past.is_refused or not _opens_request(view):
        return []
    messages = [item for item in view.items if item.message.role != "system"]
    tokens = sum(item.tokens for item in messages)
    if len(messages) < options.min_messages or tokens <= options.trigger_tokens:
        return []
    end = find_boundary(view, pressure, options=options)
    if end is None or not has_unfolded(view, view.head, end=end):
        return []
    reason = f"{REASON}: {tokens:,} tokens at the start of a request"
    return fold_spans(view, [limit_span(view, view.head, end=end)], reason=reason, pressure=pressure)


def find_boundary(view: View, pressure: Pressure, *, options: Boundary = DEFAULTS) -> int | None:
    """Return the position up to which the oldest messages are summarized: the document's, moved forward past
    results to a legal cut, or back if none follows; None without any legal cut."""
    systems = sum(item.message.role == "system" for item in view.items)
    wanted = systems + max(1, int((len(view) - systems) * options.compact_fraction))
    points = find_cut_points(view, pressure)
    return next((point for point in points if point >= wanted), points[-1] if points else None)


def _opens_request(view: View) -> bool:
    """Return whether the next call is the first that answers the user's last request."""
    asked = view.span(view.newest_request[0], view.newest_request[0])[0] if view.newest_request else len(view)
    return asked < len(view) and all(item.message.role != "assistant" for item in view.items[asked:])


def strategy(options: Boundary) -> Strategy:
    """Build the strategy with these options. Raises InputError if they are not a ``Boundary``."""
    check(options, Boundary, advice="options are Boundary(...)")
    return Strategy("agentrail/session_compaction", partial(compact, options=options), admit=admit)


STRATEGY = strategy(DEFAULTS)
