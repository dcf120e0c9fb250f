"""Prices as the command line takes them: ``.10/1.25``, cached read / cache write, or ``none``."""

from __future__ import annotations

from typing import Final

from lading.economics import Rates

NO_CACHE: Final = "none"
"""No cache: reading and writing cost what base input costs."""
_BOUND = 1_000
"""Prices stay below it."""


def rates_of(text: str) -> Rates:
    """The rates that these words name. Raises ValueError with what to give instead."""
    if text == NO_CACHE:
        return Rates(1.0, 1.0)
    try:
        read_price, write_price = map(float, text.split("/"))
    except ValueError as error:
        raise ValueError("give two numbers such as .10/1.25, cached read / cache write, or none") from error
    if not 0 <= read_price <= write_price < _BOUND:
        raise ValueError(
            "give two numbers such as .10/1.25, the read price not negative and not above the write price"
        )
    return Rates(read_price, write_price)
