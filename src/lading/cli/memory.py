"""``lading memory STORE``: list, search, show, edit and forget what agents remember."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import click
from msgspec.structs import asdict, replace

from lading.cli import terminal
from lading.cli.explanations import format_time
from lading.cli.memory_care import COMMANDS
from lading.cli.memory_names import NamespaceFilter, format_namespace, namespace_options, open_memory_of
from lading.cli.options import json_option
from lading.cli.tables import Column, format_count, print_items, say
from lading.errors import InputError
from lading.memory.agent_memory import AgentMemory, open_memory
from lading.memory.embedders import open_embedder
from lading.memory.folder_index import FolderIndex, index_folder
from lading.memory.records import KINDS, MemoryRecord, Origin
from lading.memory.retrieval import MemoryHit
from lading.memory.salience import decay_salience
from lading.memory.sqlite_store import SqliteRecordStore

_ALL = 1_000_000_000
_STAYS = (
    "The log of a session that said it still has the words, and so have requests that were already sent: "
    "lading why STORE TEXT finds them."
)


@click.group("memory")
@click.argument("folder", metavar="STORE")
@click.pass_context
def command(ctx: click.Context, folder: str) -> None:
    """List, search, show, edit, forget, index, embed or consolidate the records of the memory in the folder STORE.
    Its commands take --tenant, --user, --agent and --session, which name the namespaces concerned; without one,
    they are about all.

    \b
    Examples:
      lading memory ./store list --user ada
      lading memory ./store search "backup server"
      lading memory ./store edit 17 --text "The server is in Bergen."
      lading memory ./store forget 17 18
      lading memory ./store index ./notes --user ada
      lading memory ./store consolidate --dry-run
      lading memory ./store embed --model openai:text-embedding-3-small
    """
    ctx.obj = folder


for _one in COMMANDS:
    command.add_command(_one)


@command.command("list")
@namespace_options
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Records of this kind only.")
@click.option("--key", default="", help="Records of this key only.")
@click.option("--history", is_flag=True, help="Superseded and expired records too.")
@click.option("--top", type=click.IntRange(1), default=50, show_default=True, help="The newest so many.")
@json_option("Print the records as JSON.")
@click.pass_obj
def _list_command(
    folder: str, /, kinds: Sequence[Any], key: str, history: bool, top: int, as_json: bool, **names: str
) -> None:
    """List records, newest first."""
    with open_memory_of(folder) as store:
        found = [
            record
            for place in NamespaceFilter(**names).find(store)
            for record in store.list_records(
                place, kinds=kinds, key=key, at_s=time.time(), with_history=history, limit=_ALL
            )
            if record.namespace == place
        ]
        found.sort(key=lambda record: int(record.id), reverse=True)
        terminal.print_either(
            as_json, lambda: {"records": _encode(found[:top])}, show=lambda: _print_records(found, top=top)
        )


@command.command("search")
@click.argument("words", nargs=-1, required=True)
@namespace_options
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="The best so many.")
@click.option("--model", default="", metavar="NAME", help="Search by meaning too: the embedder of their vectors.")
@json_option("Print the records and their scores as JSON.")
@click.pass_obj
def _search_command(
    folder: str, /, words: Sequence[str], top: int, model: str, *, as_json: bool, **names: str
) -> None:
    """Find the records that WORDS, such as a question, are about, best first: by their words, and with --model by
    their meaning, for which lading memory STORE embed makes vectors."""
    with open_memory_of(folder) as store:
        embedder = open_embedder(model) if model else None
        hits: list[MemoryHit] = []
        for place in NamespaceFilter(**names).find(store):
            found = AgentMemory(store, place, embedder=embedder).search(" ".join(words), limit=top)
            hits += [hit for hit in found if hit.record.namespace == place]
        hits.sort(key=lambda hit: (-hit.score, int(hit.record.id)))
        shown = [
            {"score": hit.score, "reason": hit.reason, "record": _encode([hit.record])[0]} for hit in hits[:top]
        ]
        terminal.print_either(as_json, lambda: {"hits": shown}, show=lambda: _print_hits(hits, top=top))


@command.command("show")
@click.argument("record_id", metavar="ID")
@namespace_options
@json_option("Print the record and its history as JSON.")
@click.pass_obj
def _show_command(folder: str, /, record_id: str, as_json: bool, **names: str) -> None:
    """Print a record in full, with the earlier versions that it superseded."""
    with open_memory_of(folder) as store:
        record = _find_record(store, record_id, among=NamespaceFilter(**names))
        earlier = store.list_earlier(record.namespace, [record.id])
    encoded = {"record": _encode([record])[0], "earlier": _encode(earlier)}
    terminal.print_either(as_json, lambda: encoded, show=lambda: _print_record(record, earlier))


@command.command("edit")
@click.argument("record_id", metavar="ID")
@namespace_options
@click.option("--text", help="The new text; default: what $EDITOR gives.")
@click.pass_obj
def _edit_command(folder: str, /, record_id: str, text: str | None, **names: str) -> None:
    """Write a new version of a record, whose author is you; the old one stays as history."""
    with open_memory_of(folder) as store:
        record = _find_record(store, record_id, among=NamespaceFilter(**names))
        given = click.edit(record.text) if text is None else text
        if given is None or given.rstrip("\n") == record.text:
            say("Nothing was changed.")
            return
        origin = Origin("user", record.origin.source, record.origin.step)
        edited = replace(record, text=given.rstrip("\n"), origin=origin, created_s=0.0)
        new = store.supersede(record.namespace, record.id, by=edited, at_s=time.time())
    say(f"Record {new.id} is the new version of {record.id}.")
    if new.is_rule and not record.is_rule:
        say("It is a standing instruction now, because you wrote it.")


@command.command("index")
@click.argument("notes", metavar="FOLDER")
@click.option("--tenant", default="default", show_default=True, metavar="NAME", help="The tenant of the memory.")
@click.option("--user", default="", metavar="NAME", help="Its user; default: for all.")
@click.option("--agent", default="", metavar="NAME", help="Its agent; default: for all.")
@click.option("--name", default="", help="Name of the folder in the records; default: its own with a digest.")
@json_option("Print the counts and what was left out as JSON.")
@click.pass_obj
def _index_command(
    folder: str, /, notes: str, tenant: str, user: str, agent: str, name: str, *, as_json: bool
) -> None:
    """Bring the records of FOLDER up to date with its notes: one for each passage of a Markdown or text file. The
    memory is made where there is none."""
    with (
        terminal.report_errors(),
        open_memory(folder, tenant=tenant, user=user, agent=agent) as memory,
        terminal.show_progress("indexing", None) as advance,
    ):
        done = index_folder(memory, notes, name=name, advance=advance)
    terminal.print_either(as_json, done._asdict, show=lambda: _print_index(done))


@command.command("forget")
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@namespace_options
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def _forget_command(folder: str, /, ids: Sequence[str], yes: bool, **names: str) -> None:
    """Forget records and their earlier versions, from the bytes of the memory's file too. What is left is when each
    was forgotten."""
    with open_memory_of(folder) as store:
        found: dict[str, MemoryRecord] = {}
        for record_id in ids:
            record = _find_record(store, record_id, among=NamespaceFilter(**names))
            found |= {one.id: one for one in (record, *store.list_earlier(record.namespace, [record.id]))}
        _print_records(list(found.values()), top=len(found))
        if not yes and not sys.stdin.isatty():
            raise InputError("Nothing was forgotten, as nobody can be asked here. Give --yes to forget.")
        if not yes and not click.confirm(f"Forget {format_count(len(found), 'record')} for good?"):
            say("Nothing was forgotten.")
            return
        for place in sorted({record.namespace for record in found.values()}):
            wanted = [record.id for record in found.values() if record.namespace == place]
            store.forget(place, wanted, at_s=time.time())
    say(f"{format_count(len(found), 'record')} forgotten. {_STAYS}")


def _print_index(done: FolderIndex) -> None:
    say(
        f"{format_count(done.files, 'file')}: {format_count(done.added, 'passage')} added, "
        f"{done.changed:,} changed, {done.forgotten:,} forgotten, {done.unchanged:,} as before."
    )
    for path, reason in done.left_out:
        say(f"left out: {terminal.make_printable(path)}, as {reason}")


def _find_record(store: SqliteRecordStore, record_id: str, *, among: NamespaceFilter) -> MemoryRecord:
    for place in among.find(store):
        found = store.get(place, [record_id])
        if record_id in found and found[record_id].namespace == place:
            return found[record_id]
    raise InputError(f"There is no record {record_id[:80]!r} there; lading memory STORE list shows the ids.")


def _encode(records: Sequence[MemoryRecord]) -> list[dict[str, Any]]:
    """Encode records for JSON, with the fields that have their defaults too."""
    return [
        asdict(record) | {name: asdict(getattr(record, name)) for name in ("namespace", "origin", "validity")}
        for record in records
    ]


def _print_hits(hits: Sequence[MemoryHit], *, top: int) -> None:
    say(format_count(len(hits), "record"))
    places = {hit.record.namespace for hit in hits}
    columns: list[tuple[Column, Callable[[MemoryHit], str]]] = [
        (Column("id"), lambda hit: hit.record.id),
        (Column("score"), lambda hit: f"{hit.score:.2f}"),
        (Column("text", left=True, crop=True), lambda hit: " ".join(hit.record.text.split())),
        (Column("reason", left=True), lambda hit: hit.reason),
        (Column("kind", left=True, only_wide=True), lambda hit: hit.record.kind),
        (Column("author", left=True, only_wide=True), lambda hit: hit.record.origin.author),
        (Column("namespace", left=True), lambda hit: format_namespace(hit.record.namespace)),
    ]
    print_items("", hits, columns=columns if len(places) > 1 else columns[:-1], top=top)
    if len(places) == 1:
        say(f"namespace: {format_namespace(places.pop())}", style="dim")


def _print_records(records: Sequence[MemoryRecord], *, top: int) -> None:
    say(format_count(len(records), "record"))
    places = {record.namespace for record in records}
    columns = [
        (Column("id"), lambda record: record.id),
        (Column("text", left=True, crop=True), lambda record: " ".join(record.text.split())),
        (Column("kind", left=True), lambda record: record.kind),
        (Column("author", left=True), lambda record: record.origin.author),
        (Column("key", left=True, crop=True, only_wide=True), lambda record: record.key),
        (Column("written (UTC)", left=True), lambda record: format_time(record.created_s)),
        (Column("state", left=True, only_wide=True), _format_state),
        (Column("namespace", left=True), lambda record: format_namespace(record.namespace)),
    ]
    print_items("", records, columns=columns if len(places) > 1 else columns[:-1], top=top)
    if len(places) == 1:
        say(f"namespace: {format_namespace(places.pop())}", style="dim")


def _format_state(record: MemoryRecord) -> str:
    if record.superseded_by == record.id:
        return "expired, retired"
    if record.superseded_by:
        return f"superseded by {record.superseded_by}"
    return "" if record.is_shown(time.time()) else "expired"


def _print_record(record: MemoryRecord, earlier: Sequence[MemoryRecord]) -> None:
    state = _format_state(record)
    rows = {
        "kind": record.kind + (" (standing instruction)" if record.is_rule else ""),
        "namespace": format_namespace(record.namespace),
        "key": record.key,
        "author": record.origin.author,
        "source": record.origin.source,
        "written": format_time(record.created_s),
        "valid from": format_time(record.validity.from_s),
        "valid until": format_time(record.validity.until_s),
        "expires": format_time(record.validity.expires_s),
        "confidence": "" if record.origin.confidence == 1 else f"{record.origin.confidence:g}",
        "written again": "" if record.salience == 1 else f"{record.salience - 1} times",
        "salience now": "" if record.is_rule else f"{decay_salience(record, at_s=time.time()):.2g}",
        "entities": ", ".join(record.entities),
        "state": state,
    }
    say(f"record {record.id}", style="bold")
    for name, value in rows.items():
        if value:
            say(f"{name}: {value}", style="dim")
    say("")
    say(record.text)
    for one in earlier:
        say(
            f"\n--- until then, record {one.id} of {format_time(one.created_s)} by {one.origin.author}", style="dim"
        )
        say(one.text)
