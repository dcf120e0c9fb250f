"""``lading why``: was this text in that request, and if not, what became of it."""

from __future__ import annotations

import os
import sys
from functools import partial

import click

from lading.audit.snapshots import recorded
from lading.audit.verdicts import Answer
from lading.audit.why import answer as answered
from lading.cli import terminal
from lading.cli.explanations import explain_answer
from lading.cli.options import json_option
from lading.cli.stores import end_damaged, find_sessions, open_existing, read_each
from lading.cli.tables import say, say_answer
from lading.errors import InputError

_MOST_BYTES = 1_000_000
_MOST_CLOSEST = 3


@click.command("why")
@click.argument("folder", metavar="STORE")
@click.argument("text")
@click.option("--call", type=click.IntRange(min=1), help="Number of the call to search.  [default: the newest]")
@click.option("--session", default="", help="Session to search.  [default: all of the store]")
@click.option("--tenant", default="", help="Tenant of the session.  [default: all]")
@json_option("Print the answers as JSON.")
def command(folder: str, text: str, call: int | None, session: str, tenant: str, as_json: bool) -> None:
    """Say whether TEXT was in the request of a call of STORE, in which layer and message; if not, which edit
    removed it, when, at what price, and where it is now; or that it never was in the log.

    TEXT is searched exactly, also as JSON escapes it, and then ignoring case and spacing. A
    dash reads it from stdin.

    Exit code 0: it is in the request. 1: it is not. 2: the store or the arguments cannot be used.

    \b
    Examples:
      lading why ./store "src/app.py" --call 12
      pbpaste | lading why ./store - --session session-1
    """
    with terminal.clear_errors(), open_existing(folder) as store:
        wanted = _given(text)
        sessions = find_sessions(store, tenant=tenant, session=session)
        problems: list[str] = []
        records = read_each(sessions, partial(recorded, store), problems=problems, doing="searching")
        # Of several sessions, those are asked that have such a call.
        asked = (record for record in records if len(sessions) == 1 or len(record.manifests) >= (call or 1))
        answers = [answered(record, wanted, call=call) for record in asked]
        if not answers:
            end_damaged(problems)
            raise InputError(f"No call {call or 1} in any of the {len(sessions)} sessions; ask for another.")
    terminal.print_either(as_json, lambda: {"answers": answers}, show=lambda: _print(answers))
    end_damaged(problems)
    sys.exit(0 if any(given.verdict == "present" for given in answers) else terminal.FOUND)


def _given(text: str) -> str:
    """The text asked for, or stdin in its place without the newline that ends it."""
    if text != "-":
        return os.fsencode(text).decode("utf-8", "surrogateescape")  # The locale C leaves it undecoded.
    # Bytes that are no text are found nowhere; they are no reason to fail.
    read = sys.stdin.buffer.read(_MOST_BYTES + 1)
    if len(read) > _MOST_BYTES:
        raise InputError(f"The text from stdin is longer than {_MOST_BYTES:,} bytes; search for a part of it.")
    return read.decode("utf-8", "surrogateescape").removesuffix("\n").removesuffix("\r")


def _print(answers: list[Answer]) -> None:
    known = [given for given in answers if given.places]
    if not known and len(answers) > 1:
        say(f"No: it was never in the log of any of the {len(answers)} sessions.")
        closest = [(near, given.session) for given in answers for near in given.closest]
        for near, session in sorted(closest, key=lambda found: -found[0].score)[:_MOST_CLOSEST]:
            text = " ".join(near.text.split())
            say(f"  closest, {near.score:.0f} of 100: {session}, entry {near.entry}: {text}")
        for note in {given.note for given in answers if given.note}:
            say(note)
        return
    shown = sorted(known, key=lambda given: given.verdict != "present") or answers
    for given in shown:
        say_answer(explain_answer(given))
    if len(answers) > len(shown):
        say(f"It was never in the other {len(answers) - len(shown)} sessions.")
