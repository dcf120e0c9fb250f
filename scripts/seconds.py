"""Finds bounds on seconds in tests: readings of clocks, waits that end after a time, and sleeps.

A machine may be slow or busy, and a test that bounds seconds fails there. ``tests/waiting.py`` waits for what
must come, ``tests/growth.py`` measures whether work is linear.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from scripts.source_tree import Breach, Source, last_name

SECONDS: dict[str, str] = {
    "tests/growth.py": "compares CPU times of one run",
    "tests/test_waiting.py": "shows a clock that a test moves itself",
    "tests/waiting.py": "knows how long a test waits at most",
    "tests/cli/running.py": "stamps its session with the time; nothing is compared with it",
}
"""Files of the tests that may know seconds, each with the reason why."""

PATIENCE = "PATIENCE"
"""What is in the names of the one time that tests may wait: ``PATIENCE_S`` of ``tests.waiting``."""
CLOCKS = frozenset(
    f"{clock}{unit}"
    for clock in ("perf_counter", "process_time", "monotonic", "thread_time", "clock_gettime")
    for unit in ("", "_ns")
)
NOW = frozenset({"now", "utcnow", "today"})
DATES = frozenset({"datetime", "date"})
TIMEOUTS = frozenset({"timeout", "deadline"})
"""Keywords that end a wait. What Lading itself is given is named ``timeout_s`` or ``wait_s``."""
WAITS = {
    "acquire": 1,
    "alarm": 0,
    "call_later": 0,
    "communicate": 1,
    "get": 1,
    "join": 0,
    "poll": 0,
    "result": 0,
    "select": 3,
    "set_default_timeout": 0,
    "setitimer": 1,
    "settimeout": 0,
    "timeout": 0,
    "Timer": 0,
    "wait": 0,
    "wait_for": 1,
    "wait_for_timeout": 0,
}
"""Calls that take seconds by position, and where."""
AMBIGUOUS = frozenset({"join", "poll", "result", "timeout"})
"""Those of them that are waits only where their first argument is a number: ``"".join(words)`` is none."""
BLOCKING = frozenset({"acquire", "get"})
"""Those of them that are waits only where their first argument is ``True``: ``values.get(key, 0)`` is none."""


def seconds(source: Source) -> Iterator[Breach]:
    """No test depends on how fast a machine is: none reads a clock, sleeps, or waits for a time of its own."""
    if not source.path.startswith("tests/"):
        return
    found = sorted(set(bounds(source.tree)))
    if source.path not in SECONDS:
        yield from (Breach(source.path, line, what) for line, what in found)
    elif not found:
        yield Breach(source.path, 1, "is listed as knowing seconds but does not; take it from SECONDS")


def bounds(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and complaint of each bound on seconds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, what) for alias in node.names if (what := imports_clock(node, alias.name)))
        elif isinstance(node, ast.Name | ast.Attribute) and last_name(node) in CLOCKS:
            yield node.lineno, reads_clock(last_name(node))
        elif (
            isinstance(node, ast.Attribute) and node.attr in ("time", "time_ns") and last_name(node.value) == "time"
        ):
            yield node.lineno, reads_clock(node.attr)
        elif isinstance(node, ast.Call) and (what := call_bounds(node)):
            yield node.lineno, what


def imports_clock(node: ast.ImportFrom, name: str) -> str:
    """The complaint about ``from time import time`` and the like; empty where there is none."""
    is_clock = node.module == "time" and (name in CLOCKS or name in ("time", "time_ns"))
    return reads_clock(name) if is_clock else ""


def call_bounds(node: ast.Call) -> str:
    """The complaint about a call; empty where there is none."""
    name, arguments = last_name(node.func), node.args
    owner = last_name(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    if not arguments and isinstance(node.func, ast.Attribute) and name in ("time", "time_ns"):
        return reads_clock(name)
    if name in NOW and owner in DATES:
        return reads_clock(f"{owner}.{name}")
    if name == "sleep":
        is_yield = owner == "asyncio" and is_none_or_zero(arguments[0]) if arguments else False
        return "" if is_yield else "sleeps; wait for what must come, with tests.waiting"
    if any(not is_allowed(limit) for limit in limits(node, name)):
        return f"{name} ends after a time of its own; use tests.waiting, or its PATIENCE_S"
    checks = [ast.unparse(keyword.value) for keyword in node.keywords if keyword.arg == "suppress_health_check"]
    if checks and "too_slow" not in checks[0] and checks[0] != "list(HealthCheck)":
        return "bounds the seconds that Hypothesis may take; suppress HealthCheck.too_slow too"
    return ""


def limits(node: ast.Call, name: str) -> Iterator[ast.expr]:
    """The arguments of a call that say when it stops waiting."""
    yield from (keyword.value for keyword in node.keywords if keyword.arg in TIMEOUTS)
    place, arguments = WAITS.get(name), node.args
    if place is None or len(arguments) <= place:
        return
    if name in BLOCKING and not (isinstance(arguments[0], ast.Constant) and arguments[0].value is True):
        return
    if name not in AMBIGUOUS or is_seconds(arguments[0]):
        yield arguments[place]


def is_seconds(value: ast.expr) -> bool:
    """Whether an argument is a number, or named as one of seconds."""
    if isinstance(value, ast.Name | ast.Attribute):
        return last_name(value).lower().endswith(("_s", "_ms", "timeout", "seconds"))
    if isinstance(value, ast.BinOp):
        return is_seconds(value.left) and is_seconds(value.right)
    return isinstance(value, ast.Constant) and isinstance(value.value, int | float)


def is_allowed(limit: ast.expr) -> bool:
    """Whether a limit on time is none, no time at all, or as long as every test waits."""
    named = any(
        PATIENCE in last_name(part) for part in ast.walk(limit) if isinstance(part, ast.Name | ast.Attribute)
    )
    return named or is_none_or_zero(limit)


def is_none_or_zero(value: ast.expr) -> bool:
    """Whether it is ``None`` or ``0``, which wait as long as it takes and not at all."""
    return isinstance(value, ast.Constant) and not value.value


def reads_clock(name: str) -> str:
    """The complaint about a reading of a clock."""
    return f"reads a clock ({name}); compare times with tests.growth, or give the time that is expected"
