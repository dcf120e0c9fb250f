"""The weights of the estimator: ``tables/estimate.txt``, written by ``scripts/estimator/fit.py``, not by hand.

Eleven tables of 256: bytes; pairs of shapes of neighbours, and of bytes two apart; pairs of letter classes,
likewise; six times second bytes of characters by groups of leads. ``estimate.py`` has the classes, in the order of
lines and columns: a line is a class of the first of two bytes; in the first table and the last six it is sixteen
bytes. An empty line stands between tables.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

UNITS_PER_TOKEN = 200
"""A weight is a whole number of 1/200 token, from 0 to 255."""

TABLE = Path(__file__).with_name("tables") / "estimate.txt"


@cache
def weights() -> tuple[bytes, ...]:
    """For each table the weight of each code, in units. Read at the first count, 11 kB."""
    return tuple(bytes(map(int, table.split())) for table in TABLE.read_text(encoding="ascii").split("\n\n"))
