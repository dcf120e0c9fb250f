"""Remove and restore the padding of tables with bars, as in Markdown and database shells.

The first line of the form has the width and alignment of each column; a line after ``!`` is unchanged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

_SPEC = re.compile(r"\[padding( \|)?((?: [lrcesn][0-9]{0,9})+)\]")

_MOST_BARS = 200
_SAMPLED_ROWS = 200

_SIDES: Final = {"l": " {:<{}} ", "r": " {:>{}} ", "c": " {:^{}} ", "e": " {:>{}}", "s": " {} ", "n": " {}"}
"""Formats of a cell: left, right or centred, right at the end of a line, with spaces on both sides or in front."""


def unpad(text: str) -> str | None:
    """Write the table without padding. None when the text has no such table or could not be restored exactly."""
    lines = text.split("\n")
    counts = Counter(line.count("|") for line in lines if "|" in line)
    bars = counts.most_common(1)[0][0] if counts else 0
    if not 0 < bars <= _MOST_BARS:
        return None
    is_framed = sum(line.startswith("|") and line.endswith("|") for line in lines) * 2 > counts[bars]
    rows = [_split_cells(line, is_framed) for line in lines if line.count("|") == bars][:_SAMPLED_ROWS]
    columns = [_detect_alignment(column) for column in zip(*[row for row in rows if row is not None], strict=False)]
    if not columns or max(width for _, width in columns) > len(text):
        return None
    sides = " ".join([f"{side}{width or ''}" for side, width in columns])
    spec = f"[padding{' |' if is_framed else ''} {sides}]"
    short = "\n".join([spec, *(_unpad_line(line, columns, is_framed) for line in lines)])
    return short if pad(short) == text else None


def pad(text: str) -> str:
    """Undo ``unpad``. Raises ValueError for a text in another form."""
    head, *lines = text.split("\n")
    spec = _SPEC.fullmatch(head)
    if spec is None:
        raise ValueError("the first line does not describe the padding")
    columns = [(mark[0], int(mark[1:] or 0)) for mark in spec[2].split()]
    is_framed = spec[1] is not None
    return "\n".join(
        line[1:] if line.startswith("!") else _pad_cells(line.split("|"), columns, is_framed) for line in lines
    )


def _split_cells(line: str, is_framed: bool) -> list[str] | None:
    if not is_framed:
        return line.split("|")
    return line[1:-1].split("|") if len(line) > 1 and line[0] == line[-1] == "|" else None


def _detect_alignment(cells: Sequence[str]) -> tuple[str, int]:
    """Find the alignment that restores most cells, with the commonest width."""
    commonest = Counter(map(len, cells)).most_common(1)[0][0]
    choices = [
        (side, max(commonest - len(form.format("", 0)), 0) if "}}" in form else 0) for side, form in _SIDES.items()
    ]
    return max(
        choices, key=lambda choice: sum(_SIDES[choice[0]].format(cell.strip(), choice[1]) == cell for cell in cells)
    )


def _unpad_line(line: str, columns: Sequence[tuple[str, int]], is_framed: bool) -> str:
    cells = _split_cells(line, is_framed) or []
    bare = [cell.strip() for cell in cells]
    short = "|".join(bare)
    if short.startswith("!") or len(bare) != len(columns) or _pad_cells(bare, columns, is_framed) != line:
        return f"!{line}"
    return short


def _pad_cells(cells: Sequence[str], columns: Sequence[tuple[str, int]], is_framed: bool) -> str:
    row = "|".join([_SIDES[side].format(cell, width) for cell, (side, width) in zip(cells, columns, strict=False)])
    return f"|{row}|" if is_framed else row
