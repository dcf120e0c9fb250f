"""Clip large arguments of tool calls: JSON stays JSON; keys, numbers and short texts stay; long texts keep their
start and end around a note with a pointer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from msgspec.structs import replace

from lading import jsonbytes
from lading.compaction import Pressure
from lading.compaction.clipping import find_longest, split_ends
from lading.compaction.cutting import SPARE_SHARE
from lading.history.log import Draft
from lading.history.view import Item, View
from lading.messages import Message, Part, ToolCall

LARGE_CHARS = 400
"""Only messages with a call whose arguments are longer are clipped."""
USED_TOKENS = 160
"""If the window forces it, an answered call is clipped to this, and then to its note."""
SKELETON_TOKENS = 100
"""Keys, numbers, short texts and notes may exceed the cap up to this size. A call with more becomes one text."""
_COLON = re.compile(r"\s*+:")
_JSON = json.JSONDecoder()


def has_large_calls(item: Item) -> bool:
    """Return whether arguments of a call in the message are or were large; False for pinned messages."""
    large = (call for call in item.message.calls if len(call.arguments) > LARGE_CHARS or item.kind == "clipped")
    return item.kind not in ("pinned", "payload") and any(large)


def clip_arguments(view: View, item: Item, *, cap_tokens: int, reason: str, pressure: Pressure) -> Draft | None:
    """Draft a clip of the arguments of each call above ``cap_tokens``; None if nothing gets shorter."""
    message = item.message
    if item.tokens <= cap_tokens or not has_large_calls(item):
        return None
    pointer = pressure.address(str(item.entry))
    # Clip the arguments in the log, not those that an earlier edit shortened.
    raw = [call for _, original in view.raw_between(item.entry, item.entry) for call in original.calls]
    whole = iter(raw if len(raw) == len(message.calls) else message.calls)
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            count = partial(_count_with, message, part, pressure)
            arguments = _clip(next(whole).arguments, pointer, cap_tokens, count, view)
            tokens = count(part.arguments)
            part = replace(part, arguments=arguments) if max(cap_tokens, count(arguments)) < tokens else part
        parts.append(part)
    shorter = message.with_parts(tuple(parts))
    if shorter == message:
        return None
    return Draft("clipped", item.entry, item.entry, view.with_message(item, shorter), reason, (pointer,))


def clip_used_calls(view: View, drafts: Sequence[Draft], *, pressure: Pressure) -> list[Draft]:
    """Return the drafts and, if the view does not fit with them, clips of answered calls, the oldest first."""
    left = view.tokens - sum(count_freed_tokens(view, draft, pressure=pressure) for draft in drafts)
    gone = (view.span(draft.first, draft.last)[1] for draft in drafts if draft.kind in ("summarised", "dropped"))
    used = view.items[max(gone, default=view.head) : view.find_consumed_end()]
    clipped: dict[int, Draft] = {}
    for cap_tokens in (USED_TOKENS, 0):
        if left <= pressure.room_tokens:
            break
        for draft in _draft_clips(view, used, cap_tokens, pressure):
            before = clipped.get(draft.first)
            left += count_freed_tokens(view, before, pressure=pressure) if before else 0
            left -= count_freed_tokens(view, draft, pressure=pressure)
            clipped[draft.first] = draft
            if left <= pressure.room_tokens * (1 - SPARE_SHARE):
                break
    return [*drafts, *clipped.values()]


def count_freed_tokens(view: View, draft: Draft, *, pressure: Pressure) -> int:
    """Return the tokens by which a draft shortens the view."""
    start, end = view.span(draft.first, draft.last)
    return view.tokens_before(end) - view.tokens_before(start) - sum(map(pressure.count, draft.replacement))


def count_least_tokens(view: View, items: Sequence[Item], *, drafts: Iterable[Draft], pressure: Pressure) -> int:
    """Return the tokens of the items with these drafts and with the arguments of all calls clipped to a note."""
    shorter = *drafts, *_draft_clips(view, items, 0, pressure)
    freed = sum(count_freed_tokens(view, draft, pressure=pressure) for draft in shorter)
    return sum(item.tokens for item in items) - freed


def count_call_tokens(message: Message, pressure: Pressure) -> list[int]:
    """Return the tokens of each call of the message."""
    return [_count_with(message, call, pressure, call.arguments) for call in message.calls]


def _draft_clips(view: View, items: Iterable[Item], cap_tokens: int, pressure: Pressure) -> Iterator[Draft]:
    reason = "the window is full"
    for item in items:
        draft = clip_arguments(view, item, cap_tokens=cap_tokens, reason=reason, pressure=pressure)
        if draft is not None:
            yield draft


def _clip(arguments: str, pointer: str, cap_tokens: int, count: Callable[[str], int], view: View) -> str:
    """Return the arguments with the longest starts and ends of their long texts that fit, found by bisection."""
    *structured, plain = _make_writers(arguments, pointer, view)
    fitting = (form for form in structured if count(form(0)) <= max(cap_tokens, SKELETON_TOKENS))
    form = next(fitting, plain)
    return form(find_longest(len(arguments) if cap_tokens else 0, cap_tokens, count=lambda kept: count(form(kept))))


def _make_writers(arguments: str, pointer: str, view: View) -> list[Callable[[int], str]]:
    """Return functions that write the arguments with N characters of each long text, the most faithful first."""
    try:
        known = view.readings.setdefault(_split_json, {})
        pieces = known.get(arguments) or known.setdefault(arguments, _split_json(arguments))
    except ValueError:
        return [partial(_shorten, arguments, pointer)]

    def write_json(kept: int) -> str:
        # An unchanged text keeps its spelling.
        shown = ((piece, text, _shorten(text, pointer, kept)) for piece, text in pieces)
        return "".join(piece if short == text else jsonbytes.dump(short).decode() for piece, text, short in shown)

    def write_text(kept: int) -> str:
        # The key under which both provider formats send arguments that are not an object.
        return jsonbytes.dump({"raw_arguments": _shorten(arguments, pointer, kept)}).decode()

    return [write_json, write_text]


def _split_json(arguments: str) -> list[tuple[str, str]]:
    """Split JSON into pieces, in order, each with its decoded text if it is a string value, else with an empty
    text. Raises ValueError for invalid JSON."""
    pieces: list[tuple[str, str]] = []
    done, start = 0, arguments.find('"')
    while start >= 0:
        text, end = _JSON.raw_decode(arguments, start)
        if not _COLON.match(arguments, end):
            pieces += [(arguments[done:start], ""), (arguments[start:end], text)]
            done = end
        start = arguments.find('"', end)
    pieces.append((arguments[done:], ""))
    # The string values were decoded: check the rest, which is short where they are long.
    jsonbytes.load('""'.join(piece for piece, _ in pieces[::2]))
    return pieces


def _shorten(text: str, pointer: str, kept: int) -> str:
    if len(text) <= kept:
        return text
    head, tail = split_ends(text, kept)
    note = f"[{len(text) - len(head) - len(tail):,} characters left out here after the call. Original: {pointer}]"
    shown = "\n".join(piece for piece in (head, note, tail) if piece)
    return shown if len(shown) < len(text) else text


def _count_with(message: Message, call: ToolCall, pressure: Pressure, arguments: str) -> int:
    call = replace(call, arguments=arguments)
    return pressure.count(Message("assistant", (call,), origin=message.origin))
