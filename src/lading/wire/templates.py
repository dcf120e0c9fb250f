"""Read and write provider objects. An object of unexpected shape raises a WireError that names the place.

A *template* records how an object was written, so that the value read from it is written the same way. It has the
object's keys in their order: a field that is part of our value has the code of its original form (``FormCode``, or
one of the format's own); every other field has the provider's own value. ``fill`` puts the value's fields back. If
a code no longer fits the value (a string that has become two parts), the general form is written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias, TypeVar

from lading.errors import WireError
from lading.frozen import FrozenDict
from lading.jsontypes import DEEPEST_LEVELS
from lading.messages import Template, Text

_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def shape_error(path: str, what: str, *, found: Any) -> WireError:
    """Return the error for a value that is not ``what``."""
    kind = _KINDS.get(type(found), type(found).__name__)
    return WireError(f"{path}: expected {what}, found {kind}.")


def as_object(value: Any, path: str) -> dict[str, Any]:
    """Return the value if it is a JSON object. Raises WireError otherwise."""
    if not isinstance(value, dict):
        raise shape_error(path, "an object", found=value)
    return value


def as_list(value: Any, path: str) -> list[Any]:
    """Return the value if it is a list. Raises WireError otherwise."""
    if not isinstance(value, list):
        raise shape_error(path, "a list", found=value)
    return value


def text_at(holder: Mapping[str, Any], key: str, *, path: str) -> str:
    """Return the string under ``key`` of the object at ``path``. Raises WireError if there is none."""
    if key not in holder:
        raise WireError(f"{path}: expected the field {key!r}, found none.")
    value = holder[key]
    if not isinstance(value, str):
        raise shape_error(f"{path}.{key}", "a string", found=value)
    return value


def role_at(message: Mapping[str, Any], roles: Collection[str], *, path: str) -> str:
    """Return the provider's role of the message at ``path``. Raises WireError for an unknown one."""
    word = text_at(message, "role", path=path)
    if word not in roles:
        raise WireError(f"{path}.role: expected one of {', '.join(roles)}, found {word[:40]!r}.")
    return word


def copy_json(value: Any, path: str, *, levels: int = DEEPEST_LEVELS) -> Any:
    """Return a deep copy of a JSON value. Raises WireError if it is nested deeper than ``DEEPEST_LEVELS``."""
    if not isinstance(value, dict | list):
        return value
    if levels == 0:
        raise WireError(f"{path}: nested deeper than {DEEPEST_LEVELS} levels; flatten it.")
    if isinstance(value, dict):
        return {key: copy_json(item, path, levels=levels - 1) for key, item in value.items()}
    return [copy_json(item, path, levels=levels - 1) for item in value]


P = TypeVar("P")

ABSENT: Final = object()
"""Value for ``fill`` of a field that is not to be written."""

Piece: TypeAlias = str | dict[str, Any]
"""One item of a content: plain text, or a part in the provider's format."""

FormCode: TypeAlias = Literal["str", "list", "empty", "empty_list", "null"]
"""The original form of a field: a string or a list that has something, an empty one of either, or null."""


def make_template(source: Mapping[str, Any], codes: Mapping[str, Any], *, path: str) -> Template:
    """Return the template of ``source``: its keys in order, codes for known ones, copies of the others."""
    if codes.keys() >= source.keys() and all(type(code) is str for code in codes.values()):
        return _share_template(tuple((key, codes[key]) for key in source))
    return {key: codes[key] if key in codes else copy_json(value, path) for key, value in source.items()}


@lru_cache(maxsize=256)
def _share_template(codes: tuple[tuple[str, str], ...]) -> Template:
    """Return one shared object for all templates with the same codes, because most messages have the same."""
    return FrozenDict(codes)


def merge(templates: Iterable[Template]) -> Template:
    """Merge templates; for a field in several of them, the first code wins."""
    fields: Template = {}
    for template in templates:
        for key, code in template.items():
            fields.setdefault(key, code)
    return fields


def fill(template: Template | None, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object: the template's keys in order, then the other keys of ``values`` in their order.

    Fields in ``values`` are written from there (or omitted: ABSENT), all others are copied from the template.
    """
    filled = {}
    for key, kept in (template or {}).items():
        value = values[key] if key in values else copy_json(kept, key)
        if value is not ABSENT:
            filled[key] = value
    for key, value in values.items():
        if value is not ABSENT:
            filled.setdefault(key, value)
    return filled


def find_code(value: Any, path: str) -> FormCode:
    """Return the code of an optional text field. Raises WireError for anything but a string or null."""
    if value is None:
        return "null"
    if not isinstance(value, str):
        raise shape_error(path, "a string or null", found=value)
    return "str" if value else "empty"


def write_text(text: str, code: Any) -> Any:
    """Return an optional text field: the text; if it is empty, its original empty form, or ABSENT if it was not
    empty originally."""
    return text or write_empty(code, otherwise=ABSENT)


def write_empty(code: Any, *, otherwise: Any) -> Any:
    """Return the empty value of that code; ``otherwise`` if the code is not of an empty value."""
    match code:
        case "empty":
            return ""
        case "empty_list":
            return []
        case "null":
            return None
    return otherwise


def read_content(
    value: Any, path: str, *, read_part: Callable[[Any, str], P]
) -> tuple[tuple[P | Text, ...], FormCode]:
    """Return the parts of a content (string, list or null) and its code. Raises WireError for any other type."""
    if value is None:
        return (), "null"
    if isinstance(value, str):
        return ((Text(value),), "str") if value else ((), "empty")
    if not isinstance(value, list):
        raise shape_error(path, "a string or a list", found=value)
    parts = tuple(read_part(item, f"{path}.{index}") for index, item in enumerate(value))
    return parts, "list" if parts else "empty_list"


def read_list(value: Any, path: str, *, read_item: Callable[[Any, str], P]) -> tuple[tuple[P, ...], FormCode]:
    """Return the items of an optional list and its code. Raises WireError for anything but a list or null."""
    if value is None:
        return (), "null"
    found = tuple(read_item(item, f"{path}.{index}") for index, item in enumerate(as_list(value, path)))
    return found, "list" if found else "empty_list"


def write_content(pieces: Sequence[Piece], code: Any, *, otherwise: Any) -> Any:
    """Return a content in the form of its code; a list if the pieces need one; without pieces, the empty form of
    its code, or ``otherwise``."""
    if not pieces:
        return write_empty(code, otherwise=otherwise)
    if code != "list" and len(pieces) == 1 and isinstance(pieces[0], str):
        return pieces[0]
    return [{"type": "text", "text": piece} if isinstance(piece, str) else piece for piece in pieces]
