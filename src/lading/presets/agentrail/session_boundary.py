"""Request-boundary compaction (Agentrail): when the user asks again and the history is large, its oldest third is
folded. What differs from the document, and why: docs/reference/presets/agentrail.md.
"""

from __future__ import annotations

from functools import partial

from msgspec import Struct

from lading.compaction import Compaction, Pressure, Strategy
from lading.compaction.basic import admit
from lading.compaction.cutting import cut_points
from lading.compaction.deepening import deepened, folded, is_new, span, spare, told
from lading.effects import Steps
from lading.errors import InputError
from lading.history.log import Draft
from lading.history.view import View
from lading.validation import check, check_fields

REASON = "session_compaction"


class Boundary(Struct, frozen=True, forbid_unknown_fields=True):
    """The document's options, with the numbers of its example. Raises InputError for ones that mean nothing."""

    trigger_tokens: int = 80_000
    min_messages: int = 20
    compact_fraction: float = 1 / 3
    """Of the messages, the oldest ones."""

    def __post_init__(self) -> None:
        check_fields(self)
        if min(self.trigger_tokens, self.min_messages) < 0 or not 0 < self.compact_fraction <= 1:
            raise InputError("Give trigger_tokens and min_messages from 0 on, and a compact_fraction up to 1.")


DEFAULTS = Boundary()


def compact(view: View, pressure: Pressure, *, options: Boundary = DEFAULTS) -> Compaction | Steps[Compaction]:
    """A fold of the oldest messages at the first call that answers the user; a deeper one where the view does not
    fit."""
    drafts = drafted(view, pressure, options=options)
    if spare(view, drafts, pressure=pressure) < 0:
        drafts = deepened(view, reason=f"{REASON}: the window is full", pressure=pressure)
    return told(view, drafts, pressure=pressure)


def drafted(view: View, pressure: Pressure, *, options: Boundary) -> list[Draft]:
    """The fold, as rules tell it; none where nothing is due."""
    if pressure.past.is_refused or not _opens(view):
        return []
    messages = [item for item in view.items if item.message.role != "system"]
    tokens = sum(item.tokens for item in messages)
    if len(messages) < options.min_messages or tokens <= options.trigger_tokens:
        return []
    end = boundary(view, pressure, options=options)
    if end is None or not is_new(view, view.head, end=end):
        return []
    reason = f"{REASON}: {tokens:,} tokens at the start of a request"
    return folded(view, [span(view, view.head, end=end)], reason=reason, pressure=pressure)


def boundary(view: View, pressure: Pressure, *, options: Boundary = DEFAULTS) -> int | None:
    """The position up to which the oldest messages are folded: the document's, moved on past results to where a
    cut is legal, or back where none follows; None without any."""
    systems = sum(item.message.role == "system" for item in view.items)
    wanted = systems + max(1, int((len(view) - systems) * options.compact_fraction))
    points = cut_points(view, pressure)
    return next((point for point in points if point >= wanted), points[-1] if points else None)


def _opens(view: View) -> bool:
    """Whether the next call is the first that answers what the user asked last."""
    asked = view.span(view.newest_request[0], view.newest_request[0])[0] if view.newest_request else len(view)
    return asked < len(view) and all(item.message.role != "assistant" for item in view.items[asked:])


def strategy(options: Boundary) -> Strategy:
    """The strategy with other options. Raises InputError for what is none."""
    check(options, Boundary, advice="options are Boundary(...)")
    return Strategy("session_compaction", partial(compact, options=options), admit=admit)


STRATEGY = strategy(DEFAULTS)
