"""Clip one enormous tool result before it is first sent: start, end, a note of what is missing, a pointer."""

from __future__ import annotations

from collections.abc import Callable
from itertools import dropwhile

from msgspec.structs import replace

from lading.compaction import Pressure
from lading.history.log import Draft, Edit
from lading.history.view import Item, View
from lading.messages import Message, Part, Text, ToolResult
from lading.tokens.meter import COUNTED_CHARS

CUT, LOSSLESS = "a result above the admission cap of", "a large result"
"""The reasons of a cut and of another form on arrival; that of a cut goes on with the cap."""
HEAD_SHARE = 0.7
"""Share of the kept text that comes from the start of the result; the rest comes from its end."""
_CHARS_A_TOKEN = 8


def clip(view: View, item: Item, *, cap_tokens: int, pressure: Pressure) -> Draft | None:
    """Draft a clip of every result of the message above ``cap_tokens``; None if there is none.

    Restored results are left as they are. A cap smaller than the note leaves only the note, or the result unchanged
    if the note is longer.
    """
    late = item.is_late_result and view.span(item.entry, item.entry)[0] >= view.head
    if item.tokens <= cap_tokens or not (item.clearable_tokens or late):
        return None
    parts: list[Part] = []
    pointers: list[str] = []
    for part in (find_uncut(view, item, pressure=pressure) or item.message).parts:
        clipped = part
        result = ToolResult("", (part,)) if late and isinstance(part, Text) else part
        if isinstance(result, ToolResult) and _count(result, pressure) > cap_tokens:
            pointer = pressure.address(str(item.entry))
            shorter = _clip_result(result, cap_tokens, pointer, pressure)
            if _count(shorter, pressure) < _count(result, pressure):
                clipped = Text(shorter.text) if late else shorter
                pointers.append(pointer)
        parts.append(clipped)
    if not pointers:
        return None
    message = item.message.with_parts(tuple(parts))
    shown, reason = view.with_message(item, message), f"{CUT} {cap_tokens} tokens"
    return Draft("clipped", item.entry, item.entry, shown, reason, tuple(pointers))


def find_uncut(view: View, item: Item, *, pressure: Pressure) -> Message | None:
    """Return the message as it was before it was cut on arrival, so that it is cut anew and not once more; None if
    that is not known. It has what a function of the caller left, not what the log has."""
    edits = [edit for edit in pressure.past.edits if edit.first <= item.entry <= edit.last] if item.kind else []
    others = [*dropwhile(_is_admission, reversed(edits))]
    if len(others) == len(edits):
        return None
    raw = (message for _, message in view.raw_between(item.entry, item.entry))
    before, (start, end) = others[0].replacement if others else tuple(raw), view.span(item.entry, item.entry)
    at = next(at for at in range(start, end) if view.items[at] is item)
    found = before[at - start] if len(before) == end - start else item.message
    return found if len(found.results) == len(item.message.results) else None


def _is_admission(edit: Edit) -> bool:
    return edit.first == edit.last and (edit.reason.startswith(CUT) or edit.reason == LOSSLESS)


def split_ends(text: str, kept: int) -> tuple[str, str]:
    """Return the start and end of a text, at most ``kept`` characters together, at line ends where near."""
    head_chars = int(kept * HEAD_SHARE)
    return _trim_end(text[:head_chars]), _trim_start(text[len(text) - (kept - head_chars) :] if kept else "")


def find_longest(chars: int, cap_tokens: int, *, count: Callable[[int], int]) -> int:
    """Return the most of ``chars`` characters that fit by ``count``, found by bisection. It starts with a few
    characters per token of the cap, because far longer texts are the most expensive to count."""
    low, high = 0, min(chars, cap_tokens * _CHARS_A_TOKEN)
    while high < chars and count(high) <= cap_tokens:
        low, high = high, min(chars, high * 8 + 64)
    precision = max(high // 256, 16)
    while high - low > precision:
        kept = (low + high) // 2
        low, high = (kept, high) if count(kept) <= cap_tokens else (low, kept)
    return low


def _clip_result(result: ToolResult, cap_tokens: int, pointer: str, pressure: Pressure) -> ToolResult:
    """Return the whole text without pictures and files if that fits; else the longest start and end that fit."""
    text, total = result.text, _count(result, pressure)

    def cut(kept: int) -> ToolResult:
        return _show_ends(result, *split_ends(text, kept), total=total, pointer=pointer)

    if text and _count_others(result):
        whole = _show_ends(result, text, "", total=total, pointer=pointer)
        if _count(whole, pressure) <= cap_tokens:
            return whole
    return cut(find_longest(len(text), cap_tokens, count=lambda kept: _count(cut(kept), pressure)))


def _show_ends(result: ToolResult, head: str, tail: str, *, total: int, pointer: str) -> ToolResult:
    """Return the result as its start and end, with a note of what is missing; ``total``: its tokens."""
    others, chars = _count_others(result), len(result.text)
    missing = chars - len(head) - len(tail)
    parts = [f"{missing:,} of {chars:,} characters"] if missing or not others else []
    parts += [f"{others} parts that are no text"] if others else []
    about = "about " if chars > COUNTED_CHARS else ""
    note = f"[{' and '.join(parts)} left out here ({about}{total:,} tokens in all). Original: {pointer}]"
    return replace(result, parts=(Text("\n".join(piece for piece in (head, note, tail) if piece)),))


def _count_others(result: ToolResult) -> int:
    return sum(not isinstance(part, Text) for part in result.parts)


def _trim_end(head: str) -> str:
    cut = head.rfind("\n")
    return head[:cut] if cut > len(head) * 0.8 else head


def _trim_start(tail: str) -> str:
    cut = tail.find("\n")
    return tail[cut + 1 :] if 0 <= cut < len(tail) * 0.2 else tail


def _count(result: ToolResult, pressure: Pressure) -> int:
    return pressure.count(Message("tool", (result,)))
