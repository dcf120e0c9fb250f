"""Change nothing. When the history no longer fits, the engine raises a typed error."""

from __future__ import annotations

from lading.compaction import Strategy

STRATEGY = Strategy("append-only", changes_requests=False)
