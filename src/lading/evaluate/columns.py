"""Find tables in a text and the header above each cell: rows with tabs, bars, commas or semicolons under a row of
names. With commas, quoted or bracketed text is one cell, and a row of names may be written as ``orders[3]:
id,customer.name,items[sku,qty],kind=user``: three rows follow, ``kind`` has no column."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import NamedTuple

DELIMITERS = "\t|,;"
MOST_LINE_CHARS = 4_000
"""Longer lines are not treated as rows."""
_COUNTED = re.compile(r"[^\n\[\]]{0,200}\[(\d{1,7})\]: ")
_NAME = re.compile(
    r"""[ "']*([^\W\d]\w*(?:[ .-]\w+)*|\*)[ "']*(\[[^\]=]{0,400}\])?\??(?::str)?(=.*)?[ ]*""", re.DOTALL
)
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{(]|[\]})]|,', re.DOTALL)
_NO_WORD = re.compile(r"\W+")


class _Table(NamedTuple):
    delimiter: str
    names: tuple[str, ...]


class Columns:
    """The tables of a text; each line is read once for each delimiter."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._starts = [0, *accumulate(len(line) + 1 for line in self._lines)]
        self._tables: dict[int, _Table] = {}
        for delimiter in reversed(DELIMITERS):
            if delimiter in text:
                self._find_rows(delimiter)

    def find_header(self, position: int) -> str:
        """Return the header of the column that holds a character; empty where there is none."""
        row = bisect_right(self._starts, position) - 1
        table = self._tables.get(row)
        if table is None:
            return ""
        cell = bisect_left(_find_borders(self._lines[row], table.delimiter), position - self._starts[row])
        return table.names[cell] if cell < len(table.names) else ""

    def _find_rows(self, delimiter: str) -> None:
        """Record the rows under each row of names."""
        table, cells, counted = None, 0, 0
        for row, line in enumerate(self._lines):
            here = len(_find_borders(line, delimiter)) + 1 if line and len(line) <= MOST_LINE_CHARS else 0
            is_row = table is not None and (counted > 0 or here == cells) and 0 < here <= cells
            if is_row and table is not None:
                self._tables[row] = table
                counted -= 1
                continue
            match = _COUNTED.match(line) if delimiter == "," and here else None
            names = _parse_names(line[match.end() if match else 0 :], delimiter) if here > 1 or match else ()
            table, cells = (_Table(delimiter, names), len(names)) if names else (None, 0)
            counted = int(match[1]) if match and names else 0


def _find_borders(line: str, delimiter: str) -> list[int]:
    """Return the positions where cells end, except the last."""
    if delimiter != ",":
        return [at for at, char in enumerate(line) if char == delimiter] if delimiter in line else []
    borders: list[int] = []
    depth = 0
    for match in _STRUCTURE.finditer(line):
        if match[0] == "," and not depth:
            borders.append(match.start())
        elif match[0] in "[{(":
            depth += 1
        elif match[0] in ")]}":
            depth = max(depth - 1, 0)
    return borders


def _parse_names(line: str, delimiter: str) -> tuple[str, ...]:
    """Parse a row of names, all different; bars may close the row on both sides. Empty: this is no such row."""
    cells = [line[start:end] for start, end in _split_cells(line, delimiter)]
    is_closed = delimiter == "|" and len(cells) > 2 and not (cells[0].strip() or cells[-1].strip())
    inner = cells[1:-1] if is_closed else cells
    matches = [_NAME.fullmatch(cell) for cell in inner]
    names = [
        _NO_WORD.sub(" ", match[1] + (match[2] or "")).strip() for match in matches if match and match[3] is None
    ]
    if not all(matches) or len(set(names)) < len(names):
        return ()
    return ("", *names, "") if is_closed else tuple(names)


def _split_cells(line: str, delimiter: str) -> list[tuple[int, int]]:
    borders = _find_borders(line, delimiter)
    return list(zip([0, *(border + 1 for border in borders)], [*borders, len(line)], strict=True))
