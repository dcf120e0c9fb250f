"""The lines of a record: how each begins, and how people read a record back.

Only a user's words span lines. Those that begin like a line of a record are indented, so that no text passes for a
line of another speaker.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from lading.compaction.checking import SECTIONS
from lading.compaction.phrases import one_line
from lading.history.log import Edit, Entry
from lading.messages import File, Image, Message, is_own

FILES = "Files changed"
FAILING = "Failing at the end"
_MARK = (
    r"(?:#(\d{1,9}) (?:(?P<user>User)|(?P<system>System)|(?P<assistant>Assistant)): |(?P<call>- )"
    rf"|(?P<files>{FILES}: )|(?P<failing>{FAILING}: )|(?P<summary>(?:{'|'.join(SECTIONS)}): )"
    r"|(?P<opening>(?=\[Record of messages \d))|(?P<left_out>(?=\(\d+ (?:user )?messages? left out: )))"
)
_LINE = re.compile(f"^{_MARK}", re.MULTILINE)
_POSING = re.compile(rf"(?<=[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])(?={_MARK})")
_NAMED = re.compile(r"#(?=\d{1,9} (?:User|System|Assistant): )")


class Line(Struct, frozen=True, omit_defaults=True):
    """A line of a record; joined by newlines they are its text."""

    kind: str
    """user, system, assistant, call, summary (a model's), files, failing, left_out, opening; title: before it."""
    text: str
    mark: int = 0
    """How many of its characters say the kind."""
    entry: int = -1
    """Of the message it tells, where it names one."""
    is_whole: bool = False
    """It leaves out nothing of that message's text."""


class Share(Struct, frozen=True):
    """How much of what there was is told."""

    total: int
    """Messages with words or pictures, or calls."""
    lines: int
    whole: int


class RecordText(Struct, frozen=True):
    """A record as people read it: of the messages ``first`` to ``last``, from one call on."""

    first: int
    last: int
    call: int
    tokens_before: int
    """Of these messages as they arrived."""
    tokens_after: int
    user: Share
    assistant: Share
    calls: Share
    lines: tuple[Line, ...] = ()


def indented(words: str) -> str:
    """A speaker's words, with two blanks before each line that begins like a line of a record."""
    return _POSING.sub("  ", words)


def quoted(text: str) -> str:
    """A text of a tool or the assistant on one line; nothing in it looks like the start of somebody's line."""
    return _NAMED.sub("", one_line(text))


def verbatim(text: str) -> str:
    """What users and the system say in a record."""
    marks = [*_LINE.finditer(text)]
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    spans = ((mark.end(), end) for mark, end in zip(marks, ends, strict=False) if mark["user"] or mark["system"])
    return "\n".join(text[start:end] for start, end in spans)


def read(edit: Edit, entries: Sequence[Entry]) -> RecordText | None:
    """The record that an edit of this log left; None where it left anything else."""
    lines = tuple(line for message in edit.replacement[:1] for line in _lines(message.text, entries))
    if edit.kind != "summarised" or all(line.kind != "opening" for line in lines[:2]):
        return None
    span = entries[edit.first : edit.last + 1]
    messages = [entry.message for entry in span if not is_own(entry.message)]
    said = Counter[str](message.role for message in messages if message.text.strip() or _has_media(message))
    said["call"] = sum(len(message.calls) for message in messages)
    told = Counter(line.kind for line in lines)
    whole = Counter(line.kind for line in lines if line.is_whole)
    user, assistant, calls = (Share(said[of], told[of], whole[of]) for of in ("user", "assistant", "call"))
    tokens = (sum(entry.tokens for entry in span), edit.replacement_tokens[0])
    return RecordText(edit.first, edit.last, edit.call, *tokens, user, assistant, calls, lines)


def _lines(text: str, entries: Sequence[Entry]) -> Iterator[Line]:
    marks = [*_LINE.finditer(text)]
    starts = [mark.start() for mark in marks]
    if starts[:1] != [0]:
        yield Line("title", text[: starts[0] - 1 if starts else None])
    for mark, start, end in zip(marks, starts, [*starts[1:], len(text) + 1], strict=False):
        entry, words = int(mark[1] or -1), one_line(text[mark.end() : end - 1])
        is_whole = 0 <= entry < len(entries) and words.startswith(one_line(entries[entry].message.text))
        yield Line(mark.lastgroup or "", text[start : end - 1], mark.end() - start, entry, is_whole)


def _has_media(message: Message) -> bool:
    return any(isinstance(part, Image | File) for part in message.parts)
