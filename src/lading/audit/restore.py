"""The tool by which a model reads what left its view: its schema, and what it answers.

An answer is a page of lines, or the passages that match a query, never more than so many tokens. Nothing of
the arguments is taken for a path or a pattern: an address is looked up in this session's own log, a query is
words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from lading import jsonbytes
from lading.addresses import RESTORE, Address, parse, relative
from lading.audit.pointers import as_text
from lading.audit.text_search import chosen, find, numbered, split
from lading.errors import AddressError
from lading.history.log import Entry
from lading.messages import File, Image, Message, Part, Text, Tool, ToolCall, ToolResult

SCHEMA = Tool(
    RESTORE,
    "Read earlier messages or results that were removed from the context; notes in their place name the address.",
    {
        "type": "object",
        "properties": {
            "address": {"type": "string", "description": "artifact://... or #17 for message 17"},
            "query": {"type": "string", "description": "words to find in it"},
            "lines": {"type": "string", "description": "such as 1-80"},
        },
        "required": ["address"],
    },
)
"""The tool as it is offered to a model."""

ANSWER_TOKENS = 2_000
"""The most that one answer takes, whatever is asked for."""
LEAST_ANSWER_TOKENS = 150
"""With less room there is no use in answering."""
_NOTE_TOKENS = 60
"""About what an answer says of itself."""
_LINES = re.compile(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?", re.ASCII)
_NUMBER = re.compile(r"#?(\d{1,9}(?:-\d{1,9}|\.\d{1,6})?)", re.ASCII)
"""Of messages of this conversation, as records name them: #17, #17-42, #17.0 for a part."""
_QUERY_CHARS = 400
_AROUND_ADDRESS = " \t\n`'\"<>[](),."
"""What a model writes around an address."""
_ADDRESS_CHARS = 400
_NO_PICTURES = "[Images and files here: {count}. This API accepts none in a tool result.]"


def is_offered(tools: Iterable[Tool]) -> bool:
    """Whether the tool is among them; a caller's own may have its name."""
    return any((tool.name, tool.description) == (SCHEMA.name, SCHEMA.description) for tool in tools)


class Asked(msgspec.Struct, frozen=True):
    """The arguments of a call."""

    address: str
    query: str = ""
    lines: str = ""


class _Pictures(msgspec.Struct, frozen=True):
    """What of the pictures and documents at an address is shown."""

    parts: tuple[Image | File, ...]
    tokens: int
    said: str


class _Refused(Exception):
    """Why a call cannot be answered, as the model is told."""


def answer(
    call: ToolCall,
    entries: Sequence[Entry],
    *,
    session: tuple[str, str],
    count: Callable[[str], int],
    most_tokens: int = ANSWER_TOKENS,
    show: Callable[[Image | File], int] | None = None,
) -> ToolResult:
    """The result of a call of the tool; an error result, saying what to do, when it cannot be answered.

    ``entries`` is the whole log of the session, named by tenant and session; ``count`` gives the tokens of a
    text; the answer takes at most ``most_tokens``, but for a line of which each character takes several.
    ``show`` gives the tokens of a picture or document in a result, None where the wire takes none there: then
    the answer says so. With a query, or from a later line on, they are not shown.
    """
    try:
        asked = _asked(call)
        if most_tokens < LEAST_ANSWER_TOKENS:
            raise _Refused("There is not enough room for this answer now. Ask for one address at a time.")
        messages = _read(asked, entries, session)
        lines, room = split(_text(messages)), most_tokens - _NOTE_TOKENS
        if asked.query.strip():
            return ToolResult(call.id, (Text(_matching(lines, asked, count, room=room)),), name=RESTORE)
        media = list(_media(part for _, message in messages for part in message.parts))
        pictures = _shown(
            media if _range(lines, asked.lines)[0] == 1 else (), show, room=room - LEAST_ANSWER_TOKENS
        )
        room -= pictures.tokens + (_NOTE_TOKENS if pictures.said else 0)
        page = _page(lines, asked.lines, count, room=room)
        return ToolResult(call.id, (Text(pictures.said + page), *pictures.parts), name=RESTORE)
    except _Refused as refused:
        return ToolResult(call.id, (Text(str(refused)),), is_error=True, name=RESTORE)


def answers(
    calls: Sequence[ToolCall],
    entries: Sequence[Entry],
    *,
    session: tuple[str, str],
    count: Callable[[Message], int],
    room_tokens: int,
    shows_pictures: bool,
) -> list[Message]:
    """The results of all calls of the tool in one reply. ``count``: tokens of a message; ``room_tokens``: what the
    conversation may take."""
    # What was restored is not taken away again before it is read: it has to leave room for the rest.
    most_tokens = min(ANSWER_TOKENS, room_tokens // 4 // max(len(calls), 1))

    def tokens(part: Text | Image | File) -> int:
        return count(Message("tool", (ToolResult("", (part,)),)))

    def result(call: ToolCall) -> ToolResult:
        return answer(
            call,
            entries,
            session=session,
            count=lambda text: tokens(Text(text)),
            most_tokens=most_tokens,
            show=tokens if shows_pictures else None,
        )

    return [Message("tool", (result(call),)) for call in calls]


def _asked(call: ToolCall) -> Asked:
    try:
        given = jsonbytes.load(call.arguments or "{}")
        if not isinstance(given, dict) or not isinstance(given.get("address"), str):
            raise _Refused("Give the address, as the note that was left names it: artifact://...")
        return Asked(given["address"].strip(_AROUND_ADDRESS), _word(given.get("query")), _word(given.get("lines")))
    except ValueError as error:
        raise _Refused('The arguments are not a JSON object. Give {"address": "artifact://..."}.') from error


def address_asked(call: ToolCall, session: tuple[str, str]) -> str:
    """The address that a call of the tool asks for, in full where it is one; empty where it gives none."""
    try:
        asked = _asked(call).address
        return str(_place(asked, session))
    except _Refused:
        return ""
    except AddressError:
        return asked[:_ADDRESS_CHARS]


def _place(asked: str, session: tuple[str, str]) -> Address:
    number = _NUMBER.fullmatch(asked)
    return parse(relative(number[1]) if number else asked, within=session)


def _word(value: Any) -> str:
    return "" if value is None else str(value)[:_QUERY_CHARS]


def _read(asked: Asked, entries: Sequence[Entry], session: tuple[str, str]) -> list[tuple[int, Message]]:
    """The messages that stand at the address, each with its entry."""
    try:
        place = _place(asked.address, session)
        first, last, part = place.log_span()
    except AddressError as error:
        raise _Refused(f"This is not an address in this conversation: {error}") from error
    if (place.tenant, place.session) != session:
        raise _Refused("This address belongs to another conversation and cannot be read here.")
    if last >= len(entries):
        raise _Refused(f"The address points past the log, which holds entries 0 to {len(entries) - 1}.")
    if part is not None:
        message = entries[first].message
        if part >= len(message.parts):
            raise _Refused(f"The entry has parts 0 to {len(message.parts) - 1}.")
        return [(first, message.with_parts((message.parts[part],)))]
    return [(entry.index, entry.message) for entry in entries[first : last + 1]]


def _text(messages: Sequence[tuple[int, Message]]) -> str:
    """Messages as text, those of a span one after the other."""
    if len(messages) == 1:
        return as_text(messages[0][1])
    return "\n".join(f"--- {index} {message.role}\n{as_text(message)}" for index, message in messages)


def _media(parts: Iterable[Part]) -> Iterator[Image | File]:
    """Pictures and documents among the parts, those in results too."""
    for part in parts:
        if isinstance(part, ToolResult):
            yield from _media(part.parts)
        elif isinstance(part, Image | File):
            yield part


def _shown(media: Sequence[Image | File], show: Callable[[Image | File], int] | None, *, room: int) -> _Pictures:
    """Which of the pictures fit the answer, and what is to be said of the others."""
    if not media:
        return _Pictures((), 0, "")
    if show is None:
        where = "lading show ADDRESS --json"
        return _Pictures((), 0, f"{_NO_PICTURES.format(count=len(media))} The user can read them with: {where}\n")
    parts, taken = [], 0
    for part in media:
        tokens = show(part)
        if taken + tokens <= room:
            parts.append(part)
            taken += tokens
    left = len(media) - len(parts)
    said = f"[{len(parts)} of {len(media)} images and files follow the text."
    return _Pictures(tuple(parts), taken, f"{said}{' The others take too much room.' if left else ''}]\n")


def _range(lines: Sequence[str], wanted: str) -> tuple[int, int]:
    """The first and the last of the wanted lines, from 1; all where nothing is said."""
    match = _LINES.fullmatch(wanted) if wanted.strip() else None
    if wanted.strip() and match is None:
        raise _Refused("lines is a number or a range such as 1-80.")
    first = int(match[1]) if match else 1
    last = min(int(match[2] or match[1]) if match else len(lines), len(lines))
    if not 1 <= first <= last:
        raise _Refused(f"There are lines 1 to {len(lines)}; give a range within them.")
    return first, last


def _page(lines: Sequence[str], wanted: str, count: Callable[[str], int], *, room: int) -> str:
    """As many of the wanted lines as fit the room, and how to get the next."""
    first, last = _range(lines, wanted)
    end = _fitting(lines[first - 1 : last], count, room=room) + first - 1
    more = f" Next: lines {end + 1}-{len(lines)}." if end < len(lines) else ""
    return "\n".join((f"[Lines {first} to {end} of {len(lines)}.{more}]", *lines[first - 1 : end]))


def _fitting(lines: Sequence[str], count: Callable[[str], int], *, room: int) -> int:
    """How many of the first lines fit the room; at least one."""
    # No line takes less than a token: what is far beyond the page is not counted at all.
    low, high = 1, min(len(lines), 1 + room)
    while low < high:
        middle = (low + high + 1) // 2
        fits = count("\n".join(lines[:middle])) <= room
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def _matching(lines: Sequence[str], asked: Asked, count: Callable[[str], int], *, room: int) -> str:
    """The passages that hold most of the query's words, in their order, as many as fit the room."""
    first, last = _range(lines, asked.lines)
    found = find(lines[:last], asked.query, start=first - 1)
    searched = f"lines {first} to {found.end}" if found.end - found.start < len(lines) else f"{len(lines)} lines"
    rest = f" Not searched yet: give lines {found.end + 1}-{last} too." if found.end < last else ""
    if not found.best:
        is_whole = (first, last) == (1, len(lines))
        other = " Read it by lines, from 1-80 on." if is_whole else " Leave lines out to search all."
        return f"[None of {searched} holds these words.{rest or other}]"
    positions = chosen(lines, found.best, count=count, room=room)
    missing = len(set(found.best).difference(positions))
    more = f" {missing} more lines match; ask for other words, or by lines." if missing else ""
    return f"[{len(found.best)} of {searched} match.{more}{rest}]\n{numbered(lines, positions)}"
