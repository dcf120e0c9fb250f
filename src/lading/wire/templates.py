"""Templates: how a provider object was written, so that the value read from it is written the same way.

A template is the object in its key order. A field that lives in the value holds a short code for how it
stood there; every other field holds the provider's own value. Filling puts the value's fields back. A
code that the value has outgrown (a string that has become two parts) gives way to the general form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias, TypeVar

from lading.messages import Template, Text
from lading.wire.shapes import as_list, copied, expected

P = TypeVar("P")

ABSENT: Final = object()
"""Given to ``fill`` for a field that is not to be written."""

Piece: TypeAlias = str | dict[str, Any]
"""One item of a content: plain words, or a part in the provider's form."""

_EMPTY: dict[str, Any] = {"empty": "", "empty_list": [], "null": None}


def template_of(source: Mapping[str, Any], codes: Mapping[str, Any], *, path: str) -> Template:
    """The template of ``source``: its keys in order, codes for the known ones, copies of the others."""
    if codes.keys() >= source.keys() and all(type(code) is str for code in codes.values()):
        return _shared(tuple((key, codes[key]) for key in source))
    return {key: codes[key] if key in codes else copied(value, path) for key, value in source.items()}


@lru_cache(maxsize=256)
def _shared(codes: tuple[tuple[str, str], ...]) -> Template:
    """One object for all messages that are written alike, which are many."""
    return dict(codes)


def merged(templates: Iterable[Template]) -> Template:
    """Several templates as one; where they share a field the first one's code stands."""
    fields: Template = {}
    for template in templates:
        for key, code in template.items():
            fields.setdefault(key, code)
    return fields


def fill(template: Template | None, values: Mapping[str, Any]) -> dict[str, Any]:
    """The object: the template's keys in order, then what ``values`` has beyond them, in its order.

    Fields in ``values`` are written from there (or not at all: ABSENT), the others as the template has them.
    """
    filled = {}
    for key, kept in (template or {}).items():
        value = values[key] if key in values else copied(kept, key)
        if value is not ABSENT:
            filled[key] = value
    for key, value in values.items():
        if value is not ABSENT:
            filled.setdefault(key, value)
    return filled


def code_of(value: Any, path: str) -> str:
    """The code of an optional text field. Raises WireError for anything but a string or null."""
    if value is None:
        return "null"
    if not isinstance(value, str):
        raise expected(path, "a string or null", found=value)
    return "str" if value else "empty"


def written(text: str, code: Any) -> Any:
    """An optional text field: the text; when empty, as it stood before, and ABSENT if it had words then."""
    return text or empty(code, otherwise=ABSENT)


def empty(code: Any, *, otherwise: Any) -> Any:
    """What stands for nothing: the empty form the code names, else ``otherwise``."""
    if not isinstance(code, str) or code not in _EMPTY:
        return otherwise
    return copied(_EMPTY[code], code)


def read_content(value: Any, path: str, *, read_part: Callable[[Any, str], P]) -> tuple[tuple[P | Text, ...], str]:
    """The parts of a content (string, list or null) and its code. Raises WireError."""
    if value is None or isinstance(value, str):
        return ((Text(value),) if value else ()), code_of(value, path)
    if not isinstance(value, list):
        raise expected(path, "a string or a list", found=value)
    parts = tuple(read_part(item, f"{path}.{index}") for index, item in enumerate(value))
    return parts, "list" if parts else "empty_list"


def read_list(value: Any, path: str, *, read_item: Callable[[Any, str], P]) -> tuple[tuple[P, ...], str]:
    """The items of an optional list and its code. Raises WireError for anything but a list or null."""
    items = [] if value is None else as_list(value, path)
    found = tuple(read_item(item, f"{path}.{index}") for index, item in enumerate(items))
    return found, "null" if value is None else "list" if found else "empty_list"


def write_content(pieces: Sequence[Piece], code: Any, *, otherwise: Any) -> Any:
    """A content as its code says; a list when the pieces need one; ``otherwise`` when there are none."""
    if not pieces:
        return empty(code, otherwise=otherwise)
    if code != "list" and len(pieces) == 1 and isinstance(pieces[0], str):
        return pieces[0]
    return [{"type": "text", "text": piece} if isinstance(piece, str) else piece for piece in pieces]
