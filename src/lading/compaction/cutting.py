"""Cutting history at a legal point: everything from the head to the cut becomes one stub."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from lading.compaction import Pressure
from lading.compaction.clearing import named
from lading.compaction.pins import read_statements, restated
from lading.history.log import Draft
from lading.history.validity import legal_cuts
from lading.history.view import View
from lading.messages import Message, Part, Text, user_text

STUB_TOKENS = 120
"""About what a stub takes."""
MOST_STUB_TOKENS = 200
"""A stub that would take more, because of odd tool names, leaves the names out."""


MOST_CARRIED_SHARE = 0.25
"""The newest request of the user is carried over a cut when it takes no more than this share of the room, and
so are the user's rules."""


def cut_points(view: View, pressure: Pressure) -> list[int]:
    """The positions after the head at which the history may be cut, ascending: legal, and between entries."""
    legal = legal_cuts(view.messages, pressure.invariants)
    return [position for position in legal if position > view.head and view.starts_entry(position)]


def cut(view: View, position: int, *, reason: str, pressure: Pressure) -> Draft:
    """The draft that drops everything between the head and ``position``; an earlier stub is absorbed.

    Rules of the user and what the user asked last are shown again behind the stub when they stood there.
    """
    first = view.items[view.head].entry
    last = view.last_entry(position)
    pointer = pressure.address(f"{first}-{last}")
    tokens = view.tokens_before(position) - view.tokens_before(view.head)
    # Counted in the log: an earlier stub no longer shows the calls that it stands for.
    called = _tools_called(message for _, message in view.raw_between(first, last))
    stub = user_text(_stub(first, last, tokens, called, pointer))
    if pressure.count(stub) >= MOST_STUB_TOKENS:
        stub = user_text(_stub(first, last, tokens, "", pointer))
    stays = carried(view, position, pressure=pressure)
    return Draft("dropped", first, last, (stub, *stays), reason, (pointer,))


def carried(
    view: View, position: int, *, pressure: Pressure, start: int | None = None, told: str = ""
) -> tuple[Message, ...]:
    """What must stay verbatim of the messages from ``start`` (the end of the head) to ``position`` when they
    leave: what the caller pinned there, the rules that the user stated, and what the user asked last. The last
    two take a quarter of the room each at most. Rules that stand in ``told`` are not repeated."""
    start = view.head if start is None else start
    if position <= start:
        return ()
    most_tokens = int(pressure.room_tokens * MOST_CARRIED_SHARE)
    first, last = view.items[start].entry, view.last_entry(position)
    request = carried_request(view, first, last=last, pressure=pressure)
    without = "\n".join([told, *(message.text for message in request)])
    stated = read_statements(view, last).between(first, last)
    rules = restated(stated, most_tokens=most_tokens, count=pressure.count, without=without)
    pinned = tuple(map(plain, view.pinned_between(first, last)))
    return (*((rules,) if rules else ()), *pinned, *(message for message in request if message not in pinned))


def carried_request(view: View, first: int, *, last: int, pressure: Pressure) -> tuple[Message, ...]:
    """The newest request of the user, where it is among the entries ``first`` to ``last`` and not too long."""
    if view.newest_request is None or not first <= view.newest_request[0] <= last:
        return ()
    message = view.newest_request[1]
    kept = tuple(part for part in message.parts if not _is_empty(part))
    shown = message.with_parts(kept) if len(kept) < len(message.parts) else message
    return (shown,) if pressure.count(shown) <= int(pressure.room_tokens * MOST_CARRIED_SHARE) else ()


def plain(message: Message) -> Message:
    """A pinned message as it may stand alone: calls, results and other speakers become text of the user."""
    if message.role == "user" and not message.results:
        return message
    said = [message.text, *(call.arguments for call in message.calls), *(result.text for result in message.results)]
    return user_text("\n".join([f"[Pinned message of the {message.role}]", *filter(None, said)]))


def _is_empty(part: Part) -> bool:
    return isinstance(part, Text) and not part.text.strip()


def _tools_called(messages: Iterable[Message]) -> str:
    calls = Counter(named(call.name) for message in messages for call in message.calls)
    tools = ", ".join(f"{name} {times}x" for name, times in calls.most_common(4))
    return f" Tools called: {tools}." if tools else ""


def _stub(first: int, last: int, tokens: int, tools_called: str, pointer: str) -> str:
    return (
        f"[{last - first + 1} earlier messages ({tokens:,} tokens) were removed to fit the context "
        f"window.{tools_called} Original: {pointer}]"
    )
