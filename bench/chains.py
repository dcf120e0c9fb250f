"""Fuzzed chains of compactions: ``python -m bench.chains COUNT [FIRST]`` plays COUNT random sessions from the
seed FIRST on (0 when it is not given), each through ``priced`` or ``basic`` on one of both wires."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product

from msgspec import Struct
from rich.console import Console

from bench.figures import Figure, below, plain, table
from lading.wire import WIRES
from tests.chains import SAMPLED, Verdict, play

CHAINS = 2_000
CHUNK = 50
KINDS = tuple(product(("priced", "basic"), sorted(WIRES)))
"""A chain's seed says which strategy and wire it goes through."""
LONG_ROUNDS = 400
"""Rounds of the sessions that are compacted over and over."""
LEAST_COMPACTIONS = 50
FAULTS = {
    "lost_rules": "rules of the user lost",
    "forged_rules": "rules restated that no user stated",
    "illegal": "illegal requests",
    "too_long": "requests over the window",
    "unverified": f"of one chain in {SAMPLED}: manifests not verified, other bytes once reopened",
    "unreachable": "removed messages that no address in the last request leads to",
}


class Sum(Struct):
    """What some chains came to together."""

    chains: int = 0
    requests: int = 0
    compactions: int = 0
    refused: int = 0
    overruled: int = 0
    rules: int = 0
    removed: int = 0
    faults: dict[str, int] = {}
    failed: list[str] = []
    """Each chain that has a fault, by its seed, and the first of them."""

    def add(self, seed: int, verdict: Verdict) -> None:
        """Take in one chain."""
        self.chains += 1
        for name in ("requests", "compactions", "refused", "overruled", "rules", "removed"):
            setattr(self, name, getattr(self, name) + getattr(verdict, name))
        for name in FAULTS:
            self.faults[name] = self.faults.get(name, 0) + len(getattr(verdict, name))
        if verdict.faults:
            self.failed.append(f"{seed}: {verdict.faults[0]}")


def played(seed: int, *, rounds: int | None = None, stored: bool | None = None) -> Verdict:
    """The chain of a seed."""
    strategy, wire = KINDS[seed % len(KINDS)]
    return play(seed // len(KINDS), wire=wire, strategy=strategy, rounds=rounds, stored=stored)


def summed(verdicts: Iterable[tuple[int, Verdict]]) -> Sum:
    """What these chains came to."""
    total = Sum()
    for seed, verdict in verdicts:
        total.add(seed, verdict)
    return total


def run(chains: int = CHAINS, first: int = 0) -> list[Figure]:
    """So many chains from a seed on, and four sessions that are compacted over and over."""
    started = time.perf_counter()
    seeds = range(first, first + chains)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        verdicts = list(zip(seeds, pool.map(played, seeds, chunksize=CHUNK), strict=True))
        over_and_over = partial(played, rounds=LONG_ROUNDS, stored=True)
        long = list(zip(range(4), pool.map(over_and_over, range(4)), strict=True))
    return [*_figures(summed(verdicts), first), *_long(long), _took(time.perf_counter() - started)]


def _figures(total: Sum, first: int) -> Iterator[Figure]:
    last = first + total.chains - 1
    yield plain(f"chains, seeds {first} to {last}: requests", f"{total.requests:,}")
    yield plain("  of these, with an edit of what was sent before", f"{total.compactions:,}")
    yield plain("  typed errors in their place: nothing was left that may go", f"{total.refused:,}")
    yield plain("  strategies overruled by an emergency cut", f"{total.overruled:,}")
    yield plain("  rules that users stated; messages that left", f"{total.rules:,}; {total.removed:,}")
    for name, what in FAULTS.items():
        yield below(what, total.faults.get(name, 0), 0, unit="", digits=0)
    if total.failed:
        yield plain("first chains with a fault", "; ".join(total.failed[:5])[:400])


def _long(verdicts: Iterable[tuple[int, Verdict]]) -> Iterator[Figure]:
    for seed, verdict in verdicts:
        reached = 1 - len(verdict.unreachable) / max(verdict.removed, 1)
        what = f"{' on '.join(KINDS[seed])}, {verdict.compactions} compactions: removed bytes that can be restored"
        met = not verdict.faults and verdict.compactions >= LEAST_COMPACTIONS
        yield Figure(what, f"{reached:.1%} of {verdict.removed:,} messages", "100 %", met)


def _took(seconds: float) -> Figure:
    return plain("seconds", f"{seconds:,.0f}")


def main(arguments: Sequence[str]) -> int:
    """Print the figures of the chains asked for. Returns the exit code: 1 when a chain has a fault."""
    figures = run(*map(int, arguments[:2]))
    Console(width=None if sys.stdout.isatty() else 120).print(table("chains", figures))
    return 1 if any(figure.met is False for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
