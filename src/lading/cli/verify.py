"""``lading verify``: rebuild every recorded request and compare it with the one that was sent."""

from __future__ import annotations

import sys
from itertools import chain

import click
from rich.text import Text

from lading.audit.replay import verify
from lading.cli import terminal
from lading.cli.options import json_option
from lading.cli.stores import fail_if_damaged, open_existing, read_each
from lading.cli.tables import format_count


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
        each = read_each(sessions, lambda **of: list(verify(store, **of)), problems=problems, doing="verifying")
        outcomes = list(chain(*each))
    wrong = [outcome for outcome in outcomes if outcome.problem]
    if as_json:
        terminal.print_json({"manifests": len(outcomes), "wrong": len(wrong), "outcomes": outcomes})
    else:
        for outcome in wrong:
            place = f"{outcome.tenant}/{outcome.session} call {outcome.call}"
            found = terminal.make_printable(f"{place}: {outcome.problem}")
            terminal.out.print(Text.assemble(("differs", "red"), " ", found), soft_wrap=True)
        good = len(outcomes) - len(wrong)
        count = format_count(len(sessions), "session")
        terminal.out.print(f"{good} of {len(outcomes)} manifests of {count} rebuild byte for byte.")
    fail_if_damaged(problems)
    sys.exit(terminal.FOUND if wrong else 0)
