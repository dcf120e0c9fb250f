"""``lading search``: find what was said in any session of a store."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click
from rich.text import Text

from lading.audit.snapshots import AuditTrail, load_trail
from lading.cli import terminal
from lading.cli.explanations import format_time
from lading.cli.options import json_option
from lading.cli.stores import fail_if_damaged, find_sessions, open_existing, read_each
from lading.cli.tables import say
from lading.errors import InputError, StoreError
from lading.memory.log_index import LIMITS, LogHit, index_session, search_logs
from lading.memory.query_words import find_query_words
from lading.memory.sqlite_store import SqliteRecordStore, open_records
from lading.memory.terms import query_terms
from lading.stores import SessionStore

INDEX = "search"
"""Folder of the index in that of the store."""
_AROUND_CHARS = 70
_WORD = re.compile(r"[^\W_]+")


class MessagePlace(NamedTuple):
    """Where a message is in its session."""

    turn: int | None
    """The number of the user's messages up to it; None: unknown."""
    call: int | None
    """The first call whose request could show it; None: none could."""


@click.command("search")
@click.argument("folder", metavar="STORE")
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--session",
    default="",
    help="Session to search, or a pattern such as 'nightly-*'.  [default: all of the store]",
)
@click.option("--tenant", default="", help="Tenant of the sessions.  [default: all]")
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="The best so many.")
@json_option("Print the messages as JSON.")
def command(folder: str, words: Sequence[str], session: str, tenant: str, top: int, as_json: bool) -> None:
    """Find the messages in the logs of STORE that WORDS, such as a question, are about, best first. ``lading why``
    searches requests for an exact text.

    The index is kept in the folder search of STORE, and new messages are read into it first; where it
    cannot be written it is made in memory, with a note. Of a message the first 200,000 characters are searched.

    Exit code 0: something was found. 1: nothing. 2: the store or the arguments cannot be used.

    \b
    Examples:
      lading search ./store "which port does the proxy use?"
      lading search ./store timeout --session session-1 --top 3
      lading search ./store timeout --session 'nightly-*'
    """
    with terminal.report_errors(), open_existing(folder) as store, closing(_open_index(folder)) as records:
        text = " ".join(words)
        if not text.strip():
            raise InputError("The words to search for are blank. Give some.")
        sessions = find_sessions(store, tenant=tenant, session=session)
        problems: list[str] = []
        for _ in read_each(sessions, partial(index_session, records, store), problems=problems, doing="indexing"):
            pass
        found: list[LogHit] = []
        for name in sorted({of for of, _ in sessions}):
            wanted = {one for of, one in sessions if of == name}
            found += search_logs(records, text, tenant=name, keep=wanted.__contains__, limit=top)
        found = sorted(found, key=lambda hit: -hit.score)[:top]
        places = _find_places(store, found)
    hits = [hit._asdict() | place._asdict() for hit, place in zip(found, places, strict=True)]
    value = {"hits": hits, "problems": problems}
    terminal.print_either(as_json, lambda: value, show=lambda: _print(found, places, text=text))
    fail_if_damaged(problems)
    sys.exit(0 if found else terminal.FOUND)


def _open_index(folder: str) -> SqliteRecordStore:
    try:
        return open_records(Path(folder) / INDEX, limits=LIMITS, durability="normal")
    except StoreError:
        # A store that is only read. The logs are there still; the index is made again.
        terminal.warn(
            f"the index in {Path(folder) / INDEX} cannot be written: it is made anew in memory, each time"
        )
        return open_records(None, limits=LIMITS)


def _find_places(store: SessionStore, found: Sequence[LogHit]) -> list[MessagePlace]:
    """Return the place of each hit; one without turn and call where its session cannot be read whole."""
    trails: dict[tuple[str, str], AuditTrail | None] = {}
    for owner in dict.fromkeys((hit.tenant, hit.session) for hit in found):
        try:
            trails[owner] = load_trail(store, tenant=owner[0], session=owner[1])
        except StoreError:
            trails[owner] = None
    return [_find_place(trails[hit.tenant, hit.session], hit.entry) for hit in found]


def _find_place(trail: AuditTrail | None, entry: int) -> MessagePlace:
    if trail is None:
        return MessagePlace(None, None)
    return MessagePlace(trail.entries[entry].turn, trail.first_call(entry))


def _print(found: Sequence[LogHit], places: Sequence[MessagePlace], *, text: str) -> None:
    terms = {term for one in find_query_words(text) for term in query_terms(one.word)}
    for hit, place in zip(found, places, strict=True):
        facts = [
            hit.role,
            *([f"turn {place.turn}"] if place.turn is not None else []),
            *([f"call {place.call}"] if place.call is not None else []),
            *([format_time(hit.at_s)] if hit.at_s else []),
        ]
        say(f"{hit.address}  {', '.join(facts)}  score {hit.score:.2f}", style="bold")
        _print_part(_cut_around(hit.text, terms), terms)
    if not found:
        say("No message has any of these words.")


def _print_part(part: str, terms: Collection[str]) -> None:
    """Print a line with its matched words marked, in a terminal with colours."""
    line = Text(f"  {part}")
    if not terminal.out.no_color:
        for start, end in _find_matches(line.plain, terms):
            line.stylize("bold yellow", start, end)
    terminal.out.print(line, soft_wrap=True)


def _find_matches(text: str, terms: Collection[str]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each word that has a term that is searched for."""
    for match in _WORD.finditer(text):
        if not {*query_terms(match[0])}.isdisjoint(terms):
            yield match.span()


def _cut_around(text: str, terms: Collection[str]) -> str:
    """Return the part of a text around the first word that was searched for, on one line."""
    first, last = next(_find_matches(text, terms), (0, 0))
    start, end = max(first - _AROUND_CHARS, 0), last + _AROUND_CHARS
    part = " ".join(terminal.make_printable(text[start:end]).split())
    return f"{'…' if start else ''}{part}{'…' if end < len(text) else ''}"
