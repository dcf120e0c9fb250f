"""Amounts of tokens as the command line takes them: ``16k``, ``1m`` or ``64000``."""

from __future__ import annotations

import re

MOST_TOKENS = 10**9
"""No window is larger; the yardstick of the replay is."""
_AMOUNT = re.compile(r"(\d{1,20}(?:\.\d{1,3})?)([km]?)", re.ASCII | re.IGNORECASE)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


def tokens_of(text: str, *, least: int) -> int:
    """The tokens that these words name, from ``least`` on. Raises ValueError with what to give instead."""
    match = _AMOUNT.fullmatch(text)
    tokens = round(float(match[1]) * _UNITS[match[2].lower()]) if match else -1
    if not least <= tokens <= MOST_TOKENS:
        raise ValueError(f"give tokens such as 16k or 64000, a whole number from {least} to {MOST_TOKENS:,}")
    return tokens
