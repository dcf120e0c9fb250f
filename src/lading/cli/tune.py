"""``lading tune``: find the layers that starved or wasted their budget, over the steps of many sessions."""

from __future__ import annotations

import sys
from functools import partial

import click
import msgspec

from lading.cli import terminal
from lading.cli.options import json_option
from lading.cli.stores import fail_if_damaged, find_sessions, open_existing, read_each
from lading.cli.tables import Column, format_count, format_tokens, print_items, say
from lading.evaluate.tuning import LayerTuning, SentPayload, Tuning, advise, read_payloads, tune


@click.command("tune")
@click.argument("folder", metavar="STORE")
@click.option("--session", default="", metavar="NAME", help="Session to read.  [default: all of the store]")
@click.option("--tenant", default="", metavar="NAME", help="Tenant of the session.  [default: all]")
@json_option("Print the figures as JSON.")
def command(folder: str, session: str, tenant: str, as_json: bool) -> None:
    """Find the layers (system, task, tools, evidence, memory, conversation) that starved or wasted their budget in
    the payloads of STORE, over all of its sessions, and say what to change.

    A layer starves in a payload where evidence or memories did not fit, where the conversation is above its budget,
    or a fixed layer above its floor; it wastes where it holds less than half of its share of the window. The
    verdict names layers that starve in a tenth of the payloads, and those that waste in more than half of them.

    Exit code 0: no layer starves. 1: one does. 2: the store cannot be read, or no session of it has a step.

    \b
    Examples:
      lading tune ./store
      lading tune ./store --session research --json
    """
    problems: list[str] = []
    with terminal.report_errors(), open_existing(folder) as store:
        sessions = find_sessions(store, tenant=tenant, session=session)
        read = list(read_each(sessions, partial(read_payloads, store), problems=problems, doing="reading"))
    payloads: list[SentPayload] = [payload for found in read for payload in found]
    if not payloads:
        fail_if_damaged(problems)
        terminal.fail("No session has a payload of a step. Begin one with Session.begin.")
    tuning, with_steps = tune(payloads), sum(map(bool, read))
    verdict = _write_verdict(tuning, sessions=with_steps)
    fields = {"verdict": verdict, "sessions": with_steps, **msgspec.to_builtins(tuning), "problems": problems}
    terminal.print_either(as_json, lambda: fields, show=lambda: _print(tuning, verdict))
    fail_if_damaged(problems)
    sys.exit(terminal.FOUND if tuning.starved else 0)


def _write_verdict(tuning: Tuning, *, sessions: int) -> str:
    over = f"{format_count(tuning.payloads, 'payload')} of {format_count(sessions, 'session')}"
    starved = ", ".join(_describe(one) for one in tuning.layers if one.is_starved)
    wasted = ", ".join(tuning.wasted)
    found = [
        *([f"starved: {starved}"] if starved else ["no layer starved"]),
        *([f"wasted: {wasted}"] if wasted else []),
    ]
    return f"{over}: {'; '.join(found)}. {advise(tuning)}"


def _describe(one: LayerTuning) -> str:
    left = f", {format_count(one.dropped, 'candidate')} left out" if one.dropped else ""
    return f"{one.layer} (in {one.starved:,}{left})"


def _print(tuning: Tuning, verdict: str) -> None:
    say(verdict, style="bold")
    print_items(
        "",
        tuning.layers,
        columns=[
            (Column("layer", left=True), lambda one: one.layer),
            (Column("share"), lambda one: format_tokens(one.share_tokens)),
            (Column("holds"), lambda one: format_tokens(one.held_tokens)),
            (Column("starved in"), lambda one: f"{one.starved:,}"),
            (Column("left out"), lambda one: f"{one.dropped:,}"),
            (Column("wasted in"), lambda one: f"{one.wasted:,}"),
        ],
    )
