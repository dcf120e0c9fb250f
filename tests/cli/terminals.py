"""Terminals of a chosen width, for output that depends on it."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from lading.cli import terminal

WIDTHS = (60, 80, 100, 160)


@contextmanager
def terminal_of(chars: int, *, colours: bool = False) -> Iterator[io.StringIO]:
    """Replace the console of all commands by one of this width; yields what is printed there."""
    file, before = io.StringIO(), terminal.out
    system: Literal["standard"] | None = "standard" if colours else None
    terminal.out = terminal.CommandConsole(
        file=file, width=chars, highlight=False, force_terminal=colours, color_system=system
    )
    try:
        yield file
    finally:
        terminal.out = before


def printed(chars: int, show: Callable[[], object]) -> str:
    """What ``show`` prints in a terminal of this width."""
    with terminal_of(chars) as file:
        show()
    return file.getvalue()
