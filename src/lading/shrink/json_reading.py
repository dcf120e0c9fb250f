"""Read JSON, and the documents of ``json_columns``, and keep the spelling of every number."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn, TypeVar

from msgspec import UNSET, Struct

T = TypeVar("T")

MOST_LEVELS = 100
"""Maximum nesting of objects and lists."""
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
SURROGATE = re.compile("[\ud800-\udfff]")
MISSING: Final = object()
"""The value of a missing key."""

_OPENING = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[\[{\]}]', re.DOTALL)
_NAMES: Final = {"true": True, "false": False, "null": None}
_BARE_RUN = re.compile(r"[^,;\]}]*")
_KEY_RUN = re.compile(r'[^".,:=?\[\]{}]+')
_COUNT = re.compile(r"\[([0-9]+)\]: ?")
_QUOTED: Final = json.JSONDecoder()

_SAME = object()
"""The cell of a column that equals the key of its entry."""


class JsonNumber(Struct, frozen=True):
    """A number with its spelling: 1.0 remains 1.0, 1e5 remains 1e5. It equals no string."""

    literal: str


class _HeaderColumn(Struct, frozen=True):
    """A column as described in the header."""

    path: tuple[str, ...]
    """The keys that lead to its value; empty for the key of a map's entry."""
    strings_only: bool = False
    empty_is_null: bool = False
    constant: Any = UNSET
    columns: tuple[_HeaderColumn, ...] | None = None
    """The columns of the rows in its cells."""


def read(text: str) -> Any:
    """Read a value, with numbers as ``JsonNumber``. Raises ValueError for text that is not JSON, repeats a key,
    has NaN or Infinity, is nested deeper than ``MOST_LEVELS`` or has a surrogate that is not escaped."""
    if not text.isascii() and SURROGATE.search(text):
        raise ValueError("a surrogate is not escaped")
    _check_levels(text)
    return json.loads(
        text,
        parse_int=JsonNumber,
        parse_float=JsonNumber,
        parse_constant=_reject_constant,
        object_pairs_hook=_check_keys,
    )


def read_lines(text: str) -> list[Any]:
    """Read the values of JSON lines, without empty lines. Raises like ``read``, and for fewer than two values."""
    values = [read(line) for line in text.split("\n") if line.strip()]
    if len(values) < 2:
        raise ValueError("the text is not JSON lines")
    return values


def read_document(text: str) -> Any:
    """Read a document that ``json_columns`` wrote. Raises ValueError or IndexError for other text."""
    lines = text.split("\n")
    root: Any = MISSING
    number = 0
    while number < len(lines):
        path, rest = _read_path(lines[number], 0)
        count = _COUNT.match(lines[number], rest)
        number += 1
        if count is None:
            strings_only = lines[number - 1].startswith(":str", rest)
            start = rest + (4 if strings_only else 0) + 2
            value = _read_value(lines[number - 1], start, strings_only)[0]
        else:
            rows = lines[number : number + int(count[1])]
            number += len(rows)
            value = _read_table(rows, lines[number - len(rows) - 1][count.end() :])
        root = _set_value(root, path, value)
    return root


def read_rows(text: str) -> Any:
    """Read a single table: its header, and one line per row. Raises like ``read_document``."""
    header, *rows = text.split("\n")
    return _read_table(rows, header)


def _set_value(root: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    root = {} if root is MISSING else root
    place = root
    for key in path[:-1]:
        place = place.setdefault(key, {})
    place[path[-1]] = value
    return root


def _read_table(lines: Sequence[str], head: str) -> Any:
    if not head:
        return [_read_value(line, 0, False)[0] for line in lines]
    columns, _ = _read_separated(head, 0, mark=",", read=_read_column)
    return _collect_rows([_read_row(line, 0, columns)[0] for line in lines], columns)


def _collect_rows(rows: list[tuple[str, Any]], columns: Sequence[_HeaderColumn]) -> Any:
    """Make a list of the rows, or a map if they are its entries."""
    return dict(rows) if columns[0].path == () else [row for _, row in rows]


def _read_row(text: str, at: int, columns: Sequence[_HeaderColumn]) -> tuple[tuple[str, Any], int]:
    """Read key and value of the row that starts at ``at``; return them and the index of its end."""
    key = ""
    row: Any = MISSING
    first = True
    for column in columns:
        cell = column.constant
        if cell is UNSET:
            at += not first and text.startswith(",", at)
            first = False
            cell, at = _read_cell(text, at, column)
        if column.path == ():
            key = cell
        elif cell is not MISSING:
            row = _set_value(row, column.path, key if cell is _SAME else cell)
    return (key, row), at


def _read_cell(text: str, at: int, column: _HeaderColumn) -> tuple[Any, int]:
    if at >= len(text) or text[at] in ",;]":
        return (None if column.empty_is_null else MISSING), at
    if column.columns is None or text[at] != "[":
        return _read_value(text, at, column.strings_only)
    rows: list[tuple[str, Any]] = []
    at += 1
    while text[at] != "]":
        row, at = _read_row(text, at, column.columns)
        rows.append(row)
        at += text[at] == ";"
    return _collect_rows(rows, column.columns), at + 1


def _read_value(text: str, at: int, strings_only: bool) -> tuple[Any, int]:
    mark = text[at : at + 1]
    if mark == '"':
        return _QUOTED.raw_decode(text, at)
    if mark == "[":
        return _read_list(text, at + 1, strings_only)
    if mark == "{":
        return _read_object(text, at + 1, strings_only)
    run = _BARE_RUN.match(text, at)
    assert run is not None
    word = run[0]
    if word in _NAMES:
        return _NAMES[word], run.end()
    return (JsonNumber(word) if not strings_only and NUMBER.fullmatch(word) else word), run.end()


def _read_list(text: str, at: int, strings_only: bool) -> tuple[list[Any], int]:
    found = []
    while text[at] != "]":
        value, at = _read_value(text, at, strings_only)
        found.append(value)
        at += text[at] == ","
    return found, at + 1


def _read_object(text: str, at: int, strings_only: bool) -> tuple[dict[str, Any], int]:
    found = {}
    while text[at] != "}":
        key, at = _read_key(text, at)
        found[key], at = _read_value(text, at + 1, strings_only)
        at += text[at] == ","
    return found, at + 1


def _read_key(text: str, at: int) -> tuple[str, int]:
    if text.startswith('"', at):
        key, end = _QUOTED.raw_decode(text, at)
        return str(key), end
    run = _KEY_RUN.match(text, at)
    if run is None:
        raise ValueError(f"no key at {at}")
    return run[0], run.end()


def _read_path(text: str, at: int) -> tuple[tuple[str, ...], int]:
    return ((), at) if text[at : at + 1] in (":", "[", "") else _read_separated(text, at, mark=".", read=_read_key)


def _read_separated(
    text: str, at: int, *, mark: str, read: Callable[[str, int], tuple[T, int]]
) -> tuple[tuple[T, ...], int]:
    """Read items that are separated by ``mark``."""
    found: list[T] = []
    while True:
        item, at = read(text, at)
        found.append(item)
        if not text.startswith(mark, at):
            return tuple(found), at
        at += 1


def _read_column(text: str, at: int) -> tuple[_HeaderColumn, int]:
    if text.startswith("*", at):
        return _HeaderColumn((), strings_only=True), at + 1
    path, at = _read_path(text, at)
    columns = None
    if text.startswith("[", at):
        columns, at = _read_separated(text, at + 1, mark=",", read=_read_column)
        at += 1
    strings_only = text.startswith(":str", at)
    at += 4 if strings_only else 0
    empty_is_null = text.startswith("?", at)
    at += empty_is_null
    constant: Any = UNSET
    if text.startswith("=*", at):
        constant, at = _SAME, at + 2
    elif text.startswith("=", at):
        constant, at = _read_value(text, at + 1, False)
    return _HeaderColumn(path, strings_only, empty_is_null, constant, columns), at


def _check_levels(text: str) -> None:
    # Counted in the text, because the parser's own limit depends on the depth of the caller's stack.
    if text.count("{") + text.count("[") <= MOST_LEVELS:
        return
    level = 0
    for mark in _OPENING.findall(text):
        if mark in "[{":
            level += 1
            if level > MOST_LEVELS:
                raise ValueError("nested too deeply")
        elif mark in "]}":
            level -= 1


def _check_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is repeated")
    return found


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
