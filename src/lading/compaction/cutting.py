"""Cutting history at a legal point: everything from the head to the cut becomes one stub."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lading.compaction import Draft, Pressure
from lading.messages import Message, Part, Text, user_text
from lading.validity import legal_cuts
from lading.view import View

STUB_TOKENS = 120
"""About what a stub takes."""
MOST_STUB_TOKENS = 200
"""A stub that would take more, because of odd tool names, leaves the names out."""


MOST_CARRIED_SHARE = 0.25
"""The newest request of the user is carried over a cut when it takes no more than this share of the room."""


def cut_points(view: View, pressure: Pressure) -> list[int]:
    """The positions after the head at which the history may be cut, ascending: legal, and between entries."""
    legal = legal_cuts(view.messages, pressure.invariants)
    return [position for position in legal if position > view.head and view.starts_entry(position)]


def cut(view: View, position: int, *, reason: str, pressure: Pressure) -> Draft:
    """The draft that drops everything between the head and ``position``; an earlier stub is absorbed.

    What the user asked last is shown again behind the stub when it stood there.
    """
    first = view.items[view.head].entry
    last = view.last_entry(position)
    pointer = pressure.address(f"{first}-{last}")
    tokens = view.tokens_before(position) - view.tokens_before(view.head)
    messages = [item.message for item in view.items[view.head : position]]
    stub = user_text(_stub(first, last, tokens, _tools_called(messages), pointer))
    if pressure.count(stub) >= MOST_STUB_TOKENS:
        stub = user_text(_stub(first, last, tokens, "", pointer))
    request = carried(view, position, pressure=pressure)
    return Draft("dropped", first, last, (stub, *request), reason, (pointer,))


def carried(view: View, position: int, *, pressure: Pressure) -> tuple[Message, ...]:
    """What the user asked last, verbatim, when a cut at ``position`` would drop it; nothing when it stands in
    the head or after the cut, or takes more than a quarter of the room."""
    if view.newest_request is None or position <= view.head:
        return ()
    entry, message = view.newest_request
    if not view.items[view.head].entry <= entry <= view.last_entry(position):
        return ()
    shown = message.with_parts(tuple(part for part in message.parts if not _is_empty(part)))
    fits = pressure.count(shown) <= pressure.room_tokens * MOST_CARRIED_SHARE
    return (shown if len(shown.parts) < len(message.parts) else message,) if fits else ()


def _is_empty(part: Part) -> bool:
    return isinstance(part, Text) and not part.text.strip()


def _tools_called(messages: Sequence[Message]) -> str:
    calls = Counter(call.name[:40] for message in messages for call in message.calls)
    tools = ", ".join(f"{name} {times}x" for name, times in calls.most_common(4))
    return f" Tools called there: {tools}." if tools else ""


def _stub(first: int, last: int, tokens: int, tools_called: str, pointer: str) -> str:
    return (
        f"[{last - first + 1} earlier messages ({tokens:,} tokens as last shown) were taken out of view "
        f"to fit the window.{tools_called} Kept unchanged at {pointer}]"
    )
