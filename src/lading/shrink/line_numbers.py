"""Line numbers that file viewers put before lines: ``cat -n``, ``12→``, ``12|``, ``12:``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

_NUMBERED = re.compile(r" {0,12}([0-9]{1,7})([→|:\t]| {1,2}|$)")
_LEAST_NUMBERED = 3
_LEAST_SHARE = 0.7

_PADDED = re.compile(r"^ +(?=[0-9]+[\t→])", re.MULTILINE)
_UNPADDED = re.compile(r"^[0-9]+(?=[\t→])", re.MULTILINE)
_WIDTH = 6


class Line(Struct, frozen=True):
    """A line without its gutter."""

    text: str
    number: int
    """Its number in the file; where the viewer gave none, counted from the start of the text."""
    is_foreign: bool = False
    """The viewer's own words among numbered lines."""


def lines(text: str) -> list[Line]:
    """The lines of a text, without gutters where most of them have one."""
    plain = [line.rstrip("\r") for line in text.split("\n")]
    found = [_NUMBERED.match(line) for line in plain]
    numbers = [int(match.group(1)) for match in found if match]
    if not _is_gutter(numbers, sum(bool(line.strip()) for line in plain)):
        return [Line(line, number) for number, line in enumerate(plain, 1)]
    numbered: list[Line] = []
    last = max(numbers[0] - 1, 0)
    for line, match in zip(plain, found, strict=True):
        if match:
            last = int(match.group(1))
            numbered.append(Line(line[match.end() :], last))
        else:
            numbered.append(Line(line, last, is_foreign=True))
    return numbered


def _is_gutter(numbers: Sequence[int], written: int) -> bool:
    if len(numbers) < max(_LEAST_NUMBERED, _LEAST_SHARE * written):
        return False
    return all(before < after for before, after in pairwise(numbers))


def unpadded(text: str) -> str | None:
    """The text without the blanks before the numbers of ``cat -n``; None where ``padded`` would not bring back
    the same text, or there are none."""
    shorter = _PADDED.sub("", text)
    return shorter if len(shorter) < len(text) and padded(shorter) == text else None


def padded(text: str) -> str:
    """The text with line numbers six wide, as ``cat -n`` writes them."""
    return _UNPADDED.sub(lambda match: match.group().rjust(_WIDTH), text)
