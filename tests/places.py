"""Places in a value of JSON types and values of ours, and copies with another value at one of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Place = tuple[Any, ...]

OTHERS: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    "",
    "x",
    "\ud800",
    [],
    {},
    ["user"],
    [[]],
    [{}],
    {"a": 1},
    [None],
)

"""JSON of every type."""


def inner(value: Any) -> list[tuple[Any, Any]]:
    if hasattr(value, "__struct_fields__"):
        return [(name, getattr(value, name)) for name in value.__struct_fields__]
    if isinstance(value, dict):
        return [*value.items(), ("unknown_field", None)]
    return [*enumerate(value)] if isinstance(value, list | tuple) else []


def places(value: Any) -> Iterator[Place]:
    for key, item in inner(value):
        yield (key,)
        yield from ((key, *deeper) for deeper in places(item))


def put(value: Any, place: Place, odd: Any) -> Any:
    """A copy of the value with another value at that place."""
    if not place:
        return odd
    key, *deeper = place
    if hasattr(value, "__struct_fields__"):
        return type(value)(
            **{name: put(item, tuple(deeper), odd) if name == key else item for name, item in inner(value)}
        )
    if isinstance(value, tuple):
        return tuple(put([*value], place, odd))
    copy: Any = [*value] if isinstance(value, list) else value | {key: value.get(key)}
    copy[key] = put(copy[key], tuple(deeper), odd)
    return copy
