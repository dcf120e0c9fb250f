"""What is acknowledged stays: many threads on the same sessions, and agents killed at random moments."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.figures import Figure, plain
from lading.stores.sqlite import open_sqlite
from tests.killed import kill_points
from tests.stores.crowd import faults, write

THREADS = 8
ROUNDS = 1_000
SESSIONS = 20
SEEDS = range(1, 9)
POINTS = 25


def run() -> list[Figure]:
    """Two crowds of threads, and 200 kills in eight sessions."""
    return [*_crowd("one store", 1), *_crowd("a store each", THREADS), *_kills()]


def _crowd(name: str, stores: int) -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as closing:
        opened = [closing.enter_context(open_sqlite(folder)) for _ in range(stores)]
        started = time.perf_counter()
        write(opened, threads=THREADS, rounds=ROUNDS, sessions=SESSIONS)
        seconds = time.perf_counter() - started
        found = list(faults(opened[0], threads=THREADS, rounds=ROUNDS))
    what = f"{THREADS} threads x {ROUNDS:,} rounds on {SESSIONS} sessions, {name}"
    return [
        _faultless(f"{what}: lost, doubled or reordered", found),
        plain("  rounds a second, full durability, leases included", f"{THREADS * ROUNDS / seconds:,.0f}"),
    ]


def _kills() -> list[Figure]:
    found: list[str] = []
    calls = 0
    for seed in SEEDS:
        with tempfile.TemporaryDirectory() as folder:
            outcomes = list(kill_points(Path(folder) / "store", name="s1", seed=seed, points=POINTS))
        found += [fault for _, faults_of_one in outcomes for fault in faults_of_one]
        calls += max(said.calls for said, _ in outcomes)
    what = f"{len(SEEDS) * POINTS} kills -9 in {len(SEEDS)} sessions of {calls} calls"
    return [_faultless(f"{what}: rounds missing, requests that differ", found)]


def _faultless(what: str, found: Sequence[str]) -> Figure:
    return Figure(what, str(len(found)) if not found else f"{len(found)}: {found[0][:200]}", "0", not found)
