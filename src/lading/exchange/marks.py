"""Place cache marks: fields on blocks up to which a request is to be cached.

Anthropic caches up to each marked block; some servers of Chat Completions accept its marks. A mark in the opening
messages (before the first reply), or inside a message, keeps its place, for instance between a document and a
question. A mark on a last block moves from call to call, unless it is of an hour and before the first reply: it
becomes the request's own mark, at the top level, which Anthropic applies to the last block; ``RequestBuilder`` also
marks the end of the request before it where that is needed. Where the caller's last mark is on a reply, or on an
earlier message behind which it has dropped what it sent last time, the request's own mark is on that message: no
request begins with what comes after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, TypeAlias

from lading.messages import Template
from lading.wire.layout import DEEPEST_MARK, BlockPath, CacheMarks, list_blocks, read_ttl

PlacedMarks: TypeAlias = Mapping[BlockPath, Any]


def find_marks(items: Sequence[Any], scheme: CacheMarks, *, bearing: Iterable[int]) -> PlacedMarks:
    """Return the marks of a request's items by path, in order; ``bearing``: indices of items that may have one."""
    return dict(found for at in sorted(bearing) for found in find_within(items[at], scheme, place=(at,)))


def find_kept_paths(
    items: Sequence[Any], marks: PlacedMarks, *, scheme: CacheMarks, head: int, is_first: bool = False
) -> Set[BlockPath]:
    """Return the paths of the marks that stay: in the first ``head`` items, except one of five minutes on the
    request's last block, and in others except on their last blocks. ``is_first``: on these too, because other
    conversations may begin alike; but only the last of them where the request's last block bears a mark, because
    they may move with it."""
    if not scheme.stay or not marks:
        return frozenset()
    last = len(items) - 1
    ends = {at: len(list_blocks(items[at])) - 1 for at, *_ in marks if at >= head or at == last}
    placed = [place for place, mark in marks.items() if isinstance(mark, dict) and len(place) > 1]
    at_ends = [place for place in placed if place[1] == ends.get(place[0])]
    if head > last:
        # An hour before the first reply may be for the task alone, with five minutes for what follows.
        at_ends = [place for place in at_ends if read_ttl(marks[place]) != "1h"]
    shared = [place for place in at_ends if is_first and place[0] != last]
    moving = at_ends[-1:] != shared[-1:]
    return {*(place for place in placed if place not in at_ends), *(shared[-1:] if moving else shared)}


def arrange(
    fields: Template, tools: Any, *, scheme: CacheMarks, given: PlacedMarks, kept: PlacedMarks
) -> tuple[Template, Any]:
    """Return a request's other fields with its own mark, and its tools, so that all marks together are legal.

    ``given``: the caller's marks on messages. ``kept``: those on stored messages; if they leave no room (A20, A21),
    tools lose theirs, and the request gets none or a mark of five minutes.
    """
    before = list(map(read_ttl, kept.values()))
    of_tools = list_lifetimes(tools, scheme)
    mark = find_own_mark(fields, scheme=scheme, given=given, kept=kept)
    room = scheme.most - len(before) - (mark is not None)
    if of_tools and (len(of_tools) > room or ("5m" in of_tools and "1h" in before)):
        tools = list(map(scheme.strip, tools))
    else:
        before += of_tools
    if mark is None:
        return fields, tools
    if len(before) >= scheme.most:
        return {key: value for key, value in fields.items() if key != scheme.field}, tools
    if read_ttl(mark) == "1h" and "5m" in before:
        mark = {key: value for key, value in mark.items() if key != "ttl"}
    return fields | {scheme.field: mark}, tools


def find_barred(
    kept: PlacedMarks,
    outdated: Sequence[BlockPath],
    *,
    before: Sequence[str | None],
    behind: Sequence[str | None],
) -> list[BlockPath]:
    """Return the outdated marks that are not legal with the others: those of an hour behind one of five minutes,
    and those of five minutes before one of an hour. ``before``, ``behind``: lifetimes of marks that stay."""
    staying = [(place, read_ttl(mark)) for place, mark in kept.items() if place not in outdated]

    def is_barred(place: BlockPath) -> bool:
        if read_ttl(kept[place]) == "1h":
            return "5m" in {*before, *(ttl for other, ttl in staying if other < place)}
        return "1h" in {*behind, *(ttl for other, ttl in staying if other > place)}

    return list(filter(is_barred, outdated))


def find_own_mark(fields: Template, *, scheme: CacheMarks, given: PlacedMarks, kept: PlacedMarks) -> Any:
    """Return the mark of a whole request: its own, else the caller's last one that is not in ``kept``."""
    moving = list_moving(given, kept)
    return fields.get(scheme.field) or (given[moving[-1]] if moving else None)


def list_moving(given: PlacedMarks, kept: PlacedMarks) -> list[BlockPath]:
    """List the places of the caller's marks that move from request to request, in order."""
    return sorted(place for place in given if place not in kept)


def find_last_place(given: PlacedMarks, kept: PlacedMarks, *, items: int) -> int | None:
    """Return the index of the item with the last of the caller's marks that move, if it is before the last of these
    items, and marks that stay behind it have its lifetime (A21)."""
    moving = list_moving(given, kept)
    if not moving or moving[-1][0] >= items - 1:
        return None
    behind = {read_ttl(mark) for place, mark in kept.items() if place > moving[-1]}
    return moving[-1][0] if behind <= {read_ttl(given[moving[-1]])} else None


def find_within(value: Any, scheme: CacheMarks, *, place: BlockPath) -> Iterator[tuple[BlockPath, Any]]:
    """Yield the marks on a block and inside it by their paths; ``place``: its own path."""
    if isinstance(value, dict) and len(place) <= DEEPEST_MARK:
        if value.get(scheme.field) is not None:
            yield place, value[scheme.field]
        for at, block in enumerate(list_blocks(value)):
            yield from find_within(block, scheme, place=(*place, at))


def list_lifetimes(tools: Any, scheme: CacheMarks) -> list[str | None]:
    """Return the lifetimes of the marks on a request's tools."""
    declared = [tool for tool in (tools if isinstance(tools, list) else ()) if isinstance(tool, dict)]
    return [read_ttl(tool[scheme.field]) for tool in declared if tool.get(scheme.field) is not None]
