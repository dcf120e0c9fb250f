"""What a composition of four strategies adds to a warm pack at a million tokens of history."""

from __future__ import annotations

import statistics
import tempfile
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from bench.figures import Figure, below
from bench.warm_pack import PACKS, grow, iterate_pack_times, make_settings
from lading.compaction.composing import compose
from lading.stores.sqlite import open_sqlite

FOUR = compose(["agentrail/tool_results", "agentrail/session_compaction", "agentrail/reactive", "priced"])
CASES = (("1M-token log behind 200k", 1_000_000, 200_000), ("0.9M tokens inside 1M", 900_000, 1_000_000))


def run() -> list[Figure]:
    """For each size the median with the last of the four alone, and what the others add to it."""
    figures: list[Figure] = []
    for case, log_tokens, window in CASES:
        alone, composed = _find_medians(log_tokens, window)
        figures.append(below(f"warm pack, priced alone, {case}: p50", alone, 10, unit="ms"))
        figures.append(below(f"added by a composition of four, {case}: p50", composed - alone, 0.6, unit="ms"))
    return figures


def _find_medians(log_tokens: int, window: int) -> tuple[float, float]:
    """Return the medians in milliseconds. The two sessions pack in turn, so that both meet the same machine."""
    with ExitStack() as opened:
        packs = []
        for strategy in ("priced", FOUR):
            folder = opened.enter_context(tempfile.TemporaryDirectory())
            store = opened.enter_context(open_sqlite(Path(folder), durability="off"))
            packs.append(iterate_pack_times(*grow(store, log_tokens, make_settings(window, strategy))))
        alone, composed = zip(*islice(zip(*packs, strict=True), PACKS), strict=True)
    return statistics.median(alone), statistics.median(composed)
