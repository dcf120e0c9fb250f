"""Dicts and lists that their readers cannot change: users' strategies read what the log and its requests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any, Never, TypeVar, overload

_CHANGING = (
    "__setitem__ __delitem__ __ior__ __iadd__ __imul__ append clear extend insert pop popitem remove reverse "
    "setdefault sort update"
)

_MOST_LEVELS = 250
"""Deeper values are left as they are: they are refused (``jsontypes.DEEPEST_LEVELS``)."""

Value = TypeVar("Value")
Sealed = TypeVar("Sealed", bound=type)


def _refuse(*_: object, **__: object) -> Never:
    raise TypeError("What a message holds cannot be changed. Copy it (copy.deepcopy) and make another message.")


def _seal(kind: Sealed) -> Sealed:
    """Replace every method of the class that changes a value by one that raises TypeError."""
    for name in _CHANGING.split():
        if hasattr(kind, name):
            setattr(kind, name, _refuse)
    return kind


@_seal
class FrozenDict(dict[str, Any]):
    """A dict that raises TypeError where it would change. Its copies are plain."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return dict, (dict(self),)


@_seal
class FrozenList(list[Any]):
    """A list that raises TypeError where it would change. Its copies are plain."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return list, (list(self),)


def freeze(value: Any, levels: int = _MOST_LEVELS) -> Any:
    """Return an equal value in which no dict and no list can be changed; a frozen one is returned unchanged."""
    inner = repeat(levels - 1)
    if not levels or not isinstance(value, dict | list | tuple):
        return value
    if isinstance(value, dict):
        frozen = type(value) is FrozenDict
        return value if frozen else FrozenDict(zip(value, map(freeze, value.values(), inner), strict=True))
    if isinstance(value, list):
        return value if type(value) is FrozenList else FrozenList(map(freeze, value, inner))
    return tuple(map(freeze, value, inner)) if type(value) is tuple else value


class ReadOnly(Sequence[Value]):
    """A view of a list that another may still change. Making one copies nothing; a slice is a list."""

    __slots__ = ("_items",)

    def __init__(self, items: Sequence[Value]) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Value]:
        return iter(self._items)

    @overload
    def __getitem__(self, at: int) -> Value: ...
    @overload
    def __getitem__(self, at: slice) -> list[Value]: ...
    def __getitem__(self, at: int | slice) -> Value | Sequence[Value]:
        return self._items[at]

    def __reversed__(self) -> Iterator[Value]:
        return reversed(self._items)

    def __eq__(self, other: object) -> bool:
        return bool(self._items == (other._items if isinstance(other, ReadOnly) else other))
