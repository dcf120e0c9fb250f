"""Summarize the columns of a table, find rows with unusual values, and select rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from lading.shrink import Count, Shrunk, Target
from lading.shrink.line_selection import Rank, RankedLine, RankedLines, rank_lines, select_lines

_NUMBER = re.compile(r"-?[0-9]{1,30}(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?")
_FEWEST_ROWS = 8
_ODD_SHARE = 0.01
_NUMBERS_SHARE = 0.9
_FEW_VALUES = 6
_KIND_SHARE = 0.1
"""A column with fewer different values than this share of its rows has categories."""
_FAR = 3.0
"""A number is an outlier when it is this many interquartile ranges outside the middle half."""


class TableColumn(Struct, frozen=True):
    """A column of a table, made by ``read_column``."""

    name: str
    cells: Sequence[str]
    seen: Counter[str]
    numbers: list[tuple[float, str]]
    """The distinct numbers in ascending order; empty unless nearly all cells are numbers."""


def read_column(name: str, cells: Sequence[str]) -> TableColumn:
    """Count the cells of a column, and read its numbers."""
    seen = Counter(cells)
    numbers = [(float(cell), cell) for cell in seen if _NUMBER.fullmatch(cell)]
    return TableColumn(name, cells, seen, sorted(numbers) if len(numbers) >= _NUMBERS_SHARE * len(seen) else [])


def find_odd_rows(columns: Iterable[TableColumn]) -> set[int]:
    """Find rows with a rare category, a gap in a nearly full column, or an outlier."""
    return {row for column in columns if len(column.cells) >= _FEWEST_ROWS for row in _find_odd(column)}


def summarize(columns: Iterable[TableColumn]) -> str:
    """Summarize each column by its few values with counts, the range of its numbers, or the number of distinct
    values; leave out columns of words that are all distinct."""
    described = ((column.name, _describe(column)) for column in columns)
    return "; ".join([f"{name} {words}" for name, words in described if words])


def rank_rows(
    head: str, columns: Sequence[TableColumn], *, texts: Sequence[str], terms: Iterable[str], fewest: int = 0
) -> list[RankedLine]:
    """Return the header of a table, a summary of its columns if it has at least ``fewest`` rows, and its numbered
    rows, ranked by terms, errors and unusual values."""
    numbered = [f"{number}: {text}" for number, text in enumerate(texts, 1)]
    summary = summarize(columns) if len(texts) >= fewest else ""
    heads = [RankedLine(text, Rank.HEAD, 0) for text in (head, summary) if text]
    return [*heads, *map(RankedLine, numbered, rank_lines(numbered, terms, odd=find_odd_rows(columns)))]


def sample_rows(text: str, rows: Sequence[RankedLine], *, form: str, target: Target, count: Count) -> Shrunk | None:
    """Keep as many rows as fit."""
    title = "Rows with their numbers"
    lines = RankedLines((), (), form, entries="headers", unnoted_from=0, most_chars=len(text), title=title)
    return select_lines(text, lines.with_rows(rows), target=target, count=count)


def _find_odd(column: TableColumn) -> Iterable[int]:
    cells, seen = column.cells, column.seen
    rare = max(1, int(_ODD_SHARE * len(cells)))
    is_kinds = len(seen) <= max(3, _KIND_SHARE * len(cells))
    odd = {cell for cell, times in seen.items() if times <= rare and (is_kinds or cell in ("", "null"))}
    if not is_kinds:
        odd |= _find_outliers(column.numbers)
    return [row for row, cell in enumerate(cells) if cell in odd] if odd else ()


def _find_outliers(numbers: Sequence[tuple[float, str]]) -> set[str]:
    if len(numbers) < _FEWEST_ROWS:
        return set()
    low, high = numbers[len(numbers) // 4][0], numbers[3 * len(numbers) // 4][0]
    far = _FAR * (high - low)
    return {cell for number, cell in numbers if not low - far <= number <= high + far}


def _describe(column: TableColumn) -> str:
    cells, seen = column.cells, column.seen
    if len(seen) <= _FEW_VALUES and len(seen) < len(cells):
        return ", ".join([f"{cell or 'empty'} x{times:,}" for cell, times in seen.most_common()])
    if column.numbers:
        return f"{column.numbers[0][1]}..{column.numbers[-1][1]}"
    return f"{len(seen):,} different" if len(seen) < len(cells) else ""
