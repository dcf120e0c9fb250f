"""Print the numbers: ``python -m bench [NAME...]``. Medians and ratios; machines are noisy."""

from __future__ import annotations

import sys
from collections.abc import Callable

from rich.console import Console

from bench import (
    allocation,
    calibration,
    chains,
    checks,
    compositions,
    contract,
    durability,
    extremes,
    footprint,
    fuzz,
    hostile,
    inspect_logs,
    large_results,
    line,
    memory_search,
    memory_store,
    price_rule,
    report,
    sessions,
    shrinkers,
    step_payloads,
    step_tools,
    store,
    warm_pack,
    wrapped,
)
from bench.figures import Figure, table

BENCHMARKS: dict[str, Callable[[], list[Figure]]] = {
    "line": line.run,
    "warm-pack": warm_pack.run,
    "compositions": compositions.run,
    "sessions": sessions.run,
    "store": store.run,
    "durability": durability.run,
    "memory-store": memory_store.run,
    "report": report.run,
    "wrapped": wrapped.run,
    "inspect-logs": inspect_logs.run,
    "footprint": footprint.run,
    "calibration": calibration.run,
    "price-rule": price_rule.run,
    "checks": checks.run,
    "chains": chains.run,
    "fuzz": fuzz.run,
    "contract": contract.run,
    "shrinkers": shrinkers.run,
    "hostile": hostile.run,
    "large-results": large_results.run,
    "extremes": extremes.run,
    "allocation": allocation.run,
    "step-payloads": step_payloads.run,
    "memory-search": memory_search.run,
    "step-tools": step_tools.run,
}


def main(names: list[str]) -> int:
    """Run the named benchmarks, all without names."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    if unknown := [name for name in names if name not in BENCHMARKS]:
        console.print(f"There is no benchmark {unknown[0]!r}. Choose from: {', '.join(BENCHMARKS)}.")
        return 2
    for name in names or list(BENCHMARKS):
        console.print(table(name, BENCHMARKS[name]()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
