"""``lading diff``: what changed between two requests, where their bytes part, and who caused it."""

from __future__ import annotations

import sys

import click

from lading.cli import terminal
from lading.cli.explanations import explain_difference
from lading.cli.plaintables import say
from lading.cli.request_names import named_snapshot
from lading.evaluate.differences import diff


@click.command("diff")
@click.argument("one", metavar="MANIFEST")
@click.argument("other", metavar="MANIFEST")
@click.option("--json", "as_json", is_flag=True, help="Print the difference as JSON.")
def command(one: str, other: str, as_json: bool) -> None:
    """Compare the requests of two calls, of one session or of two.

    A manifest is named STORE@CALL, or STORE@SESSION:CALL where the store holds several sessions
    (STORE@TENANT/SESSION:CALL where tenants share a name). CALL is a number from 1, or last.

    Exit code 0: the bytes are equal. 1: they are not. 2: a store or a name cannot be used.

    \b
    Examples:
      lading diff ./store@11 ./store@12
      lading diff ./priced@session-1:last ./append-only@session-1:last
    """
    with terminal.clear_errors():
        difference = diff(named_snapshot(one), named_snapshot(other))
    if as_json:
        terminal.print_json(difference)
    else:
        first, *others = explain_difference(difference)
        say(first, style="bold")
        for line in others:
            say(line)
    sys.exit(0 if difference.parting is None else terminal.FOUND)
