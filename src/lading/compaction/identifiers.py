"""The values a message names, each with plain words of where it stood: paths, ids, numbers, symbols.

What agents copy from history into later calls is almost always such a value. A summary in prose loses them;
these are carried by the program.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from lading.messages import Message, Text, ToolCall, ToolResult

MOST_VALUE_CHARS = 120
"""Longer runs of characters are no names but data."""
MOST_PIECE_CHARS = 200_000
"""Of a longer text only the start and the end are read."""
NEAR_CHARS = 80
"""A word binds a value when it stands so near."""
_WORDS_EACH = 4
_MOST_JOINT_CHARS = 2
"""So many characters that end no value stand between the pieces of one."""
_TOKEN = re.compile(r"(?:@|~?/|\.{1,2}/)?\w(?:(?:[\w./\\+#~%@-]|:(?=//|:)|(?<=:):)*\w)?")
_PLAIN_WORD = re.compile(r"[^\W\d_]{4,24}")
_NUMBER = re.compile(r"\d[\d.,]*")
_CAMEL = re.compile(r"[^\W\d_A-Z][A-Z]")
_HYPHENATED = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)+")


class Mention(Struct, frozen=True):
    """A value where a message names it."""

    value: str
    words: tuple[str, ...]
    """Plain words near it, the nearest first."""
    weight: float
    """How much it looks like something a later call will name."""


def mentions(message: Message) -> Iterator[Mention]:
    """Every value that the message names, in order, repeated as often as it is named."""
    for part in message.parts:
        if isinstance(part, Text | ToolResult):
            yield from _named(part.text, 1.0)
        elif isinstance(part, ToolCall):
            yield from _in_call(part)


def _in_call(call: ToolCall) -> Iterator[Mention]:
    for key, text in leaves(call.arguments):
        if text and len(text) <= 64 and not any(map(str.isspace, text)):
            words = tuple(dict.fromkeys(word for word in (key, call.name) if _PLAIN_WORD.fullmatch(word)))
            yield Mention(text, words, 3.0)
        yield from _named(f"{key} {text}", 1.5)


def leaves(arguments: str) -> Iterator[tuple[str, str]]:
    """The values of a call's arguments as texts, each with its key; the whole text when it is no JSON. Numbers
    are as they were written."""
    try:
        value = json.loads(arguments, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        value = arguments
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        key, value = stack.pop()
        if isinstance(value, dict):
            stack += [(name, inner) for name, inner in reversed(value.items())]
        elif isinstance(value, list):
            stack += [(key, inner) for inner in reversed(value)]
        elif isinstance(value, str):
            yield key, value


def _named(text: str, factor: float) -> Iterator[Mention]:
    tokens = list(_tokens(text))
    plain = [(start, token) for start, token in tokens if _PLAIN_WORD.fullmatch(token) and not _CAMEL.search(token)]
    after = 0
    for start, token in tokens:
        weight = _weight(token)
        if not weight:
            continue
        while after < len(plain) and plain[after][0] < start:
            after += 1
        yield Mention(token, _near(plain, after, start, start + len(token)), weight * factor)


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    """The tokens of a text with their places. Where only its start and end are read, none that the cuts went
    through: half a value is none."""
    if len(text) <= MOST_PIECE_CHARS:
        yield from ((found.start(), found.group()) for found in _TOKEN.finditer(text))
        return
    first, second = MOST_PIECE_CHARS // 2, len(text) - MOST_PIECE_CHARS // 2
    for found in _TOKEN.finditer(text, 0, first):
        if found.end() < first - _MOST_JOINT_CHARS:
            yield found.start(), found.group()
    for found in _TOKEN.finditer(text, second):
        if found.start() > second + _MOST_JOINT_CHARS:
            yield found.start(), found.group()


def _near(plain: list[tuple[int, str]], after: int, start: int, end: int) -> tuple[str, ...]:
    """The words around, nearest first, those before the value before those behind it at equal distance."""
    around = [
        (start - at - len(word), word)
        for at, word in plain[max(after - _WORDS_EACH, 0) : after]
        if start - at <= NEAR_CHARS
    ]
    around += [
        (at - end + 1, word)
        for at, word in plain[after : after + _WORDS_EACH]
        if at + len(word) - end <= NEAR_CHARS
    ]
    return tuple(dict.fromkeys(word for _, word in sorted(around)))


def _weight(token: str) -> float:
    """How name-like a token is; 0 for what is only a word."""
    if len(token) > MOST_VALUE_CHARS:
        return 0.0
    if _NUMBER.fullmatch(token):
        return 0.3 if len(token) > 1 else 0.0
    if len(token) < 4 or (token.isalpha() and not _CAMEL.search(token)):
        return 0.0
    if _HYPHENATED.fullmatch(token):
        return 0.5
    if "/" in token or "\\" in token:
        return 2.0
    return 1.0
