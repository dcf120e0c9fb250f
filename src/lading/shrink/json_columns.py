"""Write JSON as columns: keys once in a header, one line per row; nested objects, lists and maps in the same way.

A document is made of blocks. ``path: value`` is one value. ``path[3]: id,name,address.city,items[sku,qty]`` is a
table of three rows, which follow as lines; without a header after the colon each line is a value. In a header

- ``address.city`` is a key of a nested object, ``items[sku,qty]`` a list of rows, ``*`` the key of a map's entry;
- ``kind=user`` is a value that is the same in every row, ``id=*`` one that equals the entry's key;
- ``zip:str`` means that numbers in this column are strings, ``note?`` that an empty cell is null.

Any other empty cell is a missing key; empty cells at the end of a row are left out. Strings are written without
quotes if they cannot be misread, otherwise as JSON strings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

from msgspec import Struct

from lading.shrink.json_reading import MISSING, NUMBER, SURROGATE, JsonNumber

LEAST_FILL = 0.3
"""Minimum share of filled cells in a table; sparser objects are written with their keys."""
ENTRY_FILL = 0.5
"""Minimum share of filled cells for the entries of a map."""

_UNSAFE = r"\x00-\x1f\x7f\x85\xa0\u2028\u2029\ud800-\udfff"
_BARE = re.compile(rf'(?![\s"])[^,;\[\]{{}}{_UNSAFE}]*(?<!\s)')
_BARE_KEY = re.compile(rf'(?!\s)[^".,;:=?*\[\]{{}}{_UNSAFE}]+(?<!\s)')
_NAMES = frozenset(("true", "false", "null", "*"))
_encode: Callable[[str], str] = json.encoder.encode_basestring
"""Write a string as JSON, with non-ASCII characters unescaped; only ``write_string`` escapes surrogates."""


class Leaf(Struct, frozen=True):
    """A column of a table."""

    name: str
    cells: list[str]
    """One cell per row."""
    constant: str = ""
    """The value of every row, written in the header instead of the cells."""

    @property
    def head(self) -> str:
        """Its part of the header."""
        return f"{self.name}={self.constant}" if self.constant else self.name


class JsonBlock(Struct, frozen=True):
    """A line of a document and the rows below it."""

    path: str
    value: str
    """The text after the path: a value, or the number of rows."""
    header: str = ""
    """The header of a table."""
    rows: Sequence[str] = ()
    leaves: Sequence[Leaf] = ()
    """The columns of a table except constant ones."""

    @property
    def head(self) -> str:
        """The line above the rows."""
        return f"{self.path}{self.value}{self.header}"


def make_document(value: Any) -> list[JsonBlock]:
    """Make the document of a value that ``json_reading.read`` returned."""
    table_holders: set[int] = set()
    _find_tables(value, table_holders)
    return list(_make_blocks("", value, table_holders))


def write_document(document: Iterable[JsonBlock]) -> str:
    """Write the blocks as text."""
    return "\n".join(line for block in document for line in (block.head, *block.rows))


def write_json(value: Any) -> str:
    """Write a value that ``json_reading.read`` returned as JSON without spaces."""
    return _write(value, write_string, write_string)


def write_string(text: str) -> str:
    """Write a string as JSON."""
    return json.dumps(text) if SURROGATE.search(text) else _encode(text)


def _write(value: Any, string: Callable[[str], str], key: Callable[[str], str]) -> str:
    kind = type(value)
    if kind is str:
        return string(value)
    if kind is JsonNumber:
        literal: str = value.literal
        return literal
    if kind is dict:
        return "{" + ",".join([f"{key(name)}:{_write(item, string, key)}" for name, item in value.items()]) + "}"
    if kind is list:
        return "[" + ",".join([_write(item, string, key) for item in value]) + "]"
    return "null" if value is None else "true" if value else "false"


def _write_cell(value: Any, strings_only: bool = False) -> str:
    """Write a value in a cell; with ``strings_only``, strings that look like numbers need no quotes."""
    return _write(value, _write_bare_string if strings_only else _write_cell_string, _write_key)


def _write_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else write_string(key)


def _write_bare_string(text: str) -> str:
    """Write a string where no numbers occur, without quotes if possible."""
    return write_string(text) if not text or not _BARE.fullmatch(text) or text in _NAMES else text


def _write_cell_string(text: str) -> str:
    return f'"{text}"' if NUMBER.fullmatch(text) else _write_bare_string(text)


def _make_blocks(path: str, value: Any, table_holders: Collection[int]) -> Iterable[JsonBlock]:
    if type(value) is dict and value:
        if (entries := _find_entry_keys([value])) is not None:
            yield _make_table(path, list(value.values()), list(value), entries)
            return
        if not path or id(value) in table_holders:
            for key, item in value.items():
                yield from _make_blocks(_join_path(path, key), item, table_holders)
            return
    if type(value) is list and any(type(item) in (dict, list) for item in value):
        order = _order_keys(value, LEAST_FILL)
        if order is not None:
            yield _make_table(path, value, None, order)
        else:
            yield JsonBlock(path, f"[{len(value)}]:", "", [_write_cell(item) for item in value])
        return
    strings_only = _has_only_strings([value])
    yield JsonBlock(path, f"{':str' if strings_only else ''}: {_write_cell(value, strings_only)}")


def _find_tables(value: Any, table_holders: set[int]) -> bool:
    """Add the identities of objects that contain a possible table; return whether the value contains one."""
    if type(value) is list:
        found = [_find_tables(item, table_holders) for item in value]
        return any(found) or sum(type(item) is dict for item in value) > 1
    if type(value) is not dict or not value:
        return False
    found = [_find_tables(item, table_holders) for item in value.values()]
    if any(found) or _find_entry_keys([value]) is not None:
        table_holders.add(id(value))
    return id(value) in table_holders


def _make_table(path: str, rows: list[Any], keys: list[str] | None, order: Sequence[str]) -> JsonBlock:
    leaves, texts = _make_columns(rows, keys, order)
    header = ",".join([leaf.head for leaf in leaves])
    return JsonBlock(path, f"[{len(rows)}]: ", header, texts, [leaf for leaf in leaves if not leaf.constant])


def _make_columns(rows: list[Any], keys: list[str] | None, order: Sequence[str]) -> tuple[list[Leaf], list[str]]:
    """Make the columns of a table, the keys of a map's entries first, and write its rows."""
    leaves = [] if keys is None else [Leaf("*", [_write_bare_string(key) for key in keys])]
    leaves += _make_object_columns("", rows, order, keys)
    if sum(not leaf.constant for leaf in leaves) > 1:
        leaves = [_blank_nulls(leaf) for leaf in leaves]
    texts = _write_rows(leaves)
    if not all(texts):
        # A row without a filled cell would look like a missing row.
        leaves = [Leaf(leaf.name, leaf.cells) for leaf in leaves]
        texts = _write_rows(leaves)
    return leaves, texts


def _blank_nulls(leaf: Leaf) -> Leaf:
    if leaf.constant or "null" not in leaf.cells or "" in leaf.cells:
        return leaf
    return Leaf(f"{leaf.name}?", ["" if cell == "null" else cell for cell in leaf.cells])


def _write_rows(leaves: Sequence[Leaf]) -> list[str]:
    cells = [leaf.cells for leaf in leaves if not leaf.constant]
    if not cells:
        return [""]
    return [row.rstrip(",") or row for row in map(",".join, zip(*cells, strict=True))]


def _make_object_columns(
    path: str, rows: Sequence[Any], order: Sequence[str], keys: list[str] | None = None
) -> list[Leaf]:
    leaves: list[Leaf] = []
    for key in order:
        name = _join_path(path, key)
        values = [MISSING if row is MISSING else row.get(key, MISSING) for row in rows]
        leaves += [Leaf(name, [], "*")] if values == keys else _make_value_columns(name, values)
    return leaves


def _make_value_columns(path: str, values: list[Any]) -> list[Leaf]:
    kinds = set(map(type, values))
    if dict in kinds:
        objects = [value for value in values if type(value) is dict and value]
        order = _order_keys(objects, LEAST_FILL * len(values) / max(len(objects), 1))
        entries = _find_entry_keys(objects, order) if list not in kinds else None
        if entries is not None:
            return [_make_nested_column(path, values, entries)]
        if order is not None:
            own = [MISSING if type(value) is dict and value else value for value in values]
            parts = [value if type(value) is dict and value else MISSING for value in values]
            first = [] if all(value is MISSING for value in own) else [_make_plain_column(path, own)]
            return first + _make_object_columns(path, parts, order)
    elif list in kinds:
        items = [item for value in values if type(value) is list for item in value]
        order = _order_keys(items, LEAST_FILL)
        if order is not None:
            return [_make_nested_column(path, values, order)]
    return [_make_plain_column(path, values)]


def _make_plain_column(path: str, values: list[Any]) -> Leaf:
    strings_only = _has_only_strings(values)
    cells = ["" if value is MISSING else _write_cell(value, strings_only) for value in values]
    if len(cells) > 1 and cells[0] and cells.count(cells[0]) == len(cells):
        cells = [_write_cell(value) for value in values]
        return Leaf(path, cells, cells[0])
    return Leaf(f"{path}:str" if strings_only else path, cells)


def _make_nested_column(path: str, values: Sequence[Any], order: Sequence[str]) -> Leaf:
    """Write a column of lists of rows, or of maps, whose rows share one header."""
    tables = [value for value in values if type(value) in (dict, list)]
    is_map = type(tables[0]) is dict
    rows = [row for table in tables for row in (table.values() if is_map else table)]
    leaves, texts = _make_columns(rows, [key for table in tables for key in table] if is_map else None, order)
    cells, start = [], 0
    for value in values:
        if type(value) in (dict, list):
            cells.append("[" + ";".join(texts[start : start + len(value)]) + "]")
            start += len(value)
        else:
            cells.append("" if value is MISSING else _write_cell(value))
    return Leaf(f"{path}[{','.join([leaf.head for leaf in leaves])}]", cells)


def _find_entry_keys(objects: Sequence[dict[str, Any]], order: Sequence[str] | None = None) -> list[str] | None:
    """Find the shared keys of the entries if the objects are maps of similar objects; otherwise None. ``order`` are
    the ordered keys of the objects as rows of one table, if they can be that."""
    entries = [item for value in objects for item in value.values()]
    if len(entries) < 2 or not all(type(item) is dict for item in entries):
        return None
    shared = _order_keys(entries, ENTRY_FILL)
    if shared is None or (order is not None and len(objects) > 1 and len(entries) > len(order) * len(shared)):
        return None
    return shared


def _order_keys(rows: Sequence[Any], least_fill: float) -> list[str] | None:
    """Order the keys consistently with every row. None when there is no such order, when not all rows are non-empty
    objects, or when the table would be too sparse."""
    if not rows or least_fill > 1 or not all(type(row) is dict and row for row in rows):
        return None
    shapes = dict.fromkeys(map(tuple, rows))
    if len(shapes) == 1:
        return list(rows[0])
    width = len({key for shape in shapes for key in shape})
    if sum(map(len, rows)) < least_fill * width * len(rows):
        return None
    before: TopologicalSorter[str] = TopologicalSorter()
    for shape in shapes:
        before.add(shape[0])
        for left, right in pairwise(shape):
            before.add(right, left)
    try:
        return list(before.static_order())
    except CycleError:
        return None


def _has_only_strings(values: Sequence[Any]) -> bool:
    """Whether there are no numbers, but several strings that look like numbers."""
    seen = 0
    pending = list(values)
    while pending:
        value = pending.pop()
        kind = type(value)
        if kind is JsonNumber:
            return False
        if kind is str:
            seen += value[-1:].isdigit() and NUMBER.fullmatch(value) is not None
        elif kind is list:
            pending += value
        elif kind is dict:
            pending += value.values()
    return seen > 1


def _join_path(path: str, key: str) -> str:
    return f"{path}.{_write_key(key)}" if path else _write_key(key)
