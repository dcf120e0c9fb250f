"""Compact tables for the terminal, and how figures are written in them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from rich import box
from rich.table import Table
from rich.text import Text

from lading.cli import terminal

_BAR_CELLS = 10
_CROP_CHARS, _NARROW_CROP_CHARS = 48, 24


class Column(Struct, frozen=True):
    """One column of a table."""

    title: str
    left: bool = False
    """Words, to the left; else figures, to the right."""
    only_wide: bool = False
    """Left out where the terminal is narrow."""
    crop: bool = False
    """Cut to what is worth showing of a text of any length."""
    wrap: bool = False
    """May take several lines."""


def print_table(
    title: str, columns: Sequence[Column], *, rows: Sequence[Sequence[str]], top: int | None = None
) -> None:
    """A table on stdout, its title above it; the first ``top`` rows and how many more there are. Nothing
    where there are no rows. Cells are text from anywhere, never read as markup."""
    if not rows:
        return
    if title:
        say(f"\n{title}", style="bold")
    shown = [at for at, column in enumerate(columns) if terminal.is_wide() or not column.only_wide]
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column in (columns[at] for at in shown):
        table.add_column(
            column.title,
            justify="left" if column.left else "right",
            # Rich narrows these columns first when room is short: figures stay whole, words are cut.
            no_wrap=not column.left,
        )
    for row in rows[:top]:
        table.add_row(*(_cell(row[at], columns[at]) for at in shown))
    terminal.out.print(table)
    if top is not None and len(rows) > top:
        say(f"and {len(rows) - top:,} more; --top {len(rows)} shows all", style="dim")


def say(text: str, style: str = "") -> None:
    """A line on stdout, as long as it is."""
    terminal.out.print(Text(terminal.printable(text), style=style), soft_wrap=True)


def amount(tokens: int) -> str:
    """A number of tokens, from a million on in millions."""
    return f"{tokens:,}" if tokens < 1_000_000 else f"{tokens / 1e6:,.1f} M"


def money(usd: float) -> str:
    """US dollars, with more digits where there are few of them."""
    return f"${usd:,.2f}" if usd >= 0.1 or usd == 0 else f"${usd:.4f}"


def number(count: int, noun: str) -> str:
    """So many of something, in words."""
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


def _cell(text: str, column: Column) -> Text:
    chars = _CROP_CHARS if terminal.is_wide() else _NARROW_CROP_CHARS
    shown = terminal.printable(text[:chars] if column.crop else text)
    if column.wrap:
        return Text(shown, overflow="fold")
    return Text(shown, no_wrap=True, overflow="ellipsis" if sign("…", "") else "crop")
