"""Shrink tables as text: CSV, semicolons, tabs, bars."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import repeat
from typing import Final

from lading.shrink import Count, Sample, Shrinker, Shrunk, Wish
from lading.shrink.keeping import Line, rank_lines
from lading.shrink.padding import pad, unpad
from lading.shrink.table_rows import rank_rows, read_column, sample_rows

_CELL_MARKS = (
    (re.compile(r"\t"), 1),
    (re.compile(r"\|"), 2),
    (re.compile(r",(?! )"), 2),
    (re.compile(r";(?! )"), 2),
)
"""What stands between cells, and how often at least in a row."""
_MARKS = "\t|,;"
_SAMPLED_LINES = 200
_FEWEST_COLUMNS = 2
"""So many stay, so that the marks between them do."""
_LEAST_SHARE = 0.6
_NUMBER = re.compile(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")
_RULES = "-+=:| \t"
"""Of nothing else a line is made that stands between rows."""
_CELL = r'(?:^|{mark})("(?:[^"]|"")*+"|[^{mark}]*)'
_CONSTANT = re.compile(r'[^"=\r\n\t|,;]*')

_QUOTED_BY: Final[dict[str, Callable[[str], bool]]] = {
    "columns": lambda cell: False,  # noqa: ARG005
    "all": lambda cell: True,  # noqa: ARG005
    "words": lambda cell: bool(cell) and _NUMBER.fullmatch(cell) is None,
}
"""Which cells without quotes had some, by the last part of the form's name."""


def _is_table(sample: Sample) -> bool:
    """Recognise rows of equally many cells."""
    if len(sample.lines) < 3:
        return False
    return any(_has_columns(sample.lines, mark, least) for mark, least in _CELL_MARKS)


def _has_columns(lines: Sequence[str], mark: re.Pattern[str], least: int) -> bool:
    counts = [len(mark.findall(line.strip())) for line in lines]
    commonest = max(set(counts), key=lambda count: (counts.count(count), count))
    return commonest >= least and counts.count(commonest) >= 0.7 * len(lines)


def _reshape(text: str) -> Iterable[Shrunk]:
    """Leave out the spaces that align bars; or quotes that are not needed, and write what is the same in every row
    in the header, as ``country=USA``."""
    mark = _mark(text)
    if mark == "|":
        short = unpad(text)
        if short is not None:
            yield Shrunk(short, "table.padding", True)
    elif mark and (table := _table(text, mark)) is not None:
        quoting = _quoting(table)
        short = _fold(text, mark, table, _QUOTED_BY[quoting])
        if short != text and _unfold(short, quoting) == text:
            yield Shrunk(short, f"table.{quoting}", True)


def _reduce(text: str, wish: Wish, count: Count) -> Shrunk | None:
    """Keep the header, a summary of each column, and of the rows the first and last, those that are asked for or
    tell of errors, and odd ones, with their numbers."""
    mark = _mark(text)
    records = [cells for record in _records(text) if (cells := _bare_cells(record, mark))] if mark else []
    if not records:
        return None
    width = Counter(map(len, records)).most_common(1)[0][0]
    start = next(at for at, cells in enumerate(records) if len(cells) == width)
    header, body = records[start], records[start + 1 :]
    columns = [
        read_column(name, [row[at] if at < len(row) else "" for row in body]) for at, name in enumerate(header)
    ]
    above = [mark.join(cells) for cells in records[:start]]
    rows = [*map(Line, above, rank_lines(above, wish.terms), repeat(0))]
    rows += rank_rows(mark.join(header), columns, texts=[mark.join(cells) for cells in body], terms=wish.terms)
    return sample_rows(text, rows, form="table.sampled", wish=wish, count=count)


def _mark(text: str) -> str:
    """Find the mark between the cells of most lines; empty where lines differ in how often they have it."""
    mark = _commonest_mark(text)
    counts = Counter(line.count(mark) for line in _sample(text))
    marks, times = counts.most_common(1)[0] if counts else (0, 0)
    return mark if marks and counts.total() > 2 and times >= _LEAST_SHARE * counts.total() else ""


def _commonest_mark(text: str) -> str:
    lines = _sample(text)
    return max(_MARKS, key=lambda mark: sum(mark in line for line in lines))


def _sample(text: str) -> list[str]:
    return [line for line in text.split("\n", _SAMPLED_LINES)[:_SAMPLED_LINES] if line.strip()]


def _newline(text: str) -> str:
    return "\r\n" if text.count("\r\n") == text.count("\n") else "\n"


def _records(text: str) -> list[str]:
    """Split into lines; join those between which a quoted cell goes on."""
    newline = _newline(text)
    if '"' not in text:
        return text.split(newline)
    records: list[str] = []
    parts: list[str] = []
    is_open = False
    for line in text.split(newline):
        parts.append(line)
        is_open ^= line.count('"') % 2 == 1
        if not is_open:
            records.append(newline.join(parts))
            parts = []
    return records if not is_open else text.split(newline)


def _split(record: str, mark: str) -> list[str] | None:
    """Split into cells as they are written; None where quotes do not enclose whole cells."""
    if '"' not in record:
        return record.split(mark)
    cells: list[str] = re.findall(_CELL.format(mark=re.escape(mark)), record)
    return cells if mark.join(cells) == record else None


def _bare_cells(record: str, mark: str) -> list[str]:
    """Split into cells without what aligns, quotes or frames them; none of a line that only rules."""
    if not record.strip(_RULES):
        return []
    if '"' in record:
        cells = [
            " ".join(_unquote(cell, mark, bool).split()) for cell in _split(record, mark) or record.split(mark)
        ]
    else:
        cells = list(map(str.strip, record.split(mark)))
    return cells[1:-1] if mark == "|" and len(cells) > 2 and not cells[0] and not cells[-1] else cells


def _table(text: str, mark: str) -> list[list[str]] | None:
    """Split into rows of cells as they are written; None where not all rows have as many."""
    newline = _newline(text)
    table: list[list[str]] = []
    for record in _records(text.removesuffix(newline)):
        cells = _split(record, mark)
        if cells is None or (table and len(cells) != len(table[0])):
            return None
        table.append(cells)
    return table if len(table) > 1 else None


def _quoting(table: Sequence[Sequence[str]]) -> str:
    """Choose which of ``_QUOTED_BY`` describes the quotes of the table."""
    cells = [cell for row in table[:_SAMPLED_LINES] for cell in row]
    if all(cell.startswith('"') for cell in cells):
        return "all"
    words = [cell for cell in cells if _QUOTED_BY["words"](cell)]
    return "words" if words and all(cell.startswith('"') for cell in words) else "columns"


def _fold(text: str, mark: str, table: list[list[str]], is_quoted: Callable[[str], bool]) -> str:
    newline = _newline(text)
    if '"' in text:
        table = [[_unquote(cell, mark, is_quoted) for cell in row] for row in table]
    header, *rows = table
    columns = list(zip(*rows, strict=True))
    same = [set(column) == {column[0]} and _CONSTANT.fullmatch(column[0]) is not None for column in columns]
    if same.count(False) < _FEWEST_COLUMNS:
        same = [False] * len(same)
    kept = list(zip(*[column for column, is_same in zip(columns, same, strict=True) if not is_same], strict=True))
    first = [
        f"{name}={column[0]}" if is_same else name
        for name, column, is_same in zip(header, columns, same, strict=True)
    ]
    return newline.join(map(mark.join, [first, *kept])) + (newline if text.endswith(newline) else "")


def _unfold(text: str, quoting: str) -> str:
    mark, is_quoted = _commonest_mark(text), _QUOTED_BY[quoting]
    newline = _newline(text)
    end = newline if text.endswith(newline) else ""
    header, *rows = [_split(record, mark) or [] for record in _records(text.removesuffix(end))]
    names = [name.partition("=") for name in header]
    table: list[Sequence[str]] = [header, *rows]
    if any(is_same for _, is_same, _ in names):
        cells = zip(*rows, strict=True)
        columns = [[same] * len(rows) if is_same else next(cells, ()) for _, is_same, same in names]
        table = [[name for name, _, _ in names], *zip(*columns, strict=True)]
    if quoting != "columns":
        table = [[_quote(cell, is_quoted) for cell in row] for row in table]
    return newline.join(map(mark.join, table)) + end


def _unquote(cell: str, mark: str, is_quoted: Callable[[str], bool]) -> str:
    bare = cell[1:-1]
    if len(cell) > 1 and cell[0] == cell[-1] == '"' and is_quoted(bare) and not _needs_quotes(bare, mark):
        return bare
    return cell


def _needs_quotes(bare: str, mark: str) -> bool:
    return mark in bare or '"' in bare or "\n" in bare or "\r" in bare


def _quote(cell: str, is_quoted: Callable[[str], bool]) -> str:
    return f'"{cell}"' if not cell.startswith('"') and is_quoted(cell) else cell


_DECODERS = {f"table.{quoting}": partial(_unfold, quoting=quoting) for quoting in _QUOTED_BY}
SHRINKER = Shrinker("table", _is_table, _reduce, _reshape, {"table.padding": pad, **_DECODERS})
