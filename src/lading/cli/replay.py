"""``lading replay``: build the request of every call of recorded sessions, price it, and store or write it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec.structs import replace

from lading import jsonbytes
from lading.addresses import make_name
from lading.cli import terminal
from lading.cli.bills import encode_comparison, print_comparison
from lading.cli.options import (
    FiniteRange,
    counter_option,
    files_argument,
    json_option,
    model_option,
    parse_tokens,
    parse_with,
    prices_option,
    verbatim_option,
    when_option,
    window_option,
    wire_option,
)
from lading.cli.output_file import Write, open_output
from lading.cli.recordings import ReplayedSession, ReplayWarnings, plan_all, read_all, read_report_data, replay_all
from lading.cli.summaries import OpenSummaries, SummaryOptions, open_summaries, summary_options
from lading.cli.tables import Column, format_count, print_items, say
from lading.compaction import DEFAULT, Strategy, When, apply_options, find_strategy, name_of
from lading.economics import OwnCalls, Rates
from lading.errors import InputError, StoreError
from lading.evaluate.bill_reconciliation import BillComparison, add_bills, compare_bills
from lading.evaluate.plan import PlanOptions
from lading.evaluate.replay import ReplayedCall, ReplayPlan, find_calls
from lading.evaluate.tally import StrategyTally, Tally, TypedError, describe_saving, tally_strategy
from lading.history.log import Edit
from lading.report.data import FORMAT, ReportData
from lading.report.page import render_page
from lading.sources import Recording
from lading.stores import SessionStore
from lading.stores.memory import MemoryStore
from lading.stores.sqlite import open_sqlite
from lading.stores.sqlite_file import FILE_NAME

_SHOWN_ERRORS = 12

_LEGEND = """\
tokens, of everything: over the calls that have a request; the share is of everything sent in these calls
cost: input cost relative to everything sent (the whole history and the recorded tools, without a window limit);\
 failed calls cost the same in both; over several models in USD if all have a price
forced, voluntary: edits, one for each log entry changed or span removed; forced: needed to fit the window;\
 voluntary: the rest
margin is 0, and output_reserve unless --output-reserve is given: a replay generates nothing"""

_WORDS = {"wire": "provider format", "output_reserve": "output reserve", "ttl_s": "cache lifetime in seconds"}


def _parse_path(_context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value == "":
        raise click.BadParameter(f"it is empty; give {parameter.make_metavar(_context)}")
    return value


@click.command("replay")
@files_argument
@model_option
@window_option
@click.option(
    "--output-reserve", callback=parse_with(partial(parse_tokens, least=0)), default="0",
    show_default=True, metavar="N",
    help="Tokens of the window reserved for the answer, at most the model's output limit.",
)  # fmt: skip
@click.option(
    "--strategy", "strategies", multiple=True, default=(DEFAULT,), show_default=True, metavar="NAME",
    help="Compaction strategy; give it several times to compare side by side.",
)  # fmt: skip
@when_option
@verbatim_option
@wire_option
@counter_option
@prices_option
@summary_options
@click.option("--ttl", type=FiniteRange(0), metavar="S", help="The prompt cache expires after S idle seconds.")
@click.option(
    "--restore", is_flag=True, help="Declare the tool restore to the model, as a session does, and report its cost."
)
@click.option(
    "--store", "folder", callback=_parse_path, metavar="DIR", help="Store log, edits and manifests in DIR."
)
@click.option("--emit", "emit_path", callback=_parse_path, metavar="OUT.jsonl",
    help="Write each request, one JSON object a line.",
)  # fmt: skip
@click.option("--report", "report_path", callback=_parse_path, metavar="OUT.html",
    help="Write one page that shows every request and its cost; see lading report.",
)  # fmt: skip
@json_option()
def command(
    files: tuple[str, ...],
    model: str | None,
    window: int | None,
    output_reserve: int,
    strategies: tuple[str, ...],
    when: When | None,
    verbatim: float | None,
    wire: str | None,
    counter: str | None,
    prices: Rates | None,
    ttl: float | None,
    restore: bool,
    summarizing: SummaryOptions,
    folder: str | None,
    emit_path: str | None,
    report_path: str | None,
    as_json: bool,
) -> None:
    """Build the request of every model call recorded in FILEs, as it would have been, and price it.

    For each assistant message after the first user message the request is built from what was known by
    then. Cost is relative to everything sent: the whole history and the recorded tools, without a window limit.

    \b
    Exit code 0: every request was built and is legal. 1: some were not, or break a rule. 2: bad input.

    \b
    Examples:
      lading replay session.jsonl --window 32000
      lading replay logs/*.jsonl.gz --window 64000 --counter cl100k --prices .10/1.25 --json
      lading replay session.jsonl --strategy priced --strategy basic --store ./store
      lading replay session.jsonl --summaries answers.jsonl --summarizer openai:gpt-5-nano
    """
    options = PlanOptions(
        model, window, output_reserve, wire=wire, counter=counter, rates=prices, ttl_s=ttl, restore=restore
    )
    with terminal.report_errors(), ExitStack() as stack:
        chosen = _choose_strategies(strategies, when, verbatim, is_one=emit_path is not None)
        summaries = stack.enter_context(open_summaries(summarizing, used=files))
        options = replace(options, summarizer=summaries.summarizer)
        emit, write_page = _open_outputs(stack, emit_path, report_path, files=files, folder=folder)
        recordings, problems = read_all(files)
        notes = ReplayWarnings("Give --model, --window, --counter and --prices for better figures.")
        plans = [plan_all(recordings, replace(options, strategy=each), notes=notes) for each in chosen.values()]
        stores = _open_stores(stack, _choose_folders(folder, tuple(chosen), plans), kept=write_page is not None)
        write = partial(_write_line, emit, summaries)
        walks = dict(zip(chosen, replay_all(plans, stores, emit=write), strict=True))
        tallies = _tally_all(walks)
        bills = add_bills(
            compare_bills(recording, plan, replays={name: walk[session].calls for name, walk in walks.items()})
            for session, (recording, plan) in plans[0].items()
        )
        if write_page:
            sessions = tuple(session for walk in walks.values() for session in read_report_data(walk))
            write_page(render_page(ReportData(FORMAT, sessions)))
    _warn_of_silence(recordings)
    value = {"replays": tallies, "bills": encode_comparison(bills), "problems": problems}
    terminal.print_either(as_json, lambda: value, show=lambda: print_tables(tallies, bills))
    sys.exit(terminal.FOUND if any(item.total.violations or item.total.typed_errors for item in tallies) else 0)


def _warn_of_silence(recordings: Sequence[Recording]) -> None:
    if silent := sum(not find_calls(recording.messages) for recording in recordings):
        calls = "1 session has" if silent == 1 else f"{silent:,} sessions have"
        terminal.warn(f"{calls} no call to replay: no assistant message follows a user message.")


def _tally_all(walks: Mapping[str, Mapping[str, ReplayedSession]]) -> list[StrategyTally]:
    return [
        tally_strategy(name, {session: (item.plan, item.calls) for session, item in walk.items()})
        for name, walk in walks.items()
    ]


def _choose_strategies(
    strategies: tuple[str, ...], when: When | None, verbatim: float | None, *, is_one: bool
) -> dict[str, str | Strategy]:
    """Find the strategies by name, with the options set where they have them. Raises InputError if none has."""
    if is_one and len(strategies) > 1:
        terminal.fail("--emit writes the requests of one strategy. Give --strategy once.")
    able = [name for name in strategies if find_strategy(name).with_options] or strategies
    chosen = [apply_options(name, when=when, verbatim=verbatim) if name in able else name for name in strategies]
    named = dict(zip(map(name_of, chosen), chosen, strict=True))
    if len(named) < len(strategies):
        terminal.fail("A strategy is named twice. Name each --strategy once.")
    return named


def _open_outputs(
    stack: ExitStack, emit_path: str | None, report_path: str | None, *, files: tuple[str, ...], folder: str | None
) -> tuple[Write | None, Write | None]:
    """Open the files of ``--emit`` and ``--report``. Raises InputError when either would replace a file in use."""
    if emit_path and report_path and os.path.realpath(emit_path) == os.path.realpath(report_path):
        raise InputError("--emit and --report name the same file. Give each its own.")
    used = (*files, *([os.path.join(folder, FILE_NAME)] if folder else ()))
    wanted = (("--emit", emit_path, "requests.jsonl"), ("--report", report_path, "report.html"))
    emit, write_page = (
        stack.enter_context(open_output(path, used=used, option=option, example=example)) if path else None
        for option, path, example in wanted
    )
    return emit, write_page


def _choose_folders(
    folder: str | None, strategies: tuple[str, ...], plans: Sequence[Mapping[str, object]]
) -> Sequence[Path | None]:
    """Choose the store folder of each strategy: ``folder``, or for several strategies folders in it, then created.

    Raises StoreError, before anything is created, when one is not a folder or already holds a planned session.
    """
    if folder is None:
        return [None for _ in strategies]
    root = Path(folder)
    places = [root / make_name(name) for name in strategies] if len(strategies) > 1 else [root]
    for place, planned in zip(places, plans, strict=True):
        for path in (root, place):
            if path.exists() and not path.is_dir():
                raise StoreError(f"{path} is a file; give a folder to keep the store in.")
        if (place / FILE_NAME).exists():
            with open_sqlite(place, create=False) as store:
                taken = sorted({session for _, session in store.sessions()} & set(planned))
            if taken:
                raise StoreError(f"The store in {place} already holds the session {taken[0]}. Give another folder.")
    if len(places) > 1:
        if not root.parent.is_dir():
            raise StoreError(f"The folder {root.parent} does not exist; make it first, or choose another.")
        root.mkdir(mode=0o700, exist_ok=True)
    return places


def _open_stores(stack: ExitStack, places: Sequence[Path | None], *, kept: bool) -> list[SessionStore | None]:
    """Open the store of each strategy; without a folder none, or a store in memory if ``kept`` for reading."""
    if not kept and all(place is None for place in places):
        return [None for _ in places]
    return [
        MemoryStore() if place is None else stack.enter_context(open_sqlite(place, durability="normal"))
        for place in places
    ]


def print_tables(tallies: Sequence[StrategyTally], bills: BillComparison | None) -> None:
    """Print the sessions of each strategy when there are several, the totals, a headline for each strategy, and the
    bills. Sessions without a call have no row.
    """
    for item in tallies:
        called = {session: figures for session, figures in item.sessions.items() if figures.calls}
        if len(called) > 1:
            _print_figures(f"{item.strategy}, by session", "session", called)
    _print_figures("total", "strategy", {item.strategy: item.total for item in tallies})
    say("")
    for item in tallies:
        if item.total.calls:
            say(f"{item.strategy}: {_format_headline(item.total)}", style="bold")
        for note in _describe_added_costs(item.total):
            say(f"{item.strategy} {note}")
    settings = tallies[0].settings.items()
    say(
        ", ".join(f"{_WORDS.get(key, key)} {_join_values(value)}" for key, value in settings if value is not None),
        style="dim",
    )
    say(_LEGEND, style="dim")
    if repaired := ", ".join(f"{rule} {times}x" for rule, times in tallies[0].total.repairs.items()):
        say(f"repaired in the recording: {repaired}", style="dim")
    for item in tallies:
        for run in _group_errors(item.total.typed_errors)[:_SHOWN_ERRORS]:
            calls = f"call {run[0].call}" if len(run) == 1 else f"calls {run[0].call} to {run[-1].call}"
            say(f"{item.strategy}: {run[0].session} {calls}: {run[0].text}")
        if (more := len(_group_errors(item.total.typed_errors)) - _SHOWN_ERRORS) > 0:
            say(f"{item.strategy}: {more} more groups of calls without a request (--json lists them)")
    if bills is not None:
        print_comparison(bills)


def _format_headline(figures: Tally) -> str:
    if failed := len(figures.typed_errors):
        calls = format_count(figures.calls, "call")
        return f"{failed:,} of {calls} have no request, so its cost cannot be compared"
    changed = figures.edits.forced + figures.edits.voluntary > 0
    return describe_saving(figures.cost_ratio) + (" (no gain)" if changed and figures.cost_ratio >= 1.0 else "")


def _describe_added_costs(figures: Tally) -> Iterator[str]:
    if offered := figures.restore:
        yield (
            f"offers the tool restore in {offered.requests:,} requests: "
            f"{offered.tokens_per_request:,.0f} tokens each, {offered.cost_share:.2%} of the input bill"
        )
    if own := figures.own:
        yield (
            f"asked a model {own.calls:,} times: {own.input_tokens:,} tokens in, "
            f"{own.output_tokens:,} out; the cost above includes them"
        )


def _group_errors(errors: Sequence[TypedError]) -> list[list[TypedError]]:
    """Group the errors of consecutive calls of one session."""
    runs: list[list[TypedError]] = []
    for error in errors:
        if runs and runs[-1][-1].session == error.session and runs[-1][-1].call == error.call - 1:
            runs[-1].append(error)
        else:
            runs.append([error])
    return runs


def _join_values(value: Any) -> str:
    values = value if isinstance(value, list) else [value]
    return " or ".join(map(str, values[:4])) + (" ..." if len(values) > 4 else "")


def _print_figures(title: str, first: str, figures: Mapping[str, Tally]) -> None:
    """Print a row of figures for each name, with a column of broken rules if there are any."""

    def if_any_built(figure: Callable[[Tally], str]) -> Callable[[tuple[str, Tally]], str]:
        return lambda item: figure(item[1]) if item[1].calls > len(item[1].typed_errors) else "-"

    has_broken = any(each.violations for each in figures.values())
    print_items(
        title,
        list(figures.items()),
        columns=[
            (Column(first, left=True), lambda item: item[0]),
            (Column("calls"), lambda item: f"{item[1].calls:,}"),
            (Column("errors"), lambda item: f"{len(item[1].typed_errors):,}"),
            (Column("mean tokens"), if_any_built(lambda each: f"{each.tokens_mean:,.0f}")),
            (Column("p95", only_wide=True), if_any_built(lambda each: f"{each.tokens_p95:,}")),
            (Column("peak"), if_any_built(lambda each: f"{each.tokens_peak:,}")),
            (Column("of everything"), if_any_built(lambda each: f"{each.append_only_share:.3f}")),
            (Column("cost"), if_any_built(lambda each: f"{each.cost_ratio:.3f}")),
            (Column("forced"), lambda item: f"{item[1].edits.forced:,}"),
            (Column("voluntary"), lambda item: f"{item[1].edits.voluntary:,}"),
            *([(Column("violations", left=True), _format_violations)] if has_broken else []),
        ],
    )


def _format_violations(item: tuple[str, Tally]) -> str:
    return ", ".join(f"{rule} {times}x" for rule, times in item[1].violations.items())


def _write_line(write: Write | None, summaries: OpenSummaries, call: ReplayedCall, plan: ReplayPlan) -> None:
    summaries.check()
    if write:
        write(encode_line(call, plan))


def encode_line(call: ReplayedCall, plan: ReplayPlan) -> bytes:
    """Encode one call as a line of ``--emit`` (docs/reference/emit.md)."""
    place = {"session": call.session, "call": call.call, "upto": call.upto, "wire": plan.settings.wire}
    if call.pack is None:
        error = {"type": type(call.error).__name__, "text": str(call.error)}
        return jsonbytes.dump({**place, "error": error, **_encode_own_calls(OwnCalls())}) + b"\n"
    facts = {
        "tokens": {"counted": call.pack.tokens, "by_layer": call.pack.manifest.counts},
        "edits": [_encode_edit(edit) for edit in call.edits],
        "manifest": msgspec.to_builtins(call.pack.manifest),
        **_encode_own_calls(call.pack.manifest.sent.own or OwnCalls()),
    }
    opening, closing = jsonbytes.dump(place)[:-1], jsonbytes.dump(facts)[1:]
    return opening + b',"request":' + call.pack.body + b"," + closing + b"\n"


def _encode_own_calls(own: OwnCalls) -> dict[str, int]:
    """Encode the tokens of the strategy's own model calls."""
    return {
        "extra_input_tokens": own.input_tokens - own.read_tokens,
        "extra_cached_input_tokens": own.read_tokens,
        "extra_output_tokens": own.output_tokens,
    }


def _encode_edit(edit: Edit) -> dict[str, Any]:
    names = ("kind", "first", "last", "reason", "tokens_before", "tokens_after", "forced_tokens")
    fields = {name: getattr(edit, name) for name in names}
    return {"edit": edit.index, **fields, "pointers": list(edit.pointers)}
