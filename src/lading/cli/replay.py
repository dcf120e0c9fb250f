"""``lading replay``: the request of every call of recorded sessions, priced, recorded, emitted."""

from __future__ import annotations

import math
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
from lading.addresses import name_from
from lading.cli import terminal
from lading.cli.bills import as_json_value, print_side_by_side
from lading.cli.options import (
    counter_option,
    files_argument,
    json_option,
    model_option,
    parse_rates,
    parse_share,
    parse_tokens,
    parse_when,
    parse_with,
    wire_option,
)
from lading.cli.output_file import Write, output_file
from lading.cli.recordings import ModelNotes, plan_all, read_all, replay_all, report_data
from lading.cli.tables import Column, number, print_items, say
from lading.compaction import DEFAULT, Strategy, When, configured, name_of, strategy
from lading.economics import OwnCalls, Rates
from lading.errors import InputError, StoreError
from lading.evaluate.bill_reconciliation import SideBySide, add_bills, compare_bills
from lading.evaluate.plan import PlanOptions
from lading.evaluate.recorded import ReplayedCall, ReplayPlan, find_calls
from lading.evaluate.tally import StrategyTally, Tally, TypedError, describe_saving, tally_strategy
from lading.history.log import Edit
from lading.report.data import FORMAT, ReportData
from lading.report.page import render_page
from lading.stores import SessionStore
from lading.stores.memory import MemoryStore
from lading.stores.sqlite import open_sqlite
from lading.stores.sqlite_file import FILE_NAME

_SHOWN_ERRORS = 12

_LEGEND = """\
tokens, of everything: over the calls that have a request; the share is of everything sent there
cost: input cost relative to everything sent, the whole history and the recorded tools in any size; failed calls\
 are charged alike in both; over several models in USD where all have a price
forced, voluntary: edits, one for each log entry changed or span cut off; forced: part of what the window demanded;\
 voluntary: the rest
margin is 0, and output_reserve unless --output-reserve is given: a replay generates nothing"""

_WORDS = {"wire": "provider format", "output_reserve": "output reserve", "ttl_s": "seconds until the cache cools"}


def _parse_seconds(_context: click.Context, _parameter: click.Parameter, value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise click.BadParameter("give a number of seconds from 0 on, such as 300")
    return value


def _parse_path(_context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value == "":
        raise click.BadParameter(f"it is empty; give {parameter.make_metavar(_context)}")
    return value


@click.command("replay")
@files_argument
@model_option
@click.option(
    "--window", callback=parse_with(partial(parse_tokens, least=1)), metavar="N",
    help="Window in tokens; 16k is 16,000; default: the card's.",
)  # fmt: skip
@click.option(
    "--output-reserve", callback=parse_with(partial(parse_tokens, least=0)), default="0",
    show_default=True, metavar="N",
    help="Tokens of the window reserved for the answer, at most the model's output limit.",
)  # fmt: skip
@click.option(
    "--strategy", "strategies", multiple=True, default=(DEFAULT,), show_default=True, metavar="NAME",
    help="Compaction strategy; give it several times to compare side by side.",
)  # fmt: skip
@click.option("--when", callback=parse_with(parse_when), metavar="WHEN",
    help="When priced compacts: pays (default), full, or above a share of the window such as 0.8.",
)  # fmt: skip
@click.option("--verbatim", callback=parse_with(parse_share), metavar="SHARE",
    help="The share that priced leaves verbatim, such as 0.3 or 30%.",
)  # fmt: skip
@wire_option
@counter_option
@click.option(
    "--prices", callback=parse_with(parse_rates), metavar="R/W",
    help="Cached read / cache write relative to base input, e.g. .10/1.25, or none; default: the card's.",
)  # fmt: skip
@click.option(
    "--ttl", type=float, callback=_parse_seconds, metavar="S", help="The prompt cache expires after S idle seconds."
)
@click.option(
    "--restore", is_flag=True, help="Offer the model the tool restore, as a session does, and report its cost."
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
    """
    options = PlanOptions(
        model, window, output_reserve, wire=wire, counter=counter, rates=prices, ttl_s=ttl, restore=restore
    )
    with terminal.clear_errors(), ExitStack() as stack:
        chosen = _chosen(strategies, when, verbatim, is_one=emit_path is not None)
        emit, write_page = _outputs(stack, emit_path, report_path, files=files, folder=folder)
        recordings, problems = read_all(files)
        notes = ModelNotes("Give --model, --window, --counter and --prices to say better.")
        plans = [plan_all(recordings, replace(options, strategy=each), notes=notes) for each in chosen.values()]
        stores = _open_stores(stack, _store_places(folder, tuple(chosen), plans), kept=write_page is not None)
        walks = dict(zip(chosen, replay_all(plans, stores, emit=partial(_emit, emit)), strict=True))
        tallies = [
            tally_strategy(name, {session: (item.plan, item.calls) for session, item in walk.items()})
            for name, walk in walks.items()
        ]
        bills = add_bills(
            compare_bills(recording, plan, walks={name: walk[session].calls for name, walk in walks.items()})
            for session, (recording, plan) in plans[0].items()
        )
        if write_page:
            sessions = tuple(session for walk in walks.values() for session in report_data(walk))
            write_page(render_page(ReportData(FORMAT, sessions)))
    if silent := sum(not find_calls(recording.messages) for recording in recordings):
        calls = "1 session has" if silent == 1 else f"{silent:,} sessions have"
        terminal.warn(f"{calls} no call to replay: no assistant message follows a user message.")
    value = {"replays": tallies, "bills": as_json_value(bills), "problems": problems}
    terminal.print_either(as_json, lambda: value, show=lambda: print_tables(tallies, bills))
    sys.exit(terminal.FOUND if any(item.total.violations or item.total.typed_errors for item in tallies) else 0)


def _chosen(
    strategies: tuple[str, ...], when: When | None, verbatim: float | None, *, is_one: bool
) -> dict[str, str | Strategy]:
    """The strategies by their names, with these options where they take them. Raises InputError where none does."""
    if is_one and len(strategies) > 1:
        terminal.fail("--emit writes the requests of one strategy. Give --strategy once.")
    able = [name for name in strategies if strategy(name).with_options] or strategies
    chosen = [configured(name, when=when, verbatim=verbatim) if name in able else name for name in strategies]
    named = dict(zip(map(name_of, chosen), chosen, strict=True))
    if len(named) < len(strategies):
        terminal.fail("A strategy is named twice. Name each --strategy once.")
    return named


def _outputs(
    stack: ExitStack, emit_path: str | None, report_path: str | None, *, files: tuple[str, ...], folder: str | None
) -> tuple[Write | None, Write | None]:
    """Open what ``--emit`` and ``--report`` name. Raises InputError when either would replace a file in use."""
    if emit_path and report_path and os.path.realpath(emit_path) == os.path.realpath(report_path):
        raise InputError("--emit and --report name the same file. Give each its own.")
    used = (*files, *([os.path.join(folder, FILE_NAME)] if folder else ()))
    wanted = (("--emit", emit_path, "requests.jsonl"), ("--report", report_path, "report.html"))
    emit, write_page = (
        stack.enter_context(output_file(path, used=used, option=option, example=example)) if path else None
        for option, path, example in wanted
    )
    return emit, write_page


def _store_places(
    folder: str | None, strategies: tuple[str, ...], plans: Sequence[Mapping[str, object]]
) -> Sequence[Path | None]:
    """The store folder of each strategy. Several are side by side in ``folder``, which is made.

    Raises StoreError, before anything is made, when one is no folder or holds a session already.
    """
    if folder is None:
        return [None for _ in strategies]
    root = Path(folder)
    places = [root / name_from(name) for name in strategies] if len(strategies) > 1 else [root]
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
    """The store of each strategy; without a place none, or one in memory where what it holds is asked for."""
    if not kept and all(place is None for place in places):
        return [None for _ in places]
    return [
        MemoryStore() if place is None else stack.enter_context(open_sqlite(place, durability="normal"))
        for place in places
    ]


def print_tables(tallies: Sequence[StrategyTally], bills: SideBySide | None) -> None:
    """One table for each strategy's sessions when there are several, the totals side by side, a headline for
    each strategy, and the bills.

    Sessions without a call have no row.
    """
    for item in tallies:
        called = {session: figures for session, figures in item.sessions.items() if figures.calls}
        if len(called) > 1:
            _print_figures(f"{item.strategy}, by session", "session", called)
    _print_figures("total", "strategy", {item.strategy: item.total for item in tallies})
    say("")
    for item in tallies:
        if item.total.calls:
            say(f"{item.strategy}: {_headline(item.total)}", style="bold")
        for note in _notes(item.total):
            say(f"{item.strategy} {note}")
    settings = tallies[0].settings.items()
    say(
        ", ".join(f"{_WORDS.get(key, key)} {_listed(value)}" for key, value in settings if value is not None),
        style="dim",
    )
    say(_LEGEND, style="dim")
    if repaired := ", ".join(f"{rule} {times}x" for rule, times in tallies[0].total.repairs.items()):
        say(f"repaired in the recording: {repaired}", style="dim")
    for item in tallies:
        for run in _runs(item.total.typed_errors)[:_SHOWN_ERRORS]:
            calls = f"call {run[0].call}" if len(run) == 1 else f"calls {run[0].call} to {run[-1].call}"
            say(f"{item.strategy}: {run[0].session} {calls}: {run[0].text}")
        if (more := len(_runs(item.total.typed_errors)) - _SHOWN_ERRORS) > 0:
            say(f"{item.strategy}: {more} more runs of calls without a request (--json lists them)")
    if bills is not None:
        print_side_by_side(bills)


def _headline(figures: Tally) -> str:
    if failed := len(figures.typed_errors):
        return f"{failed:,} of {number(figures.calls, 'call')} have no request, so its cost cannot be compared"
    changed = figures.edits.forced + figures.edits.voluntary > 0
    return describe_saving(figures.cost_ratio) + (" (no gain)" if changed and figures.cost_ratio >= 1.0 else "")


def _notes(figures: Tally) -> Iterator[str]:
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


def _runs(errors: Sequence[TypedError]) -> list[list[TypedError]]:
    """Typed errors in runs of neighbouring calls of one session."""
    runs: list[list[TypedError]] = []
    for error in errors:
        if runs and runs[-1][-1].session == error.session and runs[-1][-1].call == error.call - 1:
            runs[-1].append(error)
        else:
            runs.append([error])
    return runs


def _listed(value: Any) -> str:
    values = value if isinstance(value, list) else [value]
    return " or ".join(map(str, values[:4])) + (" ..." if len(values) > 4 else "")


def _print_figures(title: str, first: str, figures: Mapping[str, Tally]) -> None:
    """A row of figures for each name. What rules are broken has a column where any is."""

    def measured(figure: Callable[[Tally], str]) -> Callable[[tuple[str, Tally]], str]:
        return lambda item: figure(item[1]) if item[1].calls > len(item[1].typed_errors) else "-"

    has_broken = any(each.violations for each in figures.values())
    print_items(
        title,
        list(figures.items()),
        columns=[
            (Column(first, left=True), lambda item: item[0]),
            (Column("calls"), lambda item: f"{item[1].calls:,}"),
            (Column("errors"), lambda item: f"{len(item[1].typed_errors):,}"),
            (Column("mean tokens"), measured(lambda each: f"{each.tokens_mean:,.0f}")),
            (Column("p95", only_wide=True), measured(lambda each: f"{each.tokens_p95:,}")),
            (Column("peak"), measured(lambda each: f"{each.tokens_peak:,}")),
            (Column("of everything"), measured(lambda each: f"{each.append_only_share:.3f}")),
            (Column("cost"), measured(lambda each: f"{each.cost_ratio:.3f}")),
            (Column("forced"), lambda item: f"{item[1].edits.forced:,}"),
            (Column("voluntary"), lambda item: f"{item[1].edits.voluntary:,}"),
            *([(Column("violations", left=True), _violations)] if has_broken else []),
        ],
    )


def _violations(item: tuple[str, Tally]) -> str:
    return ", ".join(f"{rule} {times}x" for rule, times in item[1].violations.items())


def _emit(write: Write | None, call: ReplayedCall, plan: ReplayPlan) -> None:
    if write:
        write(emit_line(call, plan))


def emit_line(call: ReplayedCall, plan: ReplayPlan) -> bytes:
    """The line of ``--emit`` for one call (docs/reference/emit.md)."""
    place = {"session": call.session, "call": call.call, "upto": call.upto, "wire": plan.settings.wire}
    if call.pack is None:
        error = {"type": type(call.error).__name__, "text": str(call.error)}
        return jsonbytes.dump({**place, "error": error, **_extra(OwnCalls())}) + b"\n"
    facts = {
        "tokens": {"counted": call.pack.tokens, "by_layer": call.pack.manifest.counts},
        "edits": [_emitted(edit) for edit in call.edits],
        "manifest": msgspec.to_builtins(call.pack.manifest),
        **_extra(call.pack.manifest.sent.own or OwnCalls()),
    }
    opening, closing = jsonbytes.dump(place)[:-1], jsonbytes.dump(facts)[1:]
    return opening + b',"request":' + call.pack.body + b"," + closing + b"\n"


def _extra(own: OwnCalls) -> dict[str, int]:
    """Report the strategy's own model calls; they read nothing from a cache."""
    return {
        "extra_input_tokens": own.input_tokens,
        "extra_cached_input_tokens": 0,
        "extra_output_tokens": own.output_tokens,
    }


def _emitted(edit: Edit) -> dict[str, Any]:
    names = ("kind", "first", "last", "reason", "tokens_before", "tokens_after", "forced_tokens")
    return {
        "edit": edit.index,
        **{name: getattr(edit, name) for name in names},
        "pointers": list(edit.pointers),
    }
