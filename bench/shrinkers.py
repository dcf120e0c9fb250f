"""JSON of four shapes in tokens, beside other ways to write it; and how long shrinkers take for 1 MB."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable

from bench.figures import Figure, below, plain
from bench.json_rivals import as_csv, minified, toon
from bench.json_shapes import flat_rows, half_nested_users, nested_maps, nested_orders
from lading.shrink import SHRINKERS, Target, find_shrinker
from lading.shrink.shrinking import reduce, shrink
from lading.tokens import counter, exact
from tests.shrink.samples import PLANTED, sample

SHAPES = {
    "300 flat rows": flat_rows(300),
    "100 nested orders": nested_orders(100),
    "nested maps of 50 products": nested_maps(50),
    "150 half-nested users": half_nested_users(150),
}
RIVALS = {"minified": minified, "CSV": as_csv, "TOON": toon}
MEGABYTE = 1_000_000
RUNS = 5


def run() -> list[Figure]:
    """Tokens of each shape, then milliseconds of each shrinker."""
    figures = [figure for name in ("o200k", "cl100k") for figure in _tokens(name)]
    for kind in sorted(set(SHRINKERS) - {"search", "empty"}):
        figures += _times(kind)
    return [*figures, _huge()]


def _tokens(name: str) -> list[Figure]:
    count = counter(name).count
    figures = []
    for shape, value in SHAPES.items():
        indented = json.dumps(value, indent=2)
        found = shrink(indented, count=count, kind="json")
        ours = count(found.text) if found else count(indented)
        rivals = {rival: count(write(value)) for rival, write in RIVALS.items()}
        told = ", ".join(f"{rival} {tokens:,}" for rival, tokens in rivals.items())
        figures.append(plain(f"{shape}, {name}: indented {count(indented):,}, {told}", ""))
        figures.append(below(f"{shape}, {name}: ours", ours, min(rivals.values()), unit="tokens", digits=0))
    return figures


def _times(kind: str) -> list[Figure]:
    found = find_shrinker(kind)
    text = _megabyte(kind)
    count = counter("o200k").count
    target = Target(4_000, (PLANTED,), "artifact://bench/s/log/1")
    lossless_ms = _median_ms(lambda: list(found.reshape(text)))
    lossy_ms = _median_ms(lambda: found.reduce(text, target, count))
    return [
        below(f"{kind}, 1 MB: lossless candidates", lossless_ms, 300, unit="ms", digits=0),
        below(f"{kind}, 1 MB: lossy, counting included", lossy_ms, 300, unit="ms", digits=0),
    ]


def _huge() -> Figure:
    text = sample("log", 50 * MEGABYTE // 70, planted=True)
    count = counter("o200k").count
    target = Target(4_000, (PLANTED,), "artifact://bench/s/log/1")
    taken_ms = _median_ms(lambda: reduce(text, target, count=count))
    return below(f"log, {len(text) // MEGABYTE} MB: reduced", taken_ms, 5_000, unit="ms", digits=0)


def _megabyte(kind: str) -> str:
    rows = 500
    rows = rows * MEGABYTE // len(sample(kind, rows))
    return sample(kind, rows, planted=True)


def _median_ms(act: Callable[[], object]) -> float:
    times = []
    for _ in range(RUNS):
        exact.remembered.clear()
        start = time.perf_counter()
        act()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)
