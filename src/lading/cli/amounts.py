"""Amounts as the command line takes them: tokens such as ``16k`` or ``64000``, shares such as ``.8`` or
``80%``, prices such as ``.10/1.25`` (cached read / cache write)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from lading.economics import Rates

MOST_TOKENS = 10**9
"""No window is larger; the yardstick of the replay is."""
_AMOUNT = re.compile(r"(\d{1,20}(?:\.\d{1,3})?)([km]?)", re.ASCII | re.IGNORECASE)
_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,9})?|\.\d{1,9})(%?)", re.ASCII)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


def tokens_of(text: str, *, least: int) -> int:
    """The tokens that these words name, from ``least`` on. Raises ValueError with what to give instead."""
    match = _AMOUNT.fullmatch(text)
    tokens = round(float(match[1]) * _UNITS[match[2].lower()]) if match else -1
    if not least <= tokens <= MOST_TOKENS:
        raise ValueError(f"give tokens such as 16k or 64000, a whole number from {least} to {MOST_TOKENS:,}")
    return tokens


def share_of(text: str, *, words: Sequence[str] = ()) -> str | float:
    """The share that this text names, or the text if it is one of the words. Raises ValueError with what to give
    instead."""
    match = _SHARE.fullmatch(text)
    if match:
        return float(match[1]) / (100 if match[2] else 1)
    if text not in words:
        raise ValueError(f"give {' or '.join((*words, 'a share'))} such as 0.8 or 80%")
    return text


when_of = partial(share_of, words=("pays", "full"))


def rates_of(text: str) -> Rates:
    """The prices that these words name, none: without a cache. Raises ValueError with what to give instead."""
    if text == "none":
        return Rates(1.0, 1.0)
    try:
        read_price, write_price = map(float, text.split("/"))
    except ValueError as error:
        raise ValueError("give two numbers such as .10/1.25, cached read / cache write, or none") from error
    if not 0 <= read_price <= write_price < 1_000:
        raise ValueError(
            "give two numbers such as .10/1.25, the read price not negative and not above the write price"
        )
    return Rates(read_price, write_price)
