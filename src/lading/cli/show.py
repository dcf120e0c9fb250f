"""``lading show``: read what an address points to."""

from __future__ import annotations

import sys

import click

from lading.cli import terminal
from lading.cli.existing_store import open_existing
from lading.pointers import as_text, resolve


@click.command("show")
@click.argument("address")
@click.option(
    "--store", "folder", default=".", show_default=True, metavar="DIR", help="The store that holds the session."
)
@click.option("--json", "as_json", is_flag=True, help="Print the log entries as JSON.")
def command(address: str, folder: str, as_json: bool) -> None:
    """Print the messages that ADDRESS (artifact://tenant/session/log/17 or .../log/17-42) points to, whole.

    \b
    Example:
      lading show artifact://default/session-1/log/17 --store ./store
    """
    with terminal.clear_errors(), open_existing(folder) as store:
        entries = resolve(store, address)
    if as_json:
        terminal.print_json(entries)
        return
    for entry in entries:
        if len(entries) > 1:
            click.echo(f"--- {entry.index} {entry.message.role} ({entry.tokens} tokens)")
        text = as_text(entry.message)
        if sys.stdout.isatty():
            # What a tool once printed must not move the cursor or rename the window now.
            click.echo(terminal.printable(text.replace("\t", "    ")))
        else:
            click.echo(text.encode("utf-8", "backslashreplace"))
