"""Guess the content type of a text from its first and last lines. Cheap, and always the same."""

from __future__ import annotations

import re

from lading.shrink import SHRINKERS, Sample, shrinker

_HEAD_CHARS = 6_000
_TAIL_CHARS = 2_000
_HEAD_LINES = 120
_MOST_LINE_CHARS = 2_000
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LINE_NUMBER = re.compile(r"^\s*\d+(?:[→|:\t]| {2,})\s?")


def content_type(text: str) -> str:
    """Name the first of ``SHRINKERS`` that recognises the text; ``text`` where none does."""
    sample = _sample(text)
    return next((name for name in SHRINKERS if shrinker(name).recognises(sample)), "text")


def _sample(text: str) -> Sample:
    head = _COLOUR.sub("", text[:_HEAD_CHARS])
    lines = [line for line in head.splitlines()[:_HEAD_LINES] if line.strip() and len(line) <= _MOST_LINE_CHARS]
    if sum(_LINE_NUMBER.match(line) is not None for line in lines) >= 0.6 * len(lines):
        lines = [bare for line in lines if (bare := _LINE_NUMBER.sub("", line)).strip()]
    return Sample(text, head, text[-_TAIL_CHARS:], tuple(lines))
