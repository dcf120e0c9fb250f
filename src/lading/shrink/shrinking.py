"""The front door: a text of any kind in fewer tokens, with or without loss."""

from __future__ import annotations

from lading.registry import lookup
from lading.shrink import SHRINKERS, Count, Shrinker, Shrunk, Wish, lines
from lading.shrink.contenttypes import content_type
from lading.shrink.fitting import CHARS_A_TOKEN, fits

MOST_CHARS = 2_000_000
"""A longer text is not parsed: it has no lossless form, and its lossy one keeps head, tail and hits."""


def shrunk(text: str, *, count: Count, kind: str | None = None) -> Shrunk | None:
    """The lossless form with the fewest tokens; None where none has fewer than the text.

    ``kind`` is what ``content_type`` says where it is not given; a wrong one costs only what could be saved.
    """
    if len(text) > MOST_CHARS:
        return None
    return _smallest(text, kind or content_type(text), below=count(text), count=count)


def reduced(text: str, wish: Wish, *, count: Count, kind: str | None = None) -> Shrunk | None:
    """The lossless form where it fits the wish, else the lossy form of the text's kind, else lines of it; None
    where nothing fits. A text that fits as it is loses nothing."""
    if len(text) > MOST_CHARS:
        return lines.SHRINKER.reduce(text, wish, count)
    kind = kind or content_type(text)
    if fits(text, wish, count=count):
        return shrunk(text, count=count, kind=kind)
    whole = _smallest(text, kind, below=wish.most_tokens + 1, count=count)
    return whole or _shrinker(kind).reduce(text, wish, count) or lines.SHRINKER.reduce(text, wish, count)


def decoded(text: str, form: str) -> str:
    """The content of a lossless form: the same text, or an equal JSON value. Raises ValueError for a form
    that no shrinker here has, or a text that is not in it."""
    name = form.partition(".")[0]
    if name not in SHRINKERS:
        raise ValueError(f"there is no form {form!r}")
    return _shrinker(name).decode(text, form)


def _smallest(text: str, kind: str, *, below: int, count: Count) -> Shrunk | None:
    """The lossless form with the fewest tokens, and fewer than ``below``."""
    best = None
    for candidate in _shrinker(kind).reshape(text):
        # What has so many characters is not worth counting.
        if len(candidate.text) <= CHARS_A_TOKEN * below and (tokens := count(candidate.text)) < below:
            below, best = tokens, candidate
    return best


def _shrinker(kind: str) -> Shrinker:
    if kind not in SHRINKERS:
        return lines.SHRINKER
    return lookup(SHRINKERS, kind, kind="shrinker", type_=Shrinker)
