"""``lading cite-check``: check the addresses that an answer cites against what its session showed."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.text import Text

from lading.cli import terminal
from lading.cli.options import json_option
from lading.cli.stores import find_session, open_existing
from lading.cli.tables import format_count
from lading.errors import InputError
from lading.task.acceptance import Citation, check_citations
from lading.task.citing import load_evidence


@click.command("cite-check")
@click.argument("file", metavar="FILE")
@click.option("--store", "folder", default=".", show_default=True, metavar="DIR", help="The store of the session.")
@click.option("--session", "session", default="", metavar="NAME", help="Needed where the store holds several.")
@click.option("--call", "call", type=click.IntRange(1), help="The call that FILE answers; default: any call.")
@json_option("Print every citation as JSON.")
def command(file: str, folder: str, session: str, call: int | None, as_json: bool) -> None:
    """Check each artifact:// address in FILE, an answer: it exists, it was shown to the model, and what the same
    line quotes ("...", 12 characters or more) is in it.

    Exit code 0: all are right. 1: some are not, or there is none. 2: the file or the store cannot be read.

    \b
    Example:
      lading cite-check answer.md --store ./store
    """
    with terminal.report_errors():
        try:
            text = Path(file).read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise InputError(f"{file} cannot be read: {error.strerror}.") from error
        with open_existing(folder) as store:
            owner = find_session(store, session=session)
            found = check_citations(text, load_evidence(store, owner, call=call))
    wrong = [one for one in found if one.problem]
    if as_json:
        terminal.print_json({"citations": found, "wrong": len(wrong)})
    else:
        for one in wrong:
            _print(one)
        terminal.out.print(f"{len(found) - len(wrong)} of {format_count(len(found), 'citation')} are right.")
    sys.exit(terminal.FOUND if wrong or not found else 0)


def _print(one: Citation) -> None:
    found = terminal.make_printable(f"line {one.line}: {one.uri}: {one.problem}")
    terminal.out.print(Text.assemble(("wrong", "red"), " ", found), soft_wrap=True)
