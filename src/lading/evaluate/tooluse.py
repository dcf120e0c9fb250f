"""Tool calls and results of a recorded session: each result with its size, kind and place, and what went wrong."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from lading.economics import fieldwise
from lading.evaluate.layers import Mass, Weight
from lading.messages import File, Image, Opaque, Text, ToolCall, ToolResult
from lading.shrink.contenttypes import content_type
from lading.sources import Recording

LEAST_REPEAT_TOKENS = 50
"""Shorter results, such as "ok", agree without having been read twice."""

_FIRST_CHARS = 80
NO_CALL = "(no call)"
"""Stands for the tool of a result that answers no call and bears no name."""


class Location(Struct, frozen=True):
    """Where something is."""

    session: str
    message_index: int
    """In the raw list of the file; -1 for what is outside of it."""
    tool: str


class Result(Struct, frozen=True):
    """One tool result."""

    place: Location
    tokens: int
    sent_tokens: int
    """``tokens`` once for each later model call, as an append-only history sends it."""
    content_type: str
    is_error: bool
    first_words: str
    """Printable, on one line."""
    same_content: bool
    """An earlier result of the session, of 50 tokens or more, says exactly the same."""
    same_call: bool
    """It answers a call with the name and arguments of an earlier one."""


class MadeCall(Struct, frozen=True):
    """One tool call."""

    place: Location
    tokens: int
    sent_tokens: int


class ToolUse(Struct, frozen=True):
    """The calls and results of a session, and those of them that do not pair."""

    calls: tuple[MadeCall, ...] = ()
    results: tuple[Result, ...] = ()
    unanswered: tuple[Location, ...] = ()
    """Calls for which no result was recorded, though the session went on."""
    open_calls: tuple[Location, ...] = ()
    """Calls that were waiting for their result when the recording ended."""
    orphans: tuple[Location, ...] = ()
    """Results without an open call of their id."""
    duplicate_ids: tuple[Location, ...] = ()
    """Calls with an id that an earlier call has."""
    empty: tuple[Location, ...] = ()
    """Results that say nothing."""

    def __add__(self, other: ToolUse) -> ToolUse:
        return fieldwise(self, other)


class ToolRow(Struct, frozen=True):
    """The tokens of one tool, or of one content type."""

    name: str
    calls: Mass
    results: Mass
    errors: int
    share: float
    """Of the tokens of all calls and results that are compared."""
    largest_tokens: int
    mean_tokens: float


class Repeats(Struct, frozen=True):
    """Results that say again what the session had said, or answer a call made again."""

    same_content: Mass
    same_call: Mass
    either: Mass


def find_tool_use(recording: Recording, weights: Sequence[Weight], *, carried: Sequence[int]) -> ToolUse:
    """The tool use of a recording. ``carried``: for each message, how many model calls come after it."""
    walk = _Pairing(recording.id)
    for position, message in enumerate(recording.messages):
        index = recording.raw_indices[position]
        if message.role == "assistant" or not message.results:
            walk.goes_on()
        for part, tokens in zip(message.parts, weights[position].parts, strict=True):
            if isinstance(part, ToolCall):
                walk.call(part, index, tokens=tokens, calls_after=carried[position])
            elif isinstance(part, ToolResult):
                walk.result(part, index, tokens=tokens, calls_after=carried[position])
    return walk.ended()


class _Open(Struct, frozen=True):
    """A call that waits for its result."""

    place: Location
    number: int
    """From 1, in the order of the calls."""
    made_before: bool


class _Pairing:
    """Pairs calls with results while a session is read once."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._open: dict[str, _Open] = {}
        self._ids: set[str] = set()
        self._made: set[tuple[str, str]] = set()
        self._said: set[bytes] = set()
        self._waited = 0
        self._calls: list[MadeCall] = []
        self._results: list[Result] = []
        self._found: dict[str, list[Location]] = {
            name: [] for name in ("unanswered", "orphans", "duplicate_ids", "empty")
        }

    def goes_on(self) -> None:
        """A message comes that is no result: what is open now will hardly be answered."""
        self._waited = len(self._calls)

    def call(self, call: ToolCall, index: int, *, tokens: int, calls_after: int) -> None:
        place = Location(self._session, index, printable(call.name))
        self._calls.append(MadeCall(place, tokens, tokens * calls_after))
        if call.id in self._ids:
            self._found["duplicate_ids"].append(place)
        if call.id in self._open:
            self._found["unanswered"].append(self._open[call.id].place)
        made = (call.name, call.arguments)
        self._open[call.id] = _Open(place, len(self._calls), made in self._made)
        self._ids.add(call.id)
        self._made.add(made)

    def result(self, result: ToolResult, index: int, *, tokens: int, calls_after: int) -> None:
        answered = self._open.pop(result.call_id, None)
        name = answered.place.tool if answered else printable(result.name) or NO_CALL
        place = Location(self._session, index, name)
        if answered is None:
            self._found["orphans"].append(place)
        kind = _kind(result)
        if kind == "empty":
            self._found["empty"].append(place)
        said = _digest(result)
        self._results.append(
            Result(
                place=place,
                tokens=tokens,
                sent_tokens=tokens * calls_after,
                content_type=kind,
                is_error=result.is_error,
                first_words=first_words(result.text),
                same_content=said in self._said and tokens >= LEAST_REPEAT_TOKENS,
                same_call=answered is not None and answered.made_before,
            )
        )
        self._said.add(said)

    def ended(self) -> ToolUse:
        """Return what was found."""
        waiting = self._open.values()
        self._found["unanswered"] += [item.place for item in waiting if item.number <= self._waited]
        self._found["unanswered"].sort(key=lambda place: place.message_index)
        still_open = tuple(item.place for item in waiting if item.number > self._waited)
        found = {name: tuple(places) for name, places in self._found.items()}
        return ToolUse(tuple(self._calls), tuple(self._results), open_calls=still_open, **found)


def summarise_tools(use: ToolUse, *, top: int) -> dict[str, Any]:
    """Put what to read first in order, for JSON. Of the results, the ``top`` largest are listed."""
    fields = asdict(use)
    return {
        "by_tool": group_by_tool(use),
        "by_content": group_by_content(use),
        "largest_results": find_largest(use, top),
        "repeats": find_repeats(use),
        **{name: fields[name] for name in ("unanswered", "open_calls", "orphans", "duplicate_ids", "empty")},
    }


def group_by_tool(use: ToolUse) -> tuple[ToolRow, ...]:
    """One row for each tool, the one with most tokens in calls and results first."""
    made: dict[str, list[MadeCall]] = {}
    for call in use.calls:
        made.setdefault(call.place.tool, []).append(call)
    return _rows(use, [result.place.tool for result in use.results], made)


def group_by_content(use: ToolUse) -> tuple[ToolRow, ...]:
    """One row for each content type, the one with most tokens first."""
    return _rows(use, [result.content_type for result in use.results], {})


def find_largest(use: ToolUse, top: int) -> tuple[Result, ...]:
    """The results with most tokens, in that order; equal ones as they came."""
    return tuple(sorted(use.results, key=lambda result: -result.tokens)[:top])


def find_repeats(use: ToolUse) -> Repeats:
    """How much of the results was said or asked for before."""
    return Repeats(
        same_content=_mass(result for result in use.results if result.same_content),
        same_call=_mass(result for result in use.results if result.same_call),
        either=_mass(result for result in use.results if result.same_content or result.same_call),
    )


def first_words(text: str) -> str:
    """The start of a text on one line, safe to print."""
    return printable(" ".join(text[: 4 * _FIRST_CHARS].split())[:_FIRST_CHARS])


def printable(text: str) -> str:
    """The text with what a terminal must not be sent (control characters, lone surrogates) replaced."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def _rows(use: ToolUse, names: Sequence[str], made: Mapping[str, Sequence[MadeCall]]) -> tuple[ToolRow, ...]:
    groups: dict[str, list[Result]] = {name: [] for name in made}
    for name, result in zip(names, use.results, strict=True):
        groups.setdefault(name, []).append(result)
    calls = [call for group in made.values() for call in group]
    everything = _mass(calls).tokens + _mass(use.results).tokens
    rows = [_row(name, made.get(name, ()), results, everything) for name, results in groups.items()]
    return tuple(sorted(rows, key=lambda row: (-row.calls.tokens - row.results.tokens, row.name)))


def _row(name: str, calls: Sequence[MadeCall], results: Sequence[Result], everything: int) -> ToolRow:
    asked, given = _mass(calls), _mass(results)
    return ToolRow(
        name=name,
        calls=asked,
        results=given,
        errors=sum(result.is_error for result in results),
        share=(asked.tokens + given.tokens) / everything if everything else 0.0,
        largest_tokens=max((result.tokens for result in results), default=0),
        mean_tokens=given.tokens / len(results) if results else 0.0,
    )


def _mass(items: Iterable[Result | MadeCall]) -> Mass:
    return sum((Mass(1, item.tokens, item.sent_tokens) for item in items), Mass())


def _kind(result: ToolResult) -> str:
    text = result.text
    if text.strip() or not any(isinstance(part, Image | File | Opaque) for part in result.parts):
        return content_type(text)
    kinds = Counter(type(part).__name__.lower() for part in result.parts if not isinstance(part, Text))
    return kinds.most_common(1)[0][0]


def _digest(result: ToolResult) -> bytes:
    state = hashlib.sha256()
    for part in result.parts:
        said = part.text if isinstance(part, Text) else repr(part)
        state.update(said.encode("utf-8", "surrogatepass") + b"\0")
    return state.digest()
