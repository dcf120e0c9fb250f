"""Make Structs of plain values, in any thread.

msgspec reads the fields of a Struct's class when it converts to it for the first time, and two threads that do so
at once can crash the process. So the first conversion to each type has all others wait. Nothing else may convert.
"""

from __future__ import annotations

import os
from threading import RLock
from typing import Any, TypeVar, overload

import msgspec

V = TypeVar("V")

_first = RLock()  # Some Structs make others as they are made.
_known: set[Any] = set()
"""The types whose fields have been read."""
if hasattr(os, "register_at_fork"):  # A child would wait for a thread that it does not have.
    os.register_at_fork(before=_first.acquire, after_in_parent=_first.release, after_in_child=_first.release)


@overload
def convert(value: Any, type_: type[V], *, strict: bool = True, str_keys: bool = False) -> V: ...
@overload
def convert(value: Any, type_: Any, *, strict: bool = True, str_keys: bool = False) -> Any: ...


def convert(value: Any, type_: Any, *, strict: bool = True, str_keys: bool = False) -> Any:
    """Make a value of this type, checking it. ``strict``: a text is no number. ``str_keys``: keys are texts, as in
    JSON. Raises msgspec.ValidationError."""
    if type_ in _known:
        return msgspec.convert(value, type_, strict=strict, str_keys=str_keys)
    with _first:
        made = msgspec.convert(value, type_, strict=strict, str_keys=str_keys)
        _known.add(type_)
    return made
