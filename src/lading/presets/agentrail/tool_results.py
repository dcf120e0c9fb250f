"""Agentrail's compacted tool results: replace a large one by a preview with a pointer once two newer ones
follow, an enormous one immediately. Differences from the document: docs/reference/presets/agentrail.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction import Compaction, Pressure, Strategy
from lading.compaction.basic import admit
from lading.compaction.span_folding import count_spare_tokens, deepen, summarize_folds
from lading.effects import Steps
from lading.errors import InputError
from lading.history.log import Draft
from lading.history.view import Item, View
from lading.messages import File, Image, Message, MessageLike, Part, Text, ToolResult
from lading.validation import check, check_fields, check_options, snake_case
from lading.wire.coercion import as_messages

PREVIEW_CHARS = 200
RECENT_FACTOR = 4
LEAST_RECENT_TOKENS = 6_000
_TITLE = "[Compacted result, ~"


class ToolResults(Struct, frozen=True, forbid_unknown_fields=True):
    """The document's options and defaults. Raises InputError for a negative number."""

    max_tokens_per_tool_result: int = 1_500
    keep_recent_tool_results: int = 2
    max_tokens_per_recent_tool_result: int | None = None
    """Limit of each of the newest ones; None: four times the other limit, at least 6,000."""

    def __post_init__(self) -> None:
        check_fields(self)
        if min(self.max_tokens_per_tool_result, self.keep_recent_tool_results, self.most_recent_tokens) < 0:
            raise InputError("Give token limits and counts of 0 or more for tool results.")

    @property
    def most_recent_tokens(self) -> int:
        """Limit in tokens of each of the newest results."""
        if self.max_tokens_per_recent_tool_result is not None:
            return self.max_tokens_per_recent_tool_result
        return max(RECENT_FACTOR * self.max_tokens_per_tool_result, LEAST_RECENT_TOKENS)


DEFAULTS = ToolResults()
ToolResultsLike: TypeAlias = ToolResults | Mapping[str, Any]
"""The options, or a mapping of them in either spelling."""


def read_options(given: ToolResultsLike) -> ToolResults:
    """Return the options. Raises InputError for an unknown or invalid one."""
    if isinstance(given, Mapping):
        check_options(given, ToolResults.__struct_fields__, of="compact_tool_results")
        return ToolResults(**snake_case(given))
    check(given, ToolResults, advice="options are ToolResults(...), or a mapping of its fields")
    return given


def compact(view: View, pressure: Pressure, *, options: ToolResults = DEFAULTS) -> Compaction | Steps[Compaction]:
    """Draft the previews that are due; a summary if the view still does not fit."""
    drafts = draft_edits(view, pressure, options=options)
    if count_spare_tokens(view, drafts, pressure=pressure) < 0:
        forced = deepen(view, reason="compact_tool_results: the window is full", pressure=pressure)
        return summarize_folds(view, forced or drafts, pressure=pressure)
    return Compaction(tuple(drafts))


def draft_edits(view: View, pressure: Pressure, *, options: ToolResults) -> list[Draft]:
    """Draft previews for each entry with results above their limit."""
    limit_tokens, recent_tokens = options.max_tokens_per_tool_result, options.most_recent_tokens
    least, start = min(limit_tokens, recent_tokens), view.head
    # Every message is looked at in each call; the size of an item is an upper bound for each of its results.
    large = [
        at for at, item in enumerate(view.items[start:], start) if item.tokens > least and item.clearable_tokens
    ]
    recent = {*islice(_list_newest(view), options.keep_recent_tool_results)} if large else set()
    due: dict[int, set[str]] = {}
    for position in large:
        item = view.items[position]
        for number, result in enumerate(item.message.results):
            most = recent_tokens if (position, number) in recent else limit_tokens
            if item.tokens > most and _count_result(result, pressure) > most:
                due.setdefault(item.entry, set()).add(result.call_id)
    drafts = (_draft_preview(view, entry, due[entry], pressure) for entry in sorted(due))
    return [draft for draft in drafts if draft is not None]


def compact_tool_results(messages: Sequence[MessageLike], options: ToolResultsLike = DEFAULTS) -> list[Message]:
    """Return the messages with a preview in place of each large result, as a transform: for messages of no session,
    or ``transforming``, which adds pointers. The newest ones may have more. Unchanged messages are the same
    objects; tokens are by the document's estimate (``estimate_tokens``). Raises InputError and WireError for what
    is no message, and InputError for options that there are not."""
    messages, options = as_messages(messages), read_options(options)
    newest = [(at, result) for at, message in enumerate(messages) for result in message.results]
    recent = {(at, id(result)) for at, result in newest[max(len(newest) - options.keep_recent_tool_results, 0) :]}

    def shorten(at: int, part: Part) -> Part:
        if not isinstance(part, ToolResult):
            return part
        most = options.most_recent_tokens if (at, id(part)) in recent else options.max_tokens_per_tool_result
        tokens = estimate_tokens(part)
        if tokens <= most or part.text.startswith(_TITLE):
            return part
        shown = replace(part, parts=(Text(_write_preview(part, f"{_TITLE}{tokens:,} tokens.]")),))
        return shown if estimate_tokens(shown) < tokens else part

    shown: list[Message] = []
    for at, message in enumerate(messages):
        parts = tuple(shorten(at, part) for part in message.parts)
        changes = any(part is not old for part, old in zip(parts, message.parts, strict=True))
        shown.append(message.with_parts(parts) if changes else message)
    return shown


def estimate_tokens(result: ToolResult) -> int:
    """Estimate tokens as the document's source does: a character 1 where it is not ASCII, else a quarter, an image
    1,500, another file a third of its bytes; a message 4."""
    text = result.text
    ascii_chars = len(text.encode("ascii", "ignore"))
    media = sum(
        1_500 if isinstance(part, Image) else len(part.data) * 3 // 4 // 3
        for part in result.parts
        if isinstance(part, Image | File)
    )
    return 4 + len(text) - ascii_chars - (-ascii_chars // 4) + media


def _list_newest(view: View) -> Iterator[tuple[int, int]]:
    """Iterate over the places of the results after the opening messages, newest first: the position of the message
    and the number of the result in it."""
    for position in range(len(view) - 1, view.head - 1, -1):
        for number in reversed(range(len(view.items[position].message.results))):
            yield position, number


def _draft_preview(view: View, entry: int, call_ids: set[str], pressure: Pressure) -> Draft | None:
    start, end = view.span(entry, entry)
    items, last = view.items[start:end], view.last_shown(entry)
    pointer = pressure.address_of(entry, last)
    shown = tuple(_preview(item, call_ids, pointer, pressure) for item in items)
    if sum(map(pressure.count, shown)) >= sum(item.tokens for item in items):
        return None
    return Draft("cleared", entry, last, shown, "compact_tool_results: a large result", (pointer,))


def _preview(item: Item, call_ids: set[str], pointer: str, pressure: Pressure) -> Message:
    parts: list[Part] = []
    for part in item.message.parts:
        if isinstance(part, ToolResult) and part.call_id in call_ids:
            title = f"{_TITLE}{_count_result(part, pressure):,} tokens. Original: {pointer}]"
            parts.append(replace(part, parts=(Text(_write_preview(part, title)),)))
        else:
            parts.append(part)
    return item.message.with_parts(tuple(parts))


def _write_preview(result: ToolResult, title: str) -> str:
    text = result.text
    media = sum(isinstance(part, Image | File) for part in result.parts)
    lines = [title]
    if media:
        lines.append(f"[{media} image(s) removed from context]")
    if "\n" not in text.strip() and len(text) > PREVIEW_CHARS:
        lines.append("[One long line: read it by a query.]")
    lines.append(text[:PREVIEW_CHARS])
    if result.is_error and len(text) > PREVIEW_CHARS:
        # Most error texts state the cause at their end.
        lines.append(f"…{text[max(len(text) - PREVIEW_CHARS, PREVIEW_CHARS) :]}")
    return "\n".join(line for line in lines if line)


def _count_result(result: ToolResult, pressure: Pressure) -> int:
    return pressure.count(Message("tool", (result,)))


def strategy(options: ToolResultsLike) -> Strategy:
    """Build the strategy with these options. Raises InputError for ones that there are not."""
    return Strategy("agentrail/tool_results", partial(compact, options=read_options(options)), admit=admit)


STRATEGY = strategy(DEFAULTS)
