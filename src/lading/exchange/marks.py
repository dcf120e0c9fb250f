"""Place cache marks: fields on blocks up to which a request is to be cached.

Anthropic caches up to each marked block; some servers of Chat Completions accept its marks. A mark in the opening
messages (before the first reply) keeps its place, for instance between a document and a question. A mark on the
last block moves from call to call: it becomes the request's own mark, at the top level, which Anthropic applies to
the last block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, TypeAlias

from lading.messages import Message, Opaque, Template, ToolResult
from lading.wire.layout import DEEPEST_MARK, BlockPath, CacheMarks, list_blocks, read_ttl

PlacedMarks: TypeAlias = Mapping[BlockPath, Any]


def find_marks(items: Sequence[Any], scheme: CacheMarks, *, bearing: Iterable[int]) -> PlacedMarks:
    """Return the marks of a request's items by path, in order; ``bearing``: indices of items that may have one."""
    return dict(found for at in sorted(bearing) for found in _find_within(items[at], scheme, (at,)))


def find_kept_paths(items: Sequence[Any], marks: PlacedMarks, *, scheme: CacheMarks, head: int) -> Set[BlockPath]:
    """Return the paths of the marks that stay: in the first ``head`` items, except on the request's last block."""
    if not scheme.stay or not marks:
        return frozenset()
    last = len(items) - 1, len(list_blocks(items[-1])) - 1
    return {
        place
        for place, mark in marks.items()
        if isinstance(mark, dict) and len(place) > 1 and place[0] < head and place[:2] != last
    }


def arrange(
    fields: Template, tools: Any, *, scheme: CacheMarks, given: PlacedMarks, head: Sequence[Message], leading: int
) -> tuple[Template, Any]:
    """Return a request's other fields with its own mark, and its tools, so that all marks together are legal.

    ``given``: the caller's marks on messages; the last one that is not in ``head`` (``leading`` of these messages
    are system messages) becomes the request's own mark, unless it has one. Marks in ``head`` cannot change any
    more: if they leave no room (A20, A21), tools lose theirs, and the request gets none or a mark of five minutes.
    """
    kept = {
        place: mark
        for at, message in enumerate(head)
        for part, item in enumerate(message.parts)
        for place, mark in _find_on_part(item, scheme, (at - leading, part))
    }
    before = list(map(read_ttl, kept.values()))
    declared = [tool for tool in (tools if isinstance(tools, list) else ()) if isinstance(tool, dict)]
    of_tools = [read_ttl(tool[scheme.field]) for tool in declared if tool.get(scheme.field) is not None]
    if of_tools and (len(before) + len(of_tools) > scheme.most or ("5m" in of_tools and "1h" in before)):
        tools = list(map(scheme.strip, tools))
    else:
        before += of_tools
    moved = [mark for place, mark in given.items() if place not in kept]
    mark = fields.get(scheme.field) or (moved[-1] if moved else None)
    if mark is None:
        return fields, tools
    if len(before) >= scheme.most:
        return {key: value for key, value in fields.items() if key != scheme.field}, tools
    if read_ttl(mark) == "1h" and "5m" in before:
        mark = {key: value for key, value in mark.items() if key != "ttl"}
    return fields | {scheme.field: mark}, tools


def _find_within(value: Any, scheme: CacheMarks, place: BlockPath) -> Iterator[tuple[BlockPath, Any]]:
    if isinstance(value, dict) and len(place) <= DEEPEST_MARK:
        if value.get(scheme.field) is not None:
            yield place, value[scheme.field]
        for at, block in enumerate(list_blocks(value)):
            yield from _find_within(block, scheme, (*place, at))


def _find_on_part(part: Any, scheme: CacheMarks, place: BlockPath) -> Iterator[tuple[BlockPath, Any]]:
    if isinstance(part, Opaque):
        yield from _find_within(part.value, scheme, place)
        return
    if (mark := (part.template or {}).get(scheme.field)) is not None:
        yield place, mark
    for at, inner in enumerate(part.parts if isinstance(part, ToolResult) else ()):
        yield from _find_on_part(inner, scheme, (*place, at))
