"""What importing and installing Lading costs."""

from __future__ import annotations

import importlib.metadata
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench.figures import Figure, below, plain

RUNS = 9
CORE = ("lading", "msgspec", "click", "rich", "tiktoken")


def run() -> list[Figure]:
    """Import time over a bare interpreter, and the size of the core install without bytecode."""
    bare, imported = _python("pass"), _python("import lading")
    sizes = {name: _installed_bytes(name) for name in sorted(_with_dependencies(CORE))}
    total_mb = sum(sizes.values()) / 1e6
    largest = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in sorted(sizes.items(), key=_by_size)[:5])
    return [
        below("import lading, over a bare interpreter", imported - bare, 0.1, unit="s", digits=3),
        below("core install without bytecode", total_mb, 20, unit="MB", digits=1),
        plain("its largest distributions (MB)", largest),
    ]


def _by_size(item: tuple[str, int]) -> int:
    return -item[1]


def _python(code: str) -> float:
    times: list[float] = []
    for _ in range(RUNS):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def _with_dependencies(names: tuple[str, ...]) -> set[str]:
    """The distributions and everything they require without extras."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        required = importlib.metadata.requires(name) or []
        plain_ones = [line for line in required if "extra ==" not in line and _applies(line)]
        waiting += [_name(line) for line in plain_ones]
    return found


def _name(requirement: str) -> str:
    end = next((at for at, char in enumerate(requirement) if char in " ;<>=!~[("), len(requirement))
    return requirement[:end].lower().replace("_", "-")


def _applies(requirement: str) -> bool:
    """Markers other than extras name other platforms or older interpreters; installed is what applies here."""
    try:
        importlib.metadata.distribution(_name(requirement))
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _installed_bytes(name: str) -> int:
    if name == "lading":  # an editable install lists no files of its own
        source = Path(__file__).parents[1] / "src" / "lading"
        return sum(path.stat().st_size for path in source.rglob("*") if path.is_file() and path.suffix != ".pyc")
    files = importlib.metadata.files(name) or []
    paths = [Path(str(file.locate())) for file in files if file.suffix != ".pyc"]
    return sum(path.stat().st_size for path in paths if path.is_file())
