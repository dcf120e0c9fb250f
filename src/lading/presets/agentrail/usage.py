"""Agentrail's context usage: the share of ``contextWindow``, the whole window, that a prompt took."""

from __future__ import annotations

from lading.budget import used_pct
from lading.compaction import Pressure
from lading.history.view import View

CONTEXT_WINDOW = 200_000
"""The document's ``contextWindow`` of a host that gives none."""


def budget_used_pct(input_tokens: int, context_window: int = CONTEXT_WINDOW) -> int:
    """Return the document's ``budgetUsedPct`` of one request: its input, cached input included, as a percentage of
    the window, with halves rounded up."""
    return used_pct(input_tokens, context_window)


def compute_used_pct(view: View, pressure: Pressure) -> float:
    """Return the percentage of the window that the last request used by its reported usage; without a report, the
    percentage that the next one leaves neither free nor reserved, by the session's count and its margin."""
    past = pressure.past
    used = past.reported_tokens
    if used is None:
        used = past.limit_tokens - (pressure.room_tokens - view.tokens)
    return 100 * used / max(past.window_tokens, 1)


def describe_room(pressure: Pressure, *, trigger_pct: float) -> str:
    """Describe a request that does not fit, and that no request of this session can reach a trigger, if so."""
    window, limit = pressure.past.window_tokens, pressure.past.limit_tokens
    if limit >= window * trigger_pct / 100:
        return "the request does not fit"
    return (
        f"the request does not fit, and requests end at {100 * limit / max(window, 1):.0f} % of the window, before "
        f"{trigger_pct:g} %: the rest is kept for the answer"
    )
