"""Columns of a table in a few words, the rows that stand out in them, and a sample of all rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from lading.shrink import Count, Wish
from lading.shrink.keeping import HEAD, Lines, keep, ranked

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
    """A column of a table; ``column`` makes it."""

    name: str
    cells: Sequence[str]
    seen: Counter[str]
    numbers: list[tuple[float, str]]
    """Different cells that are numbers, from the least on; empty where less than nearly all of them are."""


def column(name: str, cells: Sequence[str]) -> Column:
    """A column of these cells."""
    seen = Counter(cells)
    numbers = [(float(cell), cell) for cell in seen if _NUMBER.fullmatch(cell)]
    return Column(name, cells, seen, sorted(numbers) if len(numbers) >= _NUMBERS_SHARE * len(seen) else [])


def odd_rows(columns: Iterable[Column]) -> set[int]:
    """Indices of rows with a rare value in a column of few, a gap in a full column, or a number far off."""
    return {row for column in columns if len(column.cells) >= _FEWEST_ROWS for row in _odd(column)}


def summary(columns: Iterable[Column]) -> str:
    """What stands in each column: its few values with their counts, the span of its numbers, or how many
    different values there are; nothing of a column of words that are all different."""
    said = [(column.name, _described(column)) for column in columns]
    return "; ".join([f"{name} {words}" for name, words in said if words])


class Row(NamedTuple):
    """A line of a sample."""

    text: str
    rank: int
    size: int
    """1; 0 for what heads rows."""


def rows(
    head: str, columns: Sequence[Column], *, texts: Sequence[str], terms: Iterable[str], fewest: int = 0
) -> list[Row]:
    """A table: its head, what stands in its columns unless it has fewer rows than that, and its rows with their
    numbers, ranked by what is asked for, tells of errors, or is odd."""
    numbered = [f"{number}: {text}" for number, text in enumerate(texts, 1)]
    told = summary(columns) if len(texts) >= fewest else ""
    heads = [Row(text, HEAD, 0) for text in (head, told) if text]
    ranks = ranked(numbered, terms, odd=odd_rows(columns))
    return heads + [Row(text, rank, 1) for text, rank in zip(numbered, ranks, strict=True)]


def sampled(text: str, found: Sequence[Row], *, wish: Wish, count: Count) -> str | None:
    """As much of the rows as ``keeping.keep`` keeps of them."""
    lines = Lines(
        [row.text for row in found],
        [row.rank for row in found],
        [row.size for row in found],
        entries="headers",
        unnoted_from=0,
        most_chars=len(text),
        title="Rows with their numbers",
    )
    return keep(text, lines, wish=wish, count=count)


def _odd(column: Column) -> Iterable[int]:
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


def _described(column: Column) -> str:
    cells, seen = column.cells, column.seen
    if len(seen) <= _FEW_VALUES and len(seen) < len(cells):
        return ", ".join([f"{cell or 'empty'} x{times:,}" for cell, times in seen.most_common()])
    if column.numbers:
        return f"{column.numbers[0][1]}..{column.numbers[-1][1]}"
    return f"{len(seen):,} different" if len(seen) < len(cells) else ""
