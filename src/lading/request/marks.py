"""Place the cache marks of one request: fields on blocks up to which the request is to be cached.

Marks are no part of the messages. A caller that sends its whole history moves them from call to call, so each
request has its own, at the places that its caller chose: on the same block of the same message, on the end of what
shows that message now, or on the request's end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct

from lading import jsonbytes
from lading.history.log import Edit, Entry
from lading.history.view import View
from lading.messages import Message
from lading.wire.layout import LAST_BLOCK, BlockPath, CacheMarks, list_blocks


class PlacedMark(Struct, frozen=True, omit_defaults=True):
    """A cache mark of one request."""

    mark: str
    """As JSON: a manifest keeps the order of its fields."""
    path: BlockPath = LAST_BLOCK
    """As of ``CacheMarks.put``."""
    entry: int | None = None
    """The entry of the message; None: the newest message of the request."""


class EncodedGroup(NamedTuple):
    """A group of messages that share wire messages, with these as values and as bytes."""

    messages: list[Message]
    wire_messages: list[dict[str, Any]]
    data: bytes


class GroupEnd(NamedTuple):
    """The end of the first messages of a group: the index of the group, and the number of messages."""

    group: int
    messages: int


LocatedMarks: TypeAlias = list[tuple[GroupEnd, PlacedMark]]
"""Marks in the order of their messages, each with the end of its message."""
MarkedGroups: TypeAlias = Mapping[int, tuple[EncodedGroup, LocatedMarks, EncodedGroup]]
"""Groups by index, their marks, and the groups as they are sent with these."""
Write: TypeAlias = Callable[[list[Message]], list[dict[str, Any]]]
"""Write the messages of a group."""


def find_position(one: PlacedMark, view: View) -> int:
    """Return the position of the item that bears a mark: the last one that shows the entry, else the one before."""
    return (len(view) if one.entry is None else view.span(one.entry, one.entry)[1]) - 1


def list_answered_ends(view: View, entries: Sequence[Entry], *, edits: Sequence[Edit]) -> Iterator[int]:
    """Yield the positions of a view at which answered requests ended, if nothing before them has changed since."""
    earlier, newest = sorted(edits, key=lambda edit: -edit.first), 0
    for position, item in enumerate(view.items):
        if not view.starts_entry(position) or entries[item.entry].message.role != "assistant":
            continue
        while earlier and earlier[-1].first < item.entry:
            newest = max(newest, earlier.pop().call)
        # A session has at most one reply for each call.
        if newest <= entries[item.entry].round:
            yield position


def write_marked(
    groups: Sequence[EncodedGroup], located: LocatedMarks, *, scheme: CacheMarks, last: MarkedGroups, write: Write
) -> MarkedGroups:
    """Write the groups that bear marks; those of the last request that are still the same are not written again."""
    written = dict[int, tuple[EncodedGroup, LocatedMarks, EncodedGroup]]()
    for at, found in groupby(located, key=lambda one: one[0].group):
        group, marks, before = groups[at], [*found], last.get(at)
        is_same = before is not None and before[:2] == (group, marks)
        written[at] = before if before and is_same else (group, marks, _write(group, marks, scheme, write=write))
    return written


def _write(group: EncodedGroup, marks: LocatedMarks, scheme: CacheMarks, *, write: Write) -> EncodedGroup:
    items = [*group.wire_messages]
    for (_, messages), one in marks:
        # Messages may share an item: those before this one, and this one, end at these blocks of it.
        before, of = write(group.messages[: messages - 1]) if messages > 1 else [], write(group.messages[:messages])
        start = count_blocks(before[-1]) if len(before) == len(of) else 0
        end, last = count_blocks(of[-1]), len(of) - 1
        at = (start + one.path[0] if 0 <= one.path[0] < end - start else end - 1,) if one.path else ()
        items[last] = scheme.put(items[last], jsonbytes.load(one.mark), path=(*at, *one.path[1:]))
    return EncodedGroup(group.messages, items, b",".join(map(jsonbytes.dump, items)))


def count_blocks(item: Any) -> int:
    """Count the blocks of an item; a text in their place is one."""
    return max(len(list_blocks(item)), 1)
