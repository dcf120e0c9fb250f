"""What the parts for large results do, on generated sessions of each kind of content: cost and evidence."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import mean

from bench.figures import Figure, plain
from bench.large_contents import KINDS
from bench.large_sessions import session
from lading.cli.options import parse_rates
from lading.evaluate.compare import Grid, NamedRates, compare, find_contestant
from lading.evaluate.plan import PlanOptions, plan_replay
from lading.evaluate.scores import ContestantScore
from lading.evaluate.session_runs import prepare_session

STRATEGIES = ("priced", "without-digests", "without-admission", "basic")
WINDOWS = (32_000, 16_000, 8_000)
PRICES = ".10/1.25"
SEEDS = 2


def run() -> list[Figure]:
    """For each kind, window and strategy the cost against sending everything and the share of probes that stand;
    then their means."""
    return list(_figures())


def _figures() -> Iterator[Figure]:
    found = {kind: _standings(kind) for kind in KINDS}
    for kind, standings in found.items():
        for at in standings:
            yield plain(_name(kind, at), f"{at.cost.ratio:.3f} / {_stands(at):.2f}")
    for row in zip(*found.values(), strict=True):
        cost, stands = mean(at.cost.ratio or 0.0 for at in row), mean(map(_stands, row))
        yield plain(_name("all kinds", row[0]), f"{cost:.3f} / {stands:.2f}")


def _standings(kind: str) -> list[ContestantScore]:
    made = [session(kind, seed) for seed in range(SEEDS)]
    sessions = [
        prepare_session(
            one.recording, plan_replay(one.recording, PlanOptions(counter="cl100k"))[0], name=one.recording.id
        )
        for one in made
    ]
    grid = Grid(tuple(map(find_contestant, STRATEGIES)), WINDOWS, (NamedRates(PRICES, parse_rates(PRICES)),))
    probes = [probe for one in made for probe in one.probes]
    return compare(sessions, grid, advance=lambda _calls: None, probes=probes)


def _name(kind: str, at: ContestantScore) -> str:
    return f"large results, {kind}, {at.window_tokens // 1_000}k, {at.strategy}: cost / evidence"


def _stands(at: ContestantScore) -> float:
    return at.evidence.overall.stands if at.evidence else 0.0
