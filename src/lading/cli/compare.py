"""``lading compare``: compare strategies and reference arms over windows and prices."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import product

import click
from msgspec.structs import replace

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
from lading.cli.output_file import open_output
from lading.cli.recordings import prepare_all, read_all, select_probes
from lading.cli.summaries import SummaryOptions, open_summaries, summary_options
from lading.cli.tables import Column, print_table, say
from lading.compaction import STRATEGIES, Strategy, When
from lading.effects import Summarizer
from lading.errors import InputError
from lading.evaluate.baselines import ARMS
from lading.evaluate.compare import Contestant, Grid, NamedRates, compare, find_contestant
from lading.evaluate.plan import PlanOptions
from lading.evaluate.probes import Probe, read_probes
from lading.evaluate.scores import ContestantScore
from lading.evaluate.session_runs import RecordedSession
from lading.report import comparison_tables
from lading.report.comparison import render_comparison
from lading.report.comparison_tables import make_evidence_tables, make_window_tables

_NAMES = Column("strategy", left=True)
_SHOWN_VALUES = 6
_PROBES = Column("evidence of", left=True, crop=True)
_LEAST_TOKENS = 500
"""Smaller windows fit almost no message, and packing each call takes long."""
_WINDOWS = f"tokens such as 16k or 64000, from {_LEAST_TOKENS} on"

DEFAULT_CONTESTANTS = ("append-only", "priced", "basic", "window-chunk")
"""The default of ``--strategies``."""


def _parse_name(text: str) -> str:
    if not text:
        raise ValueError(text)
    return text


@click.command("compare")
@files_argument
@click.option(
    "--strategies", callback=parse_each(_parse_name, "names of strategies or arms"), metavar="A,B,C",
    default=",".join(DEFAULT_CONTESTANTS), show_default=True,
    help="Strategies, reference arms or module:NAME; all: every name.",
)  # fmt: skip
@click.option(
    "--windows", callback=parse_each(partial(parse_tokens, least=_LEAST_TOKENS), _WINDOWS), default="16k,32k,64k",
    show_default=True, metavar="N,N", help="Windows in tokens; 16k is 16,000.",
)  # fmt: skip
@click.option(
    "--prices", default=".10/1.25,.05/1.25,.025/1.25,none", show_default=True, metavar="R/W,R/W",
    callback=parse_each(lambda text: NamedRates(text, parse_rates(text)), "prices such as .10/1.25 or none"),
    help="Cached read / cache write relative to base input; none: no cache, every token costs 1.",
)  # fmt: skip
@click.option(
    "--when", "whens", callback=parse_each(parse_when, "pays, full or shares such as 0.8"), metavar="WHEN,WHEN",
    help="When priced compacts, each compared: pays (default), full, or above a share of the window.",
)  # fmt: skip
@click.option(
    "--verbatim", "verbatims", callback=parse_each(parse_share, "shares such as 0.3 or 30%"), metavar="SHARE,SHARE",
    help="Shares that priced leaves verbatim, each compared.",
)  # fmt: skip
@model_option
@wire_option
@counter_option
@click.option("--probes", "probes_path", metavar="FILE", help="Score the evidence that probes of a file need.")
@summary_options
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
    summarizing: SummaryOptions,
    report_path: str | None,
    as_json: bool,
) -> None:
    """Compare strategies on the sessions recorded in FILEs: what they cost, and what they keep.

    Cost is relative to everything sent at the same prices. Recall is the share of the
    values used by later calls that are in the request; bound: beside a word that was beside them in the source.
    See docs/reference/compare.md.

    \b
    Exit code 0: every request is legal. 1: some break a rule, or a session was left out. 2: bad input.

    \b
    Examples:
      lading compare session.jsonl --windows 32k
      lading compare session.jsonl --strategies priced --when pays,full,0.8 --verbatim 14.5%,30%
      lading compare logs/*.jsonl.gz --strategies all --counter cl100k --report compare.html
      lading compare session.jsonl --strategies priced,mine:STRATEGY --prices .10/1.25 --json
      lading compare session.jsonl --strategies priced --summaries answers.jsonl --summarizer openai:gpt-5-nano
    """
    with terminal.report_errors(), ExitStack() as stack:
        summaries = stack.enter_context(open_summaries(summarizing, used=files))
        contestants = _add_summarizer(_find_contestants(strategies, whens, verbatims), summaries.summarizer)
        write_page = None
        if report_path is not None:
            page_file = open_output(report_path, used=files, option="--report", example="compare.html")
            write_page = stack.enter_context(page_file)
        recordings, problems = read_all(files)
        sessions, left_out = prepare_all(recordings, PlanOptions(model=model, wire=wire, counter=counter))
        probes: list[Probe] = []
        unknown: dict[str, int] = {}
        if probes_path is not None:
            probes, unknown = select_probes(sessions, probes_path, probes=list(read_probes(probes_path)))
        grid = Grid(contestants, windows, prices)
        calls = sum(len(session.calls) for session in sessions)
        with terminal.show_progress("comparing", calls * grid.runs) as advance:
            scores = compare(sessions, grid, advance=summaries.guard(advance), probes=probes)
        facts = collect_settings(sessions)
        if write_page:
            write_page(render_comparison(scores, format_settings(facts)))
    if not calls:
        terminal.warn("There is no call to compare by: no assistant message follows a user message.")
    if as_json:
        value = {"settings": facts, "standings": scores, "problems": problems, "sessions_left_out": left_out}
        terminal.print_json(value | ({"probes_left_out": unknown} if probes else {}))
    else:
        print_scores(scores, facts)
    sys.exit(terminal.FOUND if left_out or any(item.guards.violations for item in scores) else 0)


def _find_contestants(
    strategies: tuple[str, ...], whens: tuple[When, ...], verbatims: tuple[float, ...]
) -> tuple[Contestant, ...]:
    """Find the contestants, each once for each pair of its options. Raises InputError if none has those given."""
    everything = (*STRATEGIES, *ARMS)
    names = [name for given in strategies for name in (everything if given == "all" else (given,))]
    pairs = list(product(whens or (None,), verbatims or (None,)))
    found = [find_contestant(name, when=when, verbatim=verbatim) for name in names for when, verbatim in pairs]
    if (whens or verbatims) and not any(isinstance(item.strategy, Strategy) for item in found):
        raise InputError("None of these strategies has the options --when and --verbatim. Compare priced too.")
    return tuple({item.name: item for item in found}.values())


def _add_summarizer(contestants: tuple[Contestant, ...], summarizer: Summarizer | None) -> tuple[Contestant, ...]:
    """Return the contestants, and the strategies among them again, with a summarizer."""
    strategies = [item for item in contestants if summarizer and item.arm is None]
    named = (replace(item, name=f"{item.name}+summaries", summarizer=summarizer) for item in strategies)
    return (*contestants, *named)


def collect_settings(sessions: Iterable[RecordedSession]) -> dict[str, str]:
    """Collect model, provider format and counter of the sessions; values that differ are joined by "or"."""
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


def format_settings(facts: Mapping[str, str]) -> str:
    """Format the settings in one line."""
    named = {"provider format" if name == "wire" else name: value for name, value in facts.items()}
    return ", ".join(f"{name} {value}" for name, value in named.items() if value)


def print_scores(scores: Sequence[ContestantScore], facts: Mapping[str, str]) -> None:
    """Print a table for each window, and the meaning of its columns."""
    meanings: dict[str, str] = {}
    for table in make_window_tables(scores):
        costs = slice(table.bill_columns)
        keeps = slice(table.bill_columns, None)
        for title, part in ((table.title, costs), ("", keeps)):
            rows = [(name, *cells[part]) for name, cells in table.rows]
            print_table(title, [_NAMES, *map(_make_column, table.columns[part])], rows=rows)
            say("")
        say(table.verdict, style="bold")
        shown = (column for column in table.columns if terminal.is_wide() or not column.is_minor)
        meanings |= {column.title: column.meaning for column in shown}
    for table in make_evidence_tables(scores):
        rows = [(name, *cells) for name, cells in table.rows]
        print_table(table.title, [_PROBES, *map(_make_column, table.columns)], rows=rows)
        say("")
    say(format_settings(facts), style="dim")
    for title, meaning in meanings.items():
        say(f"{title}: {meaning}", style="dim")
    invented = {(item.strategy, item.window_tokens): item.guards.invented_values for item in scores}
    for (strategy, window_tokens), values in invented.items():
        if values:
            say(f"{strategy} at {window_tokens:,}: no earlier message holds {', '.join(values[:_SHOWN_VALUES])}")


def _make_column(column: comparison_tables.Heading) -> Column:
    return Column(column.title, left=column.is_words, only_wide=column.is_minor)
