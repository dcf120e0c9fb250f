"""``lading report``: write sessions as one HTML page."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial

import click
import msgspec

from lading.cli import terminal
from lading.cli.options import json_option
from lading.cli.output_file import open_output
from lading.cli.recordings import ReplayWarnings, plan_all, read_all, read_report_data, replay_all
from lading.cli.stores import fail_if_damaged, open_existing, read_each
from lading.cli.tables import format_count
from lading.evaluate.plan import PlanOptions
from lading.report.data import FORMAT, ReportData, SessionData
from lading.report.page import render_page
from lading.report.stored import read_session
from lading.sources import Problem
from lading.stores.memory import MemoryStore
from lading.stores.sqlite_file import FILE_NAME


@click.command("report")
@click.argument("places", nargs=-1, required=True, metavar="STORE|FILE...")
@click.option(
    "-o", "--output", "path", default="report.html", show_default=True, metavar="OUT.html",
    help="The page to write; an existing file is replaced.",
)  # fmt: skip
@json_option("Print the data of the page as JSON and write no page.")
def command(places: tuple[str, ...], path: str, as_json: bool) -> None:
    """Write one page that shows what the model saw at each call of the sessions in STOREs and FILEs, what
    was removed, why and where it is now, and what each call cost.

    The page is a single file for any browser; it needs no network. A session FILE is replayed with the default
    strategy at its model's own window; for other settings: lading replay FILE --report OUT.html.

    \b
    Examples:
      lading report ./store -o report.html
      lading report session.jsonl
    """
    damaged: list[str] = []
    unread: list[Problem] = []
    places = tuple({os.path.realpath(place): place for place in reversed(places)}.values())[::-1]
    with terminal.report_errors(), ExitStack() as stack:
        used = [os.path.join(place, FILE_NAME) if os.path.isdir(place) else place for place in places]
        write = None
        if not as_json:
            write = stack.enter_context(open_output(path, used=used, option="-o", example="report.html"))
        stores = [place for place in places if os.path.isdir(place)]
        files = [place for place in places if not os.path.isdir(place)]
        data = ReportData(FORMAT, (*_read_stores(stores, damaged), *_replay_files(files, unread)))
        if not data.sessions:
            fail_if_damaged(damaged)
        if write is not None:
            write(render_page(data))
    if as_json:
        terminal.print_json({**msgspec.to_builtins(data), "problems": [*damaged, *unread]})
    else:
        calls = sum(len(session.calls) for session in data.sessions)
        size = os.path.getsize(path) / 1e6
        terminal.out.print(
            f"{format_count(len(data.sessions), 'session')}, {format_count(calls, 'call')}, {size:.1f} MB: "
            f"{terminal.make_printable(path)}",
            markup=False, soft_wrap=True,
        )  # fmt: skip
    if failed := sum(bool(call.error) for session in data.sessions for call in session.calls):
        terminal.warn(f"{format_count(failed, 'call')} without a request: the page says why at each.")
    fail_if_damaged(damaged)


def _read_stores(folders: Sequence[str], problems: list[str]) -> Iterator[SessionData]:
    """Read the sessions of the stores; add the errors of unreadable ones to ``problems``."""
    for folder in folders:
        with open_existing(folder) as store:
            read = partial(read_session, store, source=folder)
            yield from read_each(store.sessions(), read, problems=problems, doing="reading")


def _replay_files(files: Sequence[str], problems: list[Problem]) -> Iterator[SessionData]:
    """Replay the sessions of the files; add what could not be read in them to ``problems``."""
    if not files:
        return
    recordings, found = read_all(files)
    problems += found
    advice = "For another model or window: lading replay FILE --model NAME --window N --report OUT.html."
    [replays] = replay_all([plan_all(recordings, PlanOptions(), notes=ReplayWarnings(advice))], [MemoryStore()])
    yield from read_report_data(replays)
