"""Find the values that a message names, each with plain words near it: paths, ids, numbers, symbols.

Such a value is almost always what agents copy from history into later calls, and what a summary in prose loses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from lading.messages import Message, Text, ToolCall, ToolResult

MOST_VALUE_CHARS = 120
"""Longer runs of characters are data, not names."""
MOST_PIECE_CHARS = 200_000
"""Of a longer text only the start and the end are read, this many characters in all."""
NEAR_CHARS = 80
"""Greatest distance of a word that describes a value."""
_WORDS_EACH = 4
_MOST_JOINT_CHARS = 2
"""Most characters between the pieces of one value, such as ``::``."""
_TOKEN = re.compile(r"(?:@|~?/|\.{1,2}/)?\w(?:(?:[\w./\\+#~%@-]|:(?=//|:)|(?<=:):)*\w)?")
_PLAIN_WORD = re.compile(r"[^\W\d_]{4,24}")
_NUMBER = re.compile(r"\d[\d.,]*")
_CAMEL = re.compile(r"[^\W\d_A-Z][A-Z]")
_HYPHENATED = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)+")


_NAMES = re.compile(r"([^\W\d][\w$]*(?:\.[^\W\d][\w$]*)+)((?:/[^\W\d][\w$]*)*)")
_ENDINGS = frozenset(
    """
    bash bat c cc cfg cjs class com conf config cpp cs css csv db diff dll doc docx env example exe gif git go gz h
    hpp html ico ini io ipynb jar java jpeg jpg js json jsonl jsx key kt lib local lock log lua md mjs net orig org
    out patch pdf pem php plist png proto ps1 py pyc pyi rb rs rst scala scss sh so sql sqlite svelte svg swift tar
    test tmp toml ts tsv tsx txt vue wasm webp xml yaml yml zip
    """.split()  # noqa: SIM905 - a list of words reads as words
)
"""After a dot, these end the name of a file or a host, whose parts say nothing about the whole."""


class Mention(Struct, frozen=True):
    """A value in a message."""

    value: str
    words: tuple[str, ...]
    """Plain words near it, the nearest first."""
    weight: float
    """How much it looks like something that a later call will name."""


def find_mentions(message: Message) -> Iterator[Mention]:
    """Yield every value that the message names, in order, with repeats."""
    for part in message.parts:
        if isinstance(part, Text | ToolResult):
            yield from _find_in_text(part.text, 1.0)
        elif isinstance(part, ToolCall):
            yield from _find_in_call(part)


def _find_in_call(call: ToolCall) -> Iterator[Mention]:
    for key, text in read_leaves(call.arguments):
        if text and len(text) <= 64 and not any(map(str.isspace, text)):
            words = tuple(dict.fromkeys(word for word in (key, call.name) if _PLAIN_WORD.fullmatch(word)))
            yield Mention(text, words, 3.0)
        yield from _find_in_text(f"{key} {text}", 1.5)


def read_leaves(arguments: str) -> Iterator[tuple[str, str]]:
    """Yield the values in a call's arguments as written, each with its key; the whole text if it is not JSON."""
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


def _find_in_text(text: str, factor: float) -> Iterator[Mention]:
    tokens = list(find_tokens(text))
    plain = [(start, token) for start, token in tokens if _PLAIN_WORD.fullmatch(token) and not _CAMEL.search(token)]
    after = 0
    for start, token in tokens:
        weight = weigh(token)
        if not weight:
            continue
        while after < len(plain) and plain[after][0] < start:
            after += 1
        yield Mention(token, _find_near(plain, after, start, start + len(token)), weight * factor)


def find_tokens(text: str) -> Iterator[tuple[int, str]]:
    """Yield the tokens of a text with their positions. If only its start and end are read, tokens at the two cuts
    are left out: they may be incomplete."""
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


def _find_near(plain: list[tuple[int, str]], after: int, start: int, end: int) -> tuple[str, ...]:
    """Return the words around a value, the nearest first; at equal distance those before it first."""
    before, behind = plain[max(after - _WORDS_EACH, 0) : after], plain[after : after + _WORDS_EACH]
    around = [(start - at - len(word), word) for at, word in before if start - at <= NEAR_CHARS]
    around += [(at - end + 1, word) for at, word in behind if at + len(word) - end <= NEAR_CHARS]
    return tuple(dict.fromkeys(word for _, word in sorted(around)))


def split_name(value: str) -> tuple[str, ...]:
    """Return the names of which a dotted name is made: ``Theme`` and ``draw`` of ``Theme.draw``, ``theme.fg`` and
    ``theme.bg`` of ``theme.fg/bg``. Empty for anything else, such as a path, the name of a file or a number."""
    found = _NAMES.fullmatch(value)
    if found is None or any(part.casefold() in _ENDINGS for part in re.split(r"[./]", value)[1:]):
        return ()
    owner, _, _ = found[1].rpartition(".")
    others = found[2].split("/")[1:]
    return (found[1], *(f"{owner}.{other}" for other in others)) if others else tuple(value.split("."))


def weigh(token: str) -> float:
    """Return how name-like a token is; 0 for a mere word."""
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
