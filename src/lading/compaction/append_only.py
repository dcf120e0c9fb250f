"""Change nothing. When the history no longer fits, the engine raises a typed error."""

from __future__ import annotations

from lading.compaction import Compaction, Pressure, Strategy
from lading.history.view import View


def compact(_view: View, _pressure: Pressure) -> Compaction:
    """Return no drafts."""
    return Compaction()


STRATEGY = Strategy("append-only", compact, changes_requests=False)
