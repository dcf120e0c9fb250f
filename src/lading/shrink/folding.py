"""Lossless forms for text of lines: repeated lines folded, and what runs of lines start with said once.

What is encoded is decoded before it is offered, so that a text that holds notes of this kind itself is left alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import AnyStr

from lading.shrink import Shrunk

MOST_PERIOD = 8
"""Repeated groups of more lines than this are not looked for."""

_MOST_PREFIX_CHARS = 200
_LEAST_PREFIX_CHARS = 4
_PREFIXES_TRIED = 6
_SAMPLE_LINES = 500
_REPEATED = re.compile(r"\[(\d{1,9}) lines? above, (\d{1,9}) more times?\]")
_STARTING = re.compile(r"\[(\d{1,9}) lines below start with\] ")


def proven(text: str, candidate: Shrunk, *, decode: Callable[[str, str], str]) -> Iterator[Shrunk]:
    """The candidate, if it is shorter in characters and decodes to the text."""
    if len(candidate.text) < len(text) and decode(candidate.text, candidate.form) == text:
        yield candidate


def folded(text: str) -> str:
    """The text with notes in place of repeats and of shared beginnings; as it is where it holds such a note."""
    if "[" in text and (_REPEATED.search(text) or _STARTING.search(text)):
        return text
    lines: list[str] = []
    for group, times in repeats(text.split("\n")):
        lines += group
        if times > 1:
            lines.append(repeat_note(len(group), times - 1))
    return "\n".join(_prefixed(lines))


def unfolded(text: str) -> str:
    """What ``folded`` was given."""
    lines: list[str] = []
    ahead = iter(text.split("\n"))
    for line in ahead:
        if note := _STARTING.match(line):
            prefix = line[note.end() :]
            lines += (prefix + next(ahead, "") for _ in range(int(note[1])))
        elif note := _REPEATED.fullmatch(line):
            lines += lines[len(lines) - int(note[1]) :] * int(note[2])
        else:
            lines.append(line)
    return "\n".join(lines)


def repeats(lines: Sequence[str]) -> Iterator[tuple[Sequence[str], int]]:
    """The lines as groups of 1 to ``MOST_PERIOD`` lines and how often each stands there in a row. A group repeats
    only where a note in its place saves at least one line."""
    start = 0
    while start < len(lines):
        period, times = _repeat(lines, start)
        yield lines[start : start + period], times
        start += period * times


def repeat_note(lines: int, times: int) -> str:
    """What stands below lines that were there so many more times."""
    return f"[{lines} {'line' if lines == 1 else 'lines'} above, {times} more {'time' if times == 1 else 'times'}]"


def shared_start(one: AnyStr, other: AnyStr) -> int:
    """How many first characters, or bytes, two strings share."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _repeat(lines: Sequence[str], start: int) -> tuple[int, int]:
    if lines[start] not in lines[start + 1 : start + 1 + MOST_PERIOD]:
        return 1, 1
    for period in range(1, MOST_PERIOD + 1):
        end = start + period
        while end < len(lines) and lines[end] == lines[end - period]:
            end += 1
        times = (end - start) // period
        if (times - 1) * period >= 2:
            return period, times
    return 1, 1


def _prefixed(lines: Sequence[str]) -> list[str]:
    """The lines, runs of them without their beginning and below a note of it. All beginnings are equally long: as
    long as saves most in some lines of the start and of the middle."""
    middle = max(len(lines) // 2, _SAMPLE_LINES)
    sample = [*lines[:_SAMPLE_LINES], *lines[middle : middle + _SAMPLE_LINES]]
    shared = Counter(length for line, after in pairwise(sample) if (length := _shared_chars(line, after)))
    tried = sorted(shared, key=lambda length: (-shared[length] * length, length))[:_PREFIXES_TRIED]
    best = min((0, *tried), key=lambda length: sum(map(len, _with_prefixes(sample, length))))
    return _with_prefixes(lines, best)


def _shared_chars(line: str, after: str) -> int:
    """How much two lines share at their start, to the end of a word; 0 where it is little."""
    if line[:_LEAST_PREFIX_CHARS] != after[:_LEAST_PREFIX_CHARS]:
        return 0
    prefix = line[: shared_start(line[:_MOST_PREFIX_CHARS], after[:_MOST_PREFIX_CHARS])]
    end = max(prefix.rfind(mark) for mark in " \t:/") + 1
    return end if end >= _LEAST_PREFIX_CHARS else 0


def _with_prefixes(lines: Sequence[str], length: int) -> list[str]:
    if not length:
        return list(lines)
    shown: list[str] = []
    for prefix, run in groupby(lines, key=lambda line: line[:length]):
        group = list(run)
        note = f"[{len(group)} lines below start with] {prefix}"
        if len(note) < (len(group) - 1) * length:
            shown.append(note)
            shown += (line[length:] for line in group)
        else:
            shown += group
    return shown
