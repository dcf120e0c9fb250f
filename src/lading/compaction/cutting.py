"""Cut the history at a legal point: everything from the opening messages to the cut becomes one stub."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import product

from msgspec.structs import replace

from lading.compaction import Pressure
from lading.compaction.clearing import label_tool
from lading.compaction.kept_calls import read_calls
from lading.compaction.provider_summaries import find_summary, keep_summary
from lading.compaction.user_rules import read_statements, restate
from lading.history.log import Draft
from lading.history.repair import is_late
from lading.history.validity import legal_cuts, relax
from lading.history.view import View
from lading.messages import Message, extract_words, user_text

STUB_TOKENS = 120
"""Approximate tokens of a stub."""
MOST_STUB_TOKENS = 200
"""A stub with more tokens, because of odd tool names, leaves the names out."""
SPARE_SHARE = 0.25
"""Share of the room that a forced edit leaves free if it can: otherwise the next call would force another, and each
breaks the provider's cached prefix."""
MOST_CARRIED_SHARE = 0.25
"""Carried over a cut: what the user asks for, each message that uses at most this share of the room, and as many
rules."""


def find_cut_points(view: View, pressure: Pressure) -> list[int]:
    """Return the legal positions for a cut after the opening messages, between entries, ascending."""
    legal = legal_cuts(view.messages, pressure.invariants)
    return [position for position in legal if position > view.head and view.starts_entry(position)]


def cut(view: View, position: int, *, reason: str, pressure: Pressure) -> Draft:
    """Draft an edit that drops everything from the opening messages to ``position``; an earlier stub is absorbed.

    The user's rules, pins and newest request among these messages are shown again after the stub.
    """
    first = view.items[view.head].entry
    last = view.last_entry(position)
    pointer = pressure.address(f"{first}-{last}")
    tokens = view.tokens_before(position) - view.tokens_before(view.head)
    # Counted in the log: an earlier stub does not show the calls that it replaced.
    called = _describe_calls(message for _, message in view.raw_between(first, last))
    stub = user_text(_write_stub(first, last, tokens, called, pointer))
    if pressure.count(stub) >= MOST_STUB_TOKENS:
        stub = user_text(_write_stub(first, last, tokens, "", pointer))
    stays = carry_over(view, position, pressure=pressure)
    return keep_summary(Draft("dropped", first, last, (stub, *stays), reason, (pointer,)), view)


def draft_emergency_cut(view: View, pressure: Pressure) -> Draft | None:
    """Draft the shallowest legal cut that leaves room to spare, else the shallowest that fits; None if none does.

    It replaces a strategy's own edits that break a rule or do not fit. Inside a running loop it cuts last.
    """
    room = pressure.room_tokens
    most = int(room * (1 - SPARE_SHARE)), room
    relaxed = replace(pressure, invariants=relax(pressure.invariants))
    for given, most_tokens in product((pressure, relaxed), most):
        for position in find_cut_points(view, given):
            left = most_tokens - view.tokens_before(view.head) - (view.tokens - view.tokens_before(position))
            if left > 0:
                draft = cut(view, position, reason="the strategy's own edits could not be used", pressure=pressure)
                if sum(map(pressure.count, draft.replacement)) <= left:
                    return draft
    return None


def carry_over(
    view: View, position: int, *, pressure: Pressure, start: int | None = None, shown: str = ""
) -> tuple[Message, ...]:
    """Return the messages that must stay verbatim when those from ``start`` (the end of the opening messages) to
    ``position`` are removed: the provider's summary, the user's rules, the caller's pins, and what the user asks
    for. The rules and each message use at most a quarter of the room. Rules that occur in ``shown`` are not
    repeated."""
    start = view.head if start is None else start
    if position <= start:
        return ()
    most_tokens = int(pressure.room_tokens * MOST_CARRIED_SHARE)
    first, last = view.items[start].entry, view.last_entry(position)
    requests = carry_requests(view, first, last=last, pressure=pressure).values()
    without = "\n".join([shown, *(message.text for message in requests)])
    stated = read_statements(view, last).between(first, last)
    rules = restate(stated, most_tokens=most_tokens, count=pressure.count, without=without)
    pinned = tuple(map(make_plain, view.pinned_between(first, last)))
    summary = find_summary(view, first, last=last)
    return (*filter(None, (summary, rules)), *pinned, *(message for message in requests if message not in pinned))


def carry_requests(view: View, first: int, *, last: int, pressure: Pressure) -> dict[int, Message]:
    """Return what the user asks for in the entries ``first`` to ``last``, by entry, but what is too long."""
    most_tokens = int(pressure.room_tokens * MOST_CARRIED_SHARE)
    # A payload has the request verbatim, and is pinned.
    asked = {at: raw for at, raw in view.requests.items() if first <= at <= last and at != view.payload}
    shown = {at: _find_request_shown(view, at) or raw for at, raw in asked.items()}
    return {at: message for at, message in shown.items() if pressure.count(message) <= most_tokens}


def _find_request_shown(view: View, entry: int) -> Message | None:
    """Return the user's words in an entry as they were shown before any compaction: repaired, in the caller's
    newest form."""
    shown = (message for _, messages in view.admitted_between(entry, entry) for message in messages)
    # Results that were missing, or late, may be shown with them.
    return next(filter(None, (extract_words(message) for message in shown if not is_late(message))), None)


def make_plain(message: Message) -> Message:
    """Turn a pinned message into one that is legal alone: calls, results and other speakers become user text."""
    if message.role == "user" and not message.results:
        return message
    kept = [message.text, *(call.arguments for call in message.calls), *(result.text for result in message.results)]
    return user_text("\n".join([f"[Pinned message of the {message.role}]", *filter(None, kept)]))


def _describe_calls(messages: Iterable[Message]) -> str:
    calls = Counter(label_tool(call.name) for message in messages for call in read_calls(message)[0])
    tools = ", ".join(f"{name} {times}x" for name, times in calls.most_common(4))
    return f" Tools called: {tools}." if tools else ""


def _write_stub(first: int, last: int, tokens: int, tools_called: str, pointer: str) -> str:
    return (
        f"[{last - first + 1} earlier messages ({tokens:,} tokens) were removed to fit the context "
        f"window.{tools_called} Original: {pointer}]"
    )
