"""Clipping one enormous tool result before it is ever sent: head, tail, an honest note, a pointer."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from lading.compaction import Pressure
from lading.history.log import Draft
from lading.history.repair import is_late
from lading.history.view import Item, View
from lading.messages import Message, Part, Text, ToolResult
from lading.tokens.meter import COUNTED_CHARS

HEAD_SHARE = 0.7
"""Share of what is kept that comes from the start of the result; the rest comes from its end."""
_CHARS_A_TOKEN = 8


def clip(view: View, item: Item, *, cap_tokens: int, pressure: Pressure) -> Draft | None:
    """A draft that brings every result of the message above ``cap_tokens`` down to it; None when there is none.

    What was restored is left as it is. A cap below the size of the note leaves the note alone, or the result
    as it is where the note is longer.
    """
    late = is_late_result(item) and view.span(item.entry, item.entry)[0] >= view.head
    if item.tokens <= cap_tokens or not (item.clearable_tokens or late):
        return None
    parts: list[Part] = []
    pointers: list[str] = []
    for part in item.message.parts:
        clipped = part
        whole = ToolResult("", (part,)) if late and isinstance(part, Text) else part
        if isinstance(whole, ToolResult) and _tokens(whole, pressure) > cap_tokens:
            pointer = pressure.address(str(item.entry))
            shorter = _clipped(whole, cap_tokens, pointer, pressure)
            if _tokens(shorter, pressure) < _tokens(whole, pressure):
                clipped = Text(shorter.text) if late else shorter
                pointers.append(pointer)
        parts.append(clipped)
    if not pointers:
        return None
    reason = f"a result above the admission cap of {cap_tokens} tokens"
    message = item.message.with_parts(tuple(parts))
    return Draft("clipped", item.entry, item.entry, view.with_message(item, message), reason, tuple(pointers))


def is_late_result(item: Item) -> bool:
    """Whether an item shows, as text, a result that came after a request was made without it."""
    return item.kind in ("repaired", "clipped") and is_late(item.message)


def ends(text: str, kept: int) -> tuple[str, str]:
    """Head and tail of a text in at most ``kept`` characters, at ends of lines where one is near."""
    head_chars = int(kept * HEAD_SHARE)
    return _to_line_end(text[:head_chars]), _from_line_start(
        text[len(text) - (kept - head_chars) :] if kept else ""
    )


def longest(chars: int, cap_tokens: int, *, count: Callable[[int], int]) -> int:
    """Most of so many characters that fit by ``count``, by bisection: below a few characters for each token of the
    cap first, because what is far longer costs most to count."""
    low, high = 0, min(chars, cap_tokens * _CHARS_A_TOKEN)
    while high < chars and count(high) <= cap_tokens:
        low, high = high, min(chars, high * 8 + 64)
    precision = max(high // 256, 16)
    while high - low > precision:
        kept = (low + high) // 2
        low, high = (kept, high) if count(kept) <= cap_tokens else (low, kept)
    return low


def _clipped(result: ToolResult, cap_tokens: int, pointer: str, pressure: Pressure) -> ToolResult:
    """All the words where only pictures and files are too much; else the longest head and tail that fit, found by
    bisection over the share of characters kept."""
    text, total = result.text, _tokens(result, pressure)
    if text and _others(result):
        worded = _noted(result, text, "", note=_note(result, 0, total, pointer))
        if _tokens(worded, pressure) <= cap_tokens:
            return worded
    kept = longest(
        len(text), cap_tokens, count=lambda kept: _tokens(_cut(result, text, kept, total, pointer), pressure)
    )
    return _cut(result, text, kept, total, pointer)


def _cut(result: ToolResult, text: str, kept: int, total: int, pointer: str) -> ToolResult:
    head, tail = ends(text, kept)
    missing = len(text) - len(head) - len(tail)
    return _noted(result, head, tail, note=_note(result, missing, total, pointer))


def _note(result: ToolResult, missing: int, total: int, pointer: str) -> str:
    """What is left out of a result, where ``missing`` characters of its text are."""
    others = _others(result)
    left = [f"{missing:,} of {len(result.text):,} characters"] if missing or not others else []
    left += [f"{others} parts that are no text"] if others else []
    about = "about " if len(result.text) > COUNTED_CHARS else ""
    return f"[{' and '.join(left)} left out here ({about}{total:,} tokens in all). Original: {pointer}]"


def _others(result: ToolResult) -> int:
    return sum(not isinstance(part, Text) for part in result.parts)


def _noted(result: ToolResult, head: str, tail: str, *, note: str) -> ToolResult:
    shown = "\n".join(piece for piece in (head, note, tail) if piece)
    return replace(result, parts=(Text(shown),))


def _to_line_end(head: str) -> str:
    cut = head.rfind("\n")
    return head[:cut] if cut > len(head) * 0.8 else head


def _from_line_start(tail: str) -> str:
    cut = tail.find("\n")
    return tail[cut + 1 :] if 0 <= cut < len(tail) * 0.2 else tail


def _tokens(result: ToolResult, pressure: Pressure) -> int:
    return pressure.count(Message("tool", (result,)))
