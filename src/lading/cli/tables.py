"""Compact tables for the terminal, and how figures are written in them."""

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
"""A column of words is not made narrower than this; what is longer takes several lines."""


class Column(Struct, frozen=True):
    """One column of a table."""

    title: str
    left: bool = False
    """Words, to the left, that may take several lines; else figures, to the right."""
    only_wide: bool = False
    """Left out where the terminal is narrow."""
    crop: bool = False
    """Cut to what is worth showing of a text of any length."""


class _Width(Struct, frozen=True):
    """The width of a column in characters: what its cells and its title need, and what they would like."""

    least: int
    wanted: int


def print_table(
    title: str, columns: Sequence[Column], *, rows: Sequence[Sequence[str]], top: int | None = None
) -> None:
    """A table on stdout, its title above it; the first ``top`` rows and how many more there are. Nothing
    where there are no rows. Cells are text from anywhere, never read as markup.

    Columns for which the terminal has no room follow below, beside the first column again.
    """
    if not rows:
        return
    if title:
        say(f"\n{title}", style="bold")
    shown = [at for at, column in enumerate(columns) if terminal.is_wide() or not column.only_wide]
    titled = [columns[at] for at in shown]
    cells = [[_cell(row[at], columns[at]) for at in shown] for row in rows[:top]]
    widths = [_width(column, [row[at] for row in cells]) for at, column in enumerate(titled)]
    for number_of_part, part in enumerate(_parts(widths, terminal.out.width)):
        if number_of_part:
            say("")
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        for at, chars in part:
            justify: JustifyMethod = "left" if titled[at].left else "right"
            table.add_column(titled[at].title, justify=justify, width=chars, overflow="fold")
        for row in cells:
            table.add_row(*(Text(row[at], overflow="fold") for at, _ in part))
        terminal.out.print(table)
    if top is not None and len(rows) > top:
        say(f"and {len(rows) - top:,} more; --top {len(rows)} shows all", style="dim")


def print_items(
    title: str, items: Sequence[T], *, columns: Sequence[tuple[Column, Callable[[T], str]]], top: int | None = None
) -> None:
    """A table with a row for each item, like ``print_table``; each column with what it says of one."""
    rows = [[cell(item) for _, cell in columns] for item in items]
    print_table(title, [column for column, _ in columns], rows=rows, top=top)


def short_names(sessions: Iterable[str]) -> dict[str, str]:
    """A shorter name for each session: without the folder that all share, and the end of what is still long."""
    known = list(dict.fromkeys(sessions))
    folders = {name.rpartition("/")[0] for name in known}
    shared = folders.pop() if len(known) > 1 and len(folders) == 1 else ""
    chars = _NAME_CHARS if terminal.is_wide() else _NARROW_NAME_CHARS
    shorter = {name: name.removeprefix(f"{shared}/") if shared else name for name in known}
    return {
        name: short if len(short) <= chars else sign("…", "~") + short[1 - chars :]
        for name, short in shorter.items()
    }


def format_place(place: Location, names: Mapping[str, str]) -> str:
    """The message, and the session's short name where there are several."""
    index = f"#{place.message_index}" if place.message_index >= 0 else "(outside the list)"
    return f"{names[place.session]} {index}" if len(names) > 1 else index


def _width(column: Column, cells: Sequence[str]) -> _Width:
    longest = max(cell_len(line) for cell in cells for line in cell.split("\n"))
    word = max(map(cell_len, column.title.split()), default=0)
    wanted = max(longest, cell_len(column.title))
    return _Width(max(min(longest, _LEAST_CHARS) if column.left else longest, word), wanted)


def _parts(widths: Sequence[_Width], room: int) -> Iterator[Sequence[tuple[int, int]]]:
    """Choose the columns beside each other, each with its width in characters; the first one is in every part."""
    parts = [[0]]
    for at in range(1, len(widths)):
        least = sum(widths[other].least + _GAP_CHARS for other in parts[-1]) + widths[at].least
        if least > room and len(parts[-1]) > 1:
            parts.append([0])
        parts[-1].append(at)
    for part in parts:
        left = room - _GAP_CHARS * (len(part) - 1)
        chars = [widths[at].least for at in part]
        if sum(chars) > left:  # Not even two columns have room: both fold.
            chars = [min(chars[0], max(left // 2, 1)), *chars[1:]]
            chars[1:] = [max(min(each, left - chars[0]), 1) for each in chars[1:]]
        for place, at in enumerate(part):
            chars[place] += max(min(left - sum(chars), widths[at].wanted - chars[place]), 0)
        yield list(zip(part, chars, strict=True))


def say(text: str, style: str = "") -> None:
    """A line on stdout, as long as it is."""
    terminal.out.print(Text(terminal.printable(text), style=style), soft_wrap=True)


def say_answer(lines: Sequence[str]) -> None:
    """Lines on stdout, the first of which answers."""
    for at, line in enumerate(lines):
        say(line, style="" if at else "bold")


def amount(tokens: int) -> str:
    """A number of tokens, from a million on in millions."""
    return f"{tokens:,}" if tokens < 1_000_000 else f"{tokens / 1e6:,.1f} M"


def money(usd: float) -> str:
    """US dollars, with more digits where there are few of them."""
    return f"${usd:,.2f}" if usd >= 0.1 or usd == 0 else f"${usd:.4f}"


def number(count: int, noun: str) -> str:
    """Write a count with its noun."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def bar(part: int, whole: int) -> str:
    """A share as a percentage, with a bar where there is room."""
    fraction = part / whole if whole else 0.0
    cells = round(fraction * _BAR_CELLS) if terminal.is_wide() else 0
    return f"{fraction:6.1%} {sign('█', '#') * cells}".rstrip()


def sign(wanted: str, otherwise: str) -> str:
    """A sign, or a plain one where the terminal's encoding lacks it."""
    return wanted if terminal.printable(wanted) == wanted else otherwise


def _cell(text: str, column: Column) -> str:
    chars = _CROP_CHARS if terminal.is_wide() else _NARROW_CROP_CHARS
    return terminal.printable(text[:chars] if column.crop else text)
