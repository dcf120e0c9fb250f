"""Compacted tool results (Agentrail): each large one becomes a preview with a pointer as soon as two newer ones
stand behind it, an enormous one at once. What differs from the document: docs/reference/presets/agentrail.md.
"""

from __future__ import annotations

from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction import Compaction, Pressure, Strategy
from lading.compaction.basic import admit
from lading.compaction.deepening import deepened, spare, told
from lading.effects import Steps
from lading.errors import InputError
from lading.history.log import Draft
from lading.history.view import Item, View
from lading.messages import File, Image, Message, Part, Text, ToolResult
from lading.validation import check, check_fields

PREVIEW_CHARS = 200
RECENT_FACTOR = 4
LEAST_RECENT_TOKENS = 6_000


class ToolResults(Struct, frozen=True, forbid_unknown_fields=True):
    """The document's options, with its defaults. Raises InputError for a negative number."""

    max_tokens_per_tool_result: int = 1_500
    keep_recent_tool_results: int = 2
    max_tokens_per_recent_tool_result: int | None = None
    """For the newest ones; None: four times as much as for others, at least 6,000."""

    def __post_init__(self) -> None:
        check_fields(self)
        if min(self.max_tokens_per_tool_result, self.keep_recent_tool_results, self.most_recent_tokens) < 0:
            raise InputError("Give token limits and counts of 0 or more for tool results.")

    @property
    def most_recent_tokens(self) -> int:
        """What one of the newest results may take."""
        if self.max_tokens_per_recent_tool_result is not None:
            return self.max_tokens_per_recent_tool_result
        return max(RECENT_FACTOR * self.max_tokens_per_tool_result, LEAST_RECENT_TOKENS)


DEFAULTS = ToolResults()


def compact(view: View, pressure: Pressure, *, options: ToolResults = DEFAULTS) -> Compaction | Steps[Compaction]:
    """Previews of the results that are due; a fold where the view does not fit in spite of them."""
    drafts = drafted(view, pressure, options=options)
    if spare(view, drafts, pressure=pressure) < 0:
        forced = deepened(view, reason="compact_tool_results: the window is full", pressure=pressure)
        return told(view, forced or drafts, pressure=pressure)
    return Compaction(tuple(drafts))


def drafted(view: View, pressure: Pressure, *, options: ToolResults) -> list[Draft]:
    """A draft for each entry with results above what they may take."""
    due: dict[int, set[str]] = {}
    newer = 0
    for item in reversed(view.items[view.head :]):
        for result in reversed(item.message.results):
            is_recent = newer < options.keep_recent_tool_results
            newer += 1
            most = options.most_recent_tokens if is_recent else options.max_tokens_per_tool_result
            # The whole item bounds each of its results from above.
            if item.tokens > most and item.clearable_tokens and _tokens(result, pressure) > most:
                due.setdefault(item.entry, set()).add(result.call_id)
    drafts = (_compacted(view, entry, due[entry], pressure) for entry in sorted(due))
    return [draft for draft in drafts if draft is not None]


def _compacted(view: View, entry: int, call_ids: set[str], pressure: Pressure) -> Draft | None:
    start, end = view.span(entry, entry)
    items, pointer = view.items[start:end], pressure.address(str(entry))
    shown = tuple(_previewed(item, call_ids, pointer, pressure) for item in items)
    if sum(map(pressure.count, shown)) >= sum(item.tokens for item in items):
        return None
    return Draft("cleared", entry, entry, shown, "compact_tool_results: a large result", (pointer,))


def _previewed(item: Item, call_ids: set[str], pointer: str, pressure: Pressure) -> Message:
    parts: list[Part] = []
    for part in item.message.parts:
        if isinstance(part, ToolResult) and part.call_id in call_ids:
            parts.append(replace(part, parts=(Text(_note(part, pointer, pressure)),)))
        else:
            parts.append(part)
    return item.message.with_parts(tuple(parts))


def _note(result: ToolResult, pointer: str, pressure: Pressure) -> str:
    text = result.text
    media = sum(isinstance(part, Image | File) for part in result.parts)
    lines = [f"[Compacted result, ~{_tokens(result, pressure):,} tokens. Original: {pointer}]"]
    if media:
        lines.append(f"[{media} image(s) removed from context]")
    if "\n" not in text.strip() and len(text) > PREVIEW_CHARS:
        lines.append("[One long line: read it by a query.]")
    lines.append(text[:PREVIEW_CHARS])
    if result.is_error and len(text) > PREVIEW_CHARS:
        # What went wrong is told at the end of most errors.
        lines.append(f"…{text[max(len(text) - PREVIEW_CHARS, PREVIEW_CHARS) :]}")
    return "\n".join(line for line in lines if line)


def _tokens(result: ToolResult, pressure: Pressure) -> int:
    return pressure.count(Message("tool", (result,)))


def strategy(options: ToolResults) -> Strategy:
    """The strategy with other options. Raises InputError for what is none."""
    check(options, ToolResults, advice="options are ToolResults(...)")
    return Strategy("compact_tool_results", partial(compact, options=options), admit=admit)


STRATEGY = strategy(DEFAULTS)
