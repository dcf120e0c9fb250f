"""A comparison as tables of text, one for each window: what the page and the terminal show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct

from lading.evaluate.scores import ContestantScore, find_lapses, group_by_strategy, group_by_window
from lading.evaluate.tally import describe_saving


class Measure(Struct, frozen=True):
    """The heading of a column."""

    title: str
    meaning: str
    is_minor: bool = False
    """Left out where room is short."""
    is_words: bool = False
    """Not a figure."""


Figure: TypeAlias = tuple[Measure, Callable[[ContestantScore], str]]


class WindowTable(Struct, frozen=True):
    """The contestants at one window, each with its name and a cell for each column: first the costs, one for
    each set of prices, then all else at the first prices."""

    title: str
    columns: tuple[Measure, ...]
    bill_columns: int
    """So many of the first say what it costs, the others what it keeps."""
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    verdict: str = ""


BILL: tuple[Figure, ...] = (
    (Measure("worst", "The highest cost of one session."), lambda item: f"{item.cost.worst:.2f}"),
    (
        Measure("harmed", "Share of the sessions that cost more than 1.03 of everything sent.", is_minor=True),
        lambda item: _percent(item.cost.harmed),
    ),
    (
        Measure("within", "Cost of the sessions of which every full history fits the window.", is_minor=True),
        lambda item: _ratio(item.cost.within),
    ),
    (Measure("over", "Cost of the other sessions.", is_minor=True), lambda item: _ratio(item.cost.over)),
    (Measure("mean", "Tokens of a request, tools included."), lambda item: _tokens(item.tokens.mean)),
    (Measure("p95", "Tokens that 95 % of the requests do not exceed."), lambda item: _tokens(item.tokens.p95)),
    (Measure("peak", "Tokens of the largest request."), lambda item: _tokens(item.tokens.peak)),
    (
        Measure("edits", "Edits that the window forced, and edits made to save."),
        lambda item: f"{item.edits.forced}/{item.edits.voluntary}",
    ),
    (Measure("ms", "Milliseconds spent on a request.", is_minor=True), lambda item: f"{item.ms_per_call:.1f}"),
)
"""What it costs, besides the cost at each set of prices."""

EVIDENCE: Figure = (
    Measure("evidence", "Share of the probes whose evidence stands in the request of their call."),
    lambda item: _ratio(item.evidence.overall.stands if item.evidence else None),
)
"""Shown where probes were given."""

KEPT: tuple[Figure, ...] = (
    (
        Measure("plain", "Share of the far values that stand in the request.", is_minor=True),
        lambda item: _ratio(item.recall.far_present),
    ),
    (
        Measure("far", "Share of the far values that stand there beside a word of their source (bound)."),
        lambda item: _ratio(item.recall.far_bound),
    ),
    (
        Measure("steps", "Share of the calls with far values that have all of them bound."),
        lambda item: _ratio(item.recall.far_bound_steps),
    ),
    (
        Measure("avail", "Share of the far values that stand there, or behind an address that stands there."),
        lambda item: _ratio(item.recall.far_available),
    ),
    (Measure("all", "Share of all values that are bound."), lambda item: _ratio(item.recall.bound)),
    (
        Measure("start", "Share of the requests that hold all that came before the first reply.", is_minor=True),
        lambda item: _ratio(item.guards.head_whole),
    ),
    (
        Measure("new", "Share of the requests that hold the unread results whole."),
        lambda item: _ratio(item.guards.newest_whole),
    ),
    (
        Measure("run p10", "Tokens of the newest messages whole and unbroken: the lowest tenth.", is_minor=True),
        lambda item: _tokens(item.guards.run_p10_tokens),
    ),
    (Measure("run", "The same in the median."), lambda item: _tokens(item.guards.run_median_tokens)),
    (
        Measure("made", "Tokens that are not quoted from the log, as a share of the window."),
        lambda item: _percent(item.guards.generated_share),
    ),
    (
        Measure("invented", "Values in what is not from the log that no message before holds.", is_minor=True),
        lambda item: f"{item.guards.invented:,}",
    ),
    (
        Measure("fails", "Guards that do not hold; with any, a cost is no figure to compare.", is_words=True),
        lambda item: ", ".join(find_lapses(item)) or "-",
    ),
)
"""What it keeps, and the guards."""


def make_window_tables(standings: Iterable[ContestantScore]) -> Iterator[WindowTable]:
    """The tables of a comparison, in the order of its windows."""
    for at_window in group_by_window(standings):
        rivals = group_by_strategy(at_window)
        costs = [
            Measure(item.prices, f"Input cost relative to everything sent at the prices {item.prices}.")
            for item in rivals[0]
        ]
        bill = (*([EVIDENCE] if rivals[0][0].evidence else []), *BILL)
        figures = (*bill, *KEPT)
        columns = (*costs, *(column for column, _ in figures))
        rows = tuple((rival[0].strategy, _cells(rival, figures)) for rival in rivals)
        verdict = _verdict([rival[0] for rival in rivals])
        yield WindowTable(_title(at_window[0]), columns, len(costs) + len(bill), rows, verdict)


def make_evidence_tables(standings: Iterable[ContestantScore]) -> Iterator[WindowTable]:
    """Tabulate the evidence that is present at each window, by what probes share: a column for each contestant."""
    for at_window in group_by_window(standings):
        rivals = [(rival[0].strategy, rival[0].evidence) for rival in group_by_strategy(at_window)]
        found = [(name, evidence) for name, evidence in rivals if evidence]
        groups = found[0][1].by if found else {}
        rows = tuple(
            (f"{key} {name} ({share.probes})", tuple(_ratio(item.by[key][name].stands) for _, item in found))
            for key, shares in groups.items()
            for name, share in shares.items()
        )
        columns = tuple(Measure(name, "") for name, _ in found)
        yield WindowTable(f"Evidence, W = {_window(at_window[0].window_tokens)}", columns, 0, rows)


def _verdict(rivals: list[ContestantScore]) -> str:
    """Which is the cheapest at the first prices, of those that hold every guard where any does; and which is
    cheaper still, with the guards that it fails."""
    ordered = sorted(rivals, key=lambda item: item.cost.ratio)
    best = next((item for item in ordered if not find_lapses(item)), None)
    among = "no strategy holds every guard; of all" if best is None else "of those that hold every guard"
    named = best or ordered[0]
    verdict = f"At {named.prices}, {among}, {named.strategy} is the cheapest: {describe_saving(named.cost.ratio)}."
    if best in (None, ordered[0]):
        return verdict
    cheaper, failed = ordered[0], ", ".join(find_lapses(ordered[0]))
    return f"{verdict} {cheaper.strategy} is {describe_saving(cheaper.cost.ratio)}, and fails: {failed}."


def _cells(rival: list[ContestantScore], figures: Iterable[Figure]) -> tuple[str, ...]:
    return (*(_ratio(item.cost.ratio) for item in rival), *(cell(rival[0]) for _, cell in figures))


def _title(item: ContestantScore) -> str:
    recall = item.recall
    return (
        f"W = {_window(item.window_tokens)}: "
        f"{item.exceeding_calls:,} of {item.calls:,} calls have a history over W; "
        f"{recall.far_values:,} far values in {recall.far_steps:,} steps, {recall.values:,} values in all"
        f"{f'; {item.evidence.overall.probes:,} probes' if item.evidence else ''}"
    )


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _window(tokens: int) -> str:
    return f"{tokens:,}" if tokens % 1000 else f"{tokens // 1000:,}k"


def _tokens(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if value < 100 else f"{value / 1000:,.1f}k".replace(".0k", "k")
