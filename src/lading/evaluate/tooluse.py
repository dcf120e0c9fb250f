"""Analyse the tool calls and results of a recorded session: sizes, kinds, repeats, and calls without results."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from lading.economics import add_fields
from lading.evaluate.layers import MessageTokens, TokenTotal
from lading.messages import File, Image, Opaque, Text, ToolCall, ToolResult
from lading.shrink.shrinking import detect_content_type
from lading.sources import Recording

LEAST_REPEAT_TOKENS = 50
"""Shorter results, such as "ok", may be equal without being repeats."""

_FIRST_CHARS = 80
NO_CALL = "(no call)"
"""Tool name of a result without a call and a name."""


class Location(Struct, frozen=True):
    """Place of a tool call or result."""

    session: str
    message_index: int
    """Index in the raw list of the file; -1: outside the list."""
    tool: str


class RecordedResult(Struct, frozen=True):
    """One tool result of a recording."""

    place: Location
    tokens: int
    sent_tokens: int
    """``tokens`` times the later model calls, which all send it in an append-only history."""
    content_type: str
    is_error: bool
    first_words: str
    """Printable, on one line."""
    same_content: bool
    """An earlier result of the session has the same content; False for results under 50 tokens."""
    same_call: bool
    """It answers a call with the same name and arguments as an earlier one."""


class ToolCallRecord(Struct, frozen=True):
    """One tool call of a recording."""

    place: Location
    tokens: int
    sent_tokens: int


class ToolUse(Struct, frozen=True):
    """Tool calls and results of a session, and those that do not pair."""

    calls: tuple[ToolCallRecord, ...] = ()
    results: tuple[RecordedResult, ...] = ()
    unanswered: tuple[Location, ...] = ()
    """Calls for which no result was recorded, though the session went on."""
    open_calls: tuple[Location, ...] = ()
    """Calls without a result at the end of the recording."""
    orphans: tuple[Location, ...] = ()
    """Results without an open call with their id."""
    duplicate_ids: tuple[Location, ...] = ()
    """Calls with the id of an earlier call."""
    empty: tuple[Location, ...] = ()
    """Results without content."""

    def __add__(self, other: ToolUse) -> ToolUse:
        return add_fields(self, other)


class ToolRow(Struct, frozen=True):
    """Tokens of one tool, or of one content type."""

    name: str
    calls: TokenTotal
    results: TokenTotal
    errors: int
    share: float
    """Share of the tokens of all calls and results in the table."""
    largest_tokens: int
    mean_tokens: float


class Repeats(Struct, frozen=True):
    """Results with the content of an earlier result, or that answer a repeated call."""

    same_content: TokenTotal
    same_call: TokenTotal
    either: TokenTotal


def find_tool_use(recording: Recording, weights: Sequence[MessageTokens], *, carried: Sequence[int]) -> ToolUse:
    """Analyse the tool use of a recording. ``carried``: number of model calls after each message."""
    pairing = _Pairing(recording.id)
    for position, message in enumerate(recording.messages):
        index = recording.raw_indices[position]
        if message.role == "assistant" or not message.results:
            pairing.close_round()
        for part, tokens in zip(message.parts, weights[position].parts, strict=True):
            if isinstance(part, ToolCall):
                pairing.add_call(part, index, tokens=tokens, calls_after=carried[position])
            elif isinstance(part, ToolResult):
                pairing.add_result(part, index, tokens=tokens, calls_after=carried[position])
    return pairing.finish()


class _OpenCall(Struct, frozen=True):
    """A call without a result so far."""

    place: Location
    number: int
    """Number of the call, from 1."""
    made_before: bool


class _Pairing:
    """Pairs calls with results while a session is read once."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._open: dict[str, _OpenCall] = {}
        self._ids: set[str] = set()
        self._made: set[tuple[str, str]] = set()
        self._digests: set[bytes] = set()
        self._waited = 0
        self._calls: list[ToolCallRecord] = []
        self._results: list[RecordedResult] = []
        self._found: dict[str, list[Location]] = {
            name: [] for name in ("unanswered", "orphans", "duplicate_ids", "empty")
        }

    def close_round(self) -> None:
        """Note a message that is no result: calls open now will probably stay unanswered."""
        self._waited = len(self._calls)

    def add_call(self, call: ToolCall, index: int, *, tokens: int, calls_after: int) -> None:
        place = Location(self._session, index, make_printable(call.name))
        self._calls.append(ToolCallRecord(place, tokens, tokens * calls_after))
        if call.id in self._ids:
            self._found["duplicate_ids"].append(place)
        if call.id in self._open:
            self._found["unanswered"].append(self._open[call.id].place)
        made = (call.name, call.arguments)
        self._open[call.id] = _OpenCall(place, len(self._calls), made in self._made)
        self._ids.add(call.id)
        self._made.add(made)

    def add_result(self, result: ToolResult, index: int, *, tokens: int, calls_after: int) -> None:
        answered = self._open.pop(result.call_id, None)
        name = answered.place.tool if answered else make_printable(result.name) or NO_CALL
        place = Location(self._session, index, name)
        if answered is None:
            self._found["orphans"].append(place)
        kind = _classify_result(result)
        if kind == "empty":
            self._found["empty"].append(place)
        digest = _digest_result(result)
        self._results.append(
            RecordedResult(
                place=place,
                tokens=tokens,
                sent_tokens=tokens * calls_after,
                content_type=kind,
                is_error=result.is_error,
                first_words=cut_first_words(result.text),
                same_content=digest in self._digests and tokens >= LEAST_REPEAT_TOKENS,
                same_call=answered is not None and answered.made_before,
            )
        )
        self._digests.add(digest)

    def finish(self) -> ToolUse:
        """Return the tool use of the whole session."""
        waiting = self._open.values()
        self._found["unanswered"] += [item.place for item in waiting if item.number <= self._waited]
        self._found["unanswered"].sort(key=lambda place: place.message_index)
        still_open = tuple(item.place for item in waiting if item.number > self._waited)
        found = {name: tuple(places) for name, places in self._found.items()}
        return ToolUse(tuple(self._calls), tuple(self._results), open_calls=still_open, **found)


def summarize_tools(use: ToolUse, *, top: int) -> dict[str, Any]:
    """Prepare tool use for JSON, with the ``top`` largest results listed."""
    fields = asdict(use)
    return {
        "by_tool": group_by_tool(use),
        "by_content": group_by_content(use),
        "largest_results": find_largest(use, top),
        "repeats": find_repeats(use),
        **{name: fields[name] for name in ("unanswered", "open_calls", "orphans", "duplicate_ids", "empty")},
    }


def group_by_tool(use: ToolUse) -> tuple[ToolRow, ...]:
    """Build a row for each tool, those with most tokens in calls and results first."""
    made: dict[str, list[ToolCallRecord]] = {}
    for call in use.calls:
        made.setdefault(call.place.tool, []).append(call)
    return _to_rows(use, [result.place.tool for result in use.results], made)


def group_by_content(use: ToolUse) -> tuple[ToolRow, ...]:
    """Build a row for each content type, those with most tokens first."""
    return _to_rows(use, [result.content_type for result in use.results], {})


def find_largest(use: ToolUse, top: int) -> tuple[RecordedResult, ...]:
    """Return the ``top`` largest results, largest first; equal ones in order of arrival."""
    return tuple(sorted(use.results, key=lambda result: -result.tokens)[:top])


def find_repeats(use: ToolUse) -> Repeats:
    """Sum up the results that repeat content or calls."""
    return Repeats(
        same_content=_sum_tokens(result for result in use.results if result.same_content),
        same_call=_sum_tokens(result for result in use.results if result.same_call),
        either=_sum_tokens(result for result in use.results if result.same_content or result.same_call),
    )


def cut_first_words(text: str) -> str:
    """Return the start of a text on one line, safe to print."""
    return make_printable(" ".join(text[: 4 * _FIRST_CHARS].split())[:_FIRST_CHARS])


def make_printable(text: str) -> str:
    """Replace the characters that a terminal must not receive: control characters and lone surrogates."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def _to_rows(
    use: ToolUse, names: Sequence[str], made: Mapping[str, Sequence[ToolCallRecord]]
) -> tuple[ToolRow, ...]:
    groups: dict[str, list[RecordedResult]] = {name: [] for name in made}
    for name, result in zip(names, use.results, strict=True):
        groups.setdefault(name, []).append(result)
    calls = [call for group in made.values() for call in group]
    everything = _sum_tokens(calls).tokens + _sum_tokens(use.results).tokens
    rows = [_to_row(name, made.get(name, ()), results, everything) for name, results in groups.items()]
    return tuple(sorted(rows, key=lambda row: (-row.calls.tokens - row.results.tokens, row.name)))


def _to_row(name: str, calls: Sequence[ToolCallRecord], results: Sequence[RecordedResult], total: int) -> ToolRow:
    called, returned = _sum_tokens(calls), _sum_tokens(results)
    return ToolRow(
        name=name,
        calls=called,
        results=returned,
        errors=sum(result.is_error for result in results),
        share=(called.tokens + returned.tokens) / total if total else 0.0,
        largest_tokens=max((result.tokens for result in results), default=0),
        mean_tokens=returned.tokens / len(results) if results else 0.0,
    )


def _sum_tokens(items: Iterable[RecordedResult | ToolCallRecord]) -> TokenTotal:
    return sum((TokenTotal(1, item.tokens, item.sent_tokens) for item in items), TokenTotal())


def _classify_result(result: ToolResult) -> str:
    text = result.text
    if text.strip() or not any(isinstance(part, Image | File | Opaque) for part in result.parts):
        return detect_content_type(text)
    kinds = Counter(type(part).__name__.lower() for part in result.parts if not isinstance(part, Text))
    return kinds.most_common(1)[0][0]


def _digest_result(result: ToolResult) -> bytes:
    state = hashlib.sha256()
    for part in result.parts:
        content = part.text if isinstance(part, Text) else repr(part)
        state.update(content.encode("utf-8", "surrogatepass") + b"\0")
    return state.digest()
