"""Counting tokens: exact where the vocabulary is public, estimated elsewhere.

A ``Counter`` counts plain text; ``lading.tokens.meter`` counts messages and tools with it. To add a
counter, write a module with such a value and one line in ``COUNTERS``.
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
    """Counts the tokens of a text. The same text gives the same figure on every machine."""

    @property
    def name(self) -> str:
        """The short name under which a manifest records it."""

    def count(self, text: str) -> int:
        """Tokens of the text, lone surrogates and special-token literals included as plain text."""


def counter(name: str) -> Counter:
    """The counter of that name, or at that dotted path. Raises UnknownName.

    Its tables are loaded at the first count, not here.
    """
    return lookup(COUNTERS, name, kind="counter", type_=Counter)
