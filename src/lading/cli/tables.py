"""Print compact tables at the terminal, and format their figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from rich import box
from rich.cells import cell_len
from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from lading.cli import terminal
from lading.evaluate.tooluse import Location

T = TypeVar("T")

_BAR_CELLS = 10
_CROP_CHARS, _NARROW_CROP_CHARS = 48, 24
_NAME_CHARS, _NARROW_NAME_CHARS = 36, 20
_GAP_CHARS = 2
_LEAST_CHARS = 18
"""The least width of a column of words; longer cells are folded."""
LEAST_TABLE_CHARS = 30
"""In a narrower terminal two columns do not stand side by side."""


class Column(Struct, frozen=True):
    """One column of a table."""

    title: str
    left: bool = False
    """Words, left-aligned and folded if too long; else figures, right-aligned."""
    only_wide: bool = False
    """Left out where the terminal is narrow."""
    crop: bool = False
    """Cut long cells."""


class _ColumnWidth(Struct, frozen=True):
    """The width of a column in terminal cells: the least, and the one at which nothing is folded."""

    least: int
    wanted: int


def print_table(
    title: str, columns: Sequence[Column], *, rows: Sequence[Sequence[str]], top: int | None = None
) -> None:
    """Print a table under its title: the first ``top`` rows, and the number of the others. Print nothing without
    rows. Cells are untrusted text, not read as markup.

    Columns that do not fit the terminal follow in a second table, which repeats the first column. In the narrowest
    terminals each cell is a line, after its title.
    """
    if not rows:
        return
    if title:
        say(f"\n{title}", style="bold")
    shown = [at for at, column in enumerate(columns) if terminal.is_wide() or not column.only_wide]
    titled = [columns[at] for at in shown]
    cells = [[_format_cell(row[at], columns[at]) for at in shown] for row in rows[:top]]
    if terminal.out.width < LEAST_TABLE_CHARS:
        for row in cells:
            say("\n".join(f"{column.title}: {cell}" for column, cell in zip(titled, row, strict=True)) + "\n")
    else:
        _print_columns(titled, cells)
    if top is not None and len(rows) > top:
        say(f"and {len(rows) - top:,} more; --top {len(rows)} shows all", style="dim")


def _print_columns(titled: Sequence[Column], cells: Sequence[Sequence[str]]) -> None:
    widths = [_measure_column(column, [row[at] for row in cells]) for at, column in enumerate(titled)]
    for number_of_part, part in enumerate(_split_columns(widths, terminal.out.width)):
        if number_of_part:
            say("")
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        for at, chars in part:
            justify: JustifyMethod = "left" if titled[at].left else "right"
            table.add_column(titled[at].title, justify=justify, width=chars, overflow="fold")
        for row in cells:
            table.add_row(*(Text(row[at], overflow="fold") for at, _ in part))
        terminal.out.print(table)


def print_items(
    title: str, items: Sequence[T], *, columns: Sequence[tuple[Column, Callable[[T], str]]], top: int | None = None
) -> None:
    """Print a table with a row for each item; each column has a function that makes the cell of an item."""
    rows = [[cell(item) for _, cell in columns] for item in items]
    print_table(title, [column for column, _ in columns], rows=rows, top=top)


def shorten_names(sessions: Iterable[str]) -> dict[str, str]:
    """Shorten the names of sessions: remove the folder that all share, then cut long names at the start."""
    known = list(dict.fromkeys(sessions))
    folders = {name.rpartition("/")[0] for name in known}
    shared = folders.pop() if len(known) > 1 and len(folders) == 1 else ""
    chars = _NAME_CHARS if terminal.is_wide() else _NARROW_NAME_CHARS
    shorter = {name: name.removeprefix(f"{shared}/") if shared else name for name in known}
    return {
        name: short if len(short) <= chars else choose_sign("…", "~") + short[1 - chars :]
        for name, short in shorter.items()
    }


def format_place(place: Location, names: Mapping[str, str]) -> str:
    """Format the number of the message, after the session's short name if there are several."""
    index = f"#{place.message_index}" if place.message_index >= 0 else "(outside the list)"
    return f"{names[place.session]} {index}" if len(names) > 1 else index


def _measure_column(column: Column, cells: Sequence[str]) -> _ColumnWidth:
    longest = max(cell_len(line) for cell in cells for line in cell.split("\n"))
    word = max(map(cell_len, column.title.split()), default=0)
    wanted = max(longest, cell_len(column.title))
    return _ColumnWidth(max(min(longest, _LEAST_CHARS) if column.left else longest, word), wanted)


def _split_columns(widths: Sequence[_ColumnWidth], room: int) -> Iterator[Sequence[tuple[int, int]]]:
    """Divide the columns into tables at most ``room`` wide: index and width of each. The first is in all tables."""
    parts = [[0]]
    for at in range(1, len(widths)):
        least = sum(widths[other].least + _GAP_CHARS for other in parts[-1]) + widths[at].least
        if least > room and len(parts[-1]) > 1:
            parts.append([0])
        parts[-1].append(at)
    for part in parts:
        left = room - _GAP_CHARS * (len(part) - 1)
        chars = [widths[at].least for at in part]
        if sum(chars) > left:  # Not even two columns fit: fold both.
            chars = [min(chars[0], max(left // 2, 1)), *chars[1:]]
            chars[1:] = [max(min(each, left - chars[0]), 1) for each in chars[1:]]
        for place, at in enumerate(part):
            chars[place] += max(min(left - sum(chars), widths[at].wanted - chars[place]), 0)
        yield list(zip(part, chars, strict=True))


def say(text: str, style: str = "") -> None:
    """Print a line on stdout, without folding it."""
    terminal.out.print(Text(terminal.make_printable(text), style=style), soft_wrap=True)


def say_answer(lines: Sequence[str]) -> None:
    """Print lines on stdout, the first one in bold: the answer."""
    for at, line in enumerate(lines):
        say(line, style="" if at else "bold")


def format_tokens(tokens: int) -> str:
    """Format a number of tokens; a million and more in millions."""
    return f"{tokens:,}" if tokens < 1_000_000 else f"{tokens / 1e6:,.1f} M"


def format_usd(usd: float) -> str:
    """Format an amount in USD; below $0.10 with four decimals."""
    return f"${usd:,.2f}" if usd >= 0.1 or usd == 0 else f"${usd:.4f}"


def format_count(count: int, noun: str) -> str:
    """Format a count with its noun, in the plural if needed."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def draw_bar(part: int, whole: int) -> str:
    """Format a share as a percentage, with a bar on wide terminals."""
    fraction = part / whole if whole else 0.0
    cells = round(fraction * _BAR_CELLS) if terminal.is_wide() else 0
    return f"{fraction:6.1%} {choose_sign('█', '#') * cells}".rstrip()


def choose_sign(wanted: str, otherwise: str) -> str:
    """Return ``wanted``, or ``otherwise`` if the terminal's encoding lacks it."""
    return wanted if terminal.make_printable(wanted) == wanted else otherwise


def _format_cell(text: str, column: Column) -> str:
    chars = _CROP_CHARS if terminal.is_wide() else _NARROW_CROP_CHARS
    return terminal.make_printable(text[:chars] if column.crop else text)
