"""``lading top``: the sessions of a store while they run."""

from __future__ import annotations

import time
from contextlib import closing
from functools import partial

import click
from rich.live import Live

from lading.cli import terminal
from lading.cli.store_watch import Glance, StoreWatch
from lading.cli.top_output import as_json_value, chosen, screen
from lading.validation import did_you_mean


@click.command("top")
@click.argument("store", default="store", metavar="[STORE]")
@click.option(
    "--session", metavar="NAME", help="Session whose calls are listed; default: the most recently active."
)
@click.option(
    "--interval", type=click.FloatRange(0.1, 3600), default=1.0, show_default=True, metavar="S",
    help="Seconds between refreshes.",
)  # fmt: skip
@click.option("--once", is_flag=True, help="Print the current state and exit.")
@click.option("--json", "as_json", is_flag=True, help="With --once: print it as JSON.")
def command(store: str, session: str | None, interval: float, once: bool, as_json: bool) -> None:
    """Watch the sessions in the folder STORE (default: ./store) while another process runs them.

    The last request by layer against the window; what the input cost so far, simulated at list prices beside
    everything sent, and as billed where replies said so; the share read from the cache; edits; how far counts
    were off. Below, the newest calls of one session. Ctrl-C ends it.

    Everything sent: the whole history at each call of the caller. Requests that Lading makes, for restore and
    after a refusal, cost only its own side. A saving as billed needs the usage of every request; everything sent
    stays simulated in it, in tokens as the provider counts them.

    \b
    Exit code 0: done. 2: with --once, the store or the session is not there.

    \b
    Examples:
      lading top
      lading top ./store --session agent-7
      lading top ./store --once --json
    """
    if as_json and not once:
        terminal.fail("--json prints one frame. Give --once with it.")
    if not once and not terminal.out.is_terminal:
        terminal.fail("The output is no terminal, where a live view would go. Give --once.")
    with closing(StoreWatch(store)) as watch:
        if once:
            _print(watch.look(), session, store=store, as_json=as_json)
        else:
            _follow(watch, session, store=store, interval_s=interval)


def _print(glance: Glance, session: str | None, *, store: str, as_json: bool) -> None:
    selected = chosen(glance, session)
    if glance.troubles and not glance.sessions:
        terminal.fail(glance.troubles[0])
    if session is not None and selected is None:
        terminal.fail(_missing(glance, session))
    shown = partial(screen, glance, selected, folder=store)
    terminal.print_either(
        as_json, partial(as_json_value, glance, selected), show=lambda: terminal.out.print(shown())
    )


def _follow(watch: StoreWatch, session: str | None, *, store: str, interval_s: float) -> None:
    try:
        with Live(console=terminal.out, screen=True, auto_refresh=False) as live:
            while True:
                glance = watch.look()
                selected = chosen(glance, session)
                if session is not None and selected is None and not glance.troubles:
                    glance = Glance(glance.sessions, (_missing(glance, session),))
                live.update(screen(glance, selected, folder=store, lines=terminal.out.height), refresh=True)
                time.sleep(interval_s)
    except KeyboardInterrupt:
        return  # How a person ends it.


def _missing(glance: Glance, session: str) -> str:
    names = ", ".join(f"{item.watched.tenant}/{item.watched.session}" for item in glance.sessions[:8])
    meant = did_you_mean(session, [item.watched.session for item in glance.sessions])
    return f"There is no session {session!r} yet.{meant} The store holds: {names or 'none'}."
