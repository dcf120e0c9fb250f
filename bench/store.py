"""A store that waits for the disk: one round appended with durability ``full``, beside a bare write and fsync."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from msgspec import Struct

from bench.figures import Figure, below, plain
from bench.histories import head, rounds
from lading import jsonbytes
from lading.budget import Budget
from lading.economics import Rates
from lading.engine import Engine
from lading.history.log import Edit, Entry
from lading.models.catalog import find_card
from lading.settings import Settings
from lading.stores import NO_BLOBS
from lading.stores.memory import MemoryStore
from lading.stores.sqlite import open_sqlite
from lading.tokens import counter
from lading.tokens.meter import Meter

ROUNDS = 1_000
LINES = (15, 30, 60)
"""Lines of the tool results, in turn: about 1, 2 and 4 KB."""
SYNCS: dict[str, Callable[[int], None]] = {"fsync": os.fsync, "fdatasync": getattr(os, "fdatasync", os.fsync)}


class Append(Struct, frozen=True):
    """What an engine hands to its store with one request."""

    entries: tuple[Entry, ...]
    edits: tuple[Edit, ...]
    manifest: bytes | None
    blobs: dict[str, bytes]

    def data(self) -> bytes:
        """Its bytes as they are stored."""
        values = [jsonbytes.dump_value(value) for value in (*self.entries, *self.edits)]
        return b"".join([*values, self.manifest or b"", *self.blobs.values()])


class Capture(MemoryStore):
    """A store that notes every append."""

    def __init__(self) -> None:
        super().__init__()
        self.appends: list[Append] = []

    def append(
        self,
        tenant: str,
        session: str,
        *,
        entries: Sequence[Entry] = (),
        edits: Sequence[Edit] = (),
        manifest: bytes | None = None,
        call: int | None = None,
        blobs: Mapping[str, bytes] = NO_BLOBS,
        artifacts: Sequence[bytes] = (),
    ) -> None:
        """Append, and note it."""
        super().append(
            *(tenant, session),
            entries=entries,
            edits=edits,
            manifest=manifest,
            call=call,
            blobs=blobs,
            artifacts=artifacts,
        )
        self.appends.append(Append(tuple(entries), tuple(edits), manifest, dict(blobs)))


def run() -> list[Figure]:
    """Time of an append, and its ratio to the same bytes written and synced bare."""
    appends = _appends()
    figures = []
    for name, sync in SYNCS.items():
        stored, bare = _interleaved(appends, sync)
        goal = 1.5 if name == "fsync" else None
        figures += [*_ratio(name, stored, bare, goal), *_spread("append", stored), *_spread(f"bare {name}", bare)]
    size = median(len(append.data()) for append in appends)
    return [*figures, plain("bytes of a round, median of all rounds", f"{size:,.0f} ({len(appends)} rounds)")]


def _ratio(name: str, stored: list[float], bare: list[float], goal: float | None) -> Iterator[Figure]:
    what, value = f"append of a round, full durability, relative to a bare {name}", median(stored) / median(bare)
    yield plain(what, f"{value:.2f} x") if goal is None else below(what, value, goal, unit="x")


def _spread(what: str, times: list[float]) -> Iterator[Figure]:
    ordered = sorted(times)
    shown = [f"{share:.0%} {ordered[int(share * (len(ordered) - 1))] * 1000:.3f}" for share in (0.5, 0.9, 0.99, 1)]
    yield plain(f"  {what}, ms", ", ".join(shown))


def _appends() -> list[Append]:
    """Rounds of an agent as its engine stores them, with a window that forces edits now and then."""
    card, _ = find_card("claude-sonnet-4-5")
    settings = Settings(card, Meter(counter("estimate")), Budget(64_000, 0, 0), Rates(0.1, 1.25), session="bench")
    store = Capture()
    engine = Engine(settings, store)
    engine.append(head())
    for number in range(ROUNDS):
        engine.pack()
        engine.append(next(rounds(number, lines=LINES[number % len(LINES)])))
    return store.appends


def _interleaved(appends: list[Append], sync: Callable[[int], None]) -> tuple[list[float], list[float]]:
    """Seconds of each append, and of the same bytes written to a plain file and synced, turn and turn about."""
    stored, bare = [], []
    with tempfile.TemporaryDirectory() as folder, open_sqlite(Path(folder) / "store") as store:
        descriptor = os.open(Path(folder) / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for number, item in enumerate(appends):
            data = item.data()
            for turn in (number, number + 1):
                started = time.perf_counter()
                if turn % 2:
                    os.write(descriptor, data)
                    sync(descriptor)
                    bare.append(time.perf_counter() - started)
                else:
                    store.append(
                        "bench",
                        "bench",
                        entries=item.entries,
                        edits=item.edits,
                        manifest=item.manifest,
                        blobs=item.blobs,
                    )
                    stored.append(time.perf_counter() - started)
        os.close(descriptor)
    return stored, bare
