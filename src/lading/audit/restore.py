"""The ``restore`` tool, by which a model reads removed content: its schema and its answers.

An answer is a page of lines, or the passages that match a query, of at most ``ANSWER_TOKENS``. The text of a page,
below its header, is that of the message, so all pages joined are the message. No argument is used as a path or a
pattern: an address is looked up in this session's own log, and a query is a list of words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from lading import jsonbytes
from lading.addresses import RESTORE, Address, parse, relative
from lading.audit.pointers import render_text
from lading.audit.text_lines import TextLines, split_lines
from lading.audit.text_search import choose_pieces, number_pieces, search_pieces
from lading.errors import AddressError
from lading.history.history import History
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
"""The tool as offered to a model."""

ANSWER_TOKENS = 2_000
"""Upper limit of one answer in tokens, whatever the arguments are."""
LEAST_ANSWER_TOKENS = 150
"""With less room than this, calls get an error result."""
_NOTE_TOKENS = 60
"""Approximate tokens of the header line of an answer."""
_LINES = re.compile(r"\s*(\d{1,9})\s*(?::\s*(\d{1,9})\s*)?(?:-\s*(\d{1,9})\s*)?", re.ASCII)
"""Lines, 1-80, or characters of a line that is too long for an answer, 7:2001-4000."""
_NUMBER = re.compile(r"#?(\d{1,9}(?:-\d{1,9}|\.\d{1,6})?)", re.ASCII)
"""Numbers of messages as records write them: #17, #17-42, #17.0 for a part."""
_QUERY_CHARS = 400
_AROUND_ADDRESS = " \t\n`'\"<>[](),."
"""Characters that models write around an address."""
_ADDRESS_CHARS = 400
WITHDRAWN = "[withdrawn by the user]"
"""The text that a model reads in place of a message that the caller removed from the history."""
_NO_PICTURES = "[Images and files here: {count}. This API accepts none in a tool result.]"


def is_offered(tools: Iterable[Tool]) -> bool:
    """Check whether this tool is among ``tools``; a caller's own tool may have the same name."""
    return any((tool.name, tool.description) == (SCHEMA.name, SCHEMA.description) for tool in tools)


class _Arguments(msgspec.Struct, frozen=True):
    """The arguments of a call."""

    address: str
    query: str = ""
    lines: str = ""


class _Media(msgspec.Struct, frozen=True):
    """Images and files in an answer, and the note about them."""

    parts: tuple[Image | File, ...]
    tokens: int
    note: str


class _Refusal(Exception):
    """Error text for a call that cannot be answered; the model reads it."""


def answer(
    call: ToolCall,
    entries: Sequence[Entry],
    *,
    session: tuple[str, str],
    count: Callable[[str], int],
    most_tokens: int = ANSWER_TOKENS,
    count_media: Callable[[Image | File], int] | None = None,
) -> ToolResult:
    """Answer a call of the tool; the result is an error that states what to do when it cannot be answered.

    ``entries`` is the whole log of ``session`` (tenant and session); ``count`` returns the tokens of a text. The
    answer has at most ``most_tokens``, except where a single piece of a line has more. ``count_media`` returns the
    tokens of an image or file in a result; None: the provider format accepts none there, and the answer notes that.
    Images and files are left out of answers with a query and of pages after the first.
    """
    try:
        arguments = _read_arguments(call)
        if most_tokens < LEAST_ANSWER_TOKENS:
            raise _Refusal("There is not enough room for this answer now. Ask for one address at a time.")
        messages = _find_messages(arguments, entries, session)
        lines, room = split_lines(_join_messages(messages)), most_tokens - _NOTE_TOKENS
        if arguments.query.strip():
            return ToolResult(call.id, (Text(_write_matches(lines, arguments, count, room=room)),), name=RESTORE)
        is_first_page = _parse_range(lines, arguments.lines)[0] == 0
        parts = (part for _, message in messages for part in message.parts)
        media = list(_iter_media(parts)) if is_first_page else []
        fitting = _fit_media(media, count_media, room=room - LEAST_ANSWER_TOKENS)
        room -= fitting.tokens + (_NOTE_TOKENS if fitting.note else 0)
        page = _write_page(lines, arguments.lines, count, room=room)
        return ToolResult(call.id, (Text(fitting.note + page), *fitting.parts), name=RESTORE)
    except _Refusal as refused:
        return ToolResult(call.id, (Text(str(refused)),), is_error=True, name=RESTORE)


def apply_changes(history: History) -> list[Entry]:
    """Return the log as its caller left it: a note in place of what was withdrawn, the newest version of a message
    that was replaced."""
    entries = history.entries
    current = [*entries]
    for edit in history.edits:
        for at in range(edit.first, edit.last + 1) if edit.kind == "restated" else ():
            note = Message(entries[at].message.role, (Text(WITHDRAWN),))
            current[at] = replace(entries[at], message=edit.replacement[0] if edit.replacement else note)
    return current


def answer_calls(
    calls: Sequence[ToolCall],
    entries: Sequence[Entry],
    *,
    session: tuple[str, str],
    count: Callable[[Message], int],
    room_tokens: int,
    shows_pictures: bool,
) -> list[Message]:
    """Answer all calls of the tool in one reply. ``count`` returns the tokens of a message; ``room_tokens`` is the
    budget of the whole conversation."""
    # Restored text is not compacted before the model has read it, so it must leave room for the rest.
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
            count_media=tokens if shows_pictures else None,
        )

    return [Message("tool", (result(call),)) for call in calls]


def _read_arguments(call: ToolCall) -> _Arguments:
    try:
        given = jsonbytes.load(call.arguments or "{}")
        if not isinstance(given, dict) or not isinstance(given.get("address"), str):
            raise _Refusal("Give the address, as the note that was left names it: artifact://...")
        return _Arguments(
            given["address"].strip(_AROUND_ADDRESS),
            _shorten_argument(given.get("query")),
            _shorten_argument(given.get("lines")),
        )
    except ValueError as error:
        raise _Refusal('The arguments are not a JSON object. Give {"address": "artifact://..."}.') from error


def read_requested_address(call: ToolCall, session: tuple[str, str]) -> str:
    """Return the address in a call of the tool, absolute where it is valid; empty when the call has none."""
    try:
        arguments = _read_arguments(call).address
        return str(_parse_address(arguments, session))
    except _Refusal:
        return ""
    except AddressError:
        return arguments[:_ADDRESS_CHARS]


def _parse_address(arguments: str, session: tuple[str, str]) -> Address:
    number = _NUMBER.fullmatch(arguments)
    return parse(relative(number[1]) if number else arguments, within=session)


def _shorten_argument(value: Any) -> str:
    return "" if value is None else str(value)[:_QUERY_CHARS]


def _find_messages(
    arguments: _Arguments, entries: Sequence[Entry], session: tuple[str, str]
) -> list[tuple[int, Message]]:
    """Return the messages at the address, each with the index of its entry."""
    try:
        place = _parse_address(arguments.address, session)
        first, last, part = place.log_span()
    except AddressError as error:
        raise _Refusal(f"This is not an address in this conversation: {error}") from error
    if (place.tenant, place.session) != session:
        raise _Refusal("This address belongs to another conversation and cannot be read here.")
    if last >= len(entries):
        raise _Refusal(f"The address points past the log, which holds entries 0 to {len(entries) - 1}.")
    if part is not None:
        message = entries[first].message
        if part >= len(message.parts):
            raise _Refusal(f"The entry has parts 0 to {len(message.parts) - 1}.")
        return [(first, message.with_parts((message.parts[part],)))]
    return [(entry.index, entry.message) for entry in entries[first : last + 1]]


def _join_messages(messages: Sequence[tuple[int, Message]]) -> str:
    """Render messages as text; those of a span are joined under headings."""
    if len(messages) == 1:
        return render_text(messages[0][1])
    heads = (f"--- {index} {message.role} {message.name}".rstrip() for index, message in messages)
    return "\n".join(f"{head}\n{render_text(message)}" for head, (_, message) in zip(heads, messages, strict=True))


def _iter_media(parts: Iterable[Part]) -> Iterator[Image | File]:
    """Yield the images and files among the parts, including those in tool results."""
    for part in parts:
        if isinstance(part, ToolResult):
            yield from _iter_media(part.parts)
        elif isinstance(part, Image | File):
            yield part


def _fit_media(media: Sequence[Image | File], count: Callable[[Image | File], int] | None, *, room: int) -> _Media:
    """Select the images and files that fit the answer, and write the note about the others."""
    if not media:
        return _Media((), 0, "")
    if count is None:
        where = "lading show ADDRESS --json"
        return _Media((), 0, f"{_NO_PICTURES.format(count=len(media))} The user can read them with: {where}\n")
    parts, used = [], 0
    for part in media:
        tokens = count(part)
        if used + tokens <= room:
            parts.append(part)
            used += tokens
    left = len(media) - len(parts)
    note = f"[{len(parts)} of {len(media)} images and files follow the text."
    return _Media(tuple(parts), used, f"{note}{' The others take too much room.' if left else ''}]\n")


def _parse_range(lines: TextLines, wanted: str) -> tuple[int, int]:
    """Parse a range of lines, or of characters of a line, into pieces (end excluded); a blank one selects all."""
    if not wanted.strip():
        return 0, len(lines.pieces)
    match = _LINES.fullmatch(wanted)
    if match is None:
        raise _Refusal("lines is a number or a range such as 1-80.")
    line, is_within = int(match[1]), match[2] is not None
    last = line if is_within else min(int(match[3] or line), lines.count)
    if not 1 <= line <= last <= lines.count:
        raise _Refusal(f"There are lines 1 to {lines.count}; give a range within them.")
    if not is_within:
        return lines.begins[line - 1], lines.begins[last]
    most = lines.count_chars(line)
    first, last = int(match[2]), min(int(match[3] or most), most)
    if not 1 <= first <= last:
        raise _Refusal(f"Line {line} has {most} characters; give a range within them.")
    return lines.find_pieces(line, first=first, last=last)


def _write_page(lines: TextLines, wanted: str, count: Callable[[str], int], *, room: int) -> str:
    """Write as many of the wanted lines as fit ``room`` tokens, under a header that states how to get the rest."""
    first, last = _parse_range(lines, wanted)
    end = _find_page_end(lines, first, last=last, count=count, room=room)
    shown = f"Lines {lines.find_line(first)} to {lines.find_line(end - 1)} of {lines.count}."
    more = f" Next: lines {_name_rest(lines, end, last=lines.count)}." if end < len(lines.pieces) else ""
    return f"[{shown}{_note_part(lines, first, end)}{more}]\n{''.join(lines.pieces[first:end])}"


def _find_page_end(lines: TextLines, first: int, *, last: int, count: Callable[[str], int], room: int) -> int:
    """Return where a page ends: within a line only where that line is too long for any page."""
    end = first + _count_fitting(lines.pieces[first:last], count, room=room)
    begin = lines.find_begin(end)
    if not first < begin < end:
        return end
    whole = lines.pieces[begin : lines.find_end(end)]
    return begin if _count_fitting(whole, count, room=room) == len(whole) else end


def _note_part(lines: TextLines, first: int, end: int) -> str:
    """State which characters of the last of these lines are there, unless all are."""
    part = lines.find_part(first, end)
    line = lines.find_line(end - 1)
    return f" Of line {line}: characters {part[0]} to {part[1]} of {lines.count_chars(line)}." if part else ""


def _name_rest(lines: TextLines, piece: int, *, last: int) -> str:
    """Name the lines from a piece on up to line ``last``; within a line, the rest of it alone."""
    line = lines.find_line(piece)
    if piece == lines.find_begin(piece):
        return f"{line}-{last}"
    return f"{line}:{lines.find_char(piece)}-{lines.count_chars(line)}"


def _count_fitting(pieces: Sequence[str], count: Callable[[str], int], *, room: int) -> int:
    """Count the leading pieces that fit ``room`` tokens; at least one."""
    # Nearly every piece has at least one token, so pieces far beyond the page need not be counted.
    low, high = 1, min(len(pieces), 1 + room)
    while low < high:
        middle = (low + high + 1) // 2
        fits = count("".join(pieces[:middle])) <= room
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def _write_matches(lines: TextLines, arguments: _Arguments, count: Callable[[str], int], *, room: int) -> str:
    """Write the passages that hold most of the query's words, in text order, as many as fit ``room`` tokens."""
    first, last = _parse_range(lines, arguments.lines)
    found = search_pieces(lines.pieces[:last], arguments.query, start=first)
    searched = f"lines {lines.find_line(first)} to {lines.find_line(found.end - 1)}"
    if (first, found.end) == (0, len(lines.pieces)):
        searched = f"{lines.count} lines"
    part, rest = _note_part(lines, first, found.end), _note_unsearched(lines, found.end, last=last)
    if not found.best:
        is_whole = (first, last) == (0, len(lines.pieces))
        other = " Read it by lines, from 1-80 on." if is_whole else " Leave lines out to search all."
        return f"[None of {searched} holds these words.{part}{rest or other}]"
    positions = choose_pieces(lines, found.best, count=count, room=room)
    holding = len({lines.find_line(at) for at in found.best})
    pieces = f", in {len(found.best)} pieces" if holding < len(found.best) else ""
    missing = len(set(found.best).difference(positions))
    what = "pieces" if pieces else "lines"
    more = f" {missing} more {what} match; ask for other words, or by lines." if missing else ""
    return f"[{holding} of {searched} match{pieces}.{part}{more}{rest}]\n{number_pieces(lines, positions)}"


def _note_unsearched(lines: TextLines, piece: int, *, last: int) -> str:
    """State which lines before the piece ``last`` were not searched, if any."""
    if piece == last:
        return ""
    line, last_line = lines.find_line(piece), lines.find_line(last - 1)
    is_within = piece != lines.find_begin(piece)
    then = f", then {line + 1}-{last_line}" if is_within and line < last_line else ""
    return f" Not searched yet: give lines {_name_rest(lines, piece, last=last_line)} too{then}."
