"""``lading verify``: rebuild every recorded request and compare it with the one that was sent."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import partial

import click
from rich.text import Text

from lading.audit.replay import Outcome, verify
from lading.cli import terminal
from lading.cli.options import json_option
from lading.cli.stores import fail_if_damaged, open_existing, read_each
from lading.cli.tables import format_count, say
from lading.errors import StoreError
from lading.stores import SessionStore

_MOST_SHOWN = 20


@click.command("verify")
@click.argument("folder", metavar="STORE")
@json_option("Print every outcome as JSON.")
def command(folder: str, as_json: bool) -> None:
    """Rebuild each request of STORE from manifest, log and edits, and compare the bytes.

    Exit code 0: all agree. 1: some do not. 2: the store cannot be read.

    \b
    Example:
      lading verify ./store
    """
    problems: list[str] = []
    with terminal.report_errors(), open_existing(folder) as store:
        sessions = store.sessions()
        verified = list(read_each(sessions, partial(_verify, store), problems=problems, doing="verifying"))
        if orphans := store.count_orphans():
            count = format_count(orphans, "stored item")
            problems.append(f"{count} belong to a session that the store does not list.")
    outcomes = [outcome for found, _ in verified for outcome in found]
    manifests = sum(count for _, count in verified)
    wrong = [outcome for outcome in outcomes if outcome.problem]
    good = len(outcomes) - len(wrong)
    if as_json:
        value = {"manifests": manifests, "wrong": manifests - good, "outcomes": outcomes, "problems": problems}
        terminal.print_json(value)
    else:
        for outcome in wrong[:_MOST_SHOWN]:
            place = f"{outcome.tenant}/{outcome.session} call {outcome.call}"
            found = terminal.make_printable(f"{place}: {outcome.problem}")
            terminal.out.print(Text.assemble(("differs", "red"), " ", found), soft_wrap=True)
        if len(wrong) > _MOST_SHOWN:
            say(f"and {len(wrong) - _MOST_SHOWN:,} more; --json lists all")
        count = format_count(len(sessions), "session")
        terminal.out.print(f"{good} of {manifests} manifests of {count} rebuild byte for byte.")
    fail_if_damaged(problems)
    sys.exit(terminal.FOUND if wrong else 0)


def _verify(store: SessionStore, *, tenant: str, session: str) -> tuple[list[Outcome], int]:
    """Return the outcomes of a session and the number of its manifests, of which the last may be unreadable."""
    count = 0
    with suppress(StoreError):
        # Count first: a manifest that a writer adds later is not compared.
        count = store.counts(tenant, session)[2]
    outcomes = list(verify(store, tenant=tenant, session=session))
    return outcomes, max(count, len(outcomes))
