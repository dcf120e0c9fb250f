"""``lading replay``: the request of every call of recorded sessions, priced, recorded, emitted."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import click
from msgspec.structs import replace

from lading.addresses import name_from
from lading.cli import terminal
from lading.cli.recordings import ModelNotes, read_all
from lading.cli.replay_output import Emitter, print_tables, report
from lading.economics import Rates
from lading.errors import IllegalRequest, StoreError
from lading.evaluate.plan import Options, plan_for
from lading.evaluate.recorded import Call, Plan, replay
from lading.sources import Recording
from lading.stores import SessionStore
from lading.stores.sqlite import open_sqlite


def _parse_prices(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Rates | None:
    if value is None:
        return None
    try:
        read_price, write_price = map(float, value.split("/"))
    except ValueError as error:
        raise click.BadParameter("give two numbers such as .10/1.25: cached read / cache write") from error
    if not 0 <= read_price <= write_price < 1000:
        raise click.BadParameter("the read price must not be negative nor above the write price")
    return Rates(read_price, write_price)


@click.command("replay")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--model", help="Model whose card is used; default: the recorded one.")
@click.option("--window", type=click.IntRange(1), metavar="N", help="Window in tokens; default: the card's.")
@click.option("--output-reserve", type=click.IntRange(0), default=0, show_default=True, metavar="N")
@click.option(
    "--strategy", "strategies", multiple=True, default=("basic",), show_default=True, metavar="NAME",
    help="Compaction strategy; give it several times to compare side by side.",
)  # fmt: skip
@click.option("--wire", metavar="W", help="Wire format: openai_chat or anthropic; default: the recorded one.")
@click.option("--counter", metavar="NAME", help="o200k, cl100k or estimate; default: the card's.")
@click.option(
    "--prices", callback=_parse_prices, metavar="R/W",
    help="Cached read / cache write relative to base input, e.g. .10/1.25; default: the card's.",
)  # fmt: skip
@click.option("--ttl", type=click.FloatRange(0), metavar="S", help="The cache cools after S idle seconds.")
@click.option("--store", "folder", metavar="DIR", help="Keep log, edits and manifests there.")
@click.option("--emit", "emit_path", metavar="OUT.jsonl", help="Write each request, one JSON object a line.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def command(
    files: tuple[str, ...],
    model: str | None,
    window: int | None,
    output_reserve: int,
    strategies: tuple[str, ...],
    wire: str | None,
    counter: str | None,
    prices: Rates | None,
    ttl: float | None,
    folder: str | None,
    emit_path: str | None,
    as_json: bool,
) -> None:
    """Build the request of every model call recorded in FILEs, as it would have been, and price it.

    For each assistant message after the first user message the request is built from what was known by
    then. Cost is relative to the unbounded append-only replay of the same session with the same tools.

    \b
    Exit code 0: every request is legal. 1: some break a rule. 2: bad input.

    \b
    Examples:
      lading replay session.jsonl --window 32000
      lading replay logs/*.jsonl.gz --window 64000 --counter cl100k --prices .10/1.25 --json
      lading replay session.jsonl --strategy basic --strategy append-only --store ./store
    """
    if emit_path and len(strategies) > 1:
        terminal.fail("--emit writes the requests of one strategy. Give --strategy once.")
    options = Options(
        model=model,
        window_tokens=window,
        output_reserve_tokens=output_reserve,
        wire=wire,
        counter=counter,
        rates=prices,
        ttl_s=ttl,
    )
    with terminal.clear_errors(), ExitStack() as stack:
        recordings, problems = read_all(files)
        notes = ModelNotes("Give --model, --window, --counter and --prices to say better.")
        plans = [_plans(recordings, replace(options, strategy=name), notes) for name in strategies]
        stores = [_open_store(stack, folder, name, strategies) for name in strategies]
        for store, planned in zip(stores, plans, strict=True):
            _check_new(store, planned)
        emitter = stack.enter_context(Emitter(Path(emit_path))) if emit_path else None
        reports = []
        total = sum(len(recording.messages) for recording in recordings) * len(strategies)
        with terminal.progress("replaying", total) as advance:
            for name, planned, store in zip(strategies, plans, stores, strict=True):
                calls: dict[str, list[Call]] = {}
                for session, (recording, plan) in planned.items():
                    calls[session] = list(_emitted(_calls(recording, plan, session, store, advance), emitter, plan))
                reports.append(report(name, {key: plan for key, (_, plan) in planned.items()}, calls=calls))
    if as_json:
        terminal.print_json({"replays": reports, "problems": problems})
    else:
        print_tables(reports)
    sys.exit(terminal.FOUND if any(item.total.violations for item in reports) else 0)


def _plans(recordings: list[Recording], options: Options, notes: ModelNotes) -> dict[str, tuple[Recording, Plan]]:
    """Each recording with its plan, by a session name that is legal and unique."""
    planned: dict[str, tuple[Recording, Plan]] = {}
    for recording in recordings:
        plan, events = plan_for(recording, options)
        notes.note(events)
        name, number = name_from(recording.id), 1
        session = name
        while session in planned:
            number += 1
            session = f"{name[:120]}-{number}"
        planned[session] = (recording, plan)
    return planned


def _open_store(
    stack: ExitStack, folder: str | None, name: str, strategies: tuple[str, ...]
) -> SessionStore | None:
    if folder is None:
        return None
    place = Path(folder) / name_from(name) if len(strategies) > 1 else Path(folder)
    return stack.enter_context(open_sqlite(place, durability="normal"))


def _check_new(store: SessionStore | None, planned: dict[str, tuple[Recording, Plan]]) -> None:
    stored = {session for _, session in store.sessions()} if store else set()
    if taken := sorted(stored & set(planned)):
        raise StoreError(f"The store already holds the session {taken[0]}. Give another folder.")


def _calls(
    recording: Recording, plan: Plan, session: str, store: SessionStore | None, advance: terminal.Advance
) -> Iterator[Call]:
    done = 0
    try:
        for call in replay(recording, plan, session=session, store=store):
            advance(call.upto + 1 - done)
            done = call.upto + 1
            yield call
    except IllegalRequest as error:
        terminal.warn(f"session {session}: {error} The rest of the session is left out.")
    advance(len(recording.messages) - done)


def _emitted(calls: Iterator[Call], emitter: Emitter | None, plan: Plan) -> Iterator[Call]:
    for call in calls:
        if emitter:
            emitter.write(call, plan)
        yield call if call.pack is None else _without_body(call)


def _without_body(call: Call) -> Call:
    """The bodies of a long session add up to far more than the session; the figures do not need them."""
    assert call.pack is not None
    return replace(call, pack=replace(call.pack, body=b"", chain=(), ends=()))
