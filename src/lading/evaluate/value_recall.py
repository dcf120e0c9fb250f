"""Measure whether requests hold the values that the recorded replies to them use.

A *value* of a call is an argument of the tool calls in its recorded reply that occurred earlier in the session, the
only place where the model can know it from. It is *present* where it occurs in the request at word boundaries, and
*bound* where it occurs near a plain word that is also near it in its source, the messages before the call that hold
it. In a bare list of identifiers values are present, but not bound.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lading import jsonbytes
from lading.addresses import SCHEME
from lading.compaction.identifiers import split_name
from lading.economics import add_fields
from lading.evaluate.columns import Columns
from lading.messages import File, Message, Opaque, Part, Text, ToolCall, ToolResult

LEAST_CHARS, MOST_CHARS = 4, 64
"""Shorter strings occur everywhere by chance; longer ones are split into pieces."""
LEAST_DIGITS = 3
"""Minimum length of a number, including sign and point."""
NEAR_CHARS = 80
"""A whole word within this distance binds an occurrence."""
FAR_MESSAGES = 4
"""A value is far when it was last seen more than this many messages back."""
MOST_PLACES = 1_000
"""Limit of the occurrences of a value that are read in one message."""

_RUN = re.compile(r"\w+")
PIECE = re.compile(r"\w+(?:[./-]\w+)*")
_IDENTIFIER = re.compile(r"[\d_./]|[a-z][A-Z]")
_WORD = re.compile(r"(?<![\w$@/\\.-])[^\W\d_]{4,}(?![\w$@/\\]|[.-]\w|://)")
_NOTHING: frozenset[str] = frozenset()
_KEY = re.compile(r"""\w+(?=["']?\s?[:=])""")


class Neighbours(NamedTuple):
    """Words and keys near a value."""

    words: frozenset[str]
    """Plain words, case folded."""
    keys: frozenset[str]
    """Names before a colon or equals sign; a column header matches them too."""


class Sighting(NamedTuple):
    """Occurrences of a value before a position."""

    last: int
    """The last message that holds it."""
    source: Neighbours
    """Neighbours of the value in all messages that hold it."""


class Value(Struct, frozen=True):
    """One value that a recorded call uses."""

    text: str
    is_far: bool
    """Last seen more than 4 messages back, and not in the opening messages."""
    source: Neighbours


class RecalledValues(Struct, frozen=True):
    """Numbers of values that requests hold, and of calls (steps) with all far values bound."""

    values: int = 0
    present: int = 0
    bound: int = 0
    available: int = 0
    """Present, or in the messages that an address in the request names."""
    far_values: int = 0
    far_present: int = 0
    far_bound: int = 0
    far_available: int = 0
    far_steps: int = 0
    """Calls that use a far value."""
    far_bound_steps: int = 0

    def __add__(self, other: RecalledValues) -> RecalledValues:
        return add_fields(self, other)


class MessageTexts:
    """Texts of messages, each read once by identity: unchanged messages are passed as the same object."""

    def __init__(self) -> None:
        self._read: dict[int, _MessageText] = {}

    def find_holding(self, value: str, messages: Sequence[Message]) -> Iterator[_MessageText]:
        """Yield the messages that hold the value at word boundaries, the last one first."""
        run = max(_RUN.findall(value), key=len, default="")
        for message in reversed(messages):
            read = self.read(message)
            # Where a value is at word boundaries, its runs of word characters are whole words of the text.
            if run in read.runs and read.find_spans(value):
                yield read

    def read(self, message: Message) -> _MessageText:
        """Return the text of a message."""
        read = self._read.get(id(message))
        if read is None:
            read = self._read[id(message)] = _MessageText(message)
        return read


class _MessageText:
    """Text of one message, with the neighbours of the values searched in it."""

    def __init__(self, message: Message) -> None:
        # Referenced, so that no other message gets its identity.
        self.message = message
        self.text = "\n".join(_iter_texts(message.parts))
        self.runs = frozenset(_RUN.findall(self.text))
        self._spans: dict[str, list[tuple[int, int]]] = {}
        self._sources: dict[str, Neighbours] = {}
        self._headers: dict[str, frozenset[str]] = {}
        self._places: dict[str, list[tuple[int, int]]] = {}
        self._columns: Columns | None = None

    def find_log_spans(self, place: str) -> list[tuple[int, int]]:
        """Return the spans (first and last entry) that addresses of the session at ``place`` name."""
        if place not in self._places:
            pattern = rf"{SCHEME}(?:{re.escape(place)}/)?log/(\d{{1,9}})(?:-(\d{{1,9}}))?"
            found = re.findall(pattern, self.text)
            self._places[place] = [(int(first), int(last or first)) for first, last in found]
        return self._places[place]

    def find_spans(self, value: str) -> list[tuple[int, int]]:
        """Return the occurrences of the value at word boundaries, at most ``MOST_PLACES``."""
        if value not in self._spans:
            self._spans[value] = list(islice(_iter_spans(value, self.text), MOST_PLACES))
        return self._spans[value]

    def find_neighbours(self, value: str) -> Neighbours:
        """Return the neighbours of all occurrences of the value, with the headers of its columns."""
        if value not in self._sources:
            near = [self._read_neighbours(*span) for span in self.find_spans(value)]
            words = {word for source in near for word in source.words}
            headed = {word for header in self.find_headers(value) for word in _iter_plain_words(header)}
            keys = frozenset(key for source in near for key in source.keys)
            self._sources[value] = Neighbours(frozenset(words | headed) - {value.casefold()}, keys)
        return self._sources[value]

    def find_headers(self, value: str) -> frozenset[str]:
        """Return the headers of the columns that hold the value, case folded."""
        if value not in self._headers:
            self._columns = self._columns or Columns(self.text)
            found = (self._columns.find_header(start) for start, _ in self.find_spans(value))
            self._headers[value] = frozenset(header.casefold() for header in found if header)
        return self._headers[value]

    def binds(self, value: Value) -> bool:
        """Check whether the value has a neighbour here that it has in its source."""
        words, keys = value.source
        if not words or not words.isdisjoint(self.find_neighbours(value.text).words):
            return True
        return not keys.isdisjoint(name for header in self.find_headers(value.text) for name in header.split())

    def _read_neighbours(self, start: int, end: int) -> Neighbours:
        words: set[str] = set()
        keys: set[str] = set()
        for first, last in ((max(start - NEAR_CHARS, 0), start), (end, end + NEAR_CHARS)):
            words.update(_iter_plain_words(self.text, first, last))
            keys.update(match[0].casefold() for match in _KEY.finditer(self.text, first, last))
        return Neighbours(frozenset(words), frozenset(keys))


class ValueIndex:
    """Index of the values in a complete session."""

    def __init__(self, messages: Sequence[Message], *, texts: MessageTexts) -> None:
        self.messages = messages
        self.head = next((at for at, message in enumerate(messages) if message.role == "assistant"), len(messages))
        """Number of opening messages, before the first assistant message."""
        self._texts = texts
        self._holding: dict[str, list[int]] = {}
        self._firsts: dict[str, int | None] = {}
        self._seen: dict[str, tuple[int, Sighting | None]] = {}
        for position, message in enumerate(messages):
            for run in texts.read(message).runs:
                self._holding.setdefault(run, []).append(position)

    def find_first(self, value: str) -> int | None:
        """Return the first message that holds the value; None where none does."""
        if value not in self._firsts:
            self._firsts[value] = next(self._filter_holding(value, self._list_candidates(value)), None)
        return self._firsts[value]

    def find_first_named(self, value: str) -> int | None:
        """Return the first message up to which the value, or each name that it is made of, is held; None where it
        is not."""
        first = self.find_first(value)
        if first is not None or not (names := split_name(value)):
            return first
        firsts = [self.find_first_named(name) for name in names]
        known = [found for found in firsts if found is not None]
        return max(known) if len(known) == len(firsts) else None

    def find_holding(self, words: AbstractSet[str]) -> Iterator[int]:
        """Yield the messages that hold all of these runs of word characters."""
        fewest = min((self._holding.get(word, []) for word in words), key=len)
        return (at for at in fewest if words <= self._texts.read(self.messages[at]).runs)

    def text(self, position: int) -> str:
        """Return the text of a message."""
        return self._texts.read(self.messages[position]).text

    def find_before(self, value: str, *, before: int) -> Sighting | None:
        """Find the value in the messages before a position; None where none holds it. With rising positions each
        message is read once."""
        likely = self._list_candidates(value)
        done, seen = self._seen.get(value, (0, None))
        end = bisect_left(likely, before)
        if end < done:
            done, seen = 0, None
        for at in self._filter_holding(value, likely[done:end]):
            beside = self._texts.read(self.messages[at]).find_neighbours(value)
            words, keys = seen.source if seen else (_NOTHING, _NOTHING)
            seen = Sighting(at, Neighbours(words | beside.words, keys | beside.keys))
        self._seen[value] = end, seen
        return seen

    def _list_candidates(self, value: str) -> list[int]:
        return self._holding.get(max(_RUN.findall(value), key=len, default=""), [])

    def _filter_holding(self, value: str, positions: Iterable[int]) -> Iterator[int]:
        return (at for at in positions if self._texts.read(self.messages[at]).find_spans(value))


def find_values(
    messages: Sequence[Message], calls: Sequence[int], *, texts: MessageTexts
) -> Iterator[tuple[Value, ...]]:
    """Find the values of each call, each once, in the order in which the reply uses them. ``messages``: the
    complete session. ``calls``: rising positions of the replies."""
    places = ValueIndex(messages, texts=texts)
    for call in calls:
        used = dict.fromkeys(text for made in messages[call].calls for text in _iter_argument_values(made))
        found = (_trace_value(text, places, call) for text in used)
        yield tuple(value for value in found if value)


def measure_recall(
    values: Iterable[Value], shown: Sequence[Message], *, texts: MessageTexts, reachable: Sequence[Message] = ()
) -> RecalledValues:
    """Count the values that a request with these messages holds. ``reachable``: the messages that its addresses
    name (``follow_addresses``)."""
    found = RecalledValues()
    for value in values:
        present = bound = False
        for read in texts.find_holding(value.text, shown):
            present = True
            if bound := read.binds(value):
                break
        available = present or any(True for _ in texts.find_holding(value.text, reachable))
        counts = (1, int(present), int(bound), int(available))
        found += RecalledValues(*counts, *counts) if value.is_far else RecalledValues(*counts)
    bound_whole = 0 < found.far_values == found.far_bound
    return replace(found, far_steps=int(found.far_values > 0), far_bound_steps=int(bound_whole))


def follow_addresses(
    shown: Iterable[Message], entries: Sequence[Message], *, texts: MessageTexts, place: str
) -> list[Message]:
    """Return the messages of the log that addresses in the request name, each once, in order.

    ``place`` is the session in addresses, ``tenant/session``; relative addresses belong to it. One call of the tool
    ``restore`` returns at most 2,000 tokens of one address.
    """
    found: list[Message] = []
    done = 0
    for first, last in sorted({span for message in shown for span in texts.read(message).find_log_spans(place)}):
        found += entries[max(first, done) : last + 1]
        done = max(done, last + 1)
    return found


def find_identifiers(text: str) -> Iterator[str]:
    """Find the pieces of a text that look like identifiers, paths or numbers, of 4 to 64 characters."""
    return filter(is_identifier, PIECE.findall(text))


def is_identifier(piece: str) -> bool:
    """Check whether a piece of a text looks like an identifier, a path or a number."""
    return LEAST_CHARS <= len(piece) <= MOST_CHARS and _IDENTIFIER.search(piece) is not None


def _trace_value(text: str, places: ValueIndex, call: int) -> Value | None:
    seen = places.find_before(text, before=call)
    if seen is None:
        return None
    first = places.find_first(text)
    in_head = first is not None and first < places.head
    return Value(text, call - seen.last > FAR_MESSAGES and not in_head, seen.source)


def _iter_argument_values(call: ToolCall) -> Iterator[str]:
    """Yield the values in the arguments of a call; arguments that are no JSON are split into pieces."""
    for _, leaf in _iter_leaves(_parse_arguments(call.arguments)):
        if isinstance(leaf, str):
            yield from _split_values(leaf)
        elif isinstance(leaf, int | float) and not isinstance(leaf, bool):
            number = repr(leaf)
            if LEAST_DIGITS <= len(number) <= MOST_CHARS:
                yield number


def _split_values(text: str) -> Iterator[str]:
    if len(text) > MOST_CHARS or any(map(str.isspace, text)):
        yield from find_identifiers(text)
    elif len(text) >= LEAST_CHARS and _RUN.search(text):
        yield text


def _parse_arguments(arguments: str) -> Any:
    try:
        return jsonbytes.load(arguments)
    except ValueError:
        return arguments


def _iter_leaves(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the scalars of a JSON value in order, each with the keys that lead to it."""
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        keys, item = waiting.pop()
        if isinstance(item, dict):
            inner = [(f"{keys} {key}"[-NEAR_CHARS:].strip(), value) for key, value in item.items()]
            waiting += reversed(inner)
        elif isinstance(item, list):
            waiting += [(keys, value) for value in reversed(item)]
        else:
            yield keys, item


def _iter_texts(parts: Iterable[Part]) -> Iterator[str]:
    """Yield the texts of parts that the model reads; providers leave out old reasoning."""
    for part in parts:
        match part:
            case Text():
                yield part.text
            case ToolResult():
                yield from _iter_texts(part.parts)
            case ToolCall():
                yield f"{part.name} {_render_lines(_parse_arguments(part.arguments))}"
            case File():
                yield f"{part.name} {part.data if part.media_type == 'text/plain' else ''}"
            case Opaque():
                yield _render_lines(part.value)
            case _:
                pass


def _render_lines(value: Any) -> str:
    """Render a JSON value as lines without escapes, which would hide word boundaries."""
    return "\n".join(f"{keys}: {leaf}" if keys else str(leaf) for keys, leaf in _iter_leaves(value))


def _iter_spans(value: str, text: str) -> Iterator[tuple[int, int]]:
    start = text.find(value)
    while start >= 0:
        end = start + len(value)
        if not _is_inside_word(text, start) and not _is_inside_word(text, end):
            yield start, end
        start = text.find(value, start + 1)


def _is_inside_word(text: str, position: int) -> bool:
    """Check whether there are word characters on both sides of a position."""
    return 0 < position < len(text) and _RUN.fullmatch(text, position - 1, position + 1) is not None


def _iter_plain_words(text: str, first: int = 0, last: int | None = None) -> Iterator[str]:
    """Yield the plain words that are whole between two positions, case folded."""
    last = len(text) if last is None else last
    # Two more characters are read, to recognise words that continue after ``last``.
    for match in _WORD.finditer(text, first, last + 2):
        word = match[0]
        if match.end() <= last and (word[1:] == word[1:].lower() or word == word.upper()):
            yield word.casefold()
