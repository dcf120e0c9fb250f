"""Points in time as session files write them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

# No session was recorded before 1973 in milliseconds, none will be after 5138 in seconds.
_MILLISECONDS_FROM = 1e11
_MILLISECONDS_TO = 1e15


def seconds(value: Any) -> float | None:
    """Seconds since 1970 of a number (seconds, or milliseconds by size) or an ISO 8601 text (UTC where it
    names no zone). None for anything else."""
    if isinstance(value, str):
        return _from_iso(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _MILLISECONDS_TO:
        return None
    return float(value / 1000 if value >= _MILLISECONDS_FROM else value)


def _from_iso(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
