"""Whether the values that the recorded calls go on to use are in the requests that were built for them.

A *value* of a call is an argument of the tool calls in its recorded reply that occurred earlier in the session:
the model cannot have known it but from there. It is *present* where it occurs in the request at word
boundaries, and *bound* where it occurs with a plain word beside it that is also beside it in its source, the
messages before the call that hold it. A bare list of identifiers makes values present, not bound.
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
from lading.economics import fieldwise
from lading.evaluate.columns import Columns
from lading.messages import File, Message, Opaque, Part, Text, ToolCall, ToolResult

LEAST_CHARS, MOST_CHARS = 4, 64
"""A shorter string occurs everywhere by chance, a longer one is looked at in pieces."""
LEAST_DIGITS = 3
"""Of a number, sign and point counted."""
NEAR_CHARS = 80
"""A word so near an occurrence, and whole, binds it."""
FAR_MESSAGES = 4
"""A value last seen farther back is far."""
MOST_PLACES = 1_000
"""In one message: a value that is there more often is looked at in the first ones."""

_RUN = re.compile(r"\w+")
PIECE = re.compile(r"\w+(?:[./-]\w+)*")
_IDENTIFIER = re.compile(r"[\d_./]|[a-z][A-Z]")
_WORD = re.compile(r"(?<![\w$@/\\.-])[^\W\d_]{4,}(?![\w$@/\\]|[.-]\w|://)")
_NOTHING: frozenset[str] = frozenset()
_KEY = re.compile(r"""\w+(?=["']?\s?[:=])""")


class Neighbours(NamedTuple):
    """The words and keys beside a value where it was seen."""

    words: frozenset[str]
    """Plain words, case folded."""
    keys: frozenset[str]
    """Names before a colon or equals sign; the header of a column may take their place."""


class Sighting(NamedTuple):
    """Where a value is before a position."""

    last: int
    """The last message that holds it."""
    source: Neighbours
    """What is beside it in all messages that hold it."""


class Value(Struct, frozen=True):
    """One value that a recorded call uses."""

    text: str
    is_far: bool
    """Last seen more than 4 messages back, and not in the head: the messages before the first assistant's."""
    source: Neighbours


class RecalledValues(Struct, frozen=True):
    """How many of the values of some calls are there, and in how many calls (steps) all far ones are bound."""

    values: int = 0
    present: int = 0
    bound: int = 0
    available: int = 0
    """Present, or in what an address in the request leads to."""
    far_values: int = 0
    far_present: int = 0
    far_bound: int = 0
    far_available: int = 0
    far_steps: int = 0
    """Calls that use a far value."""
    far_bound_steps: int = 0

    def __add__(self, other: RecalledValues) -> RecalledValues:
        return fieldwise(self, other)


class Texts:
    """The texts of messages, each read once: messages that did not change come back as the same object."""

    def __init__(self) -> None:
        self._read: dict[int, _MessageText] = {}

    def holding(self, value: str, messages: Sequence[Message]) -> Iterator[_MessageText]:
        """The messages that hold the value at word boundaries, the last one first."""
        run = max(_RUN.findall(value), key=len, default="")
        for message in reversed(messages):
            read = self.of(message)
            # A run of word characters inside a value is a whole one wherever the value is at boundaries.
            if run in read.runs and read.spans(value):
                yield read

    def of(self, message: Message) -> _MessageText:
        """Return the text of a message."""
        read = self._read.get(id(message))
        if read is None:
            read = self._read[id(message)] = _MessageText(message)
        return read


class _MessageText:
    """One message as text, and what is beside the values looked for in it."""

    def __init__(self, message: Message) -> None:
        # Kept, so that no other message gets its identity.
        self.message = message
        self.text = "\n".join(_texts(message.parts))
        self.runs = frozenset(_RUN.findall(self.text))
        self._spans: dict[str, list[tuple[int, int]]] = {}
        self._sources: dict[str, Neighbours] = {}
        self._headers: dict[str, frozenset[str]] = {}
        self._places: dict[str, list[tuple[int, int]]] = {}
        self._columns: Columns | None = None

    def spans_at(self, place: str) -> list[tuple[int, int]]:
        """The entries of the session at ``place`` that addresses name, first and last."""
        if place not in self._places:
            pattern = rf"{SCHEME}(?:{re.escape(place)}/)?log/(\d{{1,9}})(?:-(\d{{1,9}}))?"
            found = re.findall(pattern, self.text)
            self._places[place] = [(int(first), int(last or first)) for first, last in found]
        return self._places[place]

    def spans(self, value: str) -> list[tuple[int, int]]:
        """Where the value is at word boundaries; the first thousand places."""
        if value not in self._spans:
            self._spans[value] = list(islice(_spans(value, self.text), MOST_PLACES))
        return self._spans[value]

    def beside(self, value: str) -> Neighbours:
        """Collect what is beside the value, all its places taken together, and the headers of its columns."""
        if value not in self._sources:
            near = [self._near(*span) for span in self.spans(value)]
            words = {word for source in near for word in source.words}
            headed = {word for header in self.headers(value) for word in _plain_words(header)}
            keys = frozenset(key for source in near for key in source.keys)
            self._sources[value] = Neighbours(frozenset(words | headed) - {value.casefold()}, keys)
        return self._sources[value]

    def headers(self, value: str) -> frozenset[str]:
        """Headers of the columns that the value is in, case folded."""
        if value not in self._headers:
            self._columns = self._columns or Columns(self.text)
            found = (self._columns.header(start) for start, _ in self.spans(value))
            self._headers[value] = frozenset(header.casefold() for header in found if header)
        return self._headers[value]

    def binds(self, value: Value) -> bool:
        """Tell whether the value is here beside something that was beside it in its source."""
        words, keys = value.source
        if not words or not words.isdisjoint(self.beside(value.text).words):
            return True
        return not keys.isdisjoint(name for header in self.headers(value.text) for name in header.split())

    def _near(self, start: int, end: int) -> Neighbours:
        words: set[str] = set()
        keys: set[str] = set()
        for first, last in ((max(start - NEAR_CHARS, 0), start), (end, end + NEAR_CHARS)):
            words.update(_plain_words(self.text, first, last))
            keys.update(match[0].casefold() for match in _KEY.finditer(self.text, first, last))
        return Neighbours(frozenset(words), frozenset(keys))


class Places:
    """Where values are in a session of which nothing is left out."""

    def __init__(self, messages: Sequence[Message], *, texts: Texts) -> None:
        self.messages = messages
        self.head = next((at for at, message in enumerate(messages) if message.role == "assistant"), len(messages))
        """How many messages are before the first of the assistant."""
        self._texts = texts
        self._holding: dict[str, list[int]] = {}
        self._firsts: dict[str, int | None] = {}
        self._seen: dict[str, tuple[int, Sighting | None]] = {}
        for position, message in enumerate(messages):
            for run in texts.of(message).runs:
                self._holding.setdefault(run, []).append(position)

    def first(self, value: str) -> int | None:
        """The first message that holds the value."""
        if value not in self._firsts:
            self._firsts[value] = next(self._held(value, self._likely(value)), None)
        return self._firsts[value]

    def holding(self, words: AbstractSet[str]) -> Iterator[int]:
        """The messages that hold all of these runs of word characters."""
        fewest = min((self._holding.get(word, []) for word in words), key=len)
        return (at for at in fewest if words <= self._texts.of(self.messages[at]).runs)

    def text(self, position: int) -> str:
        """Return the text of a message."""
        return self._texts.of(self.messages[position]).text

    def seen(self, value: str, *, before: int) -> Sighting | None:
        """Where the messages before a position hold the value; None where none does. Asked with rising
        positions, it looks at each message once."""
        likely = self._likely(value)
        done, seen = self._seen.get(value, (0, None))
        end = bisect_left(likely, before)
        if end < done:
            done, seen = 0, None
        for at in self._held(value, likely[done:end]):
            beside = self._texts.of(self.messages[at]).beside(value)
            words, keys = seen.source if seen else (_NOTHING, _NOTHING)
            seen = Sighting(at, Neighbours(words | beside.words, keys | beside.keys))
        self._seen[value] = end, seen
        return seen

    def _likely(self, value: str) -> list[int]:
        return self._holding.get(max(_RUN.findall(value), key=len, default=""), [])

    def _held(self, value: str, positions: Iterable[int]) -> Iterator[int]:
        return (at for at in positions if self._texts.of(self.messages[at]).spans(value))


def find_values(messages: Sequence[Message], calls: Sequence[int], *, texts: Texts) -> Iterator[tuple[Value, ...]]:
    """The values of each call, in the order in which the reply uses them, each once.

    ``messages``: the session as it is shown when nothing is left out. ``calls``: the positions of the
    replies, rising; what is before one could be known.
    """
    places = Places(messages, texts=texts)
    for call in calls:
        used = dict.fromkeys(text for asked in messages[call].calls for text in _arguments(asked))
        found = (_value(text, places, call) for text in used)
        yield tuple(value for value in found if value)


def look_for(
    values: Iterable[Value], shown: Sequence[Message], *, texts: Texts, reachable: Sequence[Message] = ()
) -> RecalledValues:
    """Which of the values are in a request that shows these messages.

    ``reachable``: what the addresses in it lead to (``follow_addresses``).
    """
    found = RecalledValues()
    for value in values:
        present = bound = False
        for read in texts.holding(value.text, shown):
            present = True
            if bound := read.binds(value):
                break
        available = present or any(True for _ in texts.holding(value.text, reachable))
        counts = (1, int(present), int(bound), int(available))
        found += RecalledValues(*counts, *counts) if value.is_far else RecalledValues(*counts)
    bound_whole = 0 < found.far_values == found.far_bound
    return replace(found, far_steps=int(found.far_values > 0), far_bound_steps=int(bound_whole))


def follow_addresses(
    shown: Iterable[Message], entries: Sequence[Message], *, texts: Texts, place: str
) -> list[Message]:
    """The messages of the log that addresses in the request lead to, each once, in order.

    ``place``: the session as addresses name it, ``tenant/session``; relative addresses are its own. One call of
    the tool ``restore`` brings at most 2,000 tokens of what is at one of them.
    """
    found: list[Message] = []
    done = 0
    for first, last in sorted({span for message in shown for span in texts.of(message).spans_at(place)}):
        found += entries[max(first, done) : last + 1]
        done = max(done, last + 1)
    return found


def find_identifiers(text: str) -> Iterator[str]:
    """The pieces of a text that look like identifiers, paths or numbers, 4 to 64 characters long."""
    return filter(is_identifier, PIECE.findall(text))


def is_identifier(piece: str) -> bool:
    """Whether a piece of a text looks like an identifier, a path or a number."""
    return LEAST_CHARS <= len(piece) <= MOST_CHARS and _IDENTIFIER.search(piece) is not None


def _value(text: str, places: Places, call: int) -> Value | None:
    seen = places.seen(text, before=call)
    if seen is None:
        return None
    first = places.first(text)
    in_head = first is not None and first < places.head
    return Value(text, call - seen.last > FAR_MESSAGES and not in_head, seen.source)


def _arguments(call: ToolCall) -> Iterator[str]:
    """The values that the arguments of a call hold; arguments that are no JSON are looked at in pieces."""
    for _, leaf in _leaves(_parsed(call.arguments)):
        if isinstance(leaf, str):
            yield from _values_in(leaf)
        elif isinstance(leaf, int | float) and not isinstance(leaf, bool):
            number = repr(leaf)
            if LEAST_DIGITS <= len(number) <= MOST_CHARS:
                yield number


def _values_in(text: str) -> Iterator[str]:
    if len(text) > MOST_CHARS or any(map(str.isspace, text)):
        yield from find_identifiers(text)
    elif len(text) >= LEAST_CHARS and _RUN.search(text):
        yield text


def _parsed(arguments: str) -> Any:
    try:
        return jsonbytes.load(arguments)
    except ValueError:
        return arguments


def _leaves(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a JSON value holds that is no list and no object, in order, with the keys that lead to it."""
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


def _texts(parts: Iterable[Part]) -> Iterator[str]:
    """Yield the texts of parts that the model reads; providers leave out old reasoning."""
    for part in parts:
        match part:
            case Text():
                yield part.text
            case ToolResult():
                yield from _texts(part.parts)
            case ToolCall():
                yield f"{part.name} {_said(_parsed(part.arguments))}"
            case File():
                yield f"{part.name} {part.data if part.media_type == 'text/plain' else ''}"
            case Opaque():
                yield _said(part.value)
            case _:
                pass


def _said(value: Any) -> str:
    """A JSON value as lines, in which no escape hides where a word begins."""
    return "\n".join(f"{keys}: {leaf}" if keys else str(leaf) for keys, leaf in _leaves(value))


def _spans(value: str, text: str) -> Iterator[tuple[int, int]]:
    start = text.find(value)
    while start >= 0:
        end = start + len(value)
        if not _in_word(text, start) and not _in_word(text, end):
            yield start, end
        start = text.find(value, start + 1)


def _in_word(text: str, border: int) -> bool:
    """Whether word characters are on both sides of a border between two characters."""
    return 0 < border < len(text) and _RUN.fullmatch(text, border - 1, border + 1) is not None


def _plain_words(text: str, first: int = 0, last: int | None = None) -> Iterator[str]:
    """The plain words that are whole between two places, case folded."""
    last = len(text) if last is None else last
    # Two characters more, so that a word which goes on behind the border is seen to.
    for match in _WORD.finditer(text, first, last + 2):
        word = match[0]
        if match.end() <= last and (word[1:] == word[1:].lower() or word == word.upper()):
            yield word.casefold()
