"""Shrink stack traces and test output: keep failures, summaries, exceptions and own frames; count passed tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lading.shrink import Count, Sample, Shrinker, Shrunk, Target
from lading.shrink.folding import find_repeats, fold, unfold, verify, write_repeat_note
from lading.shrink.line_selection import (
    Rank,
    RankedLine,
    RankedLines,
    merge_rank,
    rank_by_words,
    rank_terms,
    select_lines,
    split_lines,
)

_DECODERS = {"trace.folded": unfold}
_FRAME = re.compile(
    r'^\s*(?:at .{1,200}[:(]\d+|File "[^"\n]{1,300}", line \d+|\d+: 0x[0-9a-f]{8,}|goroutine \d+ \[)', re.MULTILINE
)
_PYTHON_TRACE = "Traceback (most recent call last)"
_PANIC = re.compile(r"^thread '.*' panicked at|^panic: ", re.MULTILINE)
_EXCEPTION = Rank.ERROR - 20
_SUMMARY = Rank.ERROR - 10
"""After the ranks of terms, before those of lines that only have words of errors."""
_END_FRAME = Rank.RARE
_OWN_FRAME = Rank.RARE + 10
_LIBRARY_FRAME = Rank.REST
_PASSED = Rank.REST + 50
_PASSED_NOTE = Rank.ERROR - 1
_MOST_CHARS = 1_000
"""Characters of a line that are searched."""
_FRAME_LINES = 5
"""Maximum lines of a Python frame, with its source and the marks below."""

_PASSES = re.compile(
    r"\S+ PASSED\b|\s*[✓✔√] |PASS\b|\s*--- PASS: |=== (?:RUN|PAUSE|CONT|NAME) |ok +\t?\S+\s+(?:[\d.]+s|\(cached\))"
    r"|test .+ \.\.\. ok$|\S.* \([\w.]+\) \.\.\. ok$|\S+ \.+ +\[ *\d+%\]$"
)
_SUMMARIES = re.compile(
    r"=+ .*\b(?:passed|failed|errors?|skipped|no tests ran)\b|(?:FAILED|ERROR|FAIL)(?:[: \t]|$)"
    r"|\S+ (?:FAILED|ERROR)\b|\s*--- FAIL: |Tests?(?: Suites| Files)?: +\d|\s*● |\s*[✕✗×] |test result: "
    r"|test .+ \.\.\. FAILED$|\S.* \([\w.]+\) \.\.\. (?:FAIL|ERROR)$|Ran \d+ tests? in |OK\b|-{4} \S.* -{4}$"
    r"|_{3,} \S.* _{3,}$|\s*\d+ (?:passing|failing|pending)\b|(?:\[ERROR\] )?Tests run: \d"
    r"|\s*\d+ (?:passed|failed)\b"
)
_EXCEPTIONS = re.compile(
    r"\s*(?:(?:Uncaught |Caused by: |Exception in thread \S+ )?"
    r"[A-Za-z_][\w.$]*(?:Error|Exception|Exit|Interrupt|Fault)\b(?::|$| \[)"
    r"|Caused by: |thread '.*' panicked at|panic: |fatal error: |assertion .{0,20}failed"
    r"|(?:Expected|Received|expected|actual|left|right|got|want)\b.{0,20}:|\w\S*\.(?:py|go):\d+: )|E  +\S|>  +\S"
)
_PYTHON_FRAME = re.compile(r'\s*File "')
_RUST_FRAME = re.compile(r"\s+\d+: +\S")
_AT = re.compile(r"\s*at \S")
_GO_PLACE = re.compile(r"\t\S+\.go:\d")
_LIBRARY = re.compile(
    r"site-packages|dist-packages|node_modules|/lib/python\d|<frozen |[( ]node:|internal/|/usr/(?:lib|local)/"
    r"|/rustc/|\.cargo/registry|/go/pkg/mod/|/_pytest/|__rust_|: (?:<?(?:core|std|alloc|test)::|rust_begin_unwind)"
    r"|\bat (?:(?:java|javax|jdk|sun|scala|kotlin|org\.junit|org\.spring\w*|org\.apache|io\.netty|com\.sun)\."
    r"|async Promise|native|<anonymous>|Array\.)"
)


def _is_trace(sample: Sample) -> bool:
    """Whether at least a fifth of the lines are stack frames, or a trace is at the end of the text."""
    if _PYTHON_TRACE in sample.tail or ("panic" in sample.tail and _PANIC.search(sample.tail)):
        return True
    return len(_FRAME.findall(sample.head)) >= max(2, len(sample.lines) / 5)


def _reduce(text: str, target: Target, count: Count) -> Shrunk | None:
    texts = split_lines(text)
    lines = RankedLines(texts, rank_terms(texts, _rank_lines(texts), terms=target.terms), "trace.failures")
    failures = merge_rank(lines, _PASSED, about="passed tests", note_rank=_PASSED_NOTE)
    return select_lines(text, _merge_repeats(failures), target=target, count=count)


SHRINKER = Shrinker(
    "trace",
    _is_trace,
    _reduce,
    lambda text: verify(text, {"trace.folded": fold(text)}, decoders=_DECODERS),
    _DECODERS,
)


def _rank_lines(lines: Sequence[str]) -> list[int]:
    frames = list(_find_frames(lines))
    starts = {start for start, _ in frames}
    ends = {end for _, end in frames}
    ranks: list[int] = []
    for start, end in frames:
        ranks += (_rank_line(line[:_MOST_CHARS]) for line in lines[len(ranks) : start])
        rank = _rank_frame([line[:_MOST_CHARS] for line in lines[start:end]])
        if rank != Rank.ERROR and (start not in ends or end not in starts):
            rank = _END_FRAME
        ranks += [rank] * (end - start)
    ranks += (_rank_line(line[:_MOST_CHARS]) for line in lines[len(ranks) :])
    return ranks


def _rank_frame(frame: Sequence[str]) -> int:
    """Rank library frames last; an own Python frame ranks as an error if its source line mentions one."""
    if _LIBRARY.search("\n".join(frame)):
        return _LIBRARY_FRAME
    is_error = _PYTHON_FRAME.match(frame[0]) and any(rank_by_words(line) == Rank.ERROR for line in frame[1:])
    return Rank.ERROR if is_error else _OWN_FRAME


def _rank_line(line: str) -> int:
    if _PASSES.match(line):
        return _PASSED
    return _EXCEPTION if _EXCEPTIONS.match(line) else _SUMMARY if _SUMMARIES.match(line) else rank_by_words(line)


def _find_frames(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the index of each frame's first line and of the line after it."""
    place = 0
    while place < len(lines):
        end = _find_frame_end(lines, place)
        if end > place:
            yield place, end
        place = max(end, place + 1)


def _find_frame_end(lines: Sequence[str], place: int) -> int:
    """Find the line after the frame that starts at ``place``; ``place`` when none starts."""
    line, below = lines[place], lines[place + 1] if place + 1 < len(lines) else ""
    if _PYTHON_FRAME.match(line):
        end = place + 1
        while end < min(len(lines), place + _FRAME_LINES) and _measure_indent(lines[end]) > _measure_indent(line):
            end += 1
        return end
    if _GO_PLACE.match(below):
        return place + 2
    if _RUST_FRAME.match(line) and _AT.match(below):
        return place + 2
    return place + bool(_AT.match(line) or _RUST_FRAME.match(line))


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _merge_repeats(lines: RankedLines) -> RankedLines:
    """Merge repeated lines, such as those of deep recursion, into a note that requires the first of them."""
    merged: list[RankedLine] = []
    start = 0
    rows = lines.to_rows()
    for group, times in find_repeats(lines.texts):
        end = start + len(group)
        once, repeated = rows[start:end], rows[end : start + len(group) * times]
        start += len(group) * times
        if times == 1:
            merged += once
            continue
        above = len(merged) - 1
        merged += (RankedLine(*line[:3], above + at if at else -1) for at, line in enumerate(once))
        note = write_repeat_note(len(group), times - 1)
        merged.append(
            RankedLine(note, min(line.rank for line in once), sum(line.size for line in repeated), len(merged) - 1)
        )
    return lines.with_rows(merged)
