"""Text search in messages: exact and loose matches, near misses, and searches by words for ``restore``.

An exact match is the text itself, the text as JSON escapes it inside a string (a path in the arguments of a call),
or the text with its JSON escapes decoded (a passage copied from a body). A loose match ignores case and spacing.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from lading import jsonbytes
from lading.addresses import RESTORE
from lading.audit.text_lines import TextLines
from lading.errors import InputError
from lading.messages import File, Image, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

Matcher: TypeAlias = Callable[[str], "tuple[int, int] | None"]
"""Returns the span of the text in a string (characters, end excluded); None where it is not found."""

EXCERPT_CHARS = 40
"""Context on either side of a match."""
_MOST_LOOSE_CHARS = 4_000
_SPACE = r"(?:\s|\\[nrt])+"


def make_exact_matcher(text: str) -> Matcher:
    """Make a matcher of the text itself, as JSON escapes it once or twice, and with its own JSON escapes decoded.

    Raises InputError when it is blank.
    """
    if not text.strip():
        raise InputError("The text to search for is blank. Give some text.")
    spellings = [spelling for spelling in dict.fromkeys((text, *_escape(text), _unescape(text))) if spelling]

    def find(string: str) -> tuple[int, int] | None:
        for spelling in spellings:
            if (start := string.find(spelling)) >= 0:
                return start, start + len(spelling)
        return None

    return find


def make_loose_matcher(text: str) -> Matcher:
    """Make a matcher that ignores case and spacing. It finds no text of more than 4,000 characters."""
    words = text.split() if len(text) <= _MOST_LOOSE_CHARS else []
    pattern = re.compile(_SPACE.join(map(re.escape, words)), re.IGNORECASE) if words else None

    def find(string: str) -> tuple[int, int] | None:
        match = pattern.search(string) if pattern else None
        return match.span() if match else None

    return find


def cut_excerpt(string: str, span: tuple[int, int]) -> str:
    """Cut a match with a little context out of a string; long matches are cut in the middle."""
    start, end = span
    found = string[start:end]
    if len(found) > 4 * EXCERPT_CHARS:
        found = f"{found[: 2 * EXCERPT_CHARS]} ... {found[-2 * EXCERPT_CHARS :]}"
    return string[max(start - EXCERPT_CHARS, 0) : start] + found + string[end : end + EXCERPT_CHARS]


def iter_message_strings(message: Message) -> Iterator[tuple[str, str]]:
    """Yield every string of a message with the kind of its part: text, call, arguments, result, ... The arguments
    of a call of a tool named ``restore`` are of the kind ``query`` and come last."""
    if message.name:
        yield "name", message.name
    for part in sorted(message.parts, key=_is_query):
        yield from _iter_part_strings(part)
    if len(message.parts) > 1:
        yield "text", message.text


def iter_strings(value: Any) -> Iterator[str]:
    """Yield every string of a JSON value, keys included, and the strings of JSON inside strings."""
    if isinstance(value, str):
        yield value
        yield from _iter_json_strings(value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from iter_strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from iter_strings(inner)


def _is_query(part: Part) -> bool:
    return isinstance(part, ToolCall) and part.name == RESTORE


def _iter_part_strings(part: Part) -> Iterator[tuple[str, str]]:
    match part:
        case Text():
            yield from (("text", string) for string in iter_strings(part.text))
        case ToolCall():
            yield from (("call", string) for string in (part.name, part.id))
            kind = "query" if _is_query(part) else "arguments"
            yield from ((kind, string) for string in iter_strings(part.arguments))
        case ToolResult():
            yield from (("result", string) for string in (part.call_id, part.name))
            for inner in part.parts:
                yield from (("result", string) for _, string in _iter_part_strings(inner))
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
            yield from (("part", string) for string in iter_strings(part.value))


def _iter_json_strings(string: str) -> Iterator[str]:
    """Yield the strings of a JSON text, if it has escapes; without them, its strings appear in it literally."""
    if "\\" in string and string.lstrip()[:1] in ("{", "["):
        try:
            value = jsonbytes.load(string)
        except ValueError:
            return
        yield from iter_strings(value)


def _escape(text: str) -> Iterator[str]:
    for ascii_only in (False, True):
        once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text


LEAST_SCORE = 75.0
"""Lowest score of a near miss, of 100."""
MOST_CHARS = 200
"""Of a longer text only the start is compared."""
_LONGEST_WORD = 40
INSTALL = "To see what comes closest: pip install 'lading[fuzzy]'."


class NearMiss(Struct, frozen=True):
    """A passage of the log that resembles the text."""

    entry: int
    score: float
    """100: equal except for case."""
    text: str


def is_available() -> bool:
    """Check whether the package for fuzzy comparison is installed."""
    return importlib.util.find_spec("rapidfuzz") is not None


def find_near_misses(text: str, strings: Iterable[tuple[int, str]], *, most: int = 3) -> tuple[NearMiss, ...]:
    """Find the passages most similar to the text in strings of entries, best first; of equal ones the first given.
    Case is ignored. Raises ModuleNotFoundError where the extra is not installed (``is_available``)."""
    from rapidfuzz import fuzz  # noqa: PLC0415 - an extra

    wanted = text[:MOST_CHARS].lower()
    found: dict[str, NearMiss] = {}
    seen: set[str] = set()
    bar = LEAST_SCORE
    for entry, string in strings:
        # rapidfuzz would search for a string much shorter than the text in the text, not the other way round.
        if len(string) < 0.7 * len(wanted) or string in seen:
            continue
        seen.add(string)
        # Where lower case has another length, its positions do not apply to the string.
        lowered = low if len(low := string.lower()) == len(string) else string
        place = fuzz.partial_ratio_alignment(wanted, lowered, score_cutoff=bar)
        if place is None:
            continue
        passage = _complete_words(string, place.dest_start, place.dest_end)
        found.setdefault(passage, NearMiss(entry, place.score, passage))
        if len(found) > most:
            del found[min(found, key=lambda known: found[known].score)]
        if len(found) == most:
            bar = min(near.score for near in found.values())
    return tuple(sorted(found.values(), key=lambda near: (-near.score, -near.entry)))


def _complete_words(string: str, start: int, end: int) -> str:
    """Extend a passage to whole words at both ends."""
    before = string[max(start - _LONGEST_WORD, 0) : start]
    after = string[end : end + _LONGEST_WORD]
    left = [] if before[-1:].isspace() else before.split()[-1:]
    right = [] if after[:1].isspace() else after.split()[:1]
    return "".join([*left, string[start:end], *right]).strip()


MOST_LOOKS = 1_000_000
"""Limit of comparisons of a piece with a word in one search: a fraction of a second."""
_OVERLAP_CHARS = 80
"""A match at the end of a piece of a long line may extend this far into the next piece."""
_AROUND_PIECES = 2
_BATCH_PIECES = 256
_WORD = re.compile(r"\w+", re.UNICODE)
_QUERY_WORDS = 16


class PieceMatches(Struct, frozen=True):
    """Pieces that hold a query or words of it."""

    best: list[int]
    start: int
    end: int
    """The searched pieces are ``start`` up to here, exclusive."""


def search_pieces(pieces: Sequence[str], query: str, *, start: int = 0) -> PieceMatches:
    """Find the pieces from ``start`` on that hold the query, or words of it, ignoring case; best pieces first.

    Pieces with more words rank higher, and words found in few pieces weigh more. The search ends after about
    ``MOST_LOOKS`` comparisons.
    """
    whole = query.strip().casefold()
    words = list(dict.fromkeys(_WORD.findall(whole)))[:_QUERY_WORDS]
    holding: dict[str, list[int]] = {needle: [] for needle in (*words, whole)}
    last, looks = start, 0
    for first in range(start, len(pieces), _BATCH_PIECES):
        if looks >= MOST_LOOKS:
            break
        last = min(first + _BATCH_PIECES, len(pieces))
        after = pieces[last][:_OVERLAP_CHARS] if last < len(pieces) else ""
        joined = ("".join(pieces[first:last]) + after).casefold()
        looks += last - first
        if here := [needle for needle in holding if needle in joined]:
            looks += (last - first) * len(here)
            for at in range(first, last):
                piece = _casefold_piece(pieces, at)
                for needle in here:
                    if needle in piece:
                        holding[needle].append(at)
    scores = dict.fromkeys(holding[whole], float(len(words)))
    for word in words:
        for at in holding[word]:
            scores[at] = scores.get(at, 0.0) + 1 / len(holding[word])
    return PieceMatches(sorted(scores, key=lambda at: (-scores[at], at)), start, last)


def choose_pieces(lines: TextLines, best: Sequence[int], *, count: Callable[[str], int], room: int) -> list[int]:
    """Choose as many of the ``best`` pieces, with context, as fit ``room`` tokens, in text order; at least one."""
    taken: set[int] = set()
    for at in best:
        around = range(max(at - _AROUND_PIECES, 0), min(at + _AROUND_PIECES + 1, len(lines.pieces)))
        wider = taken.union(around)
        if count(number_pieces(lines, sorted(wider))) > room:
            break
        taken = wider
    return sorted(taken or {best[0]})


def number_pieces(lines: TextLines, positions: Iterable[int]) -> str:
    """Write pieces with the numbers of their lines and, where a part of a line is left out, of their characters
    (``7:201-600: ...``); gaps are marked by ``...``."""
    shown: list[str] = []
    after = None
    for first, end in _join_pieces(lines, positions):
        if after not in (None, first):
            shown.append("...")
        part = lines.find_part(first, end)
        characters = f":{part[0]}-{part[1]}" if part else ""
        text = "".join(lines.pieces[first:end]).removesuffix("\n")
        shown.append(f"{lines.find_line(first)}{characters}: {text}")
        after = end
    return "\n".join(shown)


def _join_pieces(lines: TextLines, positions: Iterable[int]) -> list[tuple[int, int]]:
    """Join adjacent pieces of a line; ends are excluded."""
    runs: list[tuple[int, int]] = []
    for at in positions:
        if runs and runs[-1][1] == at != lines.find_begin(at):
            runs[-1] = (runs[-1][0], at + 1)
        else:
            runs.append((at, at + 1))
    return runs


def _casefold_piece(pieces: Sequence[str], at: int) -> str:
    """Return a piece in casefold for searching; within a line, with the start of the next piece."""
    piece = pieces[at]
    if not piece.endswith("\n") and at + 1 < len(pieces):
        piece += pieces[at + 1][:_OVERLAP_CHARS]
    return piece.casefold()
