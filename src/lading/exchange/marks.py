"""Read the cache marks of a request, and leave out what no provider takes.

Anthropic caches up to each marked block; some servers of Chat Completions accept its marks. ``request/marks.py``
places them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from lading import jsonbytes
from lading.request.marks import PlacedMark
from lading.wire.layout import DEEPEST_MARK, LAST_BLOCK, BlockPath, CacheMarks, list_blocks, read_ttl

GivenMarks: TypeAlias = Mapping[BlockPath, Any]
"""The marks on a request's items by path, which starts with the index of the item."""


def find_marks(items: Sequence[Any], scheme: CacheMarks, *, bearing: Iterable[int]) -> GivenMarks:
    """Return the marks of a request's items by path, in order; ``bearing``: indices of items that may have one."""
    return dict(found for at in sorted(bearing) for found in _find_within(items[at], scheme, place=(at,)))


def _find_within(value: Any, scheme: CacheMarks, *, place: BlockPath) -> Iterator[tuple[BlockPath, Any]]:
    if isinstance(value, dict) and len(place) <= DEEPEST_MARK:
        if value.get(scheme.field) is not None:
            yield place, value[scheme.field]
        for at, block in enumerate(list_blocks(value)):
            yield from _find_within(block, scheme, place=(*place, at))


def limit_marks(
    given: GivenMarks, items: Sequence[Any], *, scheme: CacheMarks, beside: Iterable[Any], own: Any
) -> tuple[GivenMarks, Any]:
    """Return the marks on a request's items, and its own mark, so that all together are legal: the first ones of
    more than the provider takes are left out (A20); one of an hour behind one of five minutes has five (A21).
    ``beside``: the tools and system messages, which come before. ``own``: the mark of the whole request, which says
    nothing where the last block has one."""
    own = None if (len(items) - 1, len(list_blocks(items[-1])) - 1) in given else own
    lists = [one for one in beside if isinstance(one, list)]
    before = [read_ttl(mark) for one in lists for mark in find_marks(one, scheme, bearing=range(len(one))).values()]
    room, is_short, kept = scheme.most - len(before) - (own is not None), "5m" in before, dict[BlockPath, Any]()
    for place, mark in [*given.items()][max(len(given) - max(room, 0), 0) :]:
        kept[place] = _shorten(mark) if is_short else mark
        is_short = is_short or read_ttl(mark) == "5m"
    return kept, _shorten(own) if is_short else own


def _shorten(mark: Any) -> Any:
    return {key: value for key, value in mark.items() if key != "ttl"} if read_ttl(mark) == "1h" else mark


def place_marks(given: GivenMarks, items: Sequence[Any], *, find: Callable[[int], int]) -> tuple[PlacedMark, ...]:
    """Return the marks on a request's items by the entries of their messages; ``find``: the entry of an item."""
    placed: list[PlacedMark] = []
    for (at, *inner), mark in given.items():
        path = LAST_BLOCK if inner == [len(list_blocks(items[at])) - 1] else tuple(inner)
        is_end = at == len(items) - 1 and path in (LAST_BLOCK, ())
        placed.append(PlacedMark(jsonbytes.dump(mark).decode(), path, None if is_end else find(at)))
    return tuple(placed)
