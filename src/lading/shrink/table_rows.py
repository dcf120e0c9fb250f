"""Summarize the columns of a table, find rows with odd values in them, and sample the rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from lading.shrink import Count, Shrunk, Wish
from lading.shrink.keeping import Line, Lines, Rank, keep, rank_lines

_NUMBER = re.compile(r"-?[0-9]{1,30}(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?")
_FEWEST_ROWS = 8
_ODD_SHARE = 0.01
_NUMBERS_SHARE = 0.9
_FEW_VALUES = 6
_KIND_SHARE = 0.1
"""A column with fewer different values than this share of its rows is one of kinds."""
_FAR = 3.0
"""A number is odd when it lies so many times the middle half's spread outside the middle half."""


class Column(Struct, frozen=True):
    """A column of a table; ``read_column`` makes it."""

    name: str
    cells: Sequence[str]
    seen: Counter[str]
    numbers: list[tuple[float, str]]
    """Different cells that are numbers, in rising order; empty where less than nearly all of them are."""


def read_column(name: str, cells: Sequence[str]) -> Column:
    """Count the cells of a column, and read its numbers."""
    seen = Counter(cells)
    numbers = [(float(cell), cell) for cell in seen if _NUMBER.fullmatch(cell)]
    return Column(name, cells, seen, sorted(numbers) if len(numbers) >= _NUMBERS_SHARE * len(seen) else [])


def odd_rows(columns: Iterable[Column]) -> set[int]:
    """Find rows with a rare value in a column of few, a gap in a full column, or a number far off."""
    return {row for column in columns if len(column.cells) >= _FEWEST_ROWS for row in _find_odd(column)}


def summarize(columns: Iterable[Column]) -> str:
    """Give for each column its few values with their counts, the span of its numbers, or how many different values
    there are; nothing for a column of words that are all different."""
    described = ((column.name, _describe(column)) for column in columns)
    return "; ".join([f"{name} {words}" for name, words in described if words])


def rank_rows(
    head: str, columns: Sequence[Column], *, texts: Sequence[str], terms: Iterable[str], fewest: int = 0
) -> list[Line]:
    """Give the head of a table, a summary of its columns unless it has fewer rows than that, and its numbered rows,
    ranked by what is asked for, tells of errors, or is odd."""
    numbered = [f"{number}: {text}" for number, text in enumerate(texts, 1)]
    summary = summarize(columns) if len(texts) >= fewest else ""
    heads = [Line(text, Rank.HEAD, 0) for text in (head, summary) if text]
    return [*heads, *map(Line, numbered, rank_lines(numbered, terms, odd=odd_rows(columns)))]


def sample_rows(text: str, rows: Sequence[Line], *, form: str, wish: Wish, count: Count) -> Shrunk | None:
    """Keep as much of the rows as fits."""
    title = "Rows with their numbers"
    lines = Lines((), (), form, entries="headers", unnoted_from=0, most_chars=len(text), title=title)
    return keep(text, lines.with_rows(rows), wish=wish, count=count)


def _find_odd(column: Column) -> Iterable[int]:
    cells, seen = column.cells, column.seen
    rare = max(1, int(_ODD_SHARE * len(cells)))
    is_kinds = len(seen) <= max(3, _KIND_SHARE * len(cells))
    odd = {cell for cell, times in seen.items() if times <= rare and (is_kinds or cell in ("", "null"))}
    if not is_kinds:
        odd |= _far_off(column.numbers)
    return [row for row, cell in enumerate(cells) if cell in odd] if odd else ()


def _far_off(numbers: Sequence[tuple[float, str]]) -> set[str]:
    if len(numbers) < _FEWEST_ROWS:
        return set()
    low, high = numbers[len(numbers) // 4][0], numbers[3 * len(numbers) // 4][0]
    far = _FAR * (high - low)
    return {cell for number, cell in numbers if not low - far <= number <= high + far}


def _describe(column: Column) -> str:
    cells, seen = column.cells, column.seen
    if len(seen) <= _FEW_VALUES and len(seen) < len(cells):
        return ", ".join([f"{cell or 'empty'} x{times:,}" for cell, times in seen.most_common()])
    if column.numbers:
        return f"{column.numbers[0][1]}..{column.numbers[-1][1]}"
    return f"{len(seen):,} different" if len(seen) < len(cells) else ""
