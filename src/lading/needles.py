"""A text that is looked for, the spellings in which it counts as found, and where a message holds strings.

Exact: as it is, as JSON escapes it inside a string (a path in the arguments of a call), or as it reads once
its own JSON escapes are undone (a passage copied out of a body). Loose: without regard to case and spacing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from lading import jsonbytes
from lading.addresses import RESTORE
from lading.errors import InputError
from lading.messages import File, Image, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

Find: TypeAlias = Callable[[str], "tuple[int, int] | None"]
"""Where in a string the text stands (characters, end not included); None when it does not."""

EXCERPT_CHARS = 40
"""Shown on either side of what was found."""
_MOST_LOOSE_CHARS = 4_000
_SPACE = r"(?:\s|\\[nrt])+"


def exactly(text: str) -> Find:
    """Finds the text as it is, as JSON escapes it once or twice, and as its own JSON escapes read.

    Raises InputError when it is blank.
    """
    if not text.strip():
        raise InputError("The text to search for is blank. Give some text.")
    spellings = [spelling for spelling in dict.fromkeys((text, *_escaped(text), _unescaped(text))) if spelling]

    def find(string: str) -> tuple[int, int] | None:
        for spelling in spellings:
            if (start := string.find(spelling)) >= 0:
                return start, start + len(spelling)
        return None

    return find


def loosely(text: str) -> Find:
    """Finds the text in any case and spacing. One of more than 4,000 characters is not looked for like this."""
    words = text.split() if len(text) <= _MOST_LOOSE_CHARS else []
    pattern = re.compile(_SPACE.join(map(re.escape, words)), re.IGNORECASE) if words else None

    def find(string: str) -> tuple[int, int] | None:
        match = pattern.search(string) if pattern else None
        return match.span() if match else None

    return find


def excerpt(string: str, span: tuple[int, int]) -> str:
    """What was found with a little of what stands around it; long finds are cut in the middle."""
    start, end = span
    found = string[start:end]
    if len(found) > 4 * EXCERPT_CHARS:
        found = f"{found[: 2 * EXCERPT_CHARS]} ... {found[-2 * EXCERPT_CHARS :]}"
    return string[max(start - EXCERPT_CHARS, 0) : start] + found + string[end : end + EXCERPT_CHARS]


def message_strings(message: Message) -> Iterator[tuple[str, str]]:
    """Every string a message says, with the kind of its part: text, call, arguments, result, ...; ``query``, the
    arguments of a call of a tool named ``restore``, after the other parts."""
    if message.name:
        yield "name", message.name
    for part in sorted(message.parts, key=_is_query):
        yield from _part_strings(part)
    if len(message.parts) > 1:
        yield "text", message.text


def strings(value: Any) -> Iterator[str]:
    """Every string of a JSON value, keys included; also those of JSON that stands escaped in a string."""
    if isinstance(value, str):
        yield value
        yield from _inner(value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from strings(inner)


def _is_query(part: Part) -> bool:
    return isinstance(part, ToolCall) and part.name == RESTORE


def _part_strings(part: Part) -> Iterator[tuple[str, str]]:
    match part:
        case Text():
            yield from (("text", string) for string in strings(part.text))
        case ToolCall():
            yield from (("call", string) for string in (part.name, part.id))
            kind = "query" if _is_query(part) else "arguments"
            yield from ((kind, string) for string in strings(part.arguments))
        case ToolResult():
            yield from (("result", string) for string in (part.call_id, part.name))
            for inner in part.parts:
                yield from (("result", string) for _, string in _part_strings(inner))
            if len(part.parts) > 1:
                yield "result", part.text
        case Reasoning():
            yield from (("reasoning", string or "") for string in (part.text, part.signature, part.data))
        case Image():
            yield from (("image", string) for string in (part.url, part.data, part.media_type))
        case File():
            fields = (part.url, part.data, part.file_id, part.media_type, part.name)
            yield from (("file", string) for string in fields)
        case Opaque():
            yield from (("part", string) for string in strings(part.value))


def _inner(string: str) -> Iterator[str]:
    """The strings of a JSON text that escapes some of them: only there do they read otherwise."""
    if "\\" in string and string.lstrip()[:1] in ("{", "["):
        try:
            value = jsonbytes.load(string)
        except ValueError:
            return
        yield from strings(value)


def _escaped(text: str) -> Iterator[str]:
    for ascii_only in (False, True):
        once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text
