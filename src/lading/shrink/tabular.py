"""Shrink text tables whose cells are separated by commas, semicolons, tabs or bars."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import repeat
from typing import Final

from lading.shrink import Count, Sample, Shrinker, Shrunk, Target
from lading.shrink.line_selection import RankedLine, rank_lines
from lading.shrink.padding import pad, unpad
from lading.shrink.table_rows import rank_rows, read_column, sample_rows

_CELL_MARKS = (
    (re.compile(r"\t"), 1),
    (re.compile(r"\|"), 2),
    (re.compile(r",(?! )"), 2),
    (re.compile(r";(?! )"), 2),
)
"""Separators of cells, and their minimum number in a row."""
_MARKS = "\t|,;"
_SAMPLED_LINES = 200
_FEWEST_COLUMNS = 2
"""Minimum number of columns that remain, so that the separators do."""
_LEAST_SHARE = 0.6
_NUMBER = re.compile(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")
_RULES = "-+=:| \t"
"""The only characters in a ruler between rows."""
_CELL = r'(?:^|{mark})("(?:[^"]|"")*+"|[^{mark}]*)'
_CONSTANT = re.compile(r'[^"=\r\n\t|,;]*')

_QUOTED_BY: Final[dict[str, Callable[[str], bool]]] = {
    "columns": lambda cell: False,  # noqa: ARG005
    "all": lambda cell: True,  # noqa: ARG005
    "words": lambda cell: bool(cell) and _NUMBER.fullmatch(cell) is None,
}
"""Predicates for the unquoted cells that were quoted originally, by the last part of the form's name."""


def _is_table(sample: Sample) -> bool:
    """Whether most lines have the same number of cells."""
    if len(sample.lines) < 3:
        return False
    return any(_has_columns(sample.lines, mark, least) for mark, least in _CELL_MARKS)


def _has_columns(lines: Sequence[str], mark: re.Pattern[str], least: int) -> bool:
    counts = [len(mark.findall(line.strip())) for line in lines]
    commonest = max(set(counts), key=lambda count: (counts.count(count), count))
    return commonest >= least and counts.count(commonest) >= 0.7 * len(lines)


def _reshape(text: str) -> Iterable[Shrunk]:
    """Leave out padding between bars; or leave out needless quotes, and move values that are equal in every row
    into the header, as ``country=USA``."""
    mark = _find_separator(text)
    if mark == "|":
        short = unpad(text)
        if short is not None:
            yield Shrunk(short, "table.padding", True)
    elif mark and (table := _read_table(text, mark)) is not None:
        quoting = _detect_quoting(table)
        short = _fold(text, mark, table, _QUOTED_BY[quoting])
        if short != text and _unfold(short, quoting) == text:
            yield Shrunk(short, f"table.{quoting}", True)


def _reduce(text: str, target: Target, count: Count) -> Shrunk | None:
    """Keep header, column summaries, and numbered rows: first, last, unusual ones, those with terms or errors."""
    mark = _find_separator(text)
    records = [cells for record in _split_records(text) if (cells := _read_cells(record, mark))] if mark else []
    if not records:
        return None
    width = Counter(map(len, records)).most_common(1)[0][0]
    start = next(at for at, cells in enumerate(records) if len(cells) == width)
    header, body = records[start], records[start + 1 :]
    columns = [
        read_column(name, [row[at] if at < len(row) else "" for row in body]) for at, name in enumerate(header)
    ]
    above = [mark.join(cells) for cells in records[:start]]
    rows = [*map(RankedLine, above, rank_lines(above, target.terms), repeat(0))]
    rows += rank_rows(mark.join(header), columns, texts=[mark.join(cells) for cells in body], terms=target.terms)
    return sample_rows(text, rows, form="table.sampled", target=target, count=count)


def _find_separator(text: str) -> str:
    """Find the separator of the cells; empty when its number varies between lines."""
    mark = _find_commonest_separator(text)
    counts = Counter(line.count(mark) for line in _sample_lines(text))
    marks, times = counts.most_common(1)[0] if counts else (0, 0)
    return mark if marks and counts.total() > 2 and times >= _LEAST_SHARE * counts.total() else ""


def _find_commonest_separator(text: str) -> str:
    lines = _sample_lines(text)
    return max(_MARKS, key=lambda mark: sum(mark in line for line in lines))


def _sample_lines(text: str) -> list[str]:
    return [line for line in text.split("\n", _SAMPLED_LINES)[:_SAMPLED_LINES] if line.strip()]


def _find_newline(text: str) -> str:
    return "\r\n" if text.count("\r\n") == text.count("\n") else "\n"


def _split_records(text: str) -> list[str]:
    """Split into lines, and join lines that one quoted cell spans."""
    newline = _find_newline(text)
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


def _split_cells(record: str, mark: str) -> list[str] | None:
    """Split into cells, unchanged. None when quotes do not enclose whole cells."""
    if '"' not in record:
        return record.split(mark)
    cells: list[str] = re.findall(_CELL.format(mark=re.escape(mark)), record)
    return cells if mark.join(cells) == record else None


def _read_cells(record: str, mark: str) -> list[str]:
    """Split into cells without padding, quotes and frames; no cells for a ruler."""
    if not record.strip(_RULES):
        return []
    if '"' in record:
        cells = [
            " ".join(_unquote(cell, mark, bool).split())
            for cell in _split_cells(record, mark) or record.split(mark)
        ]
    else:
        cells = list(map(str.strip, record.split(mark)))
    return cells[1:-1] if mark == "|" and len(cells) > 2 and not cells[0] and not cells[-1] else cells


def _read_table(text: str, mark: str) -> list[list[str]] | None:
    """Split into rows of unchanged cells. None when rows differ in their number of cells."""
    newline = _find_newline(text)
    table: list[list[str]] = []
    for record in _split_records(text.removesuffix(newline)):
        cells = _split_cells(record, mark)
        if cells is None or (table and len(cells) != len(table[0])):
            return None
        table.append(cells)
    return table if len(table) > 1 else None


def _detect_quoting(table: Sequence[Sequence[str]]) -> str:
    """Choose the key of ``_QUOTED_BY`` that describes the quotes of the table."""
    cells = [cell for row in table[:_SAMPLED_LINES] for cell in row]
    if all(cell.startswith('"') for cell in cells):
        return "all"
    words = [cell for cell in cells if _QUOTED_BY["words"](cell)]
    return "words" if words and all(cell.startswith('"') for cell in words) else "columns"


def _fold(text: str, mark: str, table: list[list[str]], is_quoted: Callable[[str], bool]) -> str:
    newline = _find_newline(text)
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
    mark, is_quoted = _find_commonest_separator(text), _QUOTED_BY[quoting]
    newline = _find_newline(text)
    end = newline if text.endswith(newline) else ""
    header, *rows = [_split_cells(record, mark) or [] for record in _split_records(text.removesuffix(end))]
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
