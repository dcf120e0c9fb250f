"""``lading inspect``: where the tokens and the money of recorded sessions went."""

from __future__ import annotations

import sys

import click

from lading.cli import terminal
from lading.cli.inspect_output import as_json_value, print_report
from lading.cli.recordings import ModelNotes, read_files
from lading.errors import SourceError
from lading.evaluate.inspection import Inspected, inspect_recording
from lading.evaluate.plan import Options
from lading.sources import Problem


@click.command("inspect")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--model", help="Model whose card is used; default: the recorded one.")
@click.option("--counter", metavar="NAME", help="o200k, cl100k or estimate; default: the card's.")
@click.option("--check", is_flag=True, help="Check the request of every call against its wire's rules.")
@click.option(
    "--top", type=click.IntRange(1), default=10, show_default=True, metavar="N", help="Rows of each table."
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON, every session by itself too.")
def command(
    files: tuple[str, ...], model: str | None, counter: str | None, check: bool, top: int, as_json: bool
) -> None:
    """Show where the tokens and the money of the sessions in FILEs went, before anything is changed.

    By layer, tool and content type; the largest results, what was read twice, calls without a result; what
    the sessions cost if each request is the whole history so far, and what the log says was billed.

    \b
    Exit code 0: done. 1: --check found requests that break a rule. 2: bad input.

    \b
    Examples:
      lading inspect session.jsonl
      lading inspect ~/.claude/projects/*/*.jsonl --top 5
      lading inspect logs/*.jsonl.gz --check --counter cl100k
      lading inspect session.jsonl --model claude-sonnet-4-5 --json | jq .total.append_only
    """
    options = Options(model=model, counter=counter)
    problems: list[Problem] = []
    inspected: list[tuple[str, Inspected]] = []
    notes = ModelNotes("Give --model to say better.")
    with terminal.clear_errors(), terminal.progress("inspecting", None) as advance:
        for file, recording in read_files(files, problems):
            item = inspect_recording(recording, options, check=check)
            notes.note(item.events)
            inspected.append((file, item))
            advance(1)
        if not inspected:
            raise SourceError(f"No session was found in {', '.join(files)}. Give files with recorded sessions.")
    if as_json:
        terminal.print_json(as_json_value(inspected, problems, top=top))
    else:
        print_report([item for _, item in inspected], top=top)
    legality = [item.found.legality for _, item in inspected]
    sys.exit(terminal.FOUND if any(found and found.illegal_requests for found in legality) else 0)
