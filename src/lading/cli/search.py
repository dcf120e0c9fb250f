"""``lading search``: find what was said in any session of a store."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import click

from lading.cli import terminal
from lading.cli.explanations import format_time
from lading.cli.options import json_option
from lading.cli.stores import fail_if_damaged, find_sessions, open_existing, read_each
from lading.cli.tables import say
from lading.errors import InputError, StoreError
from lading.memory.log_index import LIMITS, LogHit, index_session, search_logs
from lading.memory.query_words import find_query_words
from lading.memory.sqlite_store import SqliteRecordStore, open_records

INDEX = "search"
"""Folder of the index in that of the store."""
_AROUND_CHARS = 70


@click.command("search")
@click.argument("folder", metavar="STORE")
@click.argument("words", nargs=-1, required=True)
@click.option("--session", default="", help="Session to search.  [default: all of the store]")
@click.option("--tenant", default="", help="Tenant of the sessions.  [default: all]")
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="The best so many.")
@json_option("Print the messages as JSON.")
def command(folder: str, words: Sequence[str], session: str, tenant: str, top: int, as_json: bool) -> None:
    """Find the messages in the logs of STORE that WORDS, such as a question, are about, best first. ``lading why``
    searches requests for an exact text.

    The index is kept in the folder search of STORE, and new messages are read into it first; where it
    cannot be written it is made in memory. Of a message the first 200,000 characters are searched.

    Exit code 0: something was found. 1: nothing. 2: the store or the arguments cannot be used.

    \b
    Examples:
      lading search ./store "which port does the proxy use?"
      lading search ./store timeout --session session-1 --top 3
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
    terminal.print_either(
        as_json, lambda: {"hits": [hit._asdict() for hit in found]}, show=lambda: _print(found, text)
    )
    fail_if_damaged(problems)
    sys.exit(0 if found else terminal.FOUND)


def _open_index(folder: str) -> SqliteRecordStore:
    try:
        return open_records(Path(folder) / INDEX, limits=LIMITS, durability="normal")
    except StoreError:
        # A store that is only read. The logs are there still; the index is made again.
        return open_records(None, limits=LIMITS)


def _print(found: Sequence[LogHit], text: str) -> None:
    words = [re.escape(one.word) for one in find_query_words(text)]
    pattern = re.compile("|".join(words) or r"(?!)", re.IGNORECASE)
    for hit in found:
        at = f", {format_time(hit.at_s)}" if hit.at_s else ""
        say(f"{hit.address}  {hit.role}{at}  score {hit.score:.2f}", style="bold")
        say(f"  {_cut_around(hit.text, pattern)}")
    if not found:
        say("No message has any of these words.")


def _cut_around(text: str, pattern: re.Pattern[str]) -> str:
    """Return the part of a text around the first word that was searched for, on one line."""
    match = pattern.search(text)
    start = max((match.start() if match else 0) - _AROUND_CHARS, 0)
    end = (match.end() if match else 0) + _AROUND_CHARS
    part = " ".join(terminal.make_printable(text[start:end]).split())
    return f"{'…' if start else ''}{part}{'…' if end < len(text) else ''}"
