"""``lading compare``: strategies and simple reference arms side by side, over windows and prices."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import product

import click

from lading.cli import terminal
from lading.cli.options import (
    counter_option,
    files_argument,
    json_option,
    model_option,
    parse_each,
    parse_rates,
    parse_share,
    parse_tokens,
    parse_when,
    wire_option,
)
from lading.cli.output_file import output_file
from lading.cli.recordings import ModelNotes, plan_all, read_all
from lading.cli.tables import Column, number, print_table, say
from lading.compaction import STRATEGIES, Strategy, When
from lading.errors import IllegalRequest, InputError
from lading.evaluate.baselines import ARMS
from lading.evaluate.compare import Contestant, Grid, NamedRates, compare, find_contestant
from lading.evaluate.plan import PlanOptions
from lading.evaluate.probes import Probe, SessionProbes, read_probes
from lading.evaluate.scores import ContestantScore
from lading.evaluate.walks import RecordedSession, prepare
from lading.report import comparison_tables
from lading.report.comparison import render_comparison
from lading.report.comparison_tables import make_evidence_tables, make_window_tables
from lading.sources import Recording

_NAMES = Column("strategy", left=True)
_SHOWN_VALUES = 6
_PROBES = Column("evidence of", left=True, crop=True)
_LEAST_TOKENS = 500
"""In a smaller window hardly a message fits, and each call is tried for long."""
_WINDOWS = f"tokens such as 16k or 64000, from {_LEAST_TOKENS} on"

RIVALS = ("append-only", "priced", "basic", "window-chunk")
"""What is compared where nothing else is asked for."""


def _prices(text: str) -> NamedRates:
    return NamedRates(text, parse_rates(text))


def _name(text: str) -> str:
    if not text:
        raise ValueError(text)
    return text


@click.command("compare")
@files_argument
@click.option(
    "--strategies", callback=parse_each(_name, "names of strategies or arms"), default=",".join(RIVALS),
    show_default=True, metavar="A,B,C", help="Strategies, reference arms or module:NAME; all: every name.",
)  # fmt: skip
@click.option(
    "--windows", callback=parse_each(partial(parse_tokens, least=_LEAST_TOKENS), _WINDOWS), default="16k,32k,64k",
    show_default=True, metavar="N,N", help="Windows in tokens; 16k is 16,000.",
)  # fmt: skip
@click.option(
    "--prices", callback=parse_each(_prices, "prices such as .10/1.25 or none"),
    default=".10/1.25,.05/1.25,.025/1.25,none", show_default=True, metavar="R/W,R/W",
    help="Cached read / cache write relative to base input; none: no cache, every token costs 1.",
)  # fmt: skip
@click.option(
    "--when", "whens", callback=parse_each(parse_when, "pays, full or shares such as 0.8"), metavar="WHEN,WHEN",
    help="When priced compacts, each beside the others: pays (default), full, or above a share of the window.",
)  # fmt: skip
@click.option(
    "--verbatim", "verbatims", callback=parse_each(parse_share, "shares such as 0.3 or 30%"), metavar="SHARE,SHARE",
    help="Shares that priced leaves verbatim, each beside the others.",
)  # fmt: skip
@model_option
@wire_option
@counter_option
@click.option("--probes", "probes_path", metavar="FILE", help="Score the evidence that these probes ask for.")
@click.option("--report", "report_path", metavar="OUT.html", help="Write one page with charts and tables.")
@json_option()
def command(
    files: tuple[str, ...],
    strategies: tuple[str, ...],
    windows: tuple[int, ...],
    prices: tuple[NamedRates, ...],
    whens: tuple[When, ...],
    verbatims: tuple[float, ...],
    model: str | None,
    wire: str | None,
    counter: str | None,
    probes_path: str | None,
    report_path: str | None,
    as_json: bool,
) -> None:
    """Compare strategies on the sessions recorded in FILEs: what they cost, and what they keep.

    Cost is relative to everything sent at the same prices. Recall is the share of the
    values used by later calls that are in the request; bound: next to a word that they had in the source.
    See docs/reference/compare.md.

    \b
    Exit code 0: every request is legal. 1: some break a rule. 2: bad input.

    \b
    Examples:
      lading compare session.jsonl --windows 32k
      lading compare session.jsonl --strategies priced --when pays,full,0.8 --verbatim 14.5%,30%
      lading compare logs/*.jsonl.gz --strategies all --counter cl100k --report compare.html
      lading compare session.jsonl --strategies priced,mine:STRATEGY --prices .10/1.25 --json
    """
    with terminal.clear_errors(), ExitStack() as stack:
        rivals = _rivals(strategies, whens, verbatims)
        write_page = None
        if report_path is not None:
            page_file = output_file(report_path, used=files, option="--report", example="compare.html")
            write_page = stack.enter_context(page_file)
        recordings, problems = read_all(files)
        sessions = _sessions(recordings, PlanOptions(model=model, wire=wire, counter=counter))
        probes, unknown = _probes(sessions, probes_path)
        grid = Grid(rivals, windows, prices)
        calls = sum(len(session.calls) for session in sessions)
        with terminal.progress("comparing", calls * grid.walks) as advance:
            standings = compare(sessions, grid, advance=advance, probes=probes)
        facts = facts_of(sessions)
        if write_page:
            write_page(render_comparison(standings, named_facts(facts)))
    if not calls:
        terminal.warn("There is no call to compare by: no assistant message follows a user message.")
    if as_json:
        left_out = {"probes_left_out": unknown} if probes else {}
        terminal.print_json({"settings": facts, "standings": standings, "problems": problems} | left_out)
    else:
        print_standings(standings, facts)
    sys.exit(terminal.FOUND if any(item.guards.violations for item in standings) else 0)


def _rivals(
    strategies: tuple[str, ...], whens: tuple[When, ...], verbatims: tuple[float, ...]
) -> tuple[Contestant, ...]:
    """What is compared, each once; with each pair of options where it takes them. InputError where nothing does."""
    everything = (*STRATEGIES, *ARMS)
    names = [name for given in strategies for name in (everything if given == "all" else (given,))]
    pairs = list(product(whens or (None,), verbatims or (None,)))
    rivals = [find_contestant(name, when=when, verbatim=verbatim) for name in names for when, verbatim in pairs]
    if (whens or verbatims) and not any(isinstance(rival.strategy, Strategy) for rival in rivals):
        raise InputError("No strategy that is compared has options --when and --verbatim. Compare priced too.")
    return tuple({rival.name: rival for rival in rivals}.values())


def _sessions(recordings: Iterable[Recording], options: PlanOptions) -> list[RecordedSession]:
    """The sessions of the recordings. One that cannot be read is left out, and said so."""
    notes = ModelNotes("Give --model and --counter to say better.")
    sessions: list[RecordedSession] = []
    for name, (recording, plan) in plan_all(recordings, options, notes=notes).items():
        try:
            sessions.append(prepare(recording, plan, name=name))
        except IllegalRequest as error:
            terminal.warn(f"session {name}: {error} The session is left out.")
    return sessions


def _probes(sessions: Sequence[RecordedSession], path: str | None) -> tuple[list[Probe], dict[str, int]]:
    """The probes of a file, and how many are of sessions that were not read. Raises InputError where all are."""
    if path is None:
        return [], {}
    probes = list(read_probes(path))
    for session in sessions:
        SessionProbes(session, probes).check(path)
    names = {session.name for session in sessions}
    left_out = Counter(probe.session for probe in probes if probe.name not in names)
    for name, count in left_out.items():
        line = next(probe.line for probe in probes if probe.session == name)
        many = number(count, "probe")
        terminal.warn(f"{path}:{line}: No file holds session {name!r}: {many} left out.")
    if left_out.total() == len(probes):
        raise InputError(
            f"{path}: No probe belongs to a session that was read. Give the files with the sessions of the probes."
        )
    return probes, left_out


def facts_of(sessions: Iterable[RecordedSession]) -> dict[str, str]:
    """Describe the settings; several values where sessions differ."""
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
    """Describe the settings in one line."""
    named = {"provider format" if name == "wire" else name: value for name, value in facts.items()}
    return ", ".join(f"{name} {value}" for name, value in named.items() if value)


def print_standings(standings: Sequence[ContestantScore], facts: Mapping[str, str]) -> None:
    """A table for each window, and what its columns mean."""
    meanings: dict[str, str] = {}
    for table in make_window_tables(standings):
        costs = slice(table.bill_columns)
        keeps = slice(table.bill_columns, None)
        for title, part in ((table.title, costs), ("", keeps)):
            rows = [(name, *cells[part]) for name, cells in table.rows]
            print_table(title, [_NAMES, *map(_column, table.columns[part])], rows=rows)
            say("")
        say(table.verdict, style="bold")
        shown = (column for column in table.columns if terminal.is_wide() or not column.is_minor)
        meanings |= {column.title: column.meaning for column in shown}
    for table in make_evidence_tables(standings):
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


def _column(column: comparison_tables.Measure) -> Column:
    return Column(column.title, left=column.is_words, only_wide=column.is_minor)
