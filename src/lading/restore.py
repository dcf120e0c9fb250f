"""The tool by which a model reads what left its view: its schema, and what it answers.

An answer is a page of lines, or the passages that match a query, never more than so many tokens. Nothing of
the arguments is taken for a path or a pattern: an address is looked up in this session's own log, a query is
words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from lading import jsonbytes
from lading.addresses import RESTORE, parse
from lading.errors import AddressError
from lading.log import Entry
from lading.messages import Text, Tool, ToolCall, ToolResult
from lading.pointers import as_text

SCHEMA = Tool(
    RESTORE,
    "Read again what was taken out of view; notes left in its place name the address.",
    {
        "type": "object",
        "properties": {
            "address": {"type": "string", "description": "artifact://..."},
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
_LINE_CHARS = 200
"""A longer line is shown as several, so that a page is bounded in characters too."""
_OVERLAP_CHARS = 80
"""What is found at the end of such a piece may go on so far in the next."""
_AROUND_LINES = 2
_LINES = re.compile(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?", re.ASCII)
_WORD = re.compile(r"\w+", re.UNICODE)
_QUERY_CHARS = 400
_QUERY_WORDS = 16
_AROUND_ADDRESS = " \t\n`'\"<>[](),."
"""What a model writes around an address."""


class Asked(msgspec.Struct, frozen=True):
    """The arguments of a call."""

    address: str
    query: str = ""
    lines: str = ""


class _Refused(Exception):
    """Why a call cannot be answered, as the model is told."""


def answer(
    call: ToolCall,
    entries: Sequence[Entry],
    *,
    session: tuple[str, str],
    count: Callable[[str], int],
    most_tokens: int = ANSWER_TOKENS,
) -> ToolResult:
    """The result of a call of the tool; an error result, saying what to do, when it cannot be answered.

    ``entries`` is the whole log of the session, named by tenant and session; ``count`` gives the tokens of a
    text; the answer takes at most ``most_tokens``, but for a line of which each character takes several.
    """
    try:
        asked = _asked(call)
        if most_tokens < LEAST_ANSWER_TOKENS:
            raise _Refused("There is no room for so much now. Ask for one address at a time.")
        text = _read(asked, entries, session)
        lines, room = _split(text), most_tokens - _NOTE_TOKENS
        if asked.query.strip():
            shown = _matching(lines, asked.query, count, room=room)
        else:
            shown = _page(lines, asked.lines, count, room=room)
        return ToolResult(call.id, (Text(shown),), name=RESTORE)
    except _Refused as refused:
        return ToolResult(call.id, (Text(str(refused)),), is_error=True, name=RESTORE)


def _asked(call: ToolCall) -> Asked:
    try:
        given = jsonbytes.load(call.arguments or "{}")
        if not isinstance(given, dict) or not isinstance(given.get("address"), str):
            raise _Refused("Give the address, as the note that was left names it: artifact://...")
        return Asked(given["address"].strip(_AROUND_ADDRESS), _word(given.get("query")), _word(given.get("lines")))
    except ValueError as error:
        raise _Refused('The arguments are no JSON object. Give {"address": "artifact://..."}.') from error


def _word(value: Any) -> str:
    return "" if value is None else str(value)[:_QUERY_CHARS]


def _read(asked: Asked, entries: Sequence[Entry], session: tuple[str, str]) -> str:
    """What stands at the address, messages of a span one after the other."""
    try:
        place = parse(asked.address)
        first, last, part = place.log_span()
    except AddressError as error:
        raise _Refused(f"This is no address of this conversation: {error}") from error
    if (place.tenant, place.session) != session:
        raise _Refused("This address belongs to another conversation and cannot be read here.")
    if last >= len(entries):
        raise _Refused(f"The address points past the log, which holds entries 0 to {len(entries) - 1}.")
    if part is not None:
        message = entries[first].message
        if part >= len(message.parts):
            raise _Refused(f"The entry has parts 0 to {len(message.parts) - 1}.")
        return as_text(message.with_parts((message.parts[part],)))
    if first == last:
        return as_text(entries[first].message)
    span = entries[first : last + 1]
    return "\n".join(f"--- {entry.index} {entry.message.role}\n{as_text(entry.message)}" for entry in span)


def _split(text: str) -> list[str]:
    """The text in lines of bounded length; how a text is split does not depend on what is asked of it."""
    lines: list[str] = []
    for line in text.splitlines() or [""]:
        starts = range(0, max(len(line), 1), _LINE_CHARS)
        lines += [line[start : start + _LINE_CHARS] for start in starts]
    return lines


def _page(lines: Sequence[str], wanted: str, count: Callable[[str], int], *, room: int) -> str:
    """As many of the wanted lines as fit the room, and how to get the next."""
    match = _LINES.fullmatch(wanted) if wanted.strip() else None
    if wanted.strip() and match is None:
        raise _Refused("lines is a number or a range such as 1-80.")
    first = int(match[1]) if match else 1
    last = min(int(match[2] or match[1]) if match else len(lines), len(lines))
    if not 1 <= first <= last:
        raise _Refused(f"There are lines 1 to {len(lines)}; give a range within them.")
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


def _matching(lines: Sequence[str], query: str, count: Callable[[str], int], *, room: int) -> str:
    """The passages that hold most of the query's words, in their order, as many as fit the room."""
    folded = [
        line.casefold() if len(line) < _LINE_CHARS else (line + after[:_OVERLAP_CHARS]).casefold()
        for line, after in zip_longest(lines, lines[1:], fillvalue="")
    ]
    whole, words = query.strip().casefold(), list(dict.fromkeys(_WORD.findall(query.casefold())))[:_QUERY_WORDS]
    scores = {at: float(len(words)) for at, line in enumerate(folded) if whole in line}
    for word in words:
        holding = [at for at, line in enumerate(folded) if word in line]
        # A word that few lines hold says more about where to look than one that many do.
        for at in holding:
            scores[at] = scores.get(at, 0.0) + 1 / len(holding)
    best = sorted(scores, key=lambda at: (-scores[at], at))
    if not best:
        return f"[No line of {len(lines)} holds these words. Read it by lines, from 1-80 on.]"
    chosen: set[int] = set()
    for at in best:
        wider = chosen | set(range(max(at - _AROUND_LINES, 0), min(at + _AROUND_LINES + 1, len(lines))))
        if count(_numbered(lines, sorted(wider))) > room:
            break
        chosen = wider
    chosen = chosen or {best[0]}
    missing = sum(at not in chosen for at in best)
    more = f" {missing} more lines match; ask for other words, or by lines." if missing else ""
    return f"[{len(best)} of {len(lines)} lines match.{more}]\n{_numbered(lines, sorted(chosen))}"


def _numbered(lines: Sequence[str], chosen: Sequence[int]) -> str:
    """Chosen lines with their numbers, gaps marked."""
    shown: list[str] = []
    for position, at in enumerate(chosen):
        if position and chosen[position - 1] != at - 1:
            shown.append("...")
        shown.append(f"{at + 1}: {lines[at]}")
    return "\n".join(shown)
