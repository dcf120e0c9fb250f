"""The contract over all recorded sessions: ``python -m bench.contract [EVERY [FIRST]]`` plays every so-manieth of
them from the one of that number on, all without numbers, with each preset at four windows on both wires."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import product

from msgspec import Struct, field
from rich.console import Console
from rich.progress import track

from bench.figures import Figure, below, plain, table
from bench.sessions import SHARED
from lading.wire import WIRES
from tests.contract import KINDS, Step, Verdict, play
from tests.preset_cases import PRESETS
from tests.trajectories import WINDOWS, recordings, script

TWICE = 4
"""Of so many sessions one is also played in a second engine, which is reopened."""
LONG_STEPS = 100
"""Of a session with more requests, those that extend the one before them are judged now and then only."""
LONG_EVERY = 20
SHOWN_FAULTS = 3


class Sum(Struct):
    """What the plays of one preset came to."""

    tasks: int = 0
    """Wires and windows that were played."""
    plays: int = 0
    requests: int = 0
    edits: int = 0
    refused: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    first: tuple[str, ...] = ()
    """Of each play with a fault, the first of them."""

    def add(self, where: str, verdict: Verdict) -> None:
        """Take in one play."""
        first = tuple(f"{where}: {fault.kind}, {fault.what}" for fault in verdict.faults[:1])
        self.take(Sum(0, 1, verdict.requests, verdict.edits, verdict.refused, verdict.by_kind, first))

    def take(self, other: Sum) -> None:
        """Take in what other plays came to."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def run(every: int = 1, first: int = 0) -> list[Figure]:
    """Every so-manieth session from the one of that number on."""
    if not SHARED.is_dir():
        return [plain("recorded sessions", "not there: LADING_SHARED names their folder")]
    started = time.perf_counter()
    tasks = list(product(PRESETS, sorted(WIRES), WINDOWS))
    sums = {preset: Sum() for preset in PRESETS}
    with ProcessPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count() or 1)) as pool:
        played = pool.map(_played, tasks, [(every, first)] * len(tasks))
        console = Console(stderr=True)
        for (preset, *_), found in zip(tasks, track(played, "Playing", len(tasks), console=console), strict=True):
            sums[preset].take(found)
            if sums[preset].tasks == len(WIRES) * len(WINDOWS):
                console.print(_told(preset, sums[preset]))
    return [*figures_of(sums), plain("seconds", f"{time.perf_counter() - started:,.0f}")]


def _played(task: tuple[str, str, int], part: tuple[int, int]) -> Sum:
    """What a preset makes of the sessions on a wire at a window."""
    preset, wire, window = task
    total = Sum(1)
    for number, (name, steps) in enumerate(_scripts(*part)):
        verdict = play(
            steps,
            PRESETS[preset],
            window=window,
            wire=wire,
            twice=number % TWICE == 0 and len(steps) <= LONG_STEPS,
            every=LONG_EVERY if len(steps) > LONG_STEPS else 1,
        )
        total.add(f"{name} at {window:,} on {wire}", verdict)
    return total


@cache
def _scripts(every: int, first: int) -> list[tuple[str, list[Step]]]:
    return [(name, script(item)) for name, item in list(recordings(SHARED))[first::every]]


def figures_of(sums: dict[str, Sum]) -> Iterator[Figure]:
    """What the plays of each preset came to, then the faults of each kind."""
    for preset, total in sums.items():
        faults = ", ".join(f"{number} {kind}" for kind, number in total.faults.items()) or "0"
        yield Figure(f"{_told(preset, total)}, faults", faults, "0", not total.faults)
    for kind in KINDS:
        yield below(kind, sum(total.faults[kind] for total in sums.values()), 0, unit="", digits=0)
    if first := [f"{preset}: {where}" for preset, total in sums.items() for where in total.first[:1]]:
        yield plain("first plays with a fault", "; ".join(first[:SHOWN_FAULTS])[:600])


def _told(preset: str, total: Sum) -> str:
    done = f"{total.requests:,} requests, {total.edits:,} edits, {total.refused:,} refused"
    return f"{preset}: {total.plays:,} plays, {done}"


def main(arguments: Sequence[str]) -> int:
    """Print the figures of the sessions asked for. Returns the exit code: 1 when there is a fault."""
    figures = run(*map(int, arguments[:2]))
    Console(width=None if sys.stdout.isatty() else 120).print(table("contract", figures))
    return 1 if any(figure.met is False for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
