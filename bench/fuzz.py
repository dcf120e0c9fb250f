"""Random histories, each under one drawn format, strategy and window, and played sessions: ``python -m bench.fuzz
[COUNT [FIRST]]`` plays COUNT histories (default 20,000) from the seed FIRST on, and a session for each 20 of them,
with as many processes as there are cores."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

from msgspec import Struct, field
from rich.console import Console
from rich.progress import track

from bench.figures import Figure, below, plain, table
from tests import drawn, played, played_session

HISTORIES = 20_000
MILLION = 1_000_000
CORES = 2
CHUNK = 100
HISTORIES_OF_A_SESSION = 20
SHOWN_FAULTS = 5


GENERATORS: Mapping[str, tuple[Callable[[int], drawn.Verdict], Mapping[str, str]]] = {
    "histories": (drawn.play, drawn.FAULTS),
    "sessions": (played.play, played_session.FAULTS),
}
"""What plays a seed, and which faults it looks for."""


class Sum(Struct):
    """What some histories came to together, or sessions."""

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


def play_some(first: int, count: int, what: str = "histories") -> Sum:
    """Play the histories or sessions of ``count`` seeds from one on."""
    total, started, play = Sum(), time.process_time(), GENERATORS[what][0]
    for seed in range(first, first + count):
        verdict = play(seed)
        faults = Counter(fault.kind for fault in verdict.faults)
        failed = [f"{seed}: {fault.kind}, {fault.what}" for fault in verdict.faults[:1]]
        total += Sum(1, verdict.requests, verdict.repairs, verdict.edits, verdict.refused, 0.0, faults, failed)
    total.cpu_s = time.process_time() - started
    return total


def run(histories: int = HISTORIES, first: int = 0) -> list[Figure]:
    """So many histories from a seed on, and the sessions that go with them."""
    started, figures = time.perf_counter(), list[Figure]()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for what, count in (("histories", histories), ("sessions", -(-histories // HISTORIES_OF_A_SESSION))):
            firsts = range(first, first + count, CHUNK)
            counts = [min(CHUNK, first + count - start) for start in firsts]
            played_some = pool.map(play_some, firsts, counts, [what] * len(counts))
            total = _sum(track(played_some, f"Playing {what}", len(counts), console=Console(stderr=True)))
            figures += _list_figures(total, first, what)
            if what == "histories":
                figures += list_times(total, time.perf_counter() - started)
    return figures


def _sum(played: Iterable[Sum]) -> Sum:
    total = Sum()
    for some in played:
        total += some
    return total


def _list_figures(total: Sum, first: int, what: str) -> Iterator[Figure]:
    last = first + total.histories - 1
    yield plain(f"{what}, seeds {first:,} to {last:,}: requests", f"{total.requests:,}")
    yield plain("  repairs told; compactions", f"{total.repairs:,}; {total.edits:,}")
    yield plain("  typed errors in the place of a request: no cut makes it fit", f"{total.refused:,}")
    for kind, meaning in GENERATORS[what][1].items():
        yield below(meaning, total.faults[kind], 0, unit="", digits=0)
    if total.failed:
        yield plain(f"first {what} with a fault", "; ".join(total.failed[:SHOWN_FAULTS])[:600])


def list_times(total: Sum, taken_s: float) -> Iterator[Figure]:
    """What the histories took. There is no goal to miss: a slow machine is not a fault of a history."""
    each_ms = total.cpu_s * 1000 / max(total.histories, 1)
    yield plain("seconds; CPU of one history", f"{taken_s:,.0f}; {each_ms:.2f} ms")
    million_min = each_ms * MILLION / 1000 / 60 / CORES
    yield plain("1,000,000 histories on two cores of their own, by that CPU", f"{million_min:.0f} min")


def main(arguments: Sequence[str]) -> int:
    """Print the figures of the histories asked for. Returns the exit code: 1 when one has a fault."""
    figures = run(*map(int, arguments[:2]))
    Console(width=None if sys.stdout.isatty() else 120).print(table("fuzz", figures))
    return 1 if any(figure.met is False for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
