"""Fold lines without loss: repeated lines become notes, and shared prefixes of adjacent lines are written once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import AnyStr

from lading.shrink import Shrunk

MOST_PERIOD = 8
"""Maximum number of lines in a repeated group."""

_MOST_PREFIX_CHARS = 200
_LEAST_PREFIX_CHARS = 4
_PREFIXES_TRIED = 6
_SAMPLE_LINES = 500
_REPEATED = re.compile(r"\[(\d{1,9}) lines? above, (\d{1,9}) more times?\]")
_STARTING = re.compile(r"\[(\d{1,9}) lines below start with\] ")


def verify(
    text: str, forms: Mapping[str, str], *, decoders: Mapping[str, Callable[[str], str]]
) -> Iterator[Shrunk]:
    """Yield the forms that have fewer characters and decode to the text."""
    for form, shown in forms.items():
        if len(shown) < len(text) and decoders[form](shown) == text:
            yield Shrunk(shown, form, lossless=True)


def fold(text: str) -> str:
    """Replace repeats and shared prefixes by notes. A text that already has such a note is returned unchanged."""
    if "[" in text and (_REPEATED.search(text) or _STARTING.search(text)):
        return text
    lines: list[str] = []
    for group, times in find_repeats(text.split("\n")):
        lines += group
        if times > 1:
            lines.append(write_repeat_note(len(group), times - 1))
    return "\n".join(_share_prefixes(lines))


def unfold(text: str) -> str:
    """Undo ``fold``."""
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


def find_repeats(lines: Sequence[str]) -> Iterator[tuple[Sequence[str], int]]:
    """Split the lines into groups of 1 to ``MOST_PERIOD`` lines, each with the number of its consecutive
    repetitions. A group repeats only where a note saves at least one line."""
    start = 0
    while start < len(lines):
        period, times = _find_repeat(lines, start)
        yield lines[start : start + period], times
        start += period * times


def write_repeat_note(lines: int, times: int) -> str:
    """Write the note below lines that were repeated ``times`` more times."""
    return f"[{lines} {'line' if lines == 1 else 'lines'} above, {times} more {'time' if times == 1 else 'times'}]"


def count_shared(one: AnyStr, other: AnyStr) -> int:
    """Count the first characters, or bytes, that two strings share."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _find_repeat(lines: Sequence[str], start: int) -> tuple[int, int]:
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


def _share_prefixes(lines: Sequence[str]) -> list[str]:
    """Write shared prefixes of adjacent lines once, in a note above them. All prefixes have one length: the one
    that saves most in a sample of lines from the start and the middle."""
    middle = max(len(lines) // 2, _SAMPLE_LINES)
    sample = [*lines[:_SAMPLE_LINES], *lines[middle : middle + _SAMPLE_LINES]]
    shared = Counter(length for line, after in pairwise(sample) if (length := _count_shared_prefix(line, after)))
    tried = sorted(shared, key=lambda length: (-shared[length] * length, length))[:_PREFIXES_TRIED]
    best = min((0, *tried), key=lambda length: sum(map(len, _write_prefixes(sample, length))))
    return _write_prefixes(lines, best)


def _count_shared_prefix(line: str, after: str) -> int:
    """Count the characters that two lines share at their start, up to the end of a word; 0 when there are few."""
    if line[:_LEAST_PREFIX_CHARS] != after[:_LEAST_PREFIX_CHARS]:
        return 0
    prefix = line[: count_shared(line[:_MOST_PREFIX_CHARS], after[:_MOST_PREFIX_CHARS])]
    end = max(prefix.rfind(mark) for mark in " \t:/") + 1
    return end if end >= _LEAST_PREFIX_CHARS else 0


def _write_prefixes(lines: Sequence[str], length: int) -> list[str]:
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
