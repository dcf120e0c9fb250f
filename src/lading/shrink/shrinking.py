"""Detect the content type of a text, and shrink it with or without loss."""

from __future__ import annotations

import re

from lading.errors import UnknownName
from lading.shrink import SHRINKERS, Count, Sample, Shrunk, Target, find_shrinker
from lading.shrink.fitting import CHARS_A_TOKEN, is_within

MOST_CHARS = 2_000_000
"""Longer texts are not parsed: they have no lossless form; the lossy one keeps start, end and lines with terms."""

_HEAD_CHARS = 6_000
_TAIL_CHARS = 2_000
_HEAD_LINES = 120
_MOST_LINE_CHARS = 2_000
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LINE_NUMBER = re.compile(r"^\s*\d+(?:[→|:\t]| {2,})\s?")


def detect_content_type(text: str) -> str:
    """Return the name of the first shrinker that recognises the text by its first and last lines, or ``text``."""
    sample = _take_sample(text)
    return next((name for name in SHRINKERS if find_shrinker(name).recognises(sample)), "text")


def shrink(text: str, *, count: Count, kind: str | None = None) -> Shrunk | None:
    """Return the lossless form with the fewest tokens. None when no form has fewer than the text.

    ``kind`` is a name in ``SHRINKERS``, an entry point or a dotted path, by default the detected one; a wrong one
    only saves less.
    """
    if len(text) > MOST_CHARS:
        return None
    return _find_smallest(text, kind or detect_content_type(text), below=count(text), count=count)


def reduce(text: str, target: Target, *, count: Count, kind: str | None = None) -> Shrunk | None:
    """Return the lossless form if it fits the target, otherwise a lossy form of the text's kind, otherwise some of
    its lines. None when nothing fits. For a text that already fits, only a lossless form is returned."""
    lines = find_shrinker("text")
    if len(text) > MOST_CHARS:
        return lines.reduce(text, target, count)
    kind = kind or detect_content_type(text)
    if is_within(text, target, count=count):
        return shrink(text, count=count, kind=kind)
    lossless = _find_smallest(text, kind, below=target.most_tokens + 1, count=count)
    return lossless or find_shrinker(kind).reduce(text, target, count) or lines.reduce(text, target, count)


def decode(text: str, form: str) -> str:
    """Decode a lossless form to the same text or an equal JSON value. Raises ValueError for others."""
    name = form.partition(".")[0]
    if ":" in name:
        # The form may come from untrusted text, which must not import a module.
        raise ValueError(f"there is no form {form!r}")
    try:
        found = find_shrinker(name)
    except UnknownName as error:
        raise ValueError(f"there is no form {form!r}") from error
    return found.decode(text, form)


def _find_smallest(text: str, kind: str, *, below: int, count: Count) -> Shrunk | None:
    """Return the lossless form with the fewest tokens, if it has fewer than ``below``."""
    best = None
    for candidate in find_shrinker(kind).reshape(text):
        # A longer text cannot have so few tokens: skip counting it.
        if len(candidate.text) <= CHARS_A_TOKEN * below and (tokens := count(candidate.text)) < below:
            below, best = tokens, candidate
    return best


def _take_sample(text: str) -> Sample:
    head = _COLOUR.sub("", text[:_HEAD_CHARS])
    lines = [line for line in head.splitlines()[:_HEAD_LINES] if line.strip() and len(line) <= _MOST_LINE_CHARS]
    if sum(_LINE_NUMBER.match(line) is not None for line in lines) >= 0.6 * len(lines):
        lines = [bare for line in lines if (bare := _LINE_NUMBER.sub("", line)).strip()]
    return Sample(text, head, text[-_TAIL_CHARS:], tuple(lines))
