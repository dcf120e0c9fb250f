"""Cutting history at a legal point: everything from the head to the cut becomes one stub."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lading.compaction import Draft, Pressure
from lading.messages import Message, user_text
from lading.validity import legal_cuts
from lading.view import View

STUB_TOKENS = 120
"""About what a stub takes."""
MOST_STUB_TOKENS = 200
"""A stub that would take more, because of odd tool names, leaves the names out."""


def cut_points(view: View, pressure: Pressure) -> list[int]:
    """The positions after the head at which the history may be cut, ascending: legal, and between entries."""
    legal = legal_cuts(view.messages, pressure.invariants)
    return [position for position in legal if position > view.head and view.starts_entry(position)]


def cut(view: View, position: int, *, reason: str, pressure: Pressure) -> Draft:
    """The draft that drops everything between the head and ``position``; an earlier stub is absorbed."""
    first = view.items[view.head].entry
    last = view.last_entry(position)
    pointer = pressure.address(f"{first}-{last}")
    tokens = view.tokens_before(position) - view.tokens_before(view.head)
    messages = [item.message for item in view.items[view.head : position]]
    stub = user_text(_stub(first, last, tokens, _tools_called(messages), pointer))
    if pressure.count(stub) >= MOST_STUB_TOKENS:
        stub = user_text(_stub(first, last, tokens, "", pointer))
    return Draft("dropped", first, last, (stub,), reason, (pointer,))


def _tools_called(messages: Sequence[Message]) -> str:
    calls = Counter(call.name[:40] for message in messages for call in message.calls)
    tools = ", ".join(f"{name} {times}x" for name, times in calls.most_common(4))
    return f" Tools called there: {tools}." if tools else ""


def _stub(first: int, last: int, tokens: int, tools_called: str, pointer: str) -> str:
    return (
        f"[{last - first + 1} earlier messages ({tokens:,} tokens as last shown) were taken out of view "
        f"to fit the window.{tools_called} Kept unchanged at {pointer}]"
    )
