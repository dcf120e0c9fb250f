"""Place the tail of a request: text at its end, which the next request does not repeat.

It comes after the newest message of the user or result of a tool, inside that message where the format joins them.
A prefill and a closing system message stay last. The request's own cache mark moves to the block before the tail:
a provider applies it to the last block, and would cache what no later request begins with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from lading.messages import own_words
from lading.request.builder import RequestBuilder

_ASKING = ("user", "tool")


class TailedRequest(NamedTuple):
    """A request with its tail."""

    body: bytes
    digest: str
    items: Sequence[dict[str, Any]]
    """The items at the end, from those of group ``start`` on."""
    start: int
    tail: int
    """Index in ``items`` of the one that holds the tail."""
    moved: str
    """The field of the envelope with the cache mark that is now before the tail; empty: none."""


def add_tail(request: RequestBuilder, text: str) -> TailedRequest:
    """Return the request with a text at its end."""
    start, items, before = _find_place(request)
    wire, card, marks = request.wire, request.card, request.wire.layout.marks
    item, marked = items[before] if before >= 0 else {}, ""
    if marks and (mark := request.envelope.get(marks.field)) and item:
        bare, item = item, marks.put(item, mark)
        marked = marks.field if item is not bare else ""
    extended = wire.layout.items.extend(item, text, card=card) if item else None
    if extended:
        items[before] = extended
    else:
        items[max(before, 0) : before + 1] = [
            *([item] if item else []),
            *wire.encode_group([own_words(text)], card),
        ]
    body, digest = request.close(start, items, unmarked=bool(marked))
    return TailedRequest(body, digest, items, start, before if extended else before + 1, marked)


def _find_place(request: RequestBuilder) -> tuple[int, list[dict[str, Any]], int]:
    """Return the group in which the newest item of the user or a tool is, the items from it on, and the index of
    this item in them. Without one: the last system message at the start, or -1."""
    role, groups, start = request.wire.layout.items.role, request.sent, len(request.groups)
    found: list[int] = []
    while start and not found:
        start -= 1
        found = [at for at, item in enumerate(groups[start].wire_messages) if role(item) in _ASKING]
    items = [item for group in groups[start:] for item in group.wire_messages]
    systems = next((at for at, item in enumerate(items) if role(item) != "system"), len(items))
    return start, items, found[-1] if found else systems - 1
