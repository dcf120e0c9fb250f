"""``lading inspect``: where the tokens and the money of recorded sessions went."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from lading.cli import terminal
from lading.cli.bills import format_billed_cost, format_simulated_cost, print_bill
from lading.cli.options import json_option, model_option
from lading.cli.recordings import ReplayWarnings, read_files
from lading.cli.survey import encode_place, explain_nothing_found, print_survey
from lading.cli.tables import (
    Column,
    draw_bar,
    format_count,
    format_place,
    format_tokens,
    print_items,
    print_table,
    say,
    shorten_names,
)
from lading.errors import InputError, SourceError
from lading.evaluate.inspection import Inspection, SessionInspection, add_up, inspect_recording, summarize
from lading.evaluate.layers import name_layer
from lading.evaluate.legality import BrokenRule, Legality
from lading.evaluate.plan import PlanOptions
from lading.evaluate.survey import LogSurvey, summarize_place, survey
from lading.evaluate.tooluse import (
    Location,
    RecordedResult,
    ToolRow,
    ToolUse,
    find_largest,
    find_repeats,
    group_by_content,
    group_by_tool,
)
from lading.sources import Problem
from lading.sources.log_locations import ToolLogs, find_logs, select_written_since

_ADVICE = "Give --model for better figures."
_DAY_S = 86_400


@click.command("inspect")
@click.argument("files", nargs=-1, metavar="[FILE...]")
@model_option
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
@json_option("Print everything as JSON, with each session separately.")
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
    the sessions cost if each request is the whole history so far, and what was billed according to the log.

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
    with terminal.report_errors():
        if files and days is not None:
            raise InputError(
                "--days selects among the logs found on this machine. Leave it out when you name FILEs."
            )
        if files:
            inspected = _inspect_files(files, PlanOptions(model=model, counter=counter), check, top, as_json)
        else:
            options = PlanOptions(model=model, counter=counter or "estimate")
            inspected = _inspect_logs(_find_logs(days), options, check, top, as_json)
    legality = [item.found.legality for item in inspected]
    sys.exit(terminal.FOUND if any(found and found.illegal_requests for found in legality) else 0)


def _inspect_files(
    files: Sequence[str], options: PlanOptions, check: bool, top: int, as_json: bool
) -> list[SessionInspection]:
    problems: list[Problem] = []
    inspected: list[tuple[str, SessionInspection]] = []
    notes = ReplayWarnings(_ADVICE)
    with terminal.show_progress("inspecting", None) as advance:
        for file, recording in read_files(files, problems):
            item = inspect_recording(recording, options, check=check)
            notes.warn_of_models(item.events)
            inspected.append((file, item))
            advance(1)
    if not inspected:
        raise SourceError(f"No session was found in {', '.join(files)}. Give files with recorded sessions.")
    items = [item for _, item in inspected]
    value = partial(encode_inspections, inspected, problems, top=top)
    terminal.print_either(as_json, value, show=lambda: print_report(items, top=top))
    return items


def _find_logs(days: int | None) -> tuple[ToolLogs, ...]:
    places = find_logs(Path(os.path.expanduser("~")), os.environ)
    if not any(place.files for place in places):
        raise SourceError(explain_nothing_found(places))
    if days is None:
        return places
    return tuple(select_written_since(place, time.time() - days * _DAY_S) for place in places)


def _inspect_logs(
    places: Sequence[ToolLogs], options: PlanOptions, check: bool, top: int, as_json: bool
) -> list[SessionInspection]:
    notes = ReplayWarnings(_ADVICE)
    surveyed: list[LogSurvey] = []
    size_bytes = sum(place.size_bytes for place in places if place.format)
    with terminal.show_progress("inspecting", size_bytes, in_bytes=True) as advance:
        for place in places:
            for item in survey(place, options, check=check):
                surveyed.append(item)
                advance(item.file.size_bytes)
    inspected = [(item.file.path, session) for item in surveyed for session in item.sessions]
    notes.warn_of_models(event for _, session in inspected for event in session.events)
    rows = [summarize_place(place, [item for item in surveyed if item.place is place]) for place in places]
    problems = [problem for item in surveyed for problem in item.problems]
    if as_json:
        places_value = [encode_place(row, top=top) for row in rows]
        terminal.print_json({"places": places_value, **encode_inspections(inspected, problems, top=top)})
    else:
        print_survey(rows, problems)
        if inspected:
            say("")
            print_report([item for _, item in inspected], top=top)
            file, fullest = max(inspected, key=lambda item: item[1].found.tokens)
            named = f"lading inspect {shlex.quote(file)}"
            say(f"the largest by itself ({format_tokens(fullest.found.tokens)} tokens): {named}")
    return [session for _, session in inspected]


def encode_inspections(
    inspected: Sequence[tuple[str, SessionInspection]], problems: Sequence[Problem], *, top: int
) -> dict[str, Any]:
    """Encode the figures of all sessions together and of each, and the problems of the files, for JSON."""
    sessions = [
        {"file": file, "session": item.session, "setting": item.setting, **summarize(item.found, top=top)}
        for file, item in inspected
    ]
    together = summarize(add_up([item.found for _, item in inspected]), top=top)
    return {"total": together, "sessions": sessions, "problems": problems}


def print_report(items: Sequence[SessionInspection], *, top: int) -> None:
    """Print the tables for all sessions together, then the largest sessions."""
    found = add_up([item.found for item in items])
    names = shorten_names(item.session for item in items)
    _print_heading(items, found)
    _print_layers(found)
    _print_tools(group_by_tool(found.use), top=top)
    _print_content(group_by_content(found.use), top=top)
    _print_largest(find_largest(found.use, top), names)
    _print_findings(found.use, names)
    print_bill(found.append_only, found.billed, names=names, changes=found.changes)
    if found.legality is not None:
        _print_check(found.legality, names, top=top)
    if len(items) > 1:
        _print_sessions(items, names, top=top)


def _print_heading(items: Sequence[SessionInspection], found: Inspection) -> None:
    counts = found.counts
    name = items[0].session if len(items) == 1 else f"{len(items):,} sessions"
    say(
        f"{name}: {format_tokens(found.tokens)} tokens in {format_count(counts.messages, 'message')}, "
        f"{format_count(counts.turns, 'turn')}, {format_count(counts.model_calls, 'model call')}",
        style="bold",
    )
    settings = [item.setting for item in items]
    facts: dict[str, Counter[str]] = {
        "model": Counter(setting.model or "(none)" for setting in settings),
        "card": Counter(setting.card or "(none)" for setting in settings),
        "counter": Counter(f"{setting.counter} x {setting.multiplier:g}" for setting in settings),
        "window": Counter(f"{setting.window_tokens:,}" for setting in settings),
        "provider format": Counter(setting.wire for setting in settings),
        "tool schemas": Counter(setting.tools for setting in settings),
    }
    if facts["card"] == facts["model"]:
        del facts["card"]
    say("; ".join(f"{key} {_join_counts(values)}" for key, values in facts.items()), style="dim")


_SHOWN_CHARS = 140


def _join_counts(values: Counter[str]) -> str:
    if len(values) == 1:
        return next(iter(values))[:_SHOWN_CHARS]
    shown = ", ".join(f"{value[:_SHOWN_CHARS]} ({times:,})" for value, times in values.most_common(4))
    return shown + (f" and {len(values) - 4} more" if len(values) > 4 else "")


def _print_layers(found: Inspection) -> None:
    sent = sum(mass.sent_tokens for mass in found.layers.values())
    layers = sorted(found.layers.items(), key=lambda item: (-item[1].tokens, item[0]))
    print_items(
        "by layer",
        [(name_layer(name), mass) for name, mass in layers if mass.items],
        columns=[
            (Column("layer", left=True), lambda item: item[0]),
            (Column("parts"), lambda item: f"{item[1].items:,}"),
            (Column("tokens"), lambda item: format_tokens(item[1].tokens)),
            (Column("share", left=True), lambda item: draw_bar(item[1].tokens, found.tokens)),
            (Column("sent"), lambda item: format_tokens(item[1].sent_tokens)),
            (Column("of sent", left=True), lambda item: draw_bar(item[1].sent_tokens, sent)),
        ],
    )
    say("sent: each token once for every model call whose request holds it, if nothing is removed", style="dim")


def _print_tools(rows: Sequence[ToolRow], *, top: int) -> None:
    everything = sum(row.calls.tokens + row.results.tokens for row in rows)
    print_items(
        "by tool",
        rows,
        columns=[
            (Column("tool", left=True), lambda row: row.name),
            (Column("calls"), lambda row: f"{row.calls.items:,}"),
            (Column("arguments"), lambda row: format_tokens(row.calls.tokens)),
            (Column("results"), lambda row: f"{row.results.items:,}"),
            (Column("errors"), lambda row: f"{row.errors:,}"),
            (Column("result tokens"), lambda row: format_tokens(row.results.tokens)),
            (Column("share", left=True), lambda row: draw_bar(row.calls.tokens + row.results.tokens, everything)),
            (Column("mean", only_wide=True), lambda row: f"{row.mean_tokens:,.0f}"),
            (Column("largest", only_wide=True), lambda row: format_tokens(row.largest_tokens)),
            (Column("sent"), lambda row: format_tokens(row.calls.sent_tokens + row.results.sent_tokens)),
        ],
        top=top,
    )


def _print_content(rows: Sequence[ToolRow], *, top: int) -> None:
    everything = sum(row.results.tokens for row in rows)
    print_items(
        "results by content",
        rows,
        columns=[
            (Column("content", left=True), lambda row: row.name),
            (Column("results"), lambda row: f"{row.results.items:,}"),
            (Column("errors"), lambda row: f"{row.errors:,}"),
            (Column("tokens"), lambda row: format_tokens(row.results.tokens)),
            (Column("share", left=True), lambda row: draw_bar(row.results.tokens, everything)),
            (Column("mean"), lambda row: f"{row.mean_tokens:,.0f}"),
            (Column("largest"), lambda row: format_tokens(row.largest_tokens)),
            (Column("sent"), lambda row: format_tokens(row.results.sent_tokens)),
        ],
        top=top,
    )


def _print_largest(results: Sequence[RecordedResult], names: Mapping[str, str]) -> None:
    print_items(
        "largest results",
        results,
        columns=[
            (Column("tokens"), lambda result: format_tokens(result.tokens)),
            (Column("sent"), lambda result: format_tokens(result.sent_tokens)),
            (Column("tool", left=True), lambda result: result.place.tool),
            (Column("content", left=True, only_wide=True), lambda result: result.content_type),
            (Column("where", left=True), lambda result: format_place(result.place, names)),
            (Column("first words", left=True, crop=True), lambda result: result.first_words),
        ],
    )


def _print_findings(use: ToolUse, names: Mapping[str, str]) -> None:
    again = find_repeats(use)
    repeated = (
        ("results equal to an earlier one", again.same_content),
        ("results of a repeated call", again.same_call),
    )
    places = (
        ("calls never answered", use.unanswered),
        ("calls open when the recording ended", use.open_calls),
        ("results without a call", use.orphans),
        ("calls with the id of an earlier call", use.duplicate_ids),
        ("empty results", use.empty),
    )
    rows = [
        (name, f"{mass.items:,}", f"{format_tokens(mass.tokens)} tokens, sent {format_tokens(mass.sent_tokens)}")
        for name, mass in repeated
        if mass.items
    ]
    rows += [
        (name, f"{len(found):,}", f"first: {found[0].tool}, {format_place(found[0], names)}")
        for name, found in places
        if found
    ]
    print_table("worth a look", (Column("what", left=True), Column("times"), Column("", left=True)), rows=rows)


def _print_check(legality: Legality, names: Mapping[str, str], *, top: int) -> None:
    requests = format_count(legality.requests, "request")
    say(
        f"\ncheck: {legality.illegal_requests:,} of {requests} break a rule of their provider",
        style="bold red" if legality.illegal_requests else "bold green",
    )
    print_items(
        "",
        legality.broken,
        columns=[
            (Column("rule", left=True), lambda item: item.rule),
            (Column("requests"), lambda item: f"{item.requests:,}"),
            (Column("places"), lambda item: f"{item.places:,}"),
            (Column("first place", left=True), lambda item: _format_first_place(item, names)),
            (Column("what", left=True), lambda item: item.detail),
        ],
        top=top,
    )
    if legality.repairs:
        repaired = ", ".join(f"{rule} {times:,}x" for rule, times in legality.repairs)
        say(f"repaired by a replay: {repaired}")


def _format_first_place(item: BrokenRule, names: Mapping[str, str]) -> str:
    return f"{format_place(Location(item.session, item.message_index, ''), names)}: {item.path}"


def _print_sessions(items: Sequence[SessionInspection], names: Mapping[str, str], *, top: int) -> None:
    everything = sum(item.found.tokens for item in items)
    billed = any(item.found.billed for item in items)
    checked = any(item.found.legality for item in items)
    print_items(
        "largest sessions",
        sorted(items, key=lambda item: -item.found.tokens),
        columns=[
            (Column("session", left=True), lambda item: names[item.session]),
            (Column("messages", only_wide=True), lambda item: f"{item.found.counts.messages:,}"),
            (Column("calls"), lambda item: f"{item.found.append_only.calls:,}"),
            (Column("tokens"), lambda item: format_tokens(item.found.tokens)),
            (Column("share", left=True), lambda item: draw_bar(item.found.tokens, everything)),
            (Column("sent"), lambda item: format_tokens(item.found.append_only.input.tokens)),
            (Column("everything sent"), lambda item: format_simulated_cost(item.found.append_only)),
            *([(Column("billed"), lambda item: format_billed_cost(item.found.billed))] if billed else []),
            *([(Column("illegal"), _format_illegal)] if checked else []),
        ],
        top=top,
    )


def _format_illegal(item: SessionInspection) -> str:
    return f"{item.found.legality.illegal_requests:,}" if item.found.legality else ""
