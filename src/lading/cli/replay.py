"""``lading replay``: the request of every call of recorded sessions, priced, recorded, emitted."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import click
from msgspec.structs import replace

from lading.addresses import name_from
from lading.cli import terminal
from lading.cli.recordings import ModelNotes, read_all
from lading.cli.replay_output import Emitter, print_tables, report
from lading.economics import Rates
from lading.errors import IllegalRequest, InputError, StoreError
from lading.evaluate.plan import Options, plan_for
from lading.evaluate.recorded import Call, Plan, replay
from lading.sources import Recording
from lading.stores import SessionStore
from lading.stores.sqlite import open_sqlite
from lading.stores.sqlite_file import FILE_NAME

_MOST_TOKENS = 10**9
"""No window is larger; the yardstick of the replay is."""


def _parse_prices(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Rates | None:
    if value is None:
        return None
    try:
        read_price, write_price = map(float, value.split("/"))
    except ValueError as error:
        raise click.BadParameter("give two numbers such as .10/1.25: cached read / cache write") from error
    if not 0 <= read_price <= write_price < 1000:
        raise click.BadParameter(
            "give two numbers such as .10/1.25, the read price not negative and not above the write price"
        )
    return Rates(read_price, write_price)


def _parse_tokens(_context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    least = 0 if parameter.default == "0" else 1
    if value is None:
        return None
    if not value.isdecimal() or not least <= int(value[:20]) <= _MOST_TOKENS:
        raise click.BadParameter(f"give a whole number of tokens from {least} to {_MOST_TOKENS:,}, such as 32000")
    return int(value)


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
@click.option("--window", callback=_parse_tokens, metavar="N", help="Window in tokens; default: the card's.")
@click.option(
    "--output-reserve", callback=_parse_tokens, default="0", show_default=True, metavar="N",
    help="Tokens of the window left free for the answer, at most what the model's card lets it write.",
)  # fmt: skip
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
@click.option(
    "--ttl", type=float, callback=_parse_seconds, metavar="S", help="The cache cools after S idle seconds."
)
@click.option("--store", "folder", callback=_parse_path, metavar="DIR", help="Keep log, edits and manifests there.")
@click.option("--emit", "emit_path", callback=_parse_path, metavar="OUT.jsonl",
    help="Write each request, one JSON object a line.",
)  # fmt: skip
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
    _check_strategies(strategies, emit_path)
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
        emitter = stack.enter_context(Emitter(_emit_target(emit_path, files, folder))) if emit_path else None
        recordings, problems = read_all(files)
        notes = ModelNotes("Give --model, --window, --counter and --prices to say better.")
        plans = [_plans(recordings, replace(options, strategy=name), notes) for name in strategies]
        stores = _open_stores(stack, _store_places(folder, strategies, plans))
        reports = []
        total = sum(len(recording.messages) for recording in recordings) * len(strategies)
        with terminal.progress("replaying", total) as advance:
            for name, planned, store in zip(strategies, plans, stores, strict=True):
                calls: dict[str, list[Call]] = {}
                for session, (recording, plan) in planned.items():
                    calls[session] = list(_emitted(_calls(recording, plan, session, store, advance), emitter, plan))
                reports.append(report(name, {key: plan for key, (_, plan) in planned.items()}, calls=calls))
    _note_silent(recordings)
    if as_json:
        terminal.print_json({"replays": reports, "problems": problems})
    else:
        print_tables(reports)
    sys.exit(terminal.FOUND if any(item.total.violations for item in reports) else 0)


def _note_silent(recordings: Sequence[Recording]) -> None:
    silent = sum(not _has_call(recording) for recording in recordings)
    if silent:
        sessions = "1 session has" if silent == 1 else f"{silent:,} sessions have"
        terminal.warn(f"{sessions} no call to replay: no assistant message follows a user message.")


def _has_call(recording: Recording) -> bool:
    roles = [message.role for message in recording.messages]
    return "user" in roles and "assistant" in roles[roles.index("user") :]


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


def _check_strategies(strategies: tuple[str, ...], emit_path: str | None) -> None:
    if emit_path and len(strategies) > 1:
        terminal.fail("--emit writes the requests of one strategy. Give --strategy once.")
    if len(set(strategies)) < len(strategies):
        terminal.fail("A strategy is named twice. Name each --strategy once.")


def _emit_target(emit_path: str, files: tuple[str, ...], folder: str | None) -> Path:
    """Where ``--emit`` writes. Raises InputError when that is a file this run reads or keeps."""
    for used in (*files, *([os.path.join(folder, FILE_NAME)] if folder else ())):
        if os.path.exists(emit_path) and os.path.exists(used) and os.path.samefile(emit_path, used):
            raise InputError(f"--emit would overwrite {used}, which this replay uses. Give another OUT.jsonl.")
    return Path(emit_path)


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


def _open_stores(stack: ExitStack, places: Sequence[Path | None]) -> list[SessionStore | None]:
    return [
        None if place is None else stack.enter_context(open_sqlite(place, durability="normal")) for place in places
    ]


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
