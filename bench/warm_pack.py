"""A warm pack (one new block: append, pack, body bytes, check, delta manifest; no fsync) and a cold reopen."""

from __future__ import annotations

import gc
import statistics
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from bench.figures import Figure, below, plain
from bench.histories import head, rounds
from lading.budget import Budget
from lading.compaction import Strategy
from lading.economics import Rates
from lading.engine import Engine, reopen
from lading.messages import Tool
from lading.models.catalog import find_card
from lading.settings import Settings
from lading.stores import SessionStore
from lading.stores.sqlite import open_sqlite
from lading.tokens import counter, exact
from lading.tokens.meter import Meter

TOOLS = (Tool("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),)
MARKED = {"model": "claude-sonnet-4-5", "max_tokens": 8_000, "cache_control": {"type": "ephemeral"}}
CASES = (
    ("50k tokens inside 200k", 50_000, 200_000),
    ("1M-token log behind 200k", 1_000_000, 200_000),
    ("0.9M tokens inside 1M", 900_000, 1_000_000),
)
STRATEGIES = ("basic", "priced")
PACKS = 200
OPENS = 7


def run() -> list[Figure]:
    """For each strategy the warm packs at three sizes, their ratio, and the cold reopen at 1M tokens."""
    figures = [figure for strategy in STRATEGIES for figure in _measured(strategy)]
    return [*figures, plain("packs measured in each case", str(PACKS))]


def _measured(strategy: str) -> list[Figure]:
    figures: list[Figure] = []
    medians: list[float] = []
    for case, log_tokens, window in CASES:
        name = f"{strategy}, {case}"
        with tempfile.TemporaryDirectory() as folder, open_sqlite(Path(folder), durability="off") as store:
            engine, number = grow(store, log_tokens, make_settings(window, strategy))
            if log_tokens == CASES[1][1]:
                added = _tailed(engine, number)
                figures.append(below(f"a tail of 2,000 characters, {name}: added to p50", added, 0.6, unit="ms"))
            times = time_packs(engine, number + 2 * PACKS)
            medians.append(times[len(times) // 2])
            figures.append(below(f"warm pack, {name}: p50", medians[-1], 10, unit="ms"))
            figures.append(below(f"warm pack, {name}: p99", times[int(0.99 * len(times))], 30, unit="ms"))
            if log_tokens > CASES[0][1]:
                opened = _reopened(engine, store)
                figures.append(below(f"cold reopen and pack, {name}", opened, 400, unit="ms"))
    for (name, _, _), median in zip(CASES[1:], medians[1:], strict=True):
        allowed = round(max(medians[0] * 1.5, medians[0] + 0.5), 3)
        what = f"{strategy}, p50 of {name}, goal 1.5 x that of 50k or 0.5 ms more"
        figures.append(below(what, median, allowed, unit="ms"))
    return figures


def make_settings(window: int, strategy: str | Strategy) -> Settings:
    """Settings of a session with this window and strategy."""
    card, _ = find_card("claude-sonnet-4-5")
    budget = Budget(window, 0, 0)
    return Settings(card, Meter(counter("cl100k")), budget, Rates(0.1, 1.25), strategy=strategy, session="bench")


def grow(store: SessionStore, log_tokens: int, settings: Settings) -> tuple[Engine, int]:
    """Make a session whose log holds about so many tokens, with a request every fifty rounds; also its rounds."""
    engine = Engine(settings, store)
    engine.append(head())
    number = 0
    for number, (call, result) in enumerate(rounds()):
        engine.append([call, result])
        if number % 50 == 49:
            engine.pack(tools=TOOLS)
        if sum(entry.tokens for entry in engine.history.entries[-2:]) * (number + 2) > log_tokens:
            break
    engine.pack(tools=TOOLS)
    return engine, number + 1


def time_packs(engine: Engine, number: int) -> list[float]:
    """Times of single packs in milliseconds, ascending. New blocks are small: what most steps append."""
    return sorted(islice(iterate_pack_times(engine, number), PACKS))


def iterate_pack_times(engine: Engine, number: int) -> Iterator[float]:
    """Pack round after round, and yield the milliseconds of each."""
    gc.collect()
    for call, result in rounds(number, lines=40):
        exact.remembered.clear()
        started = time.perf_counter()
        engine.append([call, result])
        engine.pack(tools=TOOLS)
        yield (time.perf_counter() - started) * 1000


def _tailed(engine: Engine, number: int) -> float:
    """The milliseconds that a tail, new each time, adds to the median warm pack; every second one has it."""
    new = rounds(number, lines=40)
    times: dict[bool, list[float]] = {False: [], True: []}
    gc.collect()
    exact.remembered.clear()
    for pack in range(2 * PACKS):
        call, result = next(new)
        tail = f"{pack:4} is the number of this request.\n" * 54 if pack % 2 else ""
        started = time.perf_counter()
        engine.append([call, result])
        engine.pack(tools=TOOLS, template=MARKED, tail=tail)
        times[bool(tail)].append((time.perf_counter() - started) * 1000)
    return statistics.median(times[True]) - statistics.median(times[False])


def _reopened(engine: Engine, store: SessionStore) -> float:
    """Median time in milliseconds from a stored session to its next request."""
    times: list[float] = []
    for _ in range(OPENS):
        gc.collect()
        exact.remembered.clear()
        started = time.perf_counter()
        reopen(engine.settings, store).pack(tools=TOOLS)
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)
