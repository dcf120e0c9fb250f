"""What ``lading show`` prints."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click
from msgspec import Struct

from lading.cli import terminal
from lading.cli.explanations import moment
from lading.cli.plaintables import Column, amount, number, print_table, say
from lading.log import Edit, Entry
from lading.manifest import totals, unseal
from lading.pointers import as_text
from lading.snapshots import Snapshot
from lading.stores import SessionStore

_SESSIONS = (
    Column("session", left=True),
    Column("calls"),
    Column("messages"),
    Column("last tokens"),
    Column("edits"),
    Column("newest (UTC)", left=True),
)


class Listed(Struct, frozen=True):
    """A session of a store."""

    tenant: str
    session: str
    calls: int
    entries: int
    tokens: int
    """Input tokens of the newest request; 0 where there is none."""
    edits: int
    """Repairs are not among them."""
    at_s: float | None
    """The newest time recorded with a message or request, in seconds since 1970."""


def listed(store: SessionStore) -> list[Listed]:
    """The sessions of a store. Raises TamperedError, StoreError."""
    found = []
    sessions = store.sessions()
    with terminal.progress("reading", len(sessions)) as advance:
        for tenant, session in sessions:
            stored = store.load(tenant, session)
            last = unseal(stored.last_manifest) if stored.last_manifest else None
            times = [*(entry.at_s for entry in stored.entries), last.place.at_s if last else None]
            edits = sum(edit.kind != "repaired" for edit in stored.edits)
            newest = max((at_s for at_s in times if at_s is not None), default=None)
            tokens = totals(last.counts) if last else 0
            found.append(Listed(tenant, session, stored.calls, len(stored.entries), tokens, edits, newest))
            advance(1)
    return found


def print_sessions(sessions: Sequence[Listed]) -> None:
    """A table of the sessions, how many in its first line."""
    say(f"{number(len(sessions), 'session')}, {number(sum(item.calls for item in sessions), 'call')}")
    rows = [
        (
            f"{item.tenant}/{item.session}",
            f"{item.calls:,}",
            f"{item.entries:,}",
            amount(item.tokens),
            f"{item.edits:,}",
            moment(item.at_s) or "-",
        )
        for item in sessions
    ]
    print_table("", _SESSIONS, rows=rows)


def request_values(request: Snapshot) -> dict[str, Any]:
    """A request as the model saw it, for JSON."""
    place = request.manifest.place
    return {
        "tenant": place.tenant,
        "session": place.session,
        "call": place.call,
        "counts": request.manifest.counts,
        "tools": [tool.name for tool in request.tools],
        "messages": [
            {
                "path": item.path,
                "layer": item.layer,
                "tokens": item.tokens,
                "entry": item.entry,
                "edit": request.edits[item.edit] if item.edit >= 0 else None,
                "message": item.message,
            }
            for item in request.shown
        ],
    }


def print_request(request: Snapshot) -> None:
    """The messages of a request as the model saw them; with each that is not as it came, what left there."""
    place, counts = request.manifest.place, request.manifest.counts
    layers = ", ".join(f"{layer} {tokens:,}" for layer, tokens in counts.items())
    _echo(f"{place.tenant}/{place.session} call {place.call}: {totals(counts):,} tokens ({layers})")
    told = -1
    for item in request.shown:
        source = f"entry {item.entry}" if item.edit < 0 else f"by edit {item.edit}"
        _echo(f"--- {item.path} {item.message.role}, {source} ({item.tokens:,} tokens)")
        if item.edit >= 0 and item.edit != told:
            told = item.edit
            _echo(f"[{_left(request.edits[item.edit])}]")
        _echo(as_text(item.message))


def print_entries(entries: Sequence[Entry]) -> None:
    """Log entries, whole."""
    for entry in entries:
        if len(entries) > 1:
            _echo(f"--- {entry.index} {entry.message.role} ({entry.tokens} tokens)")
        _echo(as_text(entry.message))


def _left(edit: Edit) -> str:
    span = f"entry {edit.first}" if edit.first == edit.last else f"entries {edit.first} to {edit.last}"
    where = f"; whole at {', '.join(edit.pointers)}" if edit.pointers else ""
    return (
        f"edit {edit.index}: {edit.kind} {span} at call {edit.call}, {edit.tokens_before:,} tokens to "
        f"{edit.tokens_after:,}: {edit.reason}{where}"
    )


def _echo(text: str) -> None:
    if sys.stdout.isatty():
        # What a tool once printed must not move the cursor or rename the window now.
        click.echo(terminal.printable(text.replace("\t", "    ")))
    else:
        click.echo(text.encode("utf-8", "backslashreplace"))
