"""Check that a value holds nothing but what JSON carries unchanged."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

import msgspec

from lading.errors import WireError

DEEPEST_LEVELS = 200
"""Deeper nesting than any request needs, and well within what Python's JSON encoder can write."""
_LONGEST_BITS = 10_000
"""Python writes no longer integer as text."""
_ADVICE = "Give a text (bytes as base64), a number, true, false, null, a list, or an object of these."


def check_json(path: str, value: Any) -> None:
    """Raise WireError for a value at this path that is nested deeper than ``DEEPEST_LEVELS`` or holds anything but
    JSON types and, outside of objects, Structs."""
    waiting: list[tuple[str, Any, int, bool]] = [(path, value, 0, True)]
    while waiting:
        place, one, level, may_be_struct = waiting.pop()
        inner: Iterable[tuple[object, Any]] = ()
        if isinstance(one, msgspec.Struct) and may_be_struct:
            inner, level = msgspec.structs.asdict(one).items(), 0
        elif isinstance(one, dict):
            if odd := [type(name).__name__ for name in one if not isinstance(name, str)]:
                raise WireError(f"{place}: the name of a field is of the type {odd[0]}. Give a text.")
            inner = one.items()
        elif isinstance(one, list | tuple):
            inner = enumerate(one)
        elif not _is_leaf(one):
            raise WireError(f"{place}: JSON cannot carry a {type(one).__name__}. {_ADVICE}")
        if inner and level > DEEPEST_LEVELS:
            raise WireError(f"{path}: nested deeper than {DEEPEST_LEVELS} levels; flatten it.")
        may_be_struct = not isinstance(one, dict)
        waiting += [(f"{place}.{name}", item, level + 1, may_be_struct) for name, item in inner][::-1]


def _is_leaf(value: object) -> bool:
    if isinstance(value, int):
        return (isinstance(value, Enum) or type(value) in (int, bool)) and value.bit_length() <= _LONGEST_BITS
    return value is None or type(value) in (str, float) or (isinstance(value, str) and isinstance(value, Enum))
