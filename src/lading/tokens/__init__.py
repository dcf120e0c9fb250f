"""Counting tokens: exact where the vocabulary is public, estimated elsewhere.

A ``Counter`` counts plain text; ``lading.tokens.meter`` counts messages and tools with it. To add a
counter, write a module with such a value and one line in ``COUNTERS``. Knows no provider format and no history.
Start with ``meter.py``, then ``calibration.py``.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from lading.registry import lookup

COUNTERS: dict[str, str] = {
    "o200k": "lading.tokens.exact:O200K",
    "cl100k": "lading.tokens.exact:CL100K",
    "estimate": "lading.tokens.estimate:ESTIMATE",
}


@runtime_checkable
class Counter(Protocol):
    """A counter of the tokens of a text; the figure is the same on every machine."""

    @property
    def name(self) -> str:
        """The short name, as recorded in manifests."""

    def count(self, text: str) -> int:
        """Count the tokens of a text; lone surrogates and special-token literals count as plain text."""


def counter(name: str) -> Counter:
    """Return the counter of that name or dotted path. Raises UnknownName.

    Its tables are loaded at the first count, not here.
    """
    return lookup(COUNTERS, name, kind="counter", type_=Counter)
