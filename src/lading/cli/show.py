"""``lading show``: list a store, print a request as the model saw it, or read an address."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import click
from msgspec import Struct, to_builtins
from msgspec.structs import replace
from rich.table import Table
from rich.text import Text

from lading.addresses import SCHEME, Address, parse, relative
from lading.audit.pointers import render_text, resolve
from lading.audit.snapshots import SentMessage, Snapshot
from lading.cli import terminal
from lading.cli.explanations import format_time
from lading.cli.options import json_option
from lading.cli.stores import (
    REQUEST_FORM,
    complete_address,
    fail_if_damaged,
    find_snapshot,
    open_existing,
    parse_request_name,
    read_each,
)
from lading.cli.tables import LEAST_TABLE_CHARS, Column, format_count, format_tokens, print_items, say
from lading.compaction.record_lines import RecordText, parse_record
from lading.errors import InputError
from lading.history.log import Edit, Entry
from lading.history.view import rebuild
from lading.request.manifest import totals, unseal
from lading.stores import SessionStore
from lading.task.artifacts import Artifacts
from lading.task.citing import load_manifest
from lading.task.recalled import RecalledMemory, list_recalled


@click.command("show")
@click.argument("what", metavar="STORE|MANIFEST|ADDRESS")
@click.option(
    "--store", "folder", default=".", show_default=True, metavar="DIR", help="The store to read an ADDRESS from."
)
@click.option("--manifest", "as_manifest", is_flag=True, help="Print the manifest.json of a request (MANIFEST).")
@json_option("Print the same as JSON.")
def command(what: str, folder: str, as_manifest: bool, as_json: bool) -> None:
    """List the sessions of a STORE; or print the messages of one request as the model saw them, with what was
    removed and where it is now; or print in full the messages that an ADDRESS points to:
    artifact://tenant/session/log/17, .../log/17-42, or .../log/17.0 for a part. If the store holds one session,
    artifact://log/17 is enough.

    A MANIFEST is named STORE@CALL, or STORE@SESSION:CALL where the store holds several sessions
    (STORE@TENANT/SESSION:CALL where tenants share a name). CALL is a number from 1, or last.

    \b
    Examples:
      lading show ./store
      lading show ./store@session-1:12
      lading show ./store@session-1:last --manifest
      lading show artifact://default/session-1/log/17 --store ./store
    """
    is_address = what.startswith(SCHEME)
    with terminal.report_errors():
        # An existing folder is a store even if its name has the form of a request.
        if not is_address and os.path.isdir(what):
            problems: list[str] = []
            with open_existing(what) as store:
                sessions = list_sessions(store, problems)
            listed = {"sessions": sessions, "problems": problems}
            terminal.print_either(as_json, lambda: listed, show=lambda: print_sessions(sessions))
            fail_if_damaged(problems)
        elif not is_address and parse_request_name(what) and as_manifest:
            terminal.print_json(read_manifest(what))
        elif not is_address and parse_request_name(what):
            request = find_snapshot(what)
            recalled = read_recalled(request, folder := what.rpartition("@")[0])
            show = partial(print_request, request, recalled, folder=folder)
            terminal.print_either(as_json, partial(encode_request, request, recalled), show=show)
        elif not is_address:
            raise InputError(
                f"There is no folder {what[:200]!r}, and it is not an address; expected a store, "
                f"{REQUEST_FORM}, {SCHEME}log/N or {SCHEME}tenant/session/log/N."
            )
        elif parse(what, within=("default", "session")).kind == "tasks":
            with open_existing(folder) as store:
                place = complete_address(store, what)
                content = Artifacts(store, (place.tenant, place.session)).get(place.relative)
            terminal.print_either(
                as_json,
                lambda: content.decode("utf-8", "replace"),
                show=lambda: _echo(content.decode("utf-8", "replace")),
            )
        else:
            with open_existing(folder) as store:
                entries = resolve(store, complete_address(store, what))
            terminal.print_either(as_json, lambda: entries, show=lambda: print_entries(entries))


_SPEAKER_STYLES = {"user": "bold cyan", "assistant": "bold green", "summary": "bold green"}
"""Styles of the record lines that quote a speaker; the other lines are dim."""


class SessionSummary(Struct, frozen=True):
    """A session of a store, as ``lading show STORE`` lists it."""

    tenant: str
    session: str
    calls: int
    entries: int
    tokens: int
    """Input tokens of the newest request; 0 if there is none."""
    edits: int
    """Without repairs."""
    at_s: float | None
    """The latest time recorded with a message or request, in seconds since 1970."""
    records: tuple[RecordText, ...] = ()
    """The records in the view, without their lines."""


def list_sessions(store: SessionStore, problems: list[str]) -> list[SessionSummary]:
    """List the readable sessions of a store; add the errors of the others to ``problems``. Raises StoreError."""
    return list(read_each(store.sessions(), partial(_summarize_session, store), problems=problems, doing="reading"))


def _summarize_session(store: SessionStore, tenant: str, session: str) -> SessionSummary:
    stored = store.load(tenant, session)
    last = unseal(stored.last_manifest) if stored.last_manifest else None
    times = [*(entry.at_s for entry in stored.entries), last.place.at_s if last else None]
    edits = sum(edit.kind != "repaired" for edit in stored.edits)
    newest = max((at_s for at_s in times if at_s is not None), default=None)
    tokens = totals(last.counts) if last else 0
    shown = {item.edit for item in rebuild(stored.entries, stored.edits).items}
    read_back = (parse_record(edit, stored.entries) for edit in stored.edits if edit.index in shown)
    records = tuple(replace(record, lines=()) for record in read_back if record)
    sizes = (stored.calls, len(stored.entries), tokens, edits)
    return SessionSummary(tenant, session, *sizes, at_s=newest, records=records)


def print_sessions(sessions: Sequence[SessionSummary]) -> None:
    """Print the numbers of sessions and calls, and a table of the sessions."""
    say(f"{format_count(len(sessions), 'session')}, {format_count(sum(item.calls for item in sessions), 'call')}")
    print_items(
        "",
        sessions,
        columns=[
            (Column("session", left=True), lambda item: f"{item.tenant}/{item.session}"),
            (Column("calls"), lambda item: f"{item.calls:,}"),
            (Column("messages"), lambda item: f"{item.entries:,}"),
            (Column("last tokens"), lambda item: format_tokens(item.tokens)),
            (Column("edits"), lambda item: f"{item.edits:,}"),
            (Column("newest (UTC)", left=True), lambda item: format_time(item.at_s) or "-"),
        ],
    )
    for item in sessions:
        for record in item.records:
            say(f"{item.tenant}/{item.session} since call {record.call}: {_describe_record(record)}")


def read_manifest(text: str) -> dict[str, Any]:
    """Read the ``manifest.json`` of a request by its name. Raises like ``find_snapshot``."""
    place = find_snapshot(text).manifest.place
    with open_existing(text.rpartition("@")[0]) as store:
        return load_manifest(store, (place.tenant, place.session), call=place.call)


def read_recalled(request: Snapshot, folder: str) -> tuple[RecalledMemory, ...]:
    """Read which records of a memory a request shows, and whether they were used. Raises StoreError."""
    place = request.manifest.place
    if not place.memory and not place.task:
        return ()
    owner = place.tenant, place.session
    with open_existing(folder) as store:
        return list_recalled(store, owner, manifest=request.manifest, entries=store.load(*owner).entries)


def encode_request(request: Snapshot, recalled: Sequence[RecalledMemory] = ()) -> dict[str, Any]:
    """Encode a request as the model saw it, for JSON, with the records of a memory that it shows."""
    place = request.manifest.place
    return {
        "tenant": place.tenant,
        "session": place.session,
        "call": place.call,
        "counts": request.manifest.counts,
        "tools": [tool.name for tool in request.tools],
        "tool_scope": request.offered,
        "memories": to_builtins(recalled),
        "messages": [
            {
                "path": item.path,
                "layer": item.layer,
                "tokens": item.tokens,
                "entry": item.entry,
                "edit": request.edits[item.edit] if item.edit >= 0 else None,
                "record": _find_record(request, item),
                "message": item.message,
            }
            for item in request.shown
        ],
    }


def print_request(request: Snapshot, recalled: Sequence[RecalledMemory] = (), *, folder: str) -> None:
    """Print a request as the model saw it, each edited message with its edit, and why it shows which records of a
    memory. ``folder``: that of its store."""
    place, counts = request.manifest.place, request.manifest.counts
    layers = ", ".join(f"{layer} {tokens:,}" for layer, tokens in counts.items() if layer != "slack")
    free = f", {counts['slack']:,} more fit" if "slack" in counts else ""
    _echo(f"{place.tenant}/{place.session} call {place.call}: {totals(counts):,} tokens ({layers}){free}")
    if any(item.edit >= 0 for item in request.shown):
        full = Address(place.tenant, place.session, "log", "N")
        _echo(f"[To read {relative('N')}: lading show {full} --store {shlex.quote(folder)}]", "dim")
    for line in request.offered.describe() if request.offered else ():
        _echo(line, "dim")
    for one in recalled:
        used = "used in the answer" if one.is_used else "not used in the answer"
        _echo(f"[memory {one.id}: score {one.score:.2f}, {one.reason}; {used}]", "dim")
    last_edit = -1
    for item in request.shown:
        source = f"by edit {item.edit}" if item.edit >= 0 else f"entry {item.entry}"
        source = source if item.entry >= 0 else "for this request alone"
        _echo(f"--- {item.path} {item.message.role}, {source} ({item.tokens:,} tokens)", "bold")
        if item.edit >= 0 and item.edit != last_edit:
            last_edit = item.edit
            _echo(f"[{_describe_edit(request.edits[item.edit])}]", "dim")
        if record := _find_record(request, item):
            _echo(f"[{_describe_record(record)}]", "dim")
        if record and sys.stdout.isatty():
            _print_record(record)
        else:
            _echo(render_text(item.message))


def _find_record(request: Snapshot, item: SentMessage) -> RecordText | None:
    edit = request.edits[item.edit] if item.edit >= 0 else None
    return parse_record(edit, request.entries) if edit and item.message == edit.replacement[0] else None


def _describe_record(record: RecordText) -> str:
    shares = (("user", record.user), ("assistant", record.assistant))
    parts = [f"{who} {of.lines:,} of {of.total:,} ({of.whole:,} whole)" for who, of in shares if of.total]
    if record.calls.total:
        parts.append(f"{format_count(record.calls.total, 'call')} in {format_count(record.calls.lines, 'line')}")
    return (
        f"record of messages {record.first}-{record.last}, in the log {record.tokens_before:,} tokens shortened to "
        f"{record.tokens_after:,}: {', '.join(parts)}"
    )


def _print_record(record: RecordText) -> None:
    """Print the lines of a record at a terminal, with the speaker or kind of each in a left column."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for line in record.lines:
        end = 0 if line.kind in ("files", "failing") else line.mark
        # Offsets of marks stay valid: marks hold no tab.
        text = terminal.make_printable(line.text.replace("\t", "    "))
        style = _SPEAKER_STYLES.get(line.kind, "")
        cells = Text(text[:end].rstrip(": "), style or "dim"), Text(text[end:], "" if style else "dim")
        if terminal.out.width < LEAST_TABLE_CHARS:
            terminal.out.print(Text(" ").join(cells), soft_wrap=True)
        table.add_row(*cells)
    if terminal.out.width >= LEAST_TABLE_CHARS:
        terminal.out.print(table)


def print_entries(entries: Sequence[Entry]) -> None:
    """Print log entries in full."""
    for entry in entries:
        if len(entries) > 1:
            _echo(f"--- {entry.index} {entry.message.role} ({entry.tokens} tokens)", "bold")
        _echo(render_text(entry.message))


def _describe_edit(edit: Edit) -> str:
    span = f"entry {edit.first}" if edit.first == edit.last else f"entries {edit.first} to {edit.last}"
    where = f"; whole at {', '.join(edit.pointers)}" if edit.pointers else ""
    return (
        f"edit {edit.index}: {edit.kind} {span} at call {edit.call}, in the request "
        f"{edit.tokens_before:,} tokens to {edit.tokens_after:,}: {edit.reason}{where}"
    )


def _echo(text: str, style: str = "") -> None:
    if sys.stdout.isatty():
        # Control characters in a tool's output must not move the cursor or rename the window.
        say(text.replace("\t", "    "), style)
    else:
        click.echo(text.encode("utf-8", "backslashreplace"))
