"""``lading show``: read what an address points to."""

from __future__ import annotations

import click

from lading.cli import terminal
from lading.pointers import as_text, resolve
from lading.stores.sqlite import open_sqlite


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
    with terminal.clear_errors(), open_sqlite(folder, create=False) as store:
        entries = resolve(store, address)
    if as_json:
        terminal.print_json(entries)
        return
    for entry in entries:
        if len(entries) > 1:
            click.echo(f"--- {entry.index} {entry.message.role} ({entry.tokens} tokens)")
        click.echo(as_text(entry.message).encode("utf-8", "backslashreplace"))
