"""Print a summary of the logs of each tool on this machine, for ``lading inspect`` without files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import asdict

from lading.cli.bills import format_billed_cost
from lading.cli.tables import Column, draw_bar, format_count, format_tokens, print_items, print_table, say
from lading.evaluate.inspection import Inspection, summarize
from lading.evaluate.layers import name_layer
from lading.evaluate.survey import PlaceSummary
from lading.sources import Problem
from lading.sources.log_locations import ToolLogs

_SHOWN_PROBLEMS = 3


def explain_nothing_found(places: Iterable[ToolLogs]) -> str:
    """Explain where logs were searched for, and what to do."""
    looked = ", ".join(folder for place in places for folder in place.folders)
    tools = ", ".join(place.tool for place in places)
    trouble = "; ".join(reason for place in places for reason in place.unreadable)
    return (
        f"No logs were found of {tools}. Looked in {looked}. "
        + (f"Could not look everywhere: {trouble}. " if trouble else "")
        + "Name the files: lading inspect FILE... Or name the folders in CLAUDE_CONFIG_DIR, CODEX_HOME or "
        "XDG_DATA_HOME."
    )


def encode_place(row: PlaceSummary, *, top: int) -> dict[str, Any]:
    """Encode the figures of a tool's logs for JSON."""
    fields = asdict(row)
    found = fields.pop("found")
    return {**fields, "total": None if found is None else summarize(found, top=top)}


def print_survey(rows: Sequence[PlaceSummary], problems: Sequence[Problem]) -> None:
    """Print a table of the tools, the problems, and the tokens by layer."""
    _print_places(rows)
    _print_problems(rows, problems)
    found = [(row.tool, row.found) for row in rows if row.found is not None]
    if not found:
        say("no session was found in them")
    elif len(found) > 1:
        _print_layers(found)


def _print_places(rows: Sequence[PlaceSummary]) -> None:
    print_items(
        "logs on this machine",
        rows,
        columns=[
            (Column("tool", left=True), lambda row: row.tool),
            (Column("sessions"), lambda row: "unknown" if row.sessions is None else f"{row.sessions:,}"),
            (Column("files", only_wide=True), lambda row: f"{row.files:,}"),
            (Column("size"), lambda row: format_size(row.size_bytes)),
            (Column("first", left=True), lambda row: _format_day(row.first_s)),
            (Column("last", left=True), lambda row: _format_day(row.last_s)),
            (Column("calls", only_wide=True), lambda row: f"{row.found.counts.model_calls:,}" if row.found else ""),
            (Column("tokens"), lambda row: format_tokens(row.found.tokens) if row.found else ""),
            (Column("billed"), lambda row: _format_bill(row.found) if row.found else ""),
        ],
    )
    for row in rows:
        if row.files and not row.format:
            say(f"{row.tool}: its logs are listed, not read", style="dim")


def _format_bill(found: Inspection) -> str:
    return format_billed_cost(found.billed) or "not logged"


def _print_layers(found: Sequence[tuple[str, Inspection]]) -> None:
    masses = [inspection.layers for _, inspection in found]
    layers = sorted(masses[0], key=lambda layer: -sum(mass[layer].tokens for mass in masses))
    print_table(
        "tokens by layer and tool",
        (
            Column("layer", left=True),
            *(column for tool, _ in found for column in (Column(tool), Column("share", left=True))),
        ),
        rows=[
            (
                name_layer(layer),
                *(
                    cell
                    for mass, (_, inspection) in zip(masses, found, strict=True)
                    for cell in (format_tokens(mass[layer].tokens), draw_bar(mass[layer].tokens, inspection.tokens))
                ),
            )
            for layer in layers
            if any(mass[layer].items for mass in masses)
        ],
    )


def _print_problems(rows: Sequence[PlaceSummary], problems: Sequence[Problem]) -> None:
    for reason in [reason for row in rows for reason in row.unreadable][:_SHOWN_PROBLEMS]:
        say(f"could not be read: {reason}", style="yellow")
    files = Counter(problem.file for problem in problems)
    if not files:
        return
    counts = f"{format_count(len(problems), 'problem')} in {format_count(len(files), 'file')}"
    say(f"{counts}; --json lists them", style="yellow")
    for problem in problems[:_SHOWN_PROBLEMS]:
        place = f"{problem.file}:{problem.line}" if problem.line else problem.file
        say(f"  {place}: {problem.text}", style="dim")


def format_size(size_bytes: int) -> str:
    """Format a number of bytes with a decimal unit."""
    for unit, least in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size_bytes >= least:
            return f"{size_bytes / least:,.1f} {unit}"
    return f"{size_bytes} B"


def _format_day(moment_s: float | None) -> str:
    if moment_s is None:
        return ""
    try:
        return datetime.fromtimestamp(moment_s, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return "unknown"
