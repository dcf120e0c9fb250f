"""``lading show``: what a store holds, a request as the model saw it, or what an address points to."""

from __future__ import annotations

import os
from functools import partial

import click

from lading.addresses import SCHEME
from lading.audit.pointers import resolve
from lading.cli import terminal
from lading.cli.request_names import FORM, end_damaged, in_full, named_snapshot, open_existing, parse
from lading.cli.show_output import listed, print_entries, print_request, print_sessions, request_values
from lading.errors import InputError


@click.command("show")
@click.argument("what", metavar="STORE|MANIFEST|ADDRESS")
@click.option(
    "--store", "folder", default=".", show_default=True, metavar="DIR", help="The store to read an ADDRESS from."
)
@click.option("--json", "as_json", is_flag=True, help="Print the same as JSON.")
def command(what: str, folder: str, as_json: bool) -> None:
    """List the sessions of a STORE; or print the messages of one request as the model saw them, with what left
    and where it is; or the messages that an ADDRESS points to, whole: artifact://tenant/session/log/17,
    .../log/17-42, or .../log/17.0 for a part; where the store holds one session artifact://log/17 will do.

    A MANIFEST is named STORE@CALL, or STORE@SESSION:CALL where the store holds several sessions
    (STORE@TENANT/SESSION:CALL where tenants share a name). CALL is a number from 1, or last.

    \b
    Examples:
      lading show ./store
      lading show ./store@session-1:12
      lading show artifact://default/session-1/log/17 --store ./store
    """
    is_address = what.startswith(SCHEME)
    with terminal.clear_errors():
        # A folder that is there is never taken for the name of a request.
        if not is_address and os.path.isdir(what):
            problems: list[str] = []
            with open_existing(what) as store:
                sessions = listed(store, problems)
            terminal.print_either(as_json, lambda: {"sessions": sessions}, show=lambda: print_sessions(sessions))
            end_damaged(problems)
        elif not is_address and parse(what):
            request = named_snapshot(what)
            show = partial(print_request, request, folder=what.rpartition("@")[0])
            terminal.print_either(as_json, partial(request_values, request), show=show)
        elif not is_address:
            raise InputError(
                f"There is no folder {what[:200]!r}, and it is not an address; expected a store, "
                f"{FORM}, {SCHEME}log/N or {SCHEME}tenant/session/log/N."
            )
        else:
            with open_existing(folder) as store:
                entries = resolve(store, in_full(store, what))
            terminal.print_either(as_json, lambda: entries, show=lambda: print_entries(entries))
