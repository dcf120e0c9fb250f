"""Write the lines of a record safely, and parse a record for readers.

Only a user's words span lines. Those that begin like a line of a record are indented, so that no text looks like a
line of another speaker.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from lading.compaction.excerpts import clip, collapse_spaces
from lading.compaction.kept_calls import read_calls
from lading.history.log import Edit, Entry
from lading.messages import File, Image, Message, is_own

FILES = "Files changed"
FAILING = "Failing at the end"
SUMMARY = "Summary of the rest"
"""Heading of a model's lines."""
_SECTIONS = ("Goal", "Decided", "Done", "Open", "Failed")
"""Start of each line of a model in records of earlier versions."""
_MARK = (
    r"(?:#(\d{1,9}) (?:(?P<user>User)|(?P<system>System)|(?P<assistant>Assistant)): |(?P<call>- )"
    rf"|(?P<files>{FILES}: )|(?P<failing>{FAILING}: )|(?P<summary>(?:{'|'.join(_SECTIONS)}): |{SUMMARY}:\n)"
    r"|(?P<opening>(?=\[Record of messages \d))"
    r"|(?P<left_out>(?=\(\d+ (?:calls? that changed something|(?:user )?messages?) left out[:)])))"
)
_LINE = re.compile(f"^{_MARK}", re.MULTILINE)
_POSING = re.compile(rf"(?<=[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])(?={_MARK})")
_NAMED = re.compile(r"#(?=\d{1,9} (?:User|System|Assistant): )")


MOST_NAME_CHARS = 64
"""As in the API of OpenAI."""


class RecordLine(Struct, frozen=True, omit_defaults=True):
    """A line of a record, or several of a user; joined by newlines they are its text."""

    kind: str
    """user, system, assistant, call, summary (by a model), files, failing, left_out, opening, title."""
    text: str
    mark: int = 0
    """Number of its characters that mark the kind."""
    entry: int = -1
    """The entry of its message; -1: not stated."""
    is_whole: bool = False
    """It has all of that message's text."""


class Share(Struct, frozen=True):
    """How much of the original a record shows."""

    total: int
    """Messages with text, pictures or files; or calls."""
    lines: int
    whole: int


class RecordText(Struct, frozen=True):
    """A parsed record of the messages ``first`` to ``last``, with the number of its call."""

    first: int
    last: int
    call: int
    tokens_before: int
    """Of these messages as they arrived."""
    tokens_after: int
    user: Share
    assistant: Share
    calls: Share
    lines: tuple[RecordLine, ...] = ()


def indent_lookalikes(words: str) -> str:
    """Indent each line of a speaker's words that begins like a line of a record."""
    return _POSING.sub("  ", words)


def quote(text: str) -> str:
    """Write a text on one line, without anything that looks like the start of a speaker's line."""
    return _NAMED.sub("", collapse_spaces(text))


def name_speaker(message: Message) -> str:
    """Return the name of the person who wrote a message, as records have it before the words; empty without one."""
    name = "" if message.role == "assistant" else clip(quote(message.name), MOST_NAME_CHARS)
    return f"{name}: " if name else ""


def extract_verbatim(text: str) -> str:
    """Return the words of users and the system in a record."""
    marks = [*_LINE.finditer(text)]
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    spans = ((mark.end(), end) for mark, end in zip(marks, ends, strict=False) if mark["user"] or mark["system"])
    return "\n".join(text[start:end] for start, end in spans)


def write_summary(lines: Sequence[str]) -> tuple[str, ...]:
    """Return a model's lines for a record, under their heading."""
    marks = map(_LINE.match, lines)
    return (
        f"{SUMMARY}:",
        *(f"  {line}" if mark and not mark["summary"] else line for mark, line in zip(marks, lines, strict=True)),
    )


def extract_summary(text: str) -> str:
    """Return a model's lines in a record; empty if it has none."""
    found = (line.text.removeprefix(f"{SUMMARY}:") for line in _split_lines(text, ()) if line.kind == "summary")
    return "\n".join(line.removeprefix("  ") for block in found for line in block.splitlines() if line)


def parse_record(edit: Edit, entries: Sequence[Entry]) -> RecordText | None:
    """Parse the record of an edit of this log; None if the edit has no record."""
    lines = tuple(line for message in edit.replacement[:1] for line in _split_lines(message.text, entries))
    if edit.kind != "summarised" or all(line.kind != "opening" for line in lines[:2]):
        return None
    span = entries[edit.first : edit.last + 1]
    messages = [entry.message for entry in span if not is_own(entry.message)]
    totals = Counter[str](message.role for message in messages if message.text.strip() or _has_media(message))
    totals["call"] = sum(len(read_calls(message)[0]) for message in messages)
    shown = Counter(line.kind for line in lines)
    whole = Counter(line.kind for line in lines if line.is_whole)
    user, assistant, calls = (Share(totals[of], shown[of], whole[of]) for of in ("user", "assistant", "call"))
    tokens = (sum(entry.tokens for entry in span), edit.replacement_tokens[0])
    return RecordText(edit.first, edit.last, edit.call, *tokens, user, assistant, calls, lines)


def _split_lines(text: str, entries: Sequence[Entry]) -> Iterator[RecordLine]:
    marks = [*_LINE.finditer(text)]
    starts = [mark.start() for mark in marks]
    if starts[:1] != [0]:
        yield RecordLine("title", text[: starts[0] - 1 if starts else None])
    for mark, start, end in zip(marks, starts, [*starts[1:], len(text) + 1], strict=False):
        entry, words = int(mark[1] or -1), collapse_spaces(text[mark.end() : end - 1])
        said = entries[entry].message if 0 <= entry < len(entries) else None
        is_whole = said is not None and words.removeprefix(name_speaker(said)).startswith(
            collapse_spaces(said.text)
        )
        yield RecordLine(mark.lastgroup or "", text[start : end - 1], mark.end() - start, entry, is_whole)


def _has_media(message: Message) -> bool:
    return any(isinstance(part, Image | File) for part in message.parts)
