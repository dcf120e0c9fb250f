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
        # Messages may share an item: those before this one, and this one, end at these blocks of it.
        before, of = write(group.messages[:index]) if index else [], write(group.messages[: index + 1])
        start = _count_blocks(before[-1]) if len(before) == len(of) else 0
        end, last = _count_blocks(of[-1]), len(of) - 1
        at = (start + one.path[0] if 0 <= one.path[0] < end - start else end - 1,) if one.path else ()
        items[last] = scheme.put(items[last], one.mark, path=(*at, *one.path[1:]))
    return EncodedGroup(group.messages, items, b",".join(map(jsonbytes.dump, items)))


def _count_blocks(item: Any) -> int:
    return max(len(list_blocks(item)), 1)
