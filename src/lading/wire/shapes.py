"""Reading provider objects: what is not of the expected shape raises a WireError that names the place."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from lading.errors import WireError

DEEPEST_LEVELS = 200
"""Deeper nesting than any request needs, and well within what Python's JSON encoder can write."""

_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def expected(path: str, what: str, *, found: Any) -> WireError:
    """The error for a value that is something else than ``what``."""
    kind = _KINDS.get(type(found), type(found).__name__)
    return WireError(f"{path}: expected {what}, found {kind}.")


def as_object(value: Any, path: str) -> dict[str, Any]:
    """The value when it is a JSON object. Raises WireError."""
    if not isinstance(value, dict):
        raise expected(path, "an object", found=value)
    return value


def as_list(value: Any, path: str) -> list[Any]:
    """The value when it is a list. Raises WireError."""
    if not isinstance(value, list):
        raise expected(path, "a list", found=value)
    return value


def text_at(holder: Mapping[str, Any], key: str, *, path: str) -> str:
    """The string under ``key`` of the object at ``path``. Raises WireError, also when there is none."""
    if key not in holder:
        raise WireError(f"{path}: expected the field {key!r}, found none.")
    value = holder[key]
    if not isinstance(value, str):
        raise expected(f"{path}.{key}", "a string", found=value)
    return value


def role_at(message: Mapping[str, Any], roles: Collection[str], *, path: str) -> str:
    """The provider's word for the role of the message at ``path``. Raises WireError for an unknown one."""
    word = text_at(message, "role", path=path)
    if word not in roles:
        raise WireError(f"{path}.role: expected one of {', '.join(roles)}, found {word[:40]!r}.")
    return word


def copied(value: Any, path: str, *, levels: int = DEEPEST_LEVELS) -> Any:
    """A copy that shares no object or list with the original. Raises WireError for too deep a nesting."""
    if not isinstance(value, dict | list):
        return value
    if levels == 0:
        raise WireError(f"{path}: nested deeper than {DEEPEST_LEVELS} levels; flatten it.")
    if isinstance(value, dict):
        return {key: copied(item, path, levels=levels - 1) for key, item in value.items()}
    return [copied(item, path, levels=levels - 1) for item in value]
