"""Tables at any width: nothing is cut, the name of each row stands beside its figures."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import external_file, snapshot
from rich.cells import cell_len

from lading.cli.tables import Column, print_table, say
from tests.cli.commands import lading, long_session
from tests.cli.terminals import WIDTHS, printed, terminal_of

GOLDEN = Path(__file__).parent / "tables"


@pytest.mark.parametrize("width", WIDTHS)
def test_tables_at_usual_widths(tmp_path: Path, width: int) -> None:
    path = long_session(tmp_path / "a-session-with-a-name-of-some-length.json")
    both = ("--strategy", "basic", "--strategy", "append-only")
    with terminal_of(width) as file:
        lading("inspect", path, "--check")
        lading("replay", path, "--window", "3000", *both)
    text = "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())
    assert text == external_file(str(GOLDEN / f"{width}.txt"), format=".txt")


NAMES = st.text("abcXYZ059-_/.ß漢", min_size=1, max_size=40)
CELLS = st.lists(NAMES, min_size=1, max_size=6).map(" ".join)
FIGURES = st.integers(0, 10**12).map("{:,}".format) | st.sampled_from(["-", "", "1.2 M", "38.0%"])


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Column], list[list[str]]]:
    lefts = [True, *draw(st.lists(st.booleans(), max_size=12))]
    columns = [Column(draw(CELLS), left=left) for left in lefts]
    row = st.tuples(*(CELLS if left else FIGURES for left in lefts)).map(list)
    return columns, draw(st.lists(row, min_size=1, max_size=4))


def characters(*texts: str) -> Counter[str]:
    return Counter(char for text in texts for char in text if char not in " \n─")


@pytest.mark.fuzz
@given(tables(), st.integers(40, 200))
def test_each_cell_is_readable_at_any_width(table: tuple[list[Column], list[list[str]]], width: int) -> None:
    columns, rows = table
    shown = printed(width, lambda: print_table("", columns, rows=rows))
    lines = shown.splitlines()
    assert max(map(cell_len, lines)) <= width
    parts = sum(line.startswith("─") for line in lines)
    titles = [column.title for column in columns]
    texts = [*titles, *titles[:1] * (parts - 1)] + [text for row in rows for text in (*row, *row[:1] * (parts - 1))]
    assert characters(shown) == characters(*texts)
    for row in rows:
        for column, text in zip(columns, row, strict=True):
            whole = [word for word in text.split() if cell_len(word) <= 8] if column.left else [text]
            assert [word for word in whole if word not in shown] == []


@given(tables(), st.integers(1, 39))
def test_no_cell_is_lost_in_the_narrowest_terminals(
    table: tuple[list[Column], list[list[str]]], width: int
) -> None:
    columns, rows = table
    shown = characters(printed(width, lambda: print_table("", columns, rows=rows)))
    assert not characters(*(column.title for column in columns), *(text for row in rows for text in row)) - shown


def test_columns_without_room_follow_below_beside_the_name() -> None:
    columns = [Column("strategy", left=True), *(Column(f"figure {number}") for number in range(6))]
    rows = [["a-long-name-of-a-strategy", *["1,234,567"] * 6], ["b", *["89"] * 6]]
    assert printed(44, lambda: print_table("", columns, rows=rows)).splitlines() == snapshot(
        [
            "strategy                 figure 0   figure 1",
            "────────────────────────────────────────────",
            "a-long-name-of-a-strat  1,234,567  1,234,567",
            "egy                                         ",
            "b                              89         89",
            "",
            "strategy                 figure 2   figure 3",
            "────────────────────────────────────────────",
            "a-long-name-of-a-strat  1,234,567  1,234,567",
            "egy                                         ",
            "b                              89         89",
            "",
            "strategy                 figure 4   figure 5",
            "────────────────────────────────────────────",
            "a-long-name-of-a-strat  1,234,567  1,234,567",
            "egy                                         ",
            "b                              89         89",
        ]
    )


def test_no_color_leaves_colours_out_and_a_pipe_has_no_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    for no_color, codes in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", no_color)
        with terminal_of(80, colours=True) as file:
            say("red", style="bold red")
        assert ("\x1b[1;31m" in file.getvalue(), "red" in file.getvalue()) == (codes, True)
    assert "\x1b" not in printed(80, lambda: say("red", style="bold red"))
