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
from msgspec.structs import replace

from lading.addresses import name_from
from lading.cli import terminal
from lading.cli.amounts import rates_of, share_of, tokens_of, when_of
from lading.cli.bill_output import as_json_value
from lading.cli.output_file import OutputFile
from lading.cli.recordings import ModelNotes, read_all
from lading.cli.replay_output import print_tables, report
from lading.cli.replaying import Planned, plans_for, walked
from lading.compaction import DEFAULT, Strategy, When, configured, name_of, strategy
from lading.economics import Rates
from lading.errors import InputError, StoreError
from lading.evaluate.bill_reconciliation import SideBySide, added, side_by_side
from lading.evaluate.billing import model_calls
from lading.evaluate.plan import Options
from lading.evaluate.recorded import Call
from lading.report.data import FORMAT, ReportData, SessionData
from lading.report.page import page
from lading.report.replayed import replayed
from lading.sources import Recording
from lading.stores import SessionStore
from lading.stores.memory import MemoryStore
from lading.stores.sqlite import open_sqlite
from lading.stores.sqlite_file import FILE_NAME


def _by(parse: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    """A callback that reads a value by this function, which raises ValueError with what to give instead."""

    def callback(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Any:
        try:
            return None if value is None else parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error

    return callback


def _parse_seconds(_context: click.Context, _parameter: click.Parameter, value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise click.BadParameter("give a number of seconds from 0 on, such as 300")
    return value


def _parse_path(_context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value == "":
        raise click.BadParameter(f"it is empty; give {parameter.make_metavar(_context)}")
    return value


@click.command("replay")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--model", help="Model whose card is used; default: the recorded one.")
@click.option(
    "--window", callback=_by(partial(tokens_of, least=1)), metavar="N",
    help="Window in tokens; 16k is 16,000; default: the card's.",
)  # fmt: skip
@click.option(
    "--output-reserve", callback=_by(partial(tokens_of, least=0)), default="0", show_default=True, metavar="N",
    help="Tokens of the window reserved for the answer, at most the model's output limit.",
)  # fmt: skip
@click.option(
    "--strategy", "strategies", multiple=True, default=(DEFAULT,), show_default=True, metavar="NAME",
    help="Compaction strategy; give it several times to compare side by side.",
)  # fmt: skip
@click.option("--when", callback=_by(when_of), metavar="WHEN",
    help="When priced compacts: pays (default), full, or above a share of the window such as 0.8.",
)  # fmt: skip
@click.option("--verbatim", callback=_by(share_of), metavar="SHARE",
    help="The share that priced leaves verbatim, such as 0.3 or 30%.",
)  # fmt: skip
@click.option("--wire", metavar="W", help="Provider format: openai_chat or anthropic; default: the recorded one.")
@click.option("--counter", metavar="NAME", help="o200k, cl100k or estimate; default: the card's.")
@click.option(
    "--prices", callback=_by(rates_of), metavar="R/W",
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
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
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
    options = Options(
        model=model,
        window_tokens=window,
        output_reserve_tokens=output_reserve,
        wire=wire,
        counter=counter,
        rates=prices,
        ttl_s=ttl,
        restore=restore,
    )
    with terminal.clear_errors(), ExitStack() as stack:
        chosen = _chosen(strategies, when, verbatim, is_one=emit_path is not None)
        emitter, page_file = _outputs(stack, emit_path, report_path, files=files, folder=folder)
        recordings, problems = read_all(files)
        notes = ModelNotes("Give --model, --window, --counter and --prices to say better.")
        plans = [plans_for(recordings, replace(options, strategy=each), notes=notes) for each in chosen.values()]
        stores = _open_stores(stack, _store_places(folder, tuple(chosen), plans), kept=page_file is not None)
        walks = walked(plans, stores, emitter=emitter)
        reports = [report(name, plans[at], calls=walks[at]) for at, name in enumerate(chosen)]
        bills = added(_bills(tuple(chosen), plans, walks))
        if page_file:
            page_file.write(page(ReportData(FORMAT, tuple(_sessions(plans, stores, walks)))))
    _note_silent(recordings)
    value = {"replays": reports, "bills": as_json_value(bills), "problems": problems}
    terminal.print_either(as_json, lambda: value, show=lambda: print_tables(reports, bills))
    sys.exit(terminal.FOUND if any(item.total.violations or item.total.typed_errors for item in reports) else 0)


def _note_silent(recordings: Sequence[Recording]) -> None:
    silent = sum(not model_calls(recording.messages) for recording in recordings)
    if silent:
        sessions = "1 session has" if silent == 1 else f"{silent:,} sessions have"
        terminal.warn(f"{sessions} no call to replay: no assistant message follows a user message.")


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
) -> tuple[OutputFile | None, OutputFile | None]:
    """What ``--emit`` and ``--report`` name. Raises InputError when either would replace a file in use."""
    if emit_path and report_path and os.path.realpath(emit_path) == os.path.realpath(report_path):
        raise InputError("--emit and --report name the same file. Give each its own.")
    used = (*files, *([os.path.join(folder, FILE_NAME)] if folder else ()))
    emitter = page_file = None
    if emit_path:
        emitter = stack.enter_context(OutputFile(emit_path, used=used, option="--emit", example="requests.jsonl"))
    if report_path:
        page_file = stack.enter_context(
            OutputFile(report_path, used=used, option="--report", example="report.html")
        )
    return emitter, page_file


def _store_places(
    folder: str | None, strategies: tuple[str, ...], plans: Sequence[Mapping[str, object]]
) -> Sequence[Path | None]:
    """The store folder of each strategy. Several stand side by side in ``folder``, which is made.

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


def _bills(
    strategies: Sequence[str], plans: Sequence[Planned], walks: Sequence[Mapping[str, Sequence[Call]]]
) -> Iterator[SideBySide | None]:
    for session, (recording, plan) in plans[0].items():
        of_session = {name: calls[session] for name, calls in zip(strategies, walks, strict=True)}
        yield side_by_side(recording, plan, walks=of_session)


def _sessions(
    plans: Sequence[Planned], stores: Sequence[SessionStore | None], walks: Sequence[Mapping[str, Sequence[Call]]]
) -> Iterator[SessionData]:
    for planned, store, calls in zip(plans, stores, walks, strict=True):
        for session, (recording, plan) in planned.items():
            if store is not None:
                yield from replayed(store, calls[session], recording=recording, plan=plan, session=session)
