"""What ``json_columns`` wrote, back to JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from msgspec import UNSET, Struct

from lading.shrink.json_columns import MISSING, NUMBER
from lading.shrink.json_literals import Number

T = TypeVar("T")

_NAMES: Final = {"true": True, "false": False, "null": None}
_BARE_RUN = re.compile(r"[^,;\]}]*")
_KEY_RUN = re.compile(r'[^".,:=?\[\]{}]+')
_COUNT = re.compile(r"\[([0-9]+)\]: ?")
_QUOTED: Final = json.JSONDecoder()

_SAME = object()
"""The cell of a column that equals the key of its entry."""


class Column(Struct, frozen=True):
    """A column, as its header says."""

    path: tuple[str, ...]
    """The keys that lead to its value; empty for the key of a map's entry."""
    strings_only: bool = False
    empty_is_null: bool = False
    constant: Any = UNSET
    columns: tuple[Column, ...] | None = None
    """Those of the rows in its cells."""


def value_of(text: str) -> Any:
    """The value of a document, numbers as ``Number``. Raises ValueError or IndexError for what is none."""
    lines = text.split("\n")
    root: Any = MISSING
    number = 0
    while number < len(lines):
        path, rest = _path(lines[number], 0)
        count = _COUNT.match(lines[number], rest)
        number += 1
        if count is None:
            strings_only = lines[number - 1].startswith(":str", rest)
            start = rest + (4 if strings_only else 0) + 2
            value = _value(lines[number - 1], start, strings_only)[0]
        else:
            rows = lines[number : number + int(count[1])]
            number += len(rows)
            value = _rows(rows, lines[number - len(rows) - 1][count.end() :])
        root = _placed(root, path, value)
    return root


def rows_of(text: str) -> Any:
    """The value of a table alone: its header, and a line for each row. Raises like ``value_of``."""
    header, *rows = text.split("\n")
    return _rows(rows, header)


def _placed(root: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    root = {} if root is MISSING else root
    place = root
    for key in path[:-1]:
        place = place.setdefault(key, {})
    place[path[-1]] = value
    return root


def _rows(lines: Sequence[str], head: str) -> Any:
    if not head:
        return [_value(line, 0, False)[0] for line in lines]
    columns, _ = _separated(head, 0, mark=",", read=_column)
    return _gathered([_row(line, 0, columns)[0] for line in lines], columns)


def _gathered(rows: list[tuple[str, Any]], columns: Sequence[Column]) -> Any:
    """The rows as a list, or as the map that they are entries of."""
    return dict(rows) if columns[0].path == () else [row for _, row in rows]


def _row(text: str, at: int, columns: Sequence[Column]) -> tuple[tuple[str, Any], int]:
    """Key and value of the row that starts there, and where it ends."""
    key = ""
    row: Any = MISSING
    first = True
    for column in columns:
        cell = column.constant
        if cell is UNSET:
            at += not first and text.startswith(",", at)
            first = False
            cell, at = _cell(text, at, column)
        if column.path == ():
            key = cell
        elif cell is not MISSING:
            row = _placed(row, column.path, key if cell is _SAME else cell)
    return (key, row), at


def _cell(text: str, at: int, column: Column) -> tuple[Any, int]:
    if at >= len(text) or text[at] in ",;]":
        return (None if column.empty_is_null else MISSING), at
    if column.columns is None or text[at] != "[":
        return _value(text, at, column.strings_only)
    rows: list[tuple[str, Any]] = []
    at += 1
    while text[at] != "]":
        row, at = _row(text, at, column.columns)
        rows.append(row)
        at += text[at] == ";"
    return _gathered(rows, column.columns), at + 1


def _value(text: str, at: int, strings_only: bool) -> tuple[Any, int]:
    mark = text[at : at + 1]
    if mark == '"':
        return _QUOTED.raw_decode(text, at)
    if mark == "[":
        return _list(text, at + 1, strings_only)
    if mark == "{":
        return _object(text, at + 1, strings_only)
    run = _BARE_RUN.match(text, at)
    assert run is not None
    word = run[0]
    if word in _NAMES:
        return _NAMES[word], run.end()
    return (Number(word) if not strings_only and NUMBER.fullmatch(word) else word), run.end()


def _list(text: str, at: int, strings_only: bool) -> tuple[list[Any], int]:
    found = []
    while text[at] != "]":
        value, at = _value(text, at, strings_only)
        found.append(value)
        at += text[at] == ","
    return found, at + 1


def _object(text: str, at: int, strings_only: bool) -> tuple[dict[str, Any], int]:
    found = {}
    while text[at] != "}":
        key, at = _key(text, at)
        found[key], at = _value(text, at + 1, strings_only)
        at += text[at] == ","
    return found, at + 1


def _key(text: str, at: int) -> tuple[str, int]:
    if text.startswith('"', at):
        key, end = _QUOTED.raw_decode(text, at)
        return str(key), end
    run = _KEY_RUN.match(text, at)
    if run is None:
        raise ValueError(f"no key at {at}")
    return run[0], run.end()


def _path(text: str, at: int) -> tuple[tuple[str, ...], int]:
    return ((), at) if text[at : at + 1] in (":", "[", "") else _separated(text, at, mark=".", read=_key)


def _separated(
    text: str, at: int, *, mark: str, read: Callable[[str, int], tuple[T, int]]
) -> tuple[tuple[T, ...], int]:
    """What is read there one after the other, with that mark between."""
    found: list[T] = []
    while True:
        item, at = read(text, at)
        found.append(item)
        if not text.startswith(mark, at):
            return tuple(found), at
        at += 1


def _column(text: str, at: int) -> tuple[Column, int]:
    if text.startswith("*", at):
        return Column((), strings_only=True), at + 1
    path, at = _path(text, at)
    columns = None
    if text.startswith("[", at):
        columns, at = _separated(text, at + 1, mark=",", read=_column)
        at += 1
    strings_only = text.startswith(":str", at)
    at += 4 if strings_only else 0
    empty_is_null = text.startswith("?", at)
    at += empty_is_null
    constant: Any = UNSET
    if text.startswith("=*", at):
        constant, at = _SAME, at + 2
    elif text.startswith("=", at):
        constant, at = _value(text, at + 1, False)
    return Column(path, strings_only, empty_is_null, constant, columns), at
