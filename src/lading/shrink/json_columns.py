"""Write JSON as columns: keys once in a header, one line a row, nested objects, lists and maps in the same way.

A document is made of blocks. ``path: value`` is one value. ``path[3]: id,name,address.city,items[sku,qty]`` is
a table of three rows, which follow as lines; without a header after the colon each line is a value. In a header

- ``address.city`` is a key of an object, ``items[sku,qty]`` a list of rows, ``*`` the key of a map's entry;
- ``kind=user`` is the same in every row, ``id=*`` equals the entry's key;
- ``zip:str`` says that numbers in this column are strings, ``note?`` that an empty cell is null.

Any other empty cell is a key that is missing; empty cells at the end of a row are left off. Strings stand bare
where nothing in them can be misread, else as JSON strings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

from msgspec import Struct

from lading.shrink.json_reading import MISSING, NUMBER, SURROGATE, Number

LEAST_FILL = 0.3
"""The share of cells that must be filled in a table; what is sparser is written with its keys."""
ENTRY_FILL = 0.5
"""The same for the entries of a map."""

_UNSAFE = r"\x00-\x1f\x7f\x85\xa0\u2028\u2029\ud800-\udfff"
_BARE = re.compile(rf'(?![\s"])[^,;\[\]{{}}{_UNSAFE}]*(?<!\s)')
_BARE_KEY = re.compile(rf'(?!\s)[^".,;:=?*\[\]{{}}{_UNSAFE}]+(?<!\s)')
_NAMES = frozenset(("true", "false", "null", "*"))
_encode: Callable[[str], str] = json.encoder.encode_basestring
"""Write a string as JSON, other scripts as they are. Surrogates must be escaped, see ``as_string``."""


class Leaf(Struct, frozen=True):
    """A column of a table."""

    name: str
    cells: list[str]
    """A cell for each row."""
    constant: str = ""
    """The value of every row, in the header instead of the cells."""

    @property
    def head(self) -> str:
        """Its part of the header."""
        return f"{self.name}={self.constant}" if self.constant else self.name


class Block(Struct, frozen=True):
    """A line of a document and the rows beneath it."""

    path: str
    said: str
    """Follows the path: a value, or how many rows there are."""
    header: str = ""
    """Of a table."""
    rows: Sequence[str] = ()
    leaves: Sequence[Leaf] = ()
    """The columns of a table without those of one value, which the header alone has."""

    @property
    def head(self) -> str:
        """The line above the rows."""
        return f"{self.path}{self.said}{self.header}"


def make_document(value: Any) -> list[Block]:
    """Make the document of a value that ``json_reading.read`` gave."""
    holding: set[int] = set()
    _find_tables(value, holding)
    return list(_document("", value, holding))


def write_document(document: Iterable[Block]) -> str:
    """Write the blocks as text."""
    return "\n".join(line for block in document for line in (block.head, *block.rows))


def write_json(value: Any) -> str:
    """Write a value that ``json_reading.read`` gave, as JSON without spaces."""
    return _write(value, as_string, as_string)


def as_string(text: str) -> str:
    """Write a string as JSON."""
    return json.dumps(text) if SURROGATE.search(text) else _encode(text)


def _write(value: Any, string: Callable[[str], str], key: Callable[[str], str]) -> str:
    kind = type(value)
    if kind is str:
        return string(value)
    if kind is Number:
        literal: str = value.literal
        return literal
    if kind is dict:
        return "{" + ",".join([f"{key(name)}:{_write(item, string, key)}" for name, item in value.items()]) + "}"
    if kind is list:
        return "[" + ",".join([_write(item, string, key) for item in value]) + "]"
    return "null" if value is None else "true" if value else "false"


def _cell(value: Any, strings_only: bool = False) -> str:
    """Write a value in a cell; with ``strings_only`` it has no numbers, and what looks like one is bare."""
    return _write(value, _string_alone if strings_only else _string, _key)


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else as_string(key)


def _string_alone(text: str) -> str:
    """Write a string where there are no numbers."""
    return as_string(text) if not text or not _BARE.fullmatch(text) or text in _NAMES else text


def _string(text: str) -> str:
    return f'"{text}"' if NUMBER.fullmatch(text) else _string_alone(text)


def _document(path: str, value: Any, holding: Collection[int]) -> Iterable[Block]:
    if type(value) is dict and value:
        if (entries := _as_map([value])) is not None:
            yield _table(path, list(value.values()), list(value), entries)
            return
        if not path or id(value) in holding:
            for key, item in value.items():
                yield from _document(_join(path, key), item, holding)
            return
    if type(value) is list and any(type(item) in (dict, list) for item in value):
        order = _order(value, LEAST_FILL)
        if order is not None:
            yield _table(path, value, None, order)
        else:
            yield Block(path, f"[{len(value)}]:", "", [_cell(item) for item in value])
        return
    strings_only = _has_only_strings([value])
    yield Block(path, f"{':str' if strings_only else ''}: {_cell(value, strings_only)}")


def _find_tables(value: Any, holding: set[int]) -> bool:
    """Add the identities of objects with something inside that can be a table; tell whether this is one."""
    if type(value) is list:
        found = [_find_tables(item, holding) for item in value]
        return any(found) or sum(type(item) is dict for item in value) > 1
    if type(value) is not dict or not value:
        return False
    found = [_find_tables(item, holding) for item in value.values()]
    if any(found) or _as_map([value]) is not None:
        holding.add(id(value))
    return id(value) in holding


def _table(path: str, rows: Sequence[Any], keys: list[str] | None, order: Sequence[str]) -> Block:
    leaves, texts = _make_columns(rows, keys, order)
    header = ",".join([leaf.head for leaf in leaves])
    return Block(path, f"[{len(rows)}]: ", header, texts, [leaf for leaf in leaves if not leaf.constant])


def _make_columns(
    rows: Sequence[Any], keys: list[str] | None, order: Sequence[str]
) -> tuple[list[Leaf], list[str]]:
    """Make the columns of a table, the keys of a map's entries first, and write its rows."""
    leaves = [] if keys is None else [Leaf("*", [_string_alone(key) for key in keys])]
    leaves += _object("", rows, order, keys)
    if sum(not leaf.constant for leaf in leaves) > 1:
        leaves = [_without_nulls(leaf) for leaf in leaves]
    texts = _write_rows(leaves)
    if not all(texts):
        # A row without a filled cell could not be told from no row.
        leaves = [Leaf(leaf.name, leaf.cells) for leaf in leaves]
        texts = _write_rows(leaves)
    return leaves, texts


def _without_nulls(leaf: Leaf) -> Leaf:
    if leaf.constant or "null" not in leaf.cells or "" in leaf.cells:
        return leaf
    return Leaf(f"{leaf.name}?", ["" if cell == "null" else cell for cell in leaf.cells])


def _write_rows(leaves: Sequence[Leaf]) -> list[str]:
    cells = [leaf.cells for leaf in leaves if not leaf.constant]
    if not cells:
        return [""]
    return [row.rstrip(",") or row for row in map(",".join, zip(*cells, strict=True))]


def _object(path: str, rows: Sequence[Any], order: Sequence[str], keys: list[str] | None = None) -> list[Leaf]:
    leaves: list[Leaf] = []
    for key in order:
        name = _join(path, key)
        values = [MISSING if row is MISSING else row.get(key, MISSING) for row in rows]
        leaves += [Leaf(name, [], "*")] if values == keys else _column(name, values)
    return leaves


def _column(path: str, values: list[Any]) -> list[Leaf]:
    kinds = set(map(type, values))
    if dict in kinds:
        objects = [value for value in values if type(value) is dict and value]
        order = _order(objects, LEAST_FILL * len(values) / max(len(objects), 1))
        entries = _as_map(objects, order) if list not in kinds else None
        if entries is not None:
            return [_nested(path, values, entries)]
        if order is not None:
            own = [MISSING if type(value) is dict and value else value for value in values]
            parts = [value if type(value) is dict and value else MISSING for value in values]
            first = [] if all(value is MISSING for value in own) else [_plain(path, own)]
            return first + _object(path, parts, order)
    elif list in kinds:
        items = [item for value in values if type(value) is list for item in value]
        order = _order(items, LEAST_FILL)
        if order is not None:
            return [_nested(path, values, order)]
    return [_plain(path, values)]


def _plain(path: str, values: list[Any]) -> Leaf:
    strings_only = _has_only_strings(values)
    cells = ["" if value is MISSING else _cell(value, strings_only) for value in values]
    if len(cells) > 1 and cells[0] and cells.count(cells[0]) == len(cells):
        cells = [_cell(value) for value in values]
        return Leaf(path, cells, cells[0])
    return Leaf(f"{path}:str" if strings_only else path, cells)


def _nested(path: str, values: Sequence[Any], order: Sequence[str]) -> Leaf:
    """Write a column of lists of rows, or of maps; all rows share one header."""
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
            cells.append("" if value is MISSING else _cell(value))
    return Leaf(f"{path}[{','.join([leaf.head for leaf in leaves])}]", cells)


def _as_map(objects: Sequence[dict[str, Any]], order: Sequence[str] | None = None) -> list[str] | None:
    """Find the shared keys of the entries, where the objects are maps of similar objects and not one shape;
    ``order`` are the keys of that shape, if there is one."""
    entries = [item for value in objects for item in value.values()]
    if len(entries) < 2 or not all(type(item) is dict for item in entries):
        return None
    shared = _order(entries, ENTRY_FILL)
    if shared is None or (order is not None and len(objects) > 1 and len(entries) > len(order) * len(shared)):
        return None
    return shared


def _order(rows: Sequence[Any], least_fill: float) -> list[str] | None:
    """Order the keys of the rows as in every row; None where there is no such order, the rows are not all objects
    with keys, or the table would be too sparse."""
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
    """Tell whether there are no numbers, but several strings that look like one."""
    seen = 0
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if kind is Number:
            return False
        if kind is str:
            seen += value[-1:].isdigit() and NUMBER.fullmatch(value) is not None
        elif kind is list:
            waiting += value
        elif kind is dict:
            waiting += value.values()
    return seen > 1


def _join(path: str, key: str) -> str:
    return f"{path}.{_key(key)}" if path else _key(key)
