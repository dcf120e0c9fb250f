"""What kind of text a tool result is, guessed from its first and last lines. Cheap, and always the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec import Struct

_HEAD_CHARS = 6_000
_TAIL_CHARS = 2_000
_HEAD_LINES = 120
_MOST_LINE_CHARS = 2_000

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LINE_NUMBER = re.compile(r"^\s*\d+(?:[→|:\t]| {2,})\s?")
_BLOB_CHARS = 300
_BLOB_RUN = re.compile(rf"[A-Za-z0-9+/=_-]{{{_BLOB_CHARS},}}")
_READABLE = bytes({*range(0x20, 0x100), *b"\t\n\r\f\x1b"})
"""Every byte of UTF-8 that is no control character."""
_JSON_START = re.compile(r'\s*(?:\{\s*["}]|\[\s*(?:[\[{"\]\d-]|true|false|null))')
_JSON_KEY = re.compile(r'"[^"\n]{1,80}"\s*:')
_HUNK = re.compile(r"^@@ .*@@|^diff --git ", re.MULTILINE)
_FRAME = re.compile(
    r'^\s*(?:at .{1,200}[:(]\d+|File "[^"\n]{1,300}", line \d+|\d+: 0x[0-9a-f]{8,}|goroutine \d+ \[)', re.MULTILINE
)
_PYTHON_TRACE = "Traceback (most recent call last)"
_PANIC = re.compile(r"^thread '.*' panicked at|^panic: ", re.MULTILINE)
_TAG = re.compile(
    r"</?(?:html|head|body|div|span|p|a|ul|ol|li|table|tr|td|th|h[1-6]|script|style|link|meta|img|form|input"
    r"|button|section|nav|svg|path)\b[^<>]*>",
    re.IGNORECASE,
)
_MARKUP_START = re.compile(r"^\s*<(?:!doctype html|html|\?xml)\b", re.IGNORECASE | re.MULTILINE)
_LOG_LINE = re.compile(
    r"^\W{0,2}(?:\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d\b|[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d"
    r"|\W?(?:DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL)\b)"
    r"|^\S+(?:\(\d+,\d+\)|:\d+:\d+): (?:error|warning)\b"
)
_SEARCH_LINE = re.compile(r"^[^\s:]*[A-Za-z][^\s:]*[:-]\d+[:-]")
_LISTING_LINE = re.compile(
    r"^(?:[-dlcbps][rwxsStT-]{9}[.+@]?\s|total \d+$|[\s│|]*[├└]── "
    r"|[\w@.~+-]*/[\w@.~+ ()\[\]/-]*$|[\w@.~+-]+\.\w{1,8}$)"
)
_CODE_LINE = re.compile(
    r"^\s*(?:(?:async )?def |class \w|(?:from \S+ )?import |return\b|(?:if|elif|else|for|while)\b.*[:{]$"
    r"|try:|except\b|raise |with .*:$|@\w|(?:export |default |async )*function\b|export |(?:const|let|var) \w"
    r"|(?:public|private|protected|static)\b|#include|package \w|func |(?:pub )?(?:fn|struct|enum|impl) |use \w+::"
    r"|//|/\*|\*/|\* |#!|\"\"\"|'''|[\w.\[\]]+ (?:[-+*/|&]?=|:=) \S)|[{};]\s*$|\)\s*[:{]$|=>\s*\{?$"
)
_CELL_MARKS = (
    (re.compile(r"\t"), 1),
    (re.compile(r"\|"), 2),
    (re.compile(r",(?! )"), 2),
    (re.compile(r";(?! )"), 2),
)
"""What stands between cells, and how often at least in a row."""
_SENTENCE_END = re.compile(r"[^\W\d_]{2}[.!?][\"')\]*`]*(?:\s|$)")
_WORD = re.compile(r"[^\W\d_]{2,}")
_HEADING = re.compile(r"^#{1,6} \S")
_INDENTED = re.compile(r"^(?: {2,}|\t)")


class Sample(Struct, frozen=True):
    """What is looked at of a text."""

    head: str
    tail: str
    lines: tuple[str, ...]
    """The first lines that are not empty, without the line numbers that file viewers put before them. Lines of
    thousands of characters tell nothing: no log, listing or source that people write has them."""

    def share(self, pattern: re.Pattern[str]) -> float:
        """The share of the lines in which the pattern is found; 0 when there are no lines."""
        return sum(pattern.search(line) is not None for line in self.lines) / max(len(self.lines), 1)


def content_type(text: str) -> str:
    """One of the names of ``SNIFFERS``, ``empty``, or ``text`` for what none of them knows."""
    if not text.strip():
        return "empty"
    sample = _sample(text)
    return next((name for name, sniff in SNIFFERS.items() if sniff(sample)), "text")


def is_blob(sample: Sample) -> bool:
    """Base64, or bytes that are no text."""
    # The pattern may start anywhere, which is slow, and few texts have a word so long.
    longest = max(map(len, sample.head.split()), default=0)
    runs = sum(map(len, _BLOB_RUN.findall(sample.head))) if longest >= _BLOB_CHARS else 0
    return runs > len(sample.head) / 2 or is_unreadable(sample.head, share=0.05)


def is_unreadable(text: str, *, share: float) -> bool:
    """Whether more than that share of it are bytes that are no text."""
    controls = text.encode("utf-8", "surrogatepass").translate(None, _READABLE)
    return len(controls) + text.count("\ufffd") > len(text) * share


def is_json(sample: Sample) -> bool:
    """An object or a list, also one cut short, or one a line."""
    start = _JSON_START.match(sample.head)
    if start is None:
        return False
    is_list = start.group().lstrip()[0] == "["
    closed = sample.tail.rstrip().endswith("]" if is_list else "}")
    keys = len(_JSON_KEY.findall(sample.head))
    return (closed and (keys > 0 or is_list)) or keys >= 3


def is_diff(sample: Sample) -> bool:
    """A unified diff."""
    return ("@@ " in sample.head or "diff --git " in sample.head) and _HUNK.search(sample.head) is not None


def is_trace(sample: Sample) -> bool:
    """A stack trace: at least a fifth of the lines, or what the text ends with."""
    if _PYTHON_TRACE in sample.tail or ("panic" in sample.tail and _PANIC.search(sample.tail)):
        return True
    return len(_FRAME.findall(sample.head)) >= max(2, len(sample.lines) / 5)


def is_html(sample: Sample) -> bool:
    """HTML or other markup."""
    if "<" not in sample.head:
        return False
    if _MARKUP_START.search(sample.head):
        return True
    return len(_TAG.findall(sample.head)) >= max(5, len(sample.lines) / 3)


def is_log(sample: Sample) -> bool:
    """Lines that start with a time or a level."""
    return len(sample.lines) >= 3 and sample.share(_LOG_LINE) >= 0.5


def is_search(sample: Sample) -> bool:
    """Hits of a search: file, line number, line."""
    return sample.share(_SEARCH_LINE) >= 0.6


def is_listing(sample: Sample) -> bool:
    """Names of files and folders, one a line."""
    return len(sample.lines) >= 2 and sample.share(_LISTING_LINE) >= 0.6


def is_table(sample: Sample) -> bool:
    """Rows of equally many cells: CSV, tabs, bars."""
    if len(sample.lines) < 3:
        return False
    return any(_has_columns(sample.lines, mark, least) for mark, least in _CELL_MARKS)


def is_code(sample: Sample) -> bool:
    """Source text of a programming language."""
    if len(sample.lines) < 3:
        return False
    share = sample.share(_CODE_LINE)
    return share >= 0.3 or (share >= 0.15 and sample.share(_INDENTED) >= 0.5)


def is_prose(sample: Sample) -> bool:
    """Sentences of a natural language."""
    ends = len(_SENTENCE_END.findall(sample.head))
    if not ends:
        return False
    words = _WORD.findall(sample.head)
    letters = sum(map(len, words))
    if len(words) < 8 or letters < 0.55 * len(sample.head) or ends < len(words) / 50:
        return False
    return len(words) >= 6 * len(sample.lines) or sample.share(_HEADING) >= 0.05


SNIFFERS: dict[str, Callable[[Sample], bool]] = {
    "blob": is_blob,
    "json": is_json,
    "diff": is_diff,
    "trace": is_trace,
    "html": is_html,
    "log": is_log,
    "search": is_search,
    "listing": is_listing,
    "code": is_code,
    "table": is_table,
    "prose": is_prose,
}
"""One test for each type, asked in this order."""


def _sample(text: str) -> Sample:
    head = _COLOUR.sub("", text[:_HEAD_CHARS])
    lines = [line for line in head.splitlines()[:_HEAD_LINES] if line.strip() and len(line) <= _MOST_LINE_CHARS]
    if sum(_LINE_NUMBER.match(line) is not None for line in lines) >= 0.6 * len(lines):
        lines = [bare for line in lines if (bare := _LINE_NUMBER.sub("", line)).strip()]
    return Sample(head, text[-_TAIL_CHARS:], tuple(lines))


def _has_columns(lines: Sequence[str], mark: re.Pattern[str], least: int) -> bool:
    counts = [len(mark.findall(line.strip())) for line in lines]
    commonest = max(set(counts), key=lambda count: (counts.count(count), count))
    return commonest >= least and counts.count(commonest) >= 0.7 * len(lines)
