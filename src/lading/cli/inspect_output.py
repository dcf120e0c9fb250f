"""What ``lading inspect`` prints: tables, the most important first, or everything as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lading.cli.bill_output import billed_cost, print_bill, simulated_cost
from lading.cli.plaintables import Column, amount, bar, figures, number, print_table, say, short_names, where
from lading.evaluate.inspection import Inspected, Summary, summarise, total
from lading.evaluate.legality import Legality
from lading.evaluate.tooluse import Place, Result, ToolRow, ToolSummary
from lading.sources import Problem


def as_json_value(
    inspected: Sequence[tuple[str, Inspected]], problems: Sequence[Problem], *, top: int
) -> dict[str, Any]:
    """The figures of all sessions together, of each, and what was wrong with the files."""
    sessions = [
        {"file": file, "session": item.session, "setting": item.setting, **_fields(summarise(item.found, top=top))}
        for file, item in inspected
    ]
    together = summarise(total([item.found for _, item in inspected]), top=top)
    return {"total": together, "sessions": sessions, "problems": problems}


def print_report(items: Sequence[Inspected], *, top: int) -> None:
    """Tables on stdout: what holds for all sessions together, then the largest sessions."""
    summary = summarise(total([item.found for item in items]), top=top)
    names = short_names(item.session for item in items)
    _print_heading(items, summary)
    _print_layers(summary)
    _print_tools(summary.tools.by_tool, top=top)
    _print_content(summary.tools.by_content, top=top)
    _print_largest(summary.tools.largest_results, names)
    _print_findings(summary.tools, names)
    print_bill(summary.append_only, summary.billed, names=names, changes=summary.changes)
    if summary.legality is not None:
        _print_check(summary.legality, names, top=top)
    if len(items) > 1:
        _print_sessions(items, names, top=top)


def _fields(summary: Summary) -> dict[str, Any]:
    return {name: getattr(summary, name) for name in summary.__struct_fields__}


def _print_heading(items: Sequence[Inspected], summary: Summary) -> None:
    counts = summary.counts
    name = items[0].session if len(items) == 1 else f"{len(items):,} sessions"
    say(
        f"{name}: {amount(summary.tokens)} tokens in {number(counts.messages, 'message')}, "
        f"{number(counts.turns, 'turn')}, {number(counts.model_calls, 'model call')}",
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
    say("; ".join(f"{key} {_listed(values)}" for key, values in facts.items()), style="dim")


def _listed(values: Counter[str]) -> str:
    if len(values) == 1:
        return next(iter(values))
    shown = ", ".join(f"{value} ({times:,})" for value, times in values.most_common(4))
    return shown + (f" and {len(values) - 4} more" if len(values) > 4 else "")


LAYER_NAMES = {"tools": "tool schemas", "tool_calls": "tool calls, with arguments", "images": "images, documents"}
"""What tables call the layers whose names do not say enough."""


def _print_layers(summary: Summary) -> None:
    sent = sum(mass.sent_tokens for mass in summary.layers.values())
    layers = sorted(summary.layers.items(), key=lambda item: (-item[1].tokens, item[0]))
    print_table(
        "by layer",
        (
            Column("layer", left=True),
            *figures("parts", "tokens"),
            Column("share", left=True),
            Column("sent"),
            Column("of sent", left=True),
        ),
        rows=[
            (
                LAYER_NAMES.get(name, name.replace("_", " ")),
                f"{mass.items:,}",
                amount(mass.tokens),
                bar(mass.tokens, summary.tokens),
                amount(mass.sent_tokens),
                bar(mass.sent_tokens, sent),
            )
            for name, mass in layers
            if mass.items
        ],
    )
    say("sent: each token once for every model call whose request holds it, nothing ever removed", style="dim")


def _print_tools(rows: Sequence[ToolRow], *, top: int) -> None:
    everything = sum(row.calls.tokens + row.results.tokens for row in rows)
    print_table(
        "by tool",
        (
            Column("tool", left=True),
            *figures("calls", "arguments", "results", "errors", "result tokens"),
            Column("share", left=True),
            Column("mean", only_wide=True),
            Column("largest", only_wide=True),
            Column("sent"),
        ),
        rows=[
            (
                row.name,
                f"{row.calls.items:,}",
                amount(row.calls.tokens),
                f"{row.results.items:,}",
                f"{row.errors:,}",
                amount(row.results.tokens),
                bar(row.calls.tokens + row.results.tokens, everything),
                f"{row.mean_tokens:,.0f}",
                amount(row.largest_tokens),
                amount(row.calls.sent_tokens + row.results.sent_tokens),
            )
            for row in rows
        ],
        top=top,
    )


def _print_content(rows: Sequence[ToolRow], *, top: int) -> None:
    everything = sum(row.results.tokens for row in rows)
    print_table(
        "results by content",
        (
            Column("content", left=True),
            *figures("results", "errors", "tokens"),
            Column("share", left=True),
            *figures("mean", "largest", "sent"),
        ),
        rows=[
            (
                row.name,
                f"{row.results.items:,}",
                f"{row.errors:,}",
                amount(row.results.tokens),
                bar(row.results.tokens, everything),
                f"{row.mean_tokens:,.0f}",
                amount(row.largest_tokens),
                amount(row.results.sent_tokens),
            )
            for row in rows
        ],
        top=top,
    )


def _print_largest(results: Sequence[Result], names: Mapping[str, str]) -> None:
    print_table(
        "largest results",
        (
            *figures("tokens", "sent"),
            Column("tool", left=True),
            Column("content", left=True, only_wide=True),
            Column("where", left=True),
            Column("first words", left=True, crop=True),
        ),
        rows=[
            (
                amount(result.tokens),
                amount(result.sent_tokens),
                result.place.tool,
                result.content_type,
                where(result.place, names),
                result.first_words,
            )
            for result in results
        ],
    )


def _print_findings(tools: ToolSummary, names: Mapping[str, str]) -> None:
    again = tools.repeats
    repeated = (
        ("results that say what an earlier one said", again.same_content),
        ("results of a call made before", again.same_call),
    )
    places = (
        ("calls never answered", tools.unanswered),
        ("calls open when the recording ended", tools.open_calls),
        ("results without a call", tools.orphans),
        ("calls with the id of an earlier call", tools.duplicate_ids),
        ("results that say nothing", tools.empty),
    )
    rows = [
        (name, f"{mass.items:,}", f"{amount(mass.tokens)} tokens, sent {amount(mass.sent_tokens)}")
        for name, mass in repeated
        if mass.items
    ]
    rows += [
        (name, f"{len(found):,}", f"first: {found[0].tool}, {where(found[0], names)}")
        for name, found in places
        if found
    ]
    print_table("worth a look", (Column("what", left=True), Column("times"), Column("", left=True)), rows=rows)


def _print_check(legality: Legality, names: Mapping[str, str], *, top: int) -> None:
    requests = number(legality.requests, "request")
    say(
        f"\ncheck: {legality.illegal_requests:,} of {requests} break a rule of their provider",
        style="bold red" if legality.illegal_requests else "bold green",
    )
    print_table(
        "",
        (
            Column("rule", left=True),
            *figures("requests", "places"),
            Column("first place", left=True),
            Column("what", left=True),
        ),
        rows=[
            (
                item.rule,
                f"{item.requests:,}",
                f"{item.places:,}",
                f"{where(Place(item.session, item.message_index, ''), names)}: {item.path}",
                item.detail,
            )
            for item in legality.broken
        ],
        top=top,
    )
    if legality.repairs:
        repaired = ", ".join(f"{rule} {times:,}x" for rule, times in legality.repairs)
        say(f"what a replay repairs by itself: {repaired}")


def _print_sessions(items: Sequence[Inspected], names: Mapping[str, str], *, top: int) -> None:
    everything = sum(item.found.tokens for item in items)
    billed = any(item.found.billed for item in items)
    checked = any(item.found.legality for item in items)
    print_table(
        "largest sessions",
        (
            Column("session", left=True),
            Column("messages", only_wide=True),
            *figures("calls", "tokens"),
            Column("share", left=True),
            *figures("sent", "everything sent"),
            *((Column("billed"),) if billed else ()),
            *((Column("illegal"),) if checked else ()),
        ),
        rows=[
            (
                names[item.session],
                f"{item.found.counts.messages:,}",
                f"{item.found.append_only.calls:,}",
                amount(item.found.tokens),
                bar(item.found.tokens, everything),
                amount(item.found.append_only.input.tokens),
                simulated_cost(item.found.append_only),
                *((_billed_cost(item),) if billed else ()),
                *((_illegal(item),) if checked else ()),
            )
            for item in sorted(items, key=lambda item: -item.found.tokens)
        ],
        top=top,
    )


def _billed_cost(item: Inspected) -> str:
    return billed_cost(item.found.billed) if item.found.billed else ""


def _illegal(item: Inspected) -> str:
    return f"{item.found.legality.illegal_requests:,}" if item.found.legality else ""
