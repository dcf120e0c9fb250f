"""Shrink texts: express a text of one content type in fewer tokens. One file per content type; pure.

A lossless form decodes to the same content; a lossy form notes in place what it leaves out. The smallest candidate
is used, and none is larger than the original. To add a content type, write a module with a ``Shrinker`` and add one
line to ``SHRINKERS``. Knows texts alone, no message and no budget. Start with ``shrinking.py``, then ``logs.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct

from lading.registry import lookup

Count: TypeAlias = Callable[[str], int]
"""A function that counts the tokens of a text."""

SHRINKERS: dict[str, str] = {
    "empty": "lading.shrink.lines:EMPTY",
    "blob": "lading.shrink.blobs:SHRINKER",
    "json": "lading.shrink.json_sampling:SHRINKER",
    "diff": "lading.shrink.diffs:SHRINKER",
    "trace": "lading.shrink.traces:SHRINKER",
    "html": "lading.shrink.markup:SHRINKER",
    "log": "lading.shrink.logs:SHRINKER",
    "search": "lading.shrink.lines:SEARCH",
    "listing": "lading.shrink.listings:SHRINKER",
    "code": "lading.shrink.code:SHRINKER",
    "table": "lading.shrink.tabular:SHRINKER",
    "prose": "lading.shrink.prose:SHRINKER",
    "text": "lading.shrink.lines:SHRINKER",
}
"""The shrinker of each content type, in the order in which detection tries them."""


class Target(Struct, frozen=True):
    """Requirements on a lossy form."""

    most_tokens: int
    """Maximum size of the form, its note included."""
    terms: tuple[str, ...] = ()
    """Words of the request, casefolded: text with one of them is kept before anything else."""
    whole: str = ""
    """Address of the original, for the note; may be empty."""


class Sample(Struct, frozen=True):
    """The parts of a text by which its content type is recognised."""

    text: str
    """The whole text. Search only ``head``, ``tail`` and ``lines``: this may be megabytes."""
    head: str
    """Its start, without colour codes."""
    tail: str
    lines: tuple[str, ...]
    """The first non-empty lines, without the line numbers of file viewers. Lines of thousands of characters are
    left out: logs, listings and hand-written source have none."""

    def share(self, pattern: re.Pattern[str]) -> float:
        """Compute the share of the lines in which the pattern is found; 0 when there are no lines."""
        return sum(pattern.search(line) is not None for line in self.lines) / max(len(self.lines), 1)


class Shrunk(Struct, frozen=True):
    """A text in fewer tokens."""

    text: str
    form: str
    """Name of the form, such as ``json.columns``; it begins with the name of the shrinker that decodes it."""
    lossless: bool = False


class Shrinker(Struct, frozen=True):
    """The functions of one content type. All are pure."""

    name: str
    recognises: Callable[[Sample], bool]
    reduce: Callable[[str, Target, Count], Shrunk | None]
    """Keep as much as the target allows. None for another content type, a text that fits, or if nothing fits."""
    reshape: Callable[[str], Iterable[Shrunk]] = lambda _: ()
    """Make the lossless candidates, in any order; none when the text has another content type."""
    decoders: Mapping[str, Callable[[str], str]] = {}
    """For each lossless form, a function that restores the same text or an equal JSON value."""

    def decode(self, text: str, form: str) -> str:
        """Decode a lossless candidate. Raises ValueError for another form, or a text that is not in it."""
        if form not in self.decoders:
            raise ValueError(f"{form!r} is not a lossless form")
        return self.decoders[form](text)


def find_shrinker(name: str) -> Shrinker:
    """Find the shrinker of that name, entry point or dotted path. Raises UnknownName."""
    return lookup(SHRINKERS, name, kind="shrinker", type_=Shrinker)
