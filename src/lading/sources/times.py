"""Parse the timestamps of session files."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

# Larger numbers are milliseconds: these begin in 1973, while as seconds they would begin in 5138.
_MILLISECONDS_FROM = 1e11
_MILLISECONDS_TO = 1e15


def parse_time(value: Any) -> float | None:
    """Parse a number of seconds or, by its size, milliseconds, or an ISO 8601 text (UTC if it has no zone) into
    seconds since 1970. None for anything else."""
    if isinstance(value, str):
        return _parse_iso(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _MILLISECONDS_TO:
        return None
    return float(value / 1000 if value >= _MILLISECONDS_FROM else value)


def _parse_iso(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
