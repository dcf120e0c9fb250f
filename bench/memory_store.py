"""A memory of 10,000 and of 100,000 records: adding, searching, opening, forgetting, and the size of a process."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from itertools import accumulate
from pathlib import Path
from statistics import median

from bench.figures import Figure, below, plain
from lading.memory.records import MemoryRecord, Namespace
from lading.memory.sqlite_store import SqliteRecordStore, open_records
from lading.memory.store import LIMITS, Vectors

OWNER = Namespace("acme", "ada")
SIZES = {10_000: 10.0, 100_000: 60.0}
"""Numbers of records, each with the goal of a search in milliseconds."""
SIZE = 384
WORDS = [f"term{number:x}" for number in range(50_000)]
_BATCH = 5_000
"""Records, and vectors, of one transaction."""
_SHARES = list(accumulate(1 / (at + 2) for at in range(len(WORDS))))
"""Words as frequent as those of a natural language: the n-th one as 1 / n."""
_HELD = """
import random, sys
from pathlib import Path
from bench.memory_store import OWNER, SIZE
from lading.memory.sqlite_store import open_records
def resident():
    # Linux inherits the highest size of rusage from the parent.
    return int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0]) // 1024
store = open_records(sys.argv[1], create=False)
before = resident()
hits = store.search_vector(OWNER, [random.random() for _ in range(SIZE)], model="bench", at_s=2.0, limit=20)
assert len(hits) == 20
print(before, resident())
"""


def run() -> list[Figure]:
    """Medians in milliseconds, of queries of four to eight words drawn as they are frequent."""
    figures = []
    with tempfile.TemporaryDirectory() as name:
        for count, most_ms in SIZES.items():
            folder = Path(name) / str(count)
            limits = LIMITS._replace(most_records=2 * count)
            with closing(open_records(folder, limits=limits, durability="off")) as store:
                _fill(store, count)
            figures += _measure(folder, count, most_ms=most_ms)
        folder = Path(name) / str(max(SIZES))
        figures += _measure_vectors(folder)
        with closing(open_records(folder)) as store:
            forget_ms = _time(lambda: store.forget(OWNER, ["1"], at_s=3.0), times=1)
        what = "forget one of 100,000 records with vectors, ms: the file is written anew"
        figures.append(plain(what, f"{forget_ms:,.0f}"))
    return figures


def _measure(folder: Path, count: int, *, most_ms: float) -> list[Figure]:
    chance = random.Random(2)
    open_ms = _time(lambda: open_records(folder, create=False).close(), times=9)
    with closing(open_records(folder, limits=LIMITS._replace(most_records=2 * count))) as store:
        add_ms = _time(lambda: store.add([_draw_record(chance)], at_s=1.0), times=200)
        search_ms = _time(
            lambda: store.search_words(OWNER, _draw_words(chance, 4, 8), at_s=2.0, limit=20), times=100
        )
    return [
        below(f"add one to {count:,} records, full durability as open_memory has it, p50", add_ms, 1.0, unit="ms"),
        below(f"search {count:,} records, p50", search_ms, most_ms, unit="ms"),
        below(f"open a memory of {count:,} records, p50", open_ms, 100.0, unit="ms"),
    ]


def _measure_vectors(folder: Path) -> list[Figure]:
    chance = random.Random(3)
    with closing(open_records(folder, durability="off")) as store:
        numbers = [chance.gauss(0, 1) for _ in range(2 * max(SIZES))]
        while batch := store.list_without_vectors(OWNER.tenant, model="bench", limit=_BATCH):
            # Each vector is a part of the same numbers, as drawing all takes half a minute.
            drawn = {record.id: numbers[int(record.id) : int(record.id) + SIZE] for record in batch}
            store.set_vectors(OWNER.tenant, Vectors("bench", SIZE, drawn))
        query = [chance.gauss(0, 1) for _ in range(SIZE)]
        first, next_ = (
            _time(lambda: store.search_vector(OWNER, query, model="bench", at_s=2.0, limit=20), times=times)
            for times in (1, 9)
        )
    command = [sys.executable, "-c", _HELD, str(folder)]
    before, after = subprocess.check_output(command, text=True).split()
    return [
        plain("nearest of 100,000 vectors of 384 numbers, ms: first, then p50", f"{first:,.0f}, {next_:.1f}"),
        plain("resident MB of a process: memory opened, 100,000 vectors searched", f"{before}, {after}"),
    ]


def _fill(store: SqliteRecordStore, count: int) -> None:
    chance = random.Random(1)
    for _ in range(0, count, _BATCH):
        store.add([_draw_record(chance) for _ in range(_BATCH)], at_s=1.0)


def _draw_record(chance: random.Random) -> MemoryRecord:
    return MemoryRecord(text=" ".join(_draw_words(chance, 30, 90)), namespace=OWNER)


def _draw_words(chance: random.Random, least: int, most: int) -> list[str]:
    return chance.choices(WORDS, cum_weights=_SHARES, k=chance.randint(least, most))


def _time(call: Callable[[], object], *, times: int) -> float:
    """Return the median of milliseconds."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        call()
        taken.append(time.perf_counter() - started)
    return median(taken) * 1_000
