"""``lading inspect``: where the tokens and the money of recorded sessions went."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from lading.cli import terminal
from lading.cli.inspect_output import as_json_value, print_report
from lading.cli.recordings import ModelNotes, read_files
from lading.cli.survey_output import nothing_found, place_json_value, print_survey
from lading.errors import InputError, SourceError
from lading.evaluate.inspection import Inspected, inspect_recording
from lading.evaluate.plan import Options
from lading.evaluate.survey import Surveyed, summarise_place, survey
from lading.sources import Problem
from lading.sources.places import Place, find_places, written_since

_ADVICE = "Give --model to say better."
_DAY_S = 86_400


@click.command("inspect")
@click.argument("files", nargs=-1, metavar="[FILE...]")
@click.option("--model", help="Model whose card is used; default: the recorded one.")
@click.option(
    "--counter", metavar="NAME", help="o200k, cl100k or estimate; default: the card's, without FILE estimate."
)
@click.option("--check", is_flag=True, help="Check the request of every call against its provider's rules.")
@click.option(
    "--top", type=click.IntRange(1), default=10, show_default=True, metavar="N", help="Rows of each table."
)
@click.option(
    "--days", type=click.IntRange(1), metavar="N", help="Without FILE: only logs written to in the last N days."
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON, with each session separately.")
def command(
    files: tuple[str, ...],
    model: str | None,
    counter: str | None,
    check: bool,
    top: int,
    days: int | None,
    as_json: bool,
) -> None:
    """Show where the tokens and the money of the sessions in FILEs went, before anything is changed.

    By layer, tool and content type; the largest results, what was read twice, calls without a result; what
    the sessions cost if each request is the whole history so far, and what the log says was billed.

    Without FILE: of all sessions that Claude Code and Codex keep on this machine, and how many opencode has.

    \b
    Exit code 0: done. 1: --check found requests that break a rule. 2: bad input.

    \b
    Examples:
      lading inspect
      lading inspect --days 7
      lading inspect session.jsonl
      lading inspect ~/.claude/projects/*/*.jsonl --top 5
      lading inspect logs/*.jsonl.gz --check --counter cl100k
      lading inspect session.jsonl --model claude-sonnet-4-5 --json | jq .total.append_only
    """
    with terminal.clear_errors():
        if files and days is not None:
            raise InputError(
                "--days selects among the logs found on this machine. Leave it out when you name FILEs."
            )
        if files:
            inspected = _inspect_files(files, Options(model=model, counter=counter), check, top, as_json)
        else:
            options = Options(model=model, counter=counter or "estimate")
            inspected = _inspect_places(_places(days), options, check, top, as_json)
    legality = [item.found.legality for item in inspected]
    sys.exit(terminal.FOUND if any(found and found.illegal_requests for found in legality) else 0)


def _inspect_files(files: Sequence[str], options: Options, check: bool, top: int, as_json: bool) -> list[Inspected]:
    problems: list[Problem] = []
    inspected: list[tuple[str, Inspected]] = []
    notes = ModelNotes(_ADVICE)
    with terminal.progress("inspecting", None) as advance:
        for file, recording in read_files(files, problems):
            item = inspect_recording(recording, options, check=check)
            notes.note(item.events)
            inspected.append((file, item))
            advance(1)
    if not inspected:
        raise SourceError(f"No session was found in {', '.join(files)}. Give files with recorded sessions.")
    items = [item for _, item in inspected]
    value = partial(as_json_value, inspected, problems, top=top)
    terminal.print_either(as_json, value, show=lambda: print_report(items, top=top))
    return items


def _places(days: int | None) -> tuple[Place, ...]:
    places = find_places(Path(os.path.expanduser("~")), os.environ)
    if not any(place.files for place in places):
        raise SourceError(nothing_found(places))
    if days is None:
        return places
    return tuple(written_since(place, time.time() - days * _DAY_S) for place in places)


def _inspect_places(
    places: Sequence[Place], options: Options, check: bool, top: int, as_json: bool
) -> list[Inspected]:
    notes = ModelNotes(_ADVICE)
    surveyed: list[Surveyed] = []
    size_bytes = sum(place.size_bytes for place in places if place.format)
    with terminal.progress("inspecting", size_bytes, in_bytes=True) as advance:
        for place in places:
            for item in survey(place, options, check=check):
                surveyed.append(item)
                advance(item.file.size_bytes)
    inspected = [(item.file.path, session) for item in surveyed for session in item.sessions]
    notes.note(event for _, session in inspected for event in session.events)
    rows = [summarise_place(place, [item for item in surveyed if item.place is place]) for place in places]
    problems = [problem for item in surveyed for problem in item.problems]
    if as_json:
        places_value = [place_json_value(row, top=top) for row in rows]
        terminal.print_json({"places": places_value, **as_json_value(inspected, problems, top=top)})
    else:
        print_survey(rows, inspected, problems=problems, top=top)
    return [session for _, session in inspected]
