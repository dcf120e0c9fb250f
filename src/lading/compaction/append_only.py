"""Changes nothing. When the history no longer fits, the engine says so with a typed error."""

from __future__ import annotations

from lading.compaction import Compaction, Pressure, Strategy
from lading.history.view import View


def compact(_view: View, _pressure: Pressure) -> Compaction:
    """No drafts, ever."""
    return Compaction()


STRATEGY = Strategy("append-only", compact, changes_requests=False)
