"""``lading diff``: what changed between two requests, where their bytes diverge, and the cause."""

from __future__ import annotations

import difflib
import sys

import click

from lading.audit.pointers import render_text
from lading.audit.snapshots import Snapshot
from lading.cli import terminal
from lading.cli.explanations import explain_difference
from lading.cli.options import json_option
from lading.cli.stores import find_snapshot
from lading.cli.tables import say, say_answer
from lading.evaluate.differences import diff

_MARKS = {"+": "green", "-": "red", "@": "cyan"}


@click.command("diff")
@click.argument("one", metavar="MANIFEST")
@click.argument("other", metavar="MANIFEST")
@click.option("--text", "as_lines", is_flag=True, help="Print the lines of messages that differ, as a text diff.")
@json_option("Print the difference as JSON.")
def command(one: str, other: str, as_lines: bool, as_json: bool) -> None:
    """Compare the requests of two calls, of one session or of two.

    A manifest is named STORE@CALL, or STORE@SESSION:CALL where the store holds several sessions
    (STORE@TENANT/SESSION:CALL where tenants share a name). CALL is a number from 1, or last.

    Exit code 0: the bytes are equal. 1: they are not. 2: a store or a name cannot be used.

    \b
    Examples:
      lading diff ./store@11 ./store@12
      lading diff --text ./store@11 ./store@12
      lading diff ./priced@session-1:last ./basic@session-1:last
    """
    with terminal.report_errors():
        snapshots = find_snapshot(one), find_snapshot(other)
        difference = diff(*snapshots)
    if as_json:
        terminal.print_json(difference)
    elif as_lines:
        before, after = map(_list_lines, snapshots)
        for line in difflib.unified_diff(before, after, one, other, lineterm=""):
            say(line, _MARKS.get(line[:1], ""))
    else:
        say_answer(explain_difference(difference))
    sys.exit(0 if difference.parting is None else terminal.FOUND)


def _list_lines(request: Snapshot) -> list[str]:
    """List the messages as lines of text, each under the number of its log entry, which never changes."""
    texts = (f"--- #{item.entry} {item.message.role}\n{render_text(item.message)}" for item in request.shown)
    return [line for text in texts for line in text.split("\n")]
