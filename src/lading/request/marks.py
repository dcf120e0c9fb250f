"""Place the cache marks of one request: fields on blocks up to which the request is to be cached.

Marks are no part of the messages. A caller that sends its whole history moves them from call to call, so each
request has its own, at the places that its caller chose: on the same block of the same message, on the end of what
shows that message now, or on the request's end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct

from lading import jsonbytes
from lading.history.view import View
from lading.messages import Message
from lading.wire.layout import LAST_BLOCK, BlockPath, CacheMarks, list_blocks


class PlacedMark(Struct, frozen=True, omit_defaults=True):
    """A cache mark of one request."""

    mark: Any
    path: BlockPath = LAST_BLOCK
    """As of ``CacheMarks.put``."""
    entry: int | None = None
    """The entry of the message; None: the newest message of the request."""


Write: TypeAlias = Callable[[list[Message]], list[dict[str, Any]]]
"""Write the messages of a group."""

Places: TypeAlias = dict[int, list[tuple[int, PlacedMark]]]
"""Cache marks by the group that bears them, each with the index of its message there."""


class EncodedGroup(NamedTuple):
    """A group of messages that share wire messages, with these as values and as bytes."""

    messages: list[Message]
    wire_messages: list[dict[str, Any]]
    data: bytes


Written: TypeAlias = Mapping[int, tuple[EncodedGroup, list[tuple[int, PlacedMark]], EncodedGroup]]
"""Groups, their marks, and the groups as they are sent with these."""


def find_position(one: PlacedMark, view: View) -> int:
    """Return the position of the item that bears a mark: the last one that shows the entry, else the one before."""
    return (len(view) if one.entry is None else view.span(one.entry, one.entry)[1]) - 1


def write_marked(
    groups: Sequence[EncodedGroup], places: Places, *, scheme: CacheMarks, last: Written, write: Write
) -> Written:
    """Write the groups that bear marks; those of the last request that are still the same are not written again."""
    written = dict[int, tuple[EncodedGroup, list[tuple[int, PlacedMark]], EncodedGroup]]()
    for at, marks in places.items():
        group, before = groups[at], last.get(at)
        is_same = before is not None and before[:2] == (group, marks)
        written[at] = before if before and is_same else (group, marks, _write(group, marks, scheme, write=write))
    return written


def _write(
    group: EncodedGroup, marks: Iterable[tuple[int, PlacedMark]], scheme: CacheMarks, *, write: Write
) -> EncodedGroup:
    items = [*group.wire_messages]
    for index, one in marks:
        # Messages may share an item: the blocks of those before are counted.
        before = write(group.messages[:index]) if index else []
        last = len(write(group.messages[: index + 1])) - 1
        start = max(len(list_blocks(before[-1])), 1) if len(before) == last + 1 else 0
        items[last] = scheme.put(items[last], one.mark, path=one.path, start=start)
    return EncodedGroup(group.messages, items, b",".join(map(jsonbytes.dump, items)))
