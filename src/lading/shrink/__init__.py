"""Shrinkers: a text of one content type in fewer tokens. One file per content type; pure.

A lossless form decodes to the same content; a lossy one says in place what it left out. The smallest
candidate wins, and nothing is ever larger than what came in. To add one, write a module with a ``Shrinker``
value and one line in ``SHRINKERS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from msgspec import Struct

Count: TypeAlias = Callable[[str], int]
"""Tokens of a text."""

SHRINKERS: dict[str, str] = {
    "blob": "lading.shrink.blobs:SHRINKER",
    "code": "lading.shrink.code:SHRINKER",
    "diff": "lading.shrink.diffs:SHRINKER",
    "html": "lading.shrink.markup:SHRINKER",
    "json": "lading.shrink.json_sampling:SHRINKER",
    "listing": "lading.shrink.listings:SHRINKER",
    "log": "lading.shrink.logs:SHRINKER",
    "prose": "lading.shrink.prose:SHRINKER",
    "table": "lading.shrink.tabular:SHRINKER",
    "trace": "lading.shrink.traces:SHRINKER",
}
"""The shrinker of each content type (``contenttypes.content_type``), as a dotted path; what has none here goes to
``lading.shrink.lines``."""


class Wish(Struct, frozen=True):
    """What a lossy form must keep to."""

    most_tokens: int
    """No form is larger, its note included."""
    terms: tuple[str, ...] = ()
    """Words of the request, casefolded: what holds one of them stays before anything else."""
    whole: str = ""
    """Where the whole is; stands in the note where it is given."""


class Shrunk(Struct, frozen=True):
    """A text in fewer tokens."""

    text: str
    form: str
    """Name of the form, such as ``json.columns``; decoders go by it."""
    lossless: bool


def _nothing(_text: str) -> Iterable[Shrunk]:
    return ()


def _refuse(_text: str, form: str) -> str:
    raise ValueError(f"{form!r} is no lossless form")


def only(form: str, decode: Callable[[str], str]) -> Callable[[str, str], str]:
    """The decoder of a shrinker with one lossless form."""
    return lambda text, given: decode(text) if given == form else _refuse(text, given)


class Shrinker(Struct, frozen=True):
    """What can be done for one content type, as functions of the text alone."""

    name: str
    reduce: Callable[[str, Wish, Count], Shrunk | None]
    """The lossy form that keeps most within the wish; None where the text is no such content, fits as it is, or
    nothing of it fits."""
    reshape: Callable[[str], Iterable[Shrunk]] = _nothing
    """Lossless candidates, in no order; none where the text is no such content."""
    decode: Callable[[str, str], str] = _refuse
    """(text, form) of a lossless candidate, back to the content: the same text, or an equal JSON value. Raises
    ValueError for another form."""
