"""The time of one search of the memory, from the question to the chosen hits, by the number of records."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from random import Random
from statistics import median
from time import perf_counter

from bench.figures import Figure, below, plain
from lading.memory.records import MemoryRecord, Namespace
from lading.memory.retrieval import Means, Query, find
from lading.memory.sqlite_store import open_records
from lading.tokens import counter

SIZES = ((10_000, 10.0), (100_000, 60.0))
"""Records, and the goal of one search in milliseconds."""
SEARCHES = 50
BUDGET_TOKENS, MOST_HITS = 1_000, 20
WORDS, RECORD_WORDS, QUESTION_WORDS = 20_000, 40, 6
SEED = 20_261_126
_BATCH = 5_000
_READER = Namespace()


def make_vocabulary(random: Random) -> list[str]:
    """Make words, the most frequent first."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return ["".join(random.choices(letters, k=random.randint(3, 10))) for _ in range(WORDS)]


def say(vocabulary: list[str], count: int, random: Random) -> str:
    """Say words as often as natural texts do: the n-th has a share of about 1/n."""
    return " ".join(vocabulary[int(len(vocabulary) ** random.random()) - 1] for _ in range(count))


def make_records(count: int, vocabulary: list[str], random: Random) -> Iterator[MemoryRecord]:
    """Make records, a minute apart."""
    for at in range(count):
        yield MemoryRecord(text=say(vocabulary, RECORD_WORDS, random), created_s=60.0 * at + 1)


def run(sizes: tuple[tuple[int, float], ...] = SIZES) -> list[Figure]:
    """Measure searches in files of each size."""
    count = counter("estimate").count
    means = Means(count=lambda record: count(record.text))
    figures: list[Figure] = []
    for size, goal_ms in sizes:
        random = Random(SEED)
        vocabulary = make_vocabulary(random)
        records = list(make_records(size, vocabulary, random))
        now_s = records[-1].created_s
        with tempfile.TemporaryDirectory() as folder:
            store = open_records(folder)
            for start in range(0, size, _BATCH):
                store.add(records[start : start + _BATCH], at_s=now_s)
            times_ms: list[float] = []
            for _ in range(SEARCHES):
                query = Query(
                    text=say(vocabulary, QUESTION_WORDS, random),
                    reader=_READER,
                    at_s=now_s,
                    budget_tokens=BUDGET_TOKENS,
                    most_hits=MOST_HITS,
                )
                started = perf_counter()
                find(store, query, means=means)
                times_ms.append(1_000 * (perf_counter() - started))
            store.close()
        figures.append(below(f"search of {size:,} records, p50", median(times_ms), goal_ms, unit="ms"))
        figures.append(
            plain(f"search of {size:,} records, p95", f"{sorted(times_ms)[SEARCHES * 95 // 100]:.2f} ms")
        )
    return figures
