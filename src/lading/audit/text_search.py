"""A text that is looked for, the spellings in which it counts as found, and where a message holds strings.

Exact: as it is, as JSON escapes it inside a string (a path in the arguments of a call), or as it reads once
its own JSON escapes are undone (a passage copied out of a body). Loose: without regard to case and spacing.
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


LEAST_SCORE = 75.0
"""Of 100: below, two texts have little in common."""
MOST_CHARS = 200
"""Of a longer text only so much is compared, from its start."""
_LONGEST_WORD = 40
INSTALL = "To see what comes closest: pip install 'lading[fuzzy]'."


class NearMiss(Struct, frozen=True):
    """A passage of the log that is almost the text."""

    entry: int
    score: float
    """100: equal but for case."""
    text: str


def available() -> bool:
    """Whether the package that compares is installed."""
    return importlib.util.find_spec("rapidfuzz") is not None


def near_misses(text: str, strings: Iterable[tuple[int, str]], *, most: int = 3) -> tuple[NearMiss, ...]:
    """The passages closest to the text among strings of entries, best first; of equal ones the first given.

    Case does not count. Raises ModuleNotFoundError where the extra is not installed (``available``).
    """
    from rapidfuzz import fuzz  # noqa: PLC0415 - an extra

    wanted = text[:MOST_CHARS].lower()
    found: dict[str, NearMiss] = {}
    seen: set[str] = set()
    bar = LEAST_SCORE
    for entry, string in strings:
        # A string much shorter than the text would be looked for in the text, not the other way round.
        if len(string) < 0.7 * len(wanted) or string in seen:
            continue
        seen.add(string)
        # Where lower case has another length, places found in it mean nothing in the string.
        lowered = low if len(low := string.lower()) == len(string) else string
        place = fuzz.partial_ratio_alignment(wanted, lowered, score_cutoff=bar)
        if place is None:
            continue
        passage = _whole_words(string, place.dest_start, place.dest_end)
        found.setdefault(passage, NearMiss(entry, place.score, passage))
        if len(found) > most:
            del found[min(found, key=lambda known: found[known].score)]
        if len(found) == most:
            bar = min(near.score for near in found.values())
    return tuple(sorted(found.values(), key=lambda near: (-near.score, -near.entry)))


def _whole_words(string: str, start: int, end: int) -> str:
    """The passage with the words at its ends whole, as far as they are words."""
    before = string[max(start - _LONGEST_WORD, 0) : start]
    after = string[end : end + _LONGEST_WORD]
    left = [] if before[-1:].isspace() else before.split()[-1:]
    right = [] if after[:1].isspace() else after.split()[:1]
    return "".join([*left, string[start:end], *right]).strip()


LINE_CHARS = 200
"""A longer line is shown as several, so that a page is bounded in characters too."""
MOST_LOOKS = 1_000_000
"""How often one search looks into a line, once for each word that is near: a fraction of a second."""
_OVERLAP_CHARS = 80
"""What is found at the end of such a piece may go on so far in the next."""
_AROUND_LINES = 2
_BATCH_LINES = 256
_WORD = re.compile(r"\w+", re.UNICODE)
_QUERY_WORDS = 16


class Found(Struct, frozen=True):
    """The lines that hold a query or words of it, best first."""

    best: list[int]
    start: int
    end: int
    """Searched were the lines from ``start`` up to here, not included."""


def split(text: str) -> list[str]:
    """The text in lines of bounded length; how a text is split does not depend on what is asked of it."""
    lines: list[str] = []
    for line in text.splitlines() or [""]:
        if len(line) <= LINE_CHARS:
            lines.append(line)
        else:
            lines += [line[start : start + LINE_CHARS] for start in range(0, len(line), LINE_CHARS)]
    return lines


def find(lines: Sequence[str], query: str, *, start: int = 0) -> Found:
    """The lines from ``start`` on that hold the query, or words of it, in any case; those that hold most words
    first, and words that few lines hold weigh more. The search ends after about ``MOST_LOOKS``."""
    whole = query.strip().casefold()
    words = list(dict.fromkeys(_WORD.findall(whole)))[:_QUERY_WORDS]
    holding: dict[str, list[int]] = {needle: [] for needle in (*words, whole)}
    last, looks = start, 0
    for first in range(start, len(lines), _BATCH_LINES):
        if looks >= MOST_LOOKS:
            break
        last = min(first + _BATCH_LINES, len(lines))
        after = lines[last][:_OVERLAP_CHARS] if last < len(lines) else ""
        joined = ("".join(lines[first:last]) + after).casefold()
        looks += last - first
        if here := [needle for needle in holding if needle in joined]:
            looks += (last - first) * len(here)
            for at in range(first, last):
                folded = _folded(lines, at)
                for needle in here:
                    if needle in folded:
                        holding[needle].append(at)
    scores = dict.fromkeys(holding[whole], float(len(words)))
    for word in words:
        for at in holding[word]:
            scores[at] = scores.get(at, 0.0) + 1 / len(holding[word])
    return Found(sorted(scores, key=lambda at: (-scores[at], at)), start, last)


def chosen(lines: Sequence[str], best: Sequence[int], *, count: Callable[[str], int], room: int) -> list[int]:
    """As many of these lines as fit the room with a few lines around each, in the text's order; at least one."""
    taken: set[int] = set()
    for at in best:
        wider = taken | set(range(max(at - _AROUND_LINES, 0), min(at + _AROUND_LINES + 1, len(lines))))
        if count(numbered(lines, sorted(wider))) > room:
            break
        taken = wider
    return sorted(taken or {best[0]})


def numbered(lines: Sequence[str], positions: Sequence[int]) -> str:
    """Lines with their numbers, gaps marked."""
    shown: list[str] = []
    for position, at in enumerate(positions):
        if position and positions[position - 1] != at - 1:
            shown.append("...")
        shown.append(f"{at + 1}: {lines[at]}")
    return "\n".join(shown)


def _folded(lines: Sequence[str], at: int) -> str:
    """A line to be searched; a piece of a longer one with what follows it."""
    line = lines[at]
    if len(line) == LINE_CHARS and at + 1 < len(lines):
        line += lines[at + 1][:_OVERLAP_CHARS]
    return line.casefold()
