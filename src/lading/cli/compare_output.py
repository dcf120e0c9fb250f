"""What ``lading compare`` prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lading.cli.plaintables import Column, print_table, say
from lading.evaluate.scores import Standing
from lading.evaluate.walks import Session
from lading.report import comparison_tables
from lading.report.comparison_tables import evidence_tables, window_tables

_NAMES = Column("strategy", left=True)
_SHOWN_VALUES = 6
_PROBES = Column("evidence of", left=True, crop=True)


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


def named_facts(facts: Mapping[str, str]) -> str:
    """What applied, in one line."""
    named = {"provider format" if name == "wire" else name: value for name, value in facts.items()}
    return ", ".join(f"{name} {value}" for name, value in named.items() if value)


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
        say(table.verdict, style="bold")
        meanings |= {column.title: column.meaning for column in table.columns}
    for table in evidence_tables(standings):
        rows = [(name, *cells) for name, cells in table.rows]
        print_table(table.title, [_PROBES, *map(_column, table.columns)], rows=rows)
        say("")
    say(named_facts(facts), style="dim")
    for title, meaning in meanings.items():
        say(f"{title}: {meaning}", style="dim")
    invented = {(item.strategy, item.window_tokens): item.guards.invented_values for item in standings}
    for (strategy, window_tokens), values in invented.items():
        if values:
            say(f"{strategy} at {window_tokens:,}: no earlier message holds {', '.join(values[:_SHOWN_VALUES])}")


def _column(column: comparison_tables.Column) -> Column:
    return Column(column.title, left=column.is_words, only_wide=column.is_minor)
