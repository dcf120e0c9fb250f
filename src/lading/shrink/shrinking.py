"""Shrink a text of any kind, with or without loss."""

from __future__ import annotations

from lading.errors import UnknownName
from lading.shrink import Count, Shrunk, Wish, shrinker
from lading.shrink.contenttypes import content_type
from lading.shrink.fitting import CHARS_A_TOKEN, is_within

MOST_CHARS = 2_000_000
"""A longer text is not parsed: it has no lossless form, and its lossy one keeps head, tail and hits."""


def shrink(text: str, *, count: Count, kind: str | None = None) -> Shrunk | None:
    """Give the lossless form with the fewest tokens; None where none has fewer than the text.

    ``kind`` is a name of ``SHRINKERS``, an entry point or a dotted path, by default ``content_type``; a wrong one
    costs only what could be saved.
    """
    if len(text) > MOST_CHARS:
        return None
    return _smallest(text, kind or content_type(text), below=count(text), count=count)


def reduce(text: str, wish: Wish, *, count: Count, kind: str | None = None) -> Shrunk | None:
    """Give the lossless form where it fits the wish, else the lossy form of the text's kind, else lines of it; None
    where nothing fits. A text that fits as it is loses nothing."""
    lines = shrinker("text")
    if len(text) > MOST_CHARS:
        return lines.reduce(text, wish, count)
    kind = kind or content_type(text)
    if is_within(text, wish, count=count):
        return shrink(text, count=count, kind=kind)
    lossless = _smallest(text, kind, below=wish.most_tokens + 1, count=count)
    return lossless or shrinker(kind).reduce(text, wish, count) or lines.reduce(text, wish, count)


def decode(text: str, form: str) -> str:
    """Decode a lossless form to the same text, or an equal JSON value. Raises ValueError for a form that no
    shrinker has, or a text that is not in it."""
    name = form.partition(".")[0]
    if ":" in name:
        # The form may come from a text: that is no reason to import a module.
        raise ValueError(f"there is no form {form!r}")
    try:
        found = shrinker(name)
    except UnknownName as error:
        raise ValueError(f"there is no form {form!r}") from error
    return found.decode(text, form)


def _smallest(text: str, kind: str, *, below: int, count: Count) -> Shrunk | None:
    """Give the lossless form with the fewest tokens, and fewer than ``below``."""
    best = None
    for candidate in shrinker(kind).reshape(text):
        # A text of so many characters is not worth counting.
        if len(candidate.text) <= CHARS_A_TOKEN * below and (tokens := count(candidate.text)) < below:
            below, best = tokens, candidate
    return best
