"""A measured figure beside its goal."""

from __future__ import annotations

from typing import NamedTuple

from rich.table import Table


class Figure(NamedTuple):
    """One line of a benchmark."""

    what: str
    value: str
    goal: str
    met: bool | None
    """None: there is no goal to meet."""


def below(what: str, value: float, goal: float, *, unit: str, digits: int = 2) -> Figure:
    """A figure that should not exceed its goal."""
    return Figure(what, f"{value:.{digits}f} {unit}".strip(), f"<= {goal:g} {unit}".strip(), value <= goal)


def above(what: str, value: float, goal: float, *, digits: int = 0) -> Figure:
    """A figure that should reach its goal."""
    return Figure(what, f"{value:.{digits}f}", f">= {goal:.{digits}f}", value >= goal)


def plain(what: str, value: str) -> Figure:
    """A figure without a goal."""
    return Figure(what, value, "", None)


def table(name: str, figures: list[Figure]) -> Table:
    """The figures as a table."""
    shown = Table(title=name, title_justify="left", title_style="bold")
    for column in ("measured", "figure", "goal", "met"):
        shown.add_column(column, justify="left" if column == "measured" else "right")
    for figure in figures:
        shown.add_row(figure.what, figure.value, figure.goal, {True: "yes", False: "NO", None: ""}[figure.met])
    return shown
