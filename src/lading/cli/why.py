"""``lading why``: find whether a text was in a request, and if not, what removed it."""

from __future__ import annotations

import os
import sys
from functools import partial

import click

from lading.audit.snapshots import load_trail
from lading.audit.verdicts import Explanation
from lading.audit.why import explain
from lading.cli import terminal
from lading.cli.explanations import explain_answer
from lading.cli.options import json_option
from lading.cli.stores import fail_if_damaged, find_sessions, open_existing, parse_request_name, read_each
from lading.cli.tables import format_count, say, say_answer
from lading.errors import InputError
from lading.task.candidate_search import FoundCandidate, find_candidates

_MOST_BYTES = 1_000_000
_MOST_CLOSEST = 3
_MOST_CANDIDATES = 10


@click.command("why")
@click.argument("folder", metavar="STORE")
@click.argument("text")
@click.option("--call", type=click.IntRange(min=1), help="Number of the call to search.  [default: the newest]")
@click.option("--session", default="", help="Session to search.  [default: all of the store]")
@click.option("--tenant", default="", help="Tenant of the session.  [default: all]")
@json_option("Print the answers as JSON.")
def command(folder: str, text: str, call: int | None, session: str, tenant: str, as_json: bool) -> None:
    """Find whether TEXT was in the request of a call of STORE, in which layer and message; if not, which edit
    removed it, when, at what price, and where it is now; or that it was never in the log. Evidence and memories of
    a task's step that TEXT names, or that hold it, are listed with why a payload left them out.

    TEXT is searched exactly, also in JSON escapes, then ignoring case and spacing. A dash reads it from stdin.

    Exit code 0: it is in the request. 1: it is not. 2: the store or the arguments cannot be used.

    \b
    Examples:
      lading why ./store "src/app.py" --call 12
      lading why ./store@12 "src/app.py"
      pbpaste | lading why ./store - --session session-1
    """
    if (named := parse_request_name(folder)) is not None and not os.path.isdir(folder):
        folder, call = named.folder, call or named.call
        session, tenant = session or named.session, tenant or named.tenant
    with terminal.report_errors(), open_existing(folder) as store:
        wanted = _read_text(text)
        sessions = find_sessions(store, tenant=tenant, session=session)
        problems: list[str] = []
        records = read_each(sessions, partial(load_trail, store), problems=problems, doing="searching")
        # Of several sessions, search those that have such a call.
        searched = (record for record in records if len(sessions) == 1 or len(record.manifests) >= (call or 1))
        answers = [explain(record, wanted, call=call) for record in searched]
        if not answers:
            fail_if_damaged(problems)
            raise InputError(f"No call {call or 1} in any of the {len(sessions)} sessions; ask for another.")
        candidates = [
            candidate
            for answer in answers
            if answer.call
            for candidate in find_candidates(store, (answer.tenant, answer.session), text=wanted, call=answer.call)
        ]
    found = {"answers": answers, "candidates": candidates, "problems": problems}
    terminal.print_either(as_json, lambda: found, show=lambda: _print_found(answers, candidates, folder))
    fail_if_damaged(problems)
    sys.exit(0 if any(answer.verdict == "present" for answer in answers) else terminal.FOUND)


def _read_text(text: str) -> str:
    """Return the text; for a dash, that of stdin without its last newline. Raises InputError if it is too long."""
    if text != "-":
        return os.fsencode(text).decode("utf-8", "surrogateescape")  # With the locale C it has surrogates.
    # Bytes that are not UTF-8 match nothing, and need no error.
    read = sys.stdin.buffer.read(_MOST_BYTES + 1)
    if len(read) > _MOST_BYTES:
        raise InputError(f"The text from stdin is longer than {_MOST_BYTES:,} bytes; search for a part of it.")
    return read.decode("utf-8", "surrogateescape").removesuffix("\n").removesuffix("\r")


def _print_found(answers: list[Explanation], candidates: list[FoundCandidate], folder: str) -> None:
    _print_answers(answers, folder)
    for one in candidates[:_MOST_CANDIDATES]:
        reason = f": {one.reason}" if one.reason else ""
        say(f"- {one.layer} {one.id} is {one.state} in the payload of step {one.step} at call {one.call}{reason}.")
    if (more := len(candidates) - _MOST_CANDIDATES) > 0:
        say(f"And {format_count(more, 'more candidate')}; --json lists them.")


def _print_answers(answers: list[Explanation], folder: str) -> None:
    known = [answer for answer in answers if answer.places]
    if not known and len(answers) > 1:
        say(f"No: it was never in the log of any of the {len(answers)} sessions.")
        closest = [(near, answer.session) for answer in answers for near in answer.closest]
        for near, session in sorted(closest, key=lambda found: -found[0].score)[:_MOST_CLOSEST]:
            text = " ".join(near.text.split())
            say(f"  closest, {near.score:.0f} of 100: {session}, entry {near.entry}: {text}")
        for note in {answer.note for answer in answers if answer.note}:
            say(note)
        return
    shown = sorted(known, key=lambda answer: answer.verdict != "present") or answers
    for answer in shown:
        say_answer(explain_answer(answer))
    gone = [place.address for answer in shown for place in answer.places if place.removal and place.address]
    if gone:
        say(f"To read it whole: lading show {gone[0]} --store {folder}")
    if len(answers) > len(shown):
        say(f"It was never in the other {len(answers) - len(shown)} sessions.")
