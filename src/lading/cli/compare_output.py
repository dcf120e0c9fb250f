"""What ``lading compare`` prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lading.cli.plaintables import Column, print_table, say
from lading.evaluate.standings import Standing
from lading.evaluate.walks import Session
from lading.report import comparison_tables
from lading.report.comparison_tables import evidence_tables, window_tables

_NAMES = Column("strategy", left=True, wrap=True)
_PROBES = Column("evidence of", left=True, crop=True)
_ABREAST = 6


def facts_of(sessions: Iterable[Session]) -> dict[str, str]:
    """What applied, in words; several values where sessions differ."""
    found: dict[str, dict[str, None]] = {"model": {}, "wire": {}, "counter": {}}
    count = 0
    for session in sessions:
        settings = session.plan.settings
        multiplier = f" x {settings.meter.multiplier:g}" if settings.meter.multiplier != 1 else ""
        values = (settings.card.name, settings.wire, f"{settings.meter.counter.name}{multiplier}")
        for known, value in zip(found.values(), values, strict=True):
            known[value] = None
        count += 1
    return {"sessions": f"{count:,}"} | {name: " or ".join(values) for name, values in found.items()}


def print_standings(standings: Sequence[Standing], facts: Mapping[str, str]) -> None:
    """A table for each window, and what its columns mean."""
    meanings: dict[str, str] = {}
    for table in window_tables(standings):
        costs = slice(table.bill_columns)
        keeps = slice(table.bill_columns, None)
        for title, part in ((table.title, costs), ("", keeps)):
            rows = [(name, *cells[part]) for name, cells in table.rows]
            print_table(title, [_NAMES, *map(_column, table.columns[part])], rows=rows)
            say("")
        meanings |= {column.title: column.meaning for column in table.columns}
    for table in evidence_tables(standings):
        for first in range(0, len(table.columns), _ABREAST):
            part = slice(first, first + _ABREAST)
            rows = [(name, *cells[part]) for name, cells in table.rows]
            print_table(table.title, [_PROBES, *map(_column, table.columns[part])], rows=rows)
            say("")
    say(", ".join(f"{name} {value}" for name, value in facts.items() if value), style="dim")
    for title, meaning in meanings.items():
        say(f"{title}: {meaning}", style="dim")
    for found in standings:
        if values := ", ".join(found.guards.invented_values):
            say(f"{found.strategy} at {found.window_tokens:,} and {found.prices}: no message before holds {values}")


def _column(column: comparison_tables.Column) -> Column:
    return Column(column.title, left=column.is_words, only_wide=column.is_minor, wrap=column.is_words)
