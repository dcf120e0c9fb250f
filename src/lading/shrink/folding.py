"""Fold lines without loss: repeated lines become notes, and what runs of lines start with is written once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
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


def verify(
    text: str, forms: Mapping[str, str], *, decoders: Mapping[str, Callable[[str], str]]
) -> Iterator[Shrunk]:
    """Give the forms that are shorter in characters and decode to the text."""
    for form, shown in forms.items():
        if len(shown) < len(text) and decoders[form](shown) == text:
            yield Shrunk(shown, form, lossless=True)


def fold(text: str) -> str:
    """Write notes in place of repeats and of shared beginnings; change nothing where the text holds such a note."""
    if "[" in text and (_REPEATED.search(text) or _STARTING.search(text)):
        return text
    lines: list[str] = []
    for group, times in find_repeats(text.split("\n")):
        lines += group
        if times > 1:
            lines.append(repeat_note(len(group), times - 1))
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
    """Split the lines into groups of 1 to ``MOST_PERIOD`` lines, each with how often it stands there in a row. A
    group repeats only where a note in its place saves at least one line."""
    start = 0
    while start < len(lines):
        period, times = _repeat(lines, start)
        yield lines[start : start + period], times
        start += period * times


def repeat_note(lines: int, times: int) -> str:
    """Write the note below lines that were there so many more times."""
    return f"[{lines} {'line' if lines == 1 else 'lines'} above, {times} more {'time' if times == 1 else 'times'}]"


def count_shared(one: AnyStr, other: AnyStr) -> int:
    """Count the first characters, or bytes, that two strings share."""
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


def _share_prefixes(lines: Sequence[str]) -> list[str]:
    """Write the beginning of runs of lines once, in a note above them. All beginnings are equally long: as long as
    saves most in some lines of the start and of the middle."""
    middle = max(len(lines) // 2, _SAMPLE_LINES)
    sample = [*lines[:_SAMPLE_LINES], *lines[middle : middle + _SAMPLE_LINES]]
    shared = Counter(length for line, after in pairwise(sample) if (length := _shared_chars(line, after)))
    tried = sorted(shared, key=lambda length: (-shared[length] * length, length))[:_PREFIXES_TRIED]
    best = min((0, *tried), key=lambda length: sum(map(len, _with_prefixes(sample, length))))
    return _with_prefixes(lines, best)


def _shared_chars(line: str, after: str) -> int:
    """Count what two lines share at their start, to the end of a word; 0 where it is little."""
    if line[:_LEAST_PREFIX_CHARS] != after[:_LEAST_PREFIX_CHARS]:
        return 0
    prefix = line[: count_shared(line[:_MOST_PREFIX_CHARS], after[:_MOST_PREFIX_CHARS])]
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
