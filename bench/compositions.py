"""What a composition of four strategies adds to a warm pack at a million tokens of history."""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench.figures import Figure, below
from bench.warm_pack import grow, make_settings, time_packs
from lading.compaction import Strategy
from lading.compaction.composing import compose
from lading.stores.sqlite import open_sqlite

FOUR = compose(["agentrail/tool_results", "agentrail/session_compaction", "agentrail/reactive", "priced"])
CASES = (("1M-token log behind 200k", 1_000_000, 200_000), ("0.9M tokens inside 1M", 900_000, 1_000_000))


def run() -> list[Figure]:
    """For each size the median with the last of the four alone, and what the others add to it."""
    figures: list[Figure] = []
    for case, log_tokens, window in CASES:
        alone, composed = (_find_median(one, log_tokens, window) for one in ("priced", FOUR))
        figures.append(below(f"warm pack, priced alone, {case}: p50", alone, 10, unit="ms"))
        figures.append(below(f"added by a composition of four, {case}: p50", composed - alone, 0.6, unit="ms"))
    return figures


def _find_median(strategy: str | Strategy, log_tokens: int, window: int) -> float:
    with tempfile.TemporaryDirectory() as folder, open_sqlite(Path(folder), durability="off") as store:
        times = time_packs(*grow(store, log_tokens, make_settings(window, strategy)))
        return times[len(times) // 2]
