"""Real sessions: time, store size, and what ``basic`` costs, on the repository's own and on shared ones."""

from __future__ import annotations

import gzip
import os
import tempfile
import time
from pathlib import Path

from bench.figures import Figure, below, plain
from lading.economics import Rates
from lading.evaluate.plan import PlanOptions, plan_replay
from lading.evaluate.prices import Price
from lading.evaluate.replay import ReplayedCall, replay
from lading.evaluate.tally import tally
from lading.sources import Recording, read
from lading.stores.sqlite import open_sqlite

ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("LADING_SHARED") or ROOT.parent / "shared") / "data"
RATES = Rates(0.10, 1.25)
LONG_SESSION = "pi_large_session.jsonl.gz"
WINDOW_CHUNK = {64_000: 0.585, 32_000: 0.317, 16_000: 0.192}
"""Cost of the plain chunked window on the long session, which ``basic`` must not exceed."""


def run() -> list[Figure]:
    """Figures of the example sessions, then of the shared ones where they are there."""
    figures = [figure for path in sorted((ROOT / "examples" / "sessions").glob("*.gz")) for figure in _own(path)]
    if not (SHARED / LONG_SESSION).exists():
        return [*figures, plain("shared sessions", "not there: LADING_SHARED names their folder")]
    return [*figures, *_long(SHARED / LONG_SESSION)]


def _own(path: Path) -> list[Figure]:
    figures = []
    for recording in _recordings(path):
        for strategy in ("append-only", "basic", "priced"):
            options = PlanOptions(window_tokens=32_000, counter="cl100k", rates=RATES, strategy=strategy)
            calls = _calls(recording, options)
            result = tally([(call, Price(RATES, 1.0, 1.0)) for call in calls])
            text = f"cost {result.cost_ratio:.3f}, peak {result.tokens_peak:,}, {len(result.typed_errors)} errors"
            figures.append(plain(f"{path.name.split('.')[0]} at 32k, {strategy}, {len(calls)} calls", text))
    return figures


def _long(path: Path) -> list[Figure]:
    recording = _recordings(path)[0]
    figures = []
    for window, goal in WINDOW_CHUNK.items():
        calls = _calls(recording, PlanOptions(window_tokens=window, counter="cl100k", rates=RATES))
        result = tally([(call, Price(RATES, 1.0, 1.0)) for call in calls])
        what = f"basic, cost on the long session at {window // 1000}k"
        figures.append(below(what, result.cost_ratio, goal, unit="", digits=3))
    with tempfile.TemporaryDirectory() as folder:
        options = PlanOptions(window_tokens=64_000, counter="cl100k", rates=RATES)
        plan, _ = plan_replay(recording, options)
        started = time.perf_counter()
        with open_sqlite(Path(folder), durability="normal") as store:
            for _ in replay(recording, plan, session="long", store=store):
                pass
        seconds = time.perf_counter() - started
        stored = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    raw = len(gzip.decompress(path.read_bytes()))
    figures.append(below("replay of the 900-message session at 64k, manifests included", seconds, 15, unit="s"))
    figures.append(below("its store, relative to the raw session", stored / raw, 3, unit="x"))
    return figures


def _recordings(path: Path) -> list[Recording]:
    return [item for item in read(path) if isinstance(item, Recording)]


def _calls(recording: Recording, options: PlanOptions) -> list[ReplayedCall]:
    plan, _ = plan_replay(recording, options)
    return list(replay(recording, plan, session="bench"))
