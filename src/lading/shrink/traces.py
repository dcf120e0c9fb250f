"""Stack traces and what test runners print: failures, summaries, exceptions, own frames; passes are counted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lading.shrink import Count, Shrinker, Shrunk, Wish, only
from lading.shrink.folding import folded, proven, repeat_note, repeats, unfolded
from lading.shrink.keeping import ERROR, RARE, REST, Lines, by_words, keep, plain_lines, with_terms, without

FORM = "trace.folded"

_EXCEPTION = ERROR - 20
_SUMMARY = ERROR - 10
"""Below the ranks of terms, above those of lines that only sound like an error."""
_END_FRAME = RARE
_OWN_FRAME = RARE + 10
_LIBRARY_FRAME = REST
_PASSED = REST + 50
_PASSED_NOTE = ERROR - 1
_MOST_CHARS = 1_000
"""Characters of a line that are looked at."""
_FRAME_LINES = 5
"""A frame of Python with its source and the marks below it has no more lines."""

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


_decode = only(FORM, unfolded)


def _reshape(text: str) -> Iterator[Shrunk]:
    return proven(text, Shrunk(folded(text), FORM, lossless=True), decode=_decode)


def _reduce(text: str, wish: Wish, count: Count) -> Shrunk | None:
    texts = plain_lines(text)
    lines = Lines(texts, with_terms(texts, _ranks(texts), terms=wish.terms))
    failures = without(lines, _PASSED, about="passed tests", note_rank=_PASSED_NOTE)
    kept = keep(text, _without_repeats(failures), wish=wish, count=count)
    return None if kept is None else Shrunk(kept, "trace.failures", lossless=False)


SHRINKER = Shrinker("trace", reshape=_reshape, reduce=_reduce, decode=_decode)


def _ranks(lines: Sequence[str]) -> list[int]:
    frames = list(_frames(lines))
    starts = {start for start, _ in frames}
    ends = {end for _, end in frames}
    ranks: list[int] = []
    for start, end in frames:
        ranks += (_rank(line[:_MOST_CHARS]) for line in lines[len(ranks) : start])
        rank = _frame_rank([line[:_MOST_CHARS] for line in lines[start:end]])
        if rank != ERROR and (start not in ends or end not in starts):
            rank = _END_FRAME
        ranks += [rank] * (end - start)
    ranks += (_rank(line[:_MOST_CHARS]) for line in lines[len(ranks) :])
    return ranks


def _frame_rank(frame: Sequence[str]) -> int:
    """By whose code it is; an own frame of Python ranks as its source does where that tells of an error."""
    if _LIBRARY.search("\n".join(frame)):
        return _LIBRARY_FRAME
    tells = _PYTHON_FRAME.match(frame[0]) and any(by_words(line) == ERROR for line in frame[1:])
    return ERROR if tells else _OWN_FRAME


def _rank(line: str) -> int:
    if _PASSES.match(line):
        return _PASSED
    return _EXCEPTION if _EXCEPTIONS.match(line) else _SUMMARY if _SUMMARIES.match(line) else by_words(line)


def _frames(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """First line of each frame, and the line after it."""
    place = 0
    while place < len(lines):
        end = _frame_end(lines, place)
        if end > place:
            yield place, end
        place = max(end, place + 1)


def _frame_end(lines: Sequence[str], place: int) -> int:
    """The line after the frame that starts there; the same line where none starts."""
    line, below = lines[place], lines[place + 1] if place + 1 < len(lines) else ""
    if _PYTHON_FRAME.match(line):
        end = place + 1
        while end < min(len(lines), place + _FRAME_LINES) and _indent(lines[end]) > _indent(line):
            end += 1
        return end
    if _GO_PLACE.match(below):
        return place + 2
    if _RUST_FRAME.match(line) and _AT.match(below):
        return place + 2
    return place + bool(_AT.match(line) or _RUST_FRAME.match(line))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _without_repeats(lines: Lines) -> Lines:
    """Repeated lines, as those of deep recursion, as a note of how often they repeat, which never stays without
    them."""
    texts: list[str] = []
    ranks: list[int] = []
    sizes: list[int] = []
    under: list[int] = []
    start = 0
    for group, times in repeats(lines.texts):
        end = start + len(group)
        texts += group
        ranks += lines.ranks[start:end]
        sizes += lines.sizes[start:end]
        start += len(group) * times
        if times > 1:
            texts.append(repeat_note(len(group), times - 1))
            ranks.append(min(lines.ranks[end - len(group) : end]))
            sizes.append(sum(lines.sizes[end:start]))
        above = len(under)
        under += (-1 if times == 1 or place == above else place - 1 for place in range(above, len(texts)))
    return Lines(texts, ranks, sizes, under=under)
