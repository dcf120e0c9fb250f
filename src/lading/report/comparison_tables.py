"""Tabulate a comparison, one table for each window, for the page and the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct

from lading.evaluate.scores import ContestantScore, group_by_strategy, group_by_window, list_failed_guards
from lading.evaluate.tally import describe_saving


class Heading(Struct, frozen=True):
    """Heading of a column."""

    title: str
    meaning: str
    is_minor: bool = False
    """Left out where the terminal is narrow."""
    is_words: bool = False
    """The cells are words, not figures."""


ColumnSpec: TypeAlias = tuple[Heading, Callable[[ContestantScore], str]]


class WindowTable(Struct, frozen=True):
    """Table of the contestants at one window: costs at each set of prices, then the other figures at the first
    prices."""

    title: str
    columns: tuple[Heading, ...]
    bill_columns: int
    """Number of first columns about costs; the others are about recall and guards."""
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    verdict: str = ""


OWN: ColumnSpec = (
    Heading(
        "own", "Part of the cost at the first prices: what the strategy itself asks a model, such as for summaries."
    ),
    lambda item: f"{item.cost.own:.3f}",
)
"""Column of own calls, shown where there are any."""

BILL: tuple[ColumnSpec, ...] = (
    (Heading("worst", "The highest cost of one session."), lambda item: f"{item.cost.worst:.2f}"),
    (
        Heading("harmed", "Share of the sessions that cost more than 1.03 times everything sent.", is_minor=True),
        lambda item: _format_percent(item.cost.harmed),
    ),
    (
        Heading("within", "Cost of the sessions whose full history fits the window at every call.", is_minor=True),
        lambda item: _format_ratio(item.cost.within),
    ),
    (
        Heading("over", "Cost of the other sessions.", is_minor=True),
        lambda item: _format_ratio(item.cost.over),
    ),
    (Heading("mean", "Tokens of a request, tools included."), lambda item: _format_tokens(item.tokens.mean)),
    (
        Heading("p95", "Tokens that 95 % of the requests do not exceed."),
        lambda item: _format_tokens(item.tokens.p95),
    ),
    (Heading("peak", "Tokens of the largest request."), lambda item: _format_tokens(item.tokens.peak)),
    (
        Heading("edits", "Forced edits / voluntary edits."),
        lambda item: f"{item.edits.forced}/{item.edits.voluntary}",
    ),
    (
        Heading("ms", "Milliseconds to decide and build a request.", is_minor=True),
        lambda item: f"{item.ms_per_call:.1f}",
    ),
)
"""Columns about costs, after the cost at each set of prices."""

EVIDENCE: ColumnSpec = (
    Heading("evidence", "Share of the probes whose evidence is in the request of their call."),
    lambda item: _format_ratio(item.evidence.overall.stands if item.evidence else None),
)
"""Column of the evidence, shown with probes only."""

KEPT: tuple[ColumnSpec, ...] = (
    (
        Heading("plain", "Share of the far values that are in the request.", is_minor=True),
        lambda item: _format_ratio(item.recall.far_present),
    ),
    (
        Heading(
            "far",
            "Share of the far values that are bound: in the request, beside a word of their source.",
        ),
        lambda item: _format_ratio(item.recall.far_bound),
    ),
    (
        Heading("steps", "Share of the calls that use far values in whose requests all of these are bound."),
        lambda item: _format_ratio(item.recall.far_bound_steps),
    ),
    (
        Heading("avail", "Share of the far values that are in the request, or behind an address in it."),
        lambda item: _format_ratio(item.recall.far_available),
    ),
    (
        Heading("all", "Share of all values, near and far, that are bound."),
        lambda item: _format_ratio(item.recall.bound),
    ),
    (
        Heading("start", "Share of the requests that hold all opening messages unchanged.", is_minor=True),
        lambda item: _format_ratio(item.guards.head_whole),
    ),
    (
        Heading("new", "Share of the requests that hold the unread results whole."),
        lambda item: _format_ratio(item.guards.newest_whole),
    ),
    (
        Heading(
            "run p10",
            "Tokens of the newest messages without a gap, of which a tenth of the requests has fewer.",
            is_minor=True,
        ),
        lambda item: _format_tokens(item.guards.run_p10_tokens),
    ),
    (
        Heading("run", "The same, of which half of the requests have fewer."),
        lambda item: _format_tokens(item.guards.run_median_tokens),
    ),
    (
        Heading(
            "made", "Tokens of records and notes, which are not quoted from the log, as a share of the window."
        ),
        lambda item: _format_percent(item.guards.generated_share),
    ),
    (
        Heading("invented", "Values in generated text that no earlier message holds.", is_minor=True),
        lambda item: f"{item.guards.invented:,}",
    ),
    (
        Heading("fails", "Guards that fail; with any, the cost is not comparable.", is_words=True),
        lambda item: ", ".join(list_failed_guards(item)) or "-",
    ),
)
"""Columns about recall and guards."""


def make_window_tables(scores: Iterable[ContestantScore]) -> Iterator[WindowTable]:
    """Tabulate a comparison, in the order of its windows."""
    for at_window in group_by_window(scores):
        contestants = group_by_strategy(at_window)
        costs = [
            Heading(item.prices, f"Input cost relative to everything sent at the prices {item.prices}.")
            for item in contestants[0]
        ]
        own = [OWN] if any(item.cost.own for item in at_window) else []
        bill = (*([EVIDENCE] if contestants[0][0].evidence else []), *own, *BILL)
        figures = (*bill, *KEPT)
        columns = (*costs, *(column for column, _ in figures))
        rows = tuple((contestant[0].strategy, _format_cells(contestant, figures)) for contestant in contestants)
        verdict = _write_verdict([contestant[0] for contestant in contestants])
        yield WindowTable(_write_title(at_window[0]), columns, len(costs) + len(bill), rows, verdict)


def make_evidence_tables(scores: Iterable[ContestantScore]) -> Iterator[WindowTable]:
    """Tabulate the share of present evidence at each window, by group of probes and contestant."""
    for at_window in group_by_window(scores):
        contestants = [(each[0].strategy, each[0].evidence) for each in group_by_strategy(at_window)]
        found = [(name, evidence) for name, evidence in contestants if evidence]
        groups = found[0][1].by if found else {}
        rows = tuple(
            (f"{key} {name} ({share.probes})", tuple(_format_ratio(item.by[key][name].stands) for _, item in found))
            for key, shares in groups.items()
            for name, share in shares.items()
        )
        columns = tuple(Heading(name, "") for name, _ in found)
        yield WindowTable(f"Evidence, W = {_format_window(at_window[0].window_tokens)}", columns, 0, rows)


def _write_verdict(contestants: list[ContestantScore]) -> str:
    """Name the cheapest contestant that passes every guard (of all, if none does), and the cheapest of all with the
    guards it fails, at the first prices."""
    ordered = sorted(contestants, key=lambda item: item.cost.ratio)
    best = next((item for item in ordered if not list_failed_guards(item)), None)
    among = "no strategy passes every guard; of all" if best is None else "of those that pass every guard"
    cheapest = best or ordered[0]
    saving = describe_saving(cheapest.cost.ratio)
    verdict = f"At {cheapest.prices}, {among}, {cheapest.strategy} is the cheapest: {saving}."
    if best in (None, ordered[0]):
        return verdict
    failing, guards = ordered[0], ", ".join(list_failed_guards(ordered[0]))
    return f"{verdict} {failing.strategy} is {describe_saving(failing.cost.ratio)}, but fails: {guards}."


def _format_cells(contestant: list[ContestantScore], figures: Iterable[ColumnSpec]) -> tuple[str, ...]:
    return (*(_format_ratio(item.cost.ratio) for item in contestant), *(cell(contestant[0]) for _, cell in figures))


def _write_title(item: ContestantScore) -> str:
    recall = item.recall
    return (
        f"W = {_format_window(item.window_tokens)}: "
        f"{item.exceeding_calls:,} of {item.calls:,} calls have a history over W; "
        f"{recall.far_values:,} far values in {recall.far_steps:,} steps, {recall.values:,} values in all"
        f"{f'; {item.evidence.overall.probes:,} probes' if item.evidence else ''}"
    )


def _format_ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _format_percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _format_window(tokens: int) -> str:
    return f"{tokens:,}" if tokens % 1000 else f"{tokens // 1000:,}k"


def _format_tokens(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if value < 100 else f"{value / 1000:,.1f}k".replace(".0k", "k")
