"""Find the calls that show each entry and edit of a session, and the composition of each request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec.structs import replace

from lading.history.log import NO_COMPACTIONS
from lading.report.data import CallData, SessionData, ShownCounts

MESSAGES, RESULTS, REPLACEMENTS = range(3)
"""Kinds of content in a conversation: messages, tool results, and replacements by edits."""


def add_timeline(session: SessionData) -> SessionData:
    """Add to each entry and edit the calls that show it, and to each call the composition of its conversation."""
    spans: dict[int, tuple[int, int]] = {}
    view: dict[int, tuple[int, int, int]] = {}
    """By entry: the item shown there, its kind and its tokens. An edit is the complement of its index."""
    kinds: dict[int, int] = {}
    tokens: Counter[int] = Counter()
    calls: list[CallData] = []
    before = ShownCounts(0, 0, 0, 0)
    for position, call in enumerate(session.calls):
        for item, first, last, kind, size in _new_items(session, before, call.shows):
            kind = kinds[first] if kind is None else kind
            for at in range(first, last + 1):
                kinds[at] = kind
                if at in view:
                    gone, gone_kind, gone_size = view.pop(at)
                    spans[gone] = spans[gone][0], position
                    tokens[gone_kind] -= gone_size
            view[first], spans[item] = (item, kind, size), (position, len(session.calls))
            tokens[kind] += size
        before = call.shows
        room = call.layers.get("conversation", 0)
        left = min(tokens[REPLACEMENTS], room)
        results = min(tokens[RESULTS], room - left)
        calls.append(replace(call, shows=replace(before, conversation=(room - left - results, results, left))))
    entries = (replace(item, shown=spans.get(at)) for at, item in enumerate(session.entries))
    edits = (replace(item, shown=spans.get(~at)) for at, item in enumerate(session.edits))
    return replace(session, entries=tuple(entries), edits=tuple(edits), calls=tuple(calls))


def _new_items(
    session: SessionData, before: ShownCounts, now: ShownCounts
) -> Iterator[tuple[int, int, int, int | None, int]]:
    """Yield each new item with the entries it covers, its kind (None: that of its first entry) and its tokens."""
    for at in range(before.entries, now.entries):
        entry = session.entries[at]
        has_result = any(piece.kind == "result" for piece in entry.message.pieces)
        yield at, at, at, RESULTS if has_result else MESSAGES, entry.tokens
    for at in range(before.edits, now.edits):
        edit = session.edits[at]
        yield ~at, edit.first, edit.last, None if edit.kind in NO_COMPACTIONS else REPLACEMENTS, sum(edit.tokens)
