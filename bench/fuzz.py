"""Random histories, each under one drawn format, strategy and window: ``python -m bench.fuzz [COUNT [FIRST]]``
plays COUNT of them (default 20,000) from the seed FIRST on, with as many processes as there are cores."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

from msgspec import Struct, field
from rich.console import Console
from rich.progress import track

from bench.figures import Figure, below, plain, table
from tests.drawn import FAULTS, play

HISTORIES = 20_000
MILLION = 1_000_000
CORES = 2
CHUNK = 100
SHOWN_FAULTS = 5


class Sum(Struct):
    """What some histories came to together."""

    histories: int = 0
    requests: int = 0
    repairs: int = 0
    edits: int = 0
    refused: int = 0
    cpu_s: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    """Each history that has a fault, by its seed, and the first of them."""

    def __add__(self, other: Sum) -> Sum:
        return Sum(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))


def play_some(first: int, count: int) -> Sum:
    """Play the histories of ``count`` seeds from one on."""
    total, started = Sum(), time.process_time()
    for seed in range(first, first + count):
        verdict = play(seed)
        faults = Counter(fault.kind for fault in verdict.faults)
        failed = [f"{seed}: {fault.kind}, {fault.what}" for fault in verdict.faults[:1]]
        total += Sum(1, verdict.requests, verdict.repairs, verdict.edits, verdict.refused, 0.0, faults, failed)
    total.cpu_s = time.process_time() - started
    return total


def run(histories: int = HISTORIES, first: int = 0) -> list[Figure]:
    """So many histories from a seed on."""
    started = time.perf_counter()
    firsts = range(first, first + histories, CHUNK)
    counts = [min(CHUNK, first + histories - start) for start in firsts]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        played = pool.map(play_some, firsts, counts)
        total = _sum(track(played, "Playing", len(counts), console=Console(stderr=True)))
    return [*_list_figures(total, first), *_list_times(total, time.perf_counter() - started)]


def _sum(played: Iterable[Sum]) -> Sum:
    total = Sum()
    for some in played:
        total += some
    return total


def _list_figures(total: Sum, first: int) -> Iterator[Figure]:
    last = first + total.histories - 1
    yield plain(f"histories, seeds {first:,} to {last:,}: requests", f"{total.requests:,}")
    yield plain("  repairs told; compactions", f"{total.repairs:,}; {total.edits:,}")
    yield plain("  typed errors in the place of a request: no cut makes it fit", f"{total.refused:,}")
    for kind, what in FAULTS.items():
        yield below(what, total.faults[kind], 0, unit="", digits=0)
    if total.failed:
        yield plain("first histories with a fault", "; ".join(total.failed[:SHOWN_FAULTS])[:600])


def _list_times(total: Sum, taken_s: float) -> Iterator[Figure]:
    each_ms = total.cpu_s * 1000 / max(total.histories, 1)
    yield plain("seconds; CPU of one history", f"{taken_s:,.0f}; {each_ms:.2f} ms")
    million_min = each_ms * MILLION / 1000 / 60 / CORES
    yield below("1,000,000 histories on two cores of their own, by that CPU", million_min, 60, unit="min")


def main(arguments: Sequence[str]) -> int:
    """Print the figures of the histories asked for. Returns the exit code: 1 when one has a fault."""
    figures = run(*map(int, arguments[:2]))
    Console(width=None if sys.stdout.isatty() else 120).print(table("fuzz", figures))
    return 1 if any(figure.met is False for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
