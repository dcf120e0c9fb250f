"""Compare a JSON value with a schema: the part of JSON Schema that declarations of tools and answers use.

``type``, ``enum``, ``const``, ``properties``, ``required``, ``additionalProperties`` (as a boolean), ``items``,
``minItems``, ``maxItems``, ``minLength``, ``maxLength``, ``minimum``, ``maximum``, ``anyOf``, ``allOf``. Other
keywords are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_TYPES: Mapping[str, type[Any] | tuple[type[Any], ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
_LIMITS = (("minItems", "maxItems", list), ("minLength", "maxLength", str))
MOST_DEPTH = 64
"""Deeper values are not compared."""


def find_mismatch(value: Any, schema: Any) -> str:
    """Return the first difference with its path; empty: there is none."""
    return next(_walk(value, schema, "$", 0), "")


def _walk(value: Any, schema: Any, path: str, depth: int) -> Iterator[str]:
    if schema is False:
        yield f"{path} is not allowed"
    if not isinstance(schema, Mapping) or depth > MOST_DEPTH:
        return
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is_of(value, kind) for kind in kinds):
        yield f"{path} is no {' or '.join(kinds)}"
    allowed = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if allowed is not None and not any(_is_same(value, one) for one in allowed):
        yield f"{path} is none of the allowed values"
    yield from _check_limits(value, schema, path)
    for one in schema.get("allOf", ()):
        yield from _walk(value, one, path, depth + 1)
    options = schema.get("anyOf", ())
    if options and all(any(_walk(value, one, path, depth + 1)) for one in options):
        yield f"{path} matches none of the alternatives"
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        yield from (f"{path}.{name} is missing" for name in schema.get("required", ()) if name not in value)
        for name, inner in value.items():
            if name in properties:
                yield from _walk(inner, properties[name], f"{path}.{name}", depth + 1)
            elif schema.get("additionalProperties") is False:
                yield f"{path}.{name} is not allowed"
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _walk(inner, schema.get("items"), f"{path}[{at}]", depth + 1)


def _check_limits(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    for least, most, kind in _LIMITS:
        if isinstance(value, kind) and not schema.get(least, 0) <= len(value) <= schema.get(most, len(value)):
            yield f"{path} has the length {len(value)}"
    if _is_of(value, "number") and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{path} is {value}, out of its range"


def _is_of(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(kind, object))


def _is_same(value: Any, other: Any) -> bool:
    # True equals 1 in Python, not in JSON.
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)
