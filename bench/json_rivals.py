"""Other ways to write JSON in few tokens, for comparison: minified, CSV, and TOON as of its version 4."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_PLAIN_KEY = re.compile(r"[A-Za-z_][\w.]*")
_NEEDS_QUOTES = re.compile(
    r'^$|^\s|\s$|[:,"\\\[\]{}\n\r\t]|^-|^(?:true|false|null)$|^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$'
)


def minified(value: Any) -> str:
    """JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def as_csv(value: Any) -> str:
    """CSV with nested objects as dotted columns and lists as JSON; keys of a map in a first column."""
    rows = [{"key": key, **item} for key, item in value.items()] if isinstance(value, dict) else value
    flat = [dict(_flat("", row)) for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    page = io.StringIO()
    writer = csv.DictWriter(page, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return page.getvalue()


def toon(value: Any) -> str:
    """Token-oriented object notation: indented objects, tables of uniform objects, keyed tables of maps."""
    return "\n".join(_toon_field("", value, 0) if not isinstance(value, dict) else _toon_object(value, 0))


def _flat(path: str, value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        name = f"{path}.{key}" if path else key
        if isinstance(item, dict):
            yield from _flat(name, item)
        else:
            yield name, minified(item) if isinstance(item, list) else item


def _toon_object(value: Mapping[str, Any], level: int) -> Iterator[str]:
    entries = list(value.values())
    if level == 0 and len(entries) > 1 and (fields := _fields(entries)) is not None:
        yield from _keyed("", value, fields, level)
        return
    for key, item in value.items():
        yield from _toon_field(_toon_key(key), item, level)


def _toon_field(key: str, value: Any, level: int) -> Iterator[str]:
    indent = "  " * level
    if isinstance(value, dict):
        entries = list(value.values())
        fields = _fields(entries) if len(entries) > 1 else None
        if fields is not None:
            yield from _keyed(key, value, fields, level)
            return
        yield f"{indent}{key}:"
        yield from _toon_object(value, level + 1)
    elif isinstance(value, list):
        yield from _toon_list(key, value, level)
    else:
        yield f"{indent}{key}: {_toon_scalar(value)}"


def _toon_list(key: str, value: Sequence[Any], level: int) -> Iterator[str]:
    indent = "  " * level
    fields = _fields(value)
    if fields is not None:
        yield f"{indent}{key}[{len(value)}]{{{_field_list(fields)}}}:"
        for row in value:
            yield f"{indent}  {','.join(_cells(row, fields))}"
    elif not any(isinstance(item, (dict, list)) for item in value):
        yield f"{indent}{key}[{len(value)}]: {','.join(map(_toon_scalar, value))}".rstrip()
    else:
        yield f"{indent}{key}[{len(value)}]:"
        for item in value:
            if isinstance(item, dict) and item:
                lines = list(_toon_object(item, level + 2)) if level else list(_toon_fields(item, 2))
            else:
                lines = list(_toon_field("", item, level + 2))
            yield f"{indent}  - {lines[0].lstrip()}"
            yield from lines[1:]


def _toon_fields(value: Mapping[str, Any], level: int) -> Iterator[str]:
    for key, item in value.items():
        yield from _toon_field(_toon_key(key), item, level)


def _keyed(key: str, value: Mapping[str, Any], fields: Mapping[str, Any], level: int) -> Iterator[str]:
    indent = "  " * level
    yield f"{indent}{key}[{len(value)}:]{{{_field_list(fields)}}}:"
    for name, row in value.items():
        yield f"{indent}  {_toon_key(name)}: {','.join(_cells(row, fields))}"


def _fields(rows: Sequence[Any]) -> dict[str, Any] | None:
    """Name to None or to the fields of a nested object; None where the rows are not uniform."""
    if not rows or not all(isinstance(row, dict) and row for row in rows):
        return None
    keys = list(rows[0])
    if any(set(row) != set(keys) for row in rows):
        return None
    found: dict[str, Any] = {}
    for key in keys:
        values = [row[key] for row in rows]
        if not any(isinstance(value, (dict, list)) for value in values):
            found[key] = None
        else:
            found[key] = _fields(values)
            if found[key] is None:
                return None
    return found


def _field_list(fields: Mapping[str, Any]) -> str:
    names = [(_toon_key(key), inner) for key, inner in fields.items()]
    return ",".join([f"{name}{{{_field_list(inner)}}}" if inner else name for name, inner in names])


def _cells(row: Mapping[str, Any], fields: Mapping[str, Any]) -> Iterator[str]:
    for key, inner in fields.items():
        if inner:
            yield from _cells(row[key], inner)
        else:
            yield _toon_scalar(row[key])


def _toon_key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def _toon_scalar(value: Any) -> str:
    if isinstance(value, str) and not _NEEDS_QUOTES.search(value):
        return value
    return json.dumps(value, ensure_ascii=False)
