"""Clip large arguments of tool calls: JSON stays JSON, keys, numbers and short texts stay, long texts keep head and
tail around a note with a pointer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from msgspec.structs import replace

from lading import jsonbytes
from lading.compaction import Pressure
from lading.compaction.clearing import consumed_before
from lading.compaction.clipping import ends, longest
from lading.history.log import Draft
from lading.history.view import Item, View
from lading.messages import Message, Part, ToolCall

LARGE_CHARS = 400
"""Only messages with longer arguments of a call are clipped."""
USED_TOKENS = 160
"""Where the window forces it, a used call is clipped to this, and then to its note."""
SKELETON_TOKENS = 100
"""Keys, numbers, short texts and notes may exceed the cap up to this size. Above it a call becomes one text."""
SPARE_SHARE = 0.25
"""Share of the room that clipping used calls leaves free where it can."""
_COLON = re.compile(r"\s*+:")
_JSON = json.JSONDecoder()


def has_large_calls(item: Item) -> bool:
    """Whether arguments of a call in the message are large, or were; never for what the caller pinned."""
    large = (call for call in item.message.calls if len(call.arguments) > LARGE_CHARS or item.kind == "clipped")
    return item.kind != "pinned" and any(large)


def clip_arguments(view: View, item: Item, *, cap_tokens: int, reason: str, pressure: Pressure) -> Draft | None:
    """A draft that clips the arguments of each call above ``cap_tokens``; None when nothing gets shorter."""
    message = item.message
    if item.tokens <= cap_tokens or not has_large_calls(item):
        return None
    pointer = pressure.address(str(item.entry))
    # Clip what was said, not what an earlier edit left of it.
    raw = [call for _, said in view.raw_between(item.entry, item.entry) for call in said.calls]
    whole = iter(raw if len(raw) == len(message.calls) else message.calls)
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            count = partial(_tokens_with, message, part, pressure)
            arguments = _clipped(next(whole).arguments, pointer, cap_tokens, count, view)
            tokens = count(part.arguments)
            part = replace(part, arguments=arguments) if max(cap_tokens, count(arguments)) < tokens else part
        parts.append(part)
    shorter = message.with_parts(tuple(parts))
    if shorter == message:
        return None
    return Draft("clipped", item.entry, item.entry, view.with_message(item, shorter), reason, (pointer,))


def clip_used(view: View, drafts: Sequence[Draft], *, pressure: Pressure) -> list[Draft]:
    """The drafts and, where the view does not fit with them, clips of used calls, the oldest first."""
    left = view.tokens - sum(freed_tokens(view, draft, pressure=pressure) for draft in drafts)
    gone = (view.span(draft.first, draft.last)[1] for draft in drafts if draft.kind in ("summarised", "dropped"))
    used = view.items[max(gone, default=view.head) : consumed_before(view)]
    clipped: dict[int, Draft] = {}
    for cap_tokens in (USED_TOKENS, 0):
        if left <= pressure.room_tokens:
            break
        for draft in _clips(view, used, cap_tokens, pressure):
            before = clipped.get(draft.first)
            left += freed_tokens(view, before, pressure=pressure) if before else 0
            left -= freed_tokens(view, draft, pressure=pressure)
            clipped[draft.first] = draft
            if left <= pressure.room_tokens * (1 - SPARE_SHARE):
                break
    return [*drafts, *clipped.values()]


def freed_tokens(view: View, draft: Draft, *, pressure: Pressure) -> int:
    """What a draft takes out of the view."""
    start, end = view.span(draft.first, draft.last)
    return view.tokens_before(end) - view.tokens_before(start) - sum(map(pressure.count, draft.replacement))


def least_tokens(view: View, items: Sequence[Item], *, drafts: Iterable[Draft], pressure: Pressure) -> int:
    """What the items take with these drafts and with the arguments of all calls clipped to a note."""
    shorter = *drafts, *_clips(view, items, 0, pressure)
    freed = sum(freed_tokens(view, draft, pressure=pressure) for draft in shorter)
    return sum(item.tokens for item in items) - freed


def call_tokens(message: Message, pressure: Pressure) -> list[int]:
    """Tokens of each call of the message."""
    return [_tokens_with(message, call, pressure, call.arguments) for call in message.calls]


def _clips(view: View, items: Iterable[Item], cap_tokens: int, pressure: Pressure) -> Iterator[Draft]:
    reason = "the window is full"
    for item in items:
        draft = clip_arguments(view, item, cap_tokens=cap_tokens, reason=reason, pressure=pressure)
        if draft is not None:
            yield draft


def _clipped(arguments: str, pointer: str, cap_tokens: int, count: Callable[[str], int], view: View) -> str:
    """The arguments with the longest heads and tails of their long texts that fit, found by bisection."""
    *structured, plain = _forms(arguments, pointer, view)
    fitting = (form for form in structured if count(form(0)) <= max(cap_tokens, SKELETON_TOKENS))
    form = next(fitting, plain)
    return form(longest(len(arguments) if cap_tokens else 0, cap_tokens, count=lambda kept: count(form(kept))))


def _forms(arguments: str, pointer: str, view: View) -> list[Callable[[int], str]]:
    """How the arguments can be written with so many characters of each long text, the most faithful form first."""
    try:
        known = view.readings.setdefault(_pieces, {})
        pieces = known.get(arguments) or known.setdefault(arguments, _pieces(arguments))
    except ValueError:
        return [partial(_shorter, arguments, pointer)]

    def written(kept: int) -> str:
        # A text that stays keeps its own spelling.
        shown = ((piece, text, _shorter(text, pointer, kept)) for piece, text in pieces)
        return "".join(piece if short == text else jsonbytes.dump(short).decode() for piece, text, short in shown)

    def as_text(kept: int) -> str:
        # The key under which the wires send arguments that are no object.
        return jsonbytes.dump({"raw_arguments": _shorter(arguments, pointer, kept)}).decode()

    return [written, as_text]


def _pieces(arguments: str) -> list[tuple[str, str]]:
    """JSON in pieces, in order, each with the text that it spells where it is a string value. Raises ValueError for
    what is no JSON."""
    pieces: list[tuple[str, str]] = []
    done, start = 0, arguments.find('"')
    while start >= 0:
        text, end = _JSON.raw_decode(arguments, start)
        if not _COLON.match(arguments, end):
            pieces += [(arguments[done:start], ""), (arguments[start:end], text)]
            done = end
        start = arguments.find('"', end)
    pieces.append((arguments[done:], ""))
    # With its string values read, the rest decides; it is short where they are long.
    jsonbytes.load('""'.join(piece for piece, _ in pieces[::2]))
    return pieces


def _shorter(text: str, pointer: str, kept: int) -> str:
    if len(text) <= kept:
        return text
    head, tail = ends(text, kept)
    note = f"[{len(text) - len(head) - len(tail):,} characters left out here after the call. Original: {pointer}]"
    shown = "\n".join(piece for piece in (head, note, tail) if piece)
    return shown if len(shown) < len(text) else text


def _tokens_with(message: Message, call: ToolCall, pressure: Pressure, arguments: str) -> int:
    call = replace(call, arguments=arguments)
    return pressure.count(Message("assistant", (call,), origin=message.origin))
