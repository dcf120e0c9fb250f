"""How tests wait: for a condition, an event, a thread or a process, never for a number of seconds.

The only file of the tests that knows seconds (``python -m scripts.check_limits`` finds the others). What is
waited for comes as soon as it comes; ``PATIENCE_S`` only ends a test that would otherwise hang.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from select import select
from typing import AnyStr, TypeVar

from lading.stores import sqlite_file
from lading.testing import local_server

PATIENCE_S = 300.0
"""How long a test waits for what must come, on the slowest and busiest machine."""
_PAUSE_S = 0.005
_SHOWN_CHARS = 3_000

Found = TypeVar("Found")


def until(what: str, condition: Callable[[], Found], seen: Callable[[], object] | None = None) -> Found:
    """The first truthy value of the condition. ``seen`` describes the state for the error; default: the value."""
    end = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        if time.monotonic() > end:
            state = found if seen is None else seen()
            raise AssertionError(f"{what}: not within {PATIENCE_S:g} s; last seen: {str(state)[-_SHOWN_CHARS:]}")
        time.sleep(_PAUSE_S)
    return found


def happened(event: threading.Event, what: str) -> None:
    """Return once the event is set."""
    assert event.wait(PATIENCE_S), f"{what}: not within {PATIENCE_S:g} s"


async def happens(event: asyncio.Event, what: str) -> None:
    """Return once the event of this loop is set."""
    try:
        await asyncio.wait_for(event.wait(), PATIENCE_S)
    except TimeoutError:
        raise AssertionError(f"{what}: not within {PATIENCE_S:g} s") from None


def finished(threads: Iterable[threading.Thread], what: str) -> None:
    """Return once all threads have ended."""
    end = time.monotonic() + PATIENCE_S
    for thread in threads:
        thread.join(max(end - time.monotonic(), 0.0))
        assert not thread.is_alive(), f"{what}: {thread.name} not within {PATIENCE_S:g} s"


def together(runs: Sequence[Callable[[], Found]]) -> list[Found]:
    """Results of all of them, started at once, each in a thread; raises what one of them raised."""
    barrier = threading.Barrier(len(runs), timeout=PATIENCE_S)
    outcomes: list[Found | BaseException | None] = [None] * len(runs)

    def started(number: int, run: Callable[[], Found]) -> None:
        try:
            barrier.wait()
            outcomes[number] = run()
        except BaseException as error:  # noqa: BLE001 - raised again in the thread of the test
            outcomes[number] = error

    threads = [threading.Thread(target=started, args=item, daemon=True) for item in enumerate(runs)]
    for thread in threads:
        thread.start()
    finished(threads, "runs side by side")
    found: list[Found] = []
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
        found.append(outcome)  # type: ignore[arg-type]
    return found


def ended(process: subprocess.Popen[AnyStr], what: str, said: AnyStr | None = None) -> tuple[AnyStr, AnyStr]:
    """What a process printed to both outputs, once it has ended; it is first sent ``said``.

    One that does not end is killed, and the error shows its output so far.
    """
    try:
        return process.communicate(said, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        printed = [str(text)[-_SHOWN_CHARS:] for text in process.communicate() if text]
        raise AssertionError(f"{what}: no end within {PATIENCE_S:g} s; printed: {printed}") from None


def line(process: subprocess.Popen[str], what: str = "a line") -> str:
    """The next line that a process prints, without its end; a process that prints none is killed.

    No byte more is read, so that ``ended`` still gives all that follows.
    """
    assert process.stdout is not None
    output, printed = process.stdout.fileno(), b""
    while not printed.endswith(b"\n"):
        is_ready, _, _ = select([output], [], [], PATIENCE_S)
        piece = os.read(output, 1) if is_ready else b""
        if not piece:
            process.kill()
            why = "the process ended" if is_ready else f"nothing within {PATIENCE_S:g} s"
            raise AssertionError(f"{what}: {why} after {printed!r}")
        printed += piece
    return printed.decode().rstrip("\n")


def go_on(process: subprocess.Popen[str]) -> None:
    """Send an empty line to a process that waits for one."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def any_moment(chance: random.Random, *, most_s: float = 0.006) -> None:
    """Sleep for a random moment, so that what follows comes at any point of another process's work.

    Nothing may depend on what the other process has done by then.
    """
    time.sleep(chance.random() * most_s)


class Clock:
    """Stands in for the module ``time`` where the product sleeps: time passes only while it sleeps."""

    def __init__(self, at_s: float = 1_000.0, *, asleep: Callable[[], object] = lambda: None) -> None:
        """``asleep`` is called at each sleep: what others do meanwhile."""
        self.now_s = at_s
        self.asleep = asleep

    def time(self) -> float:
        """Seconds."""
        return self.now_s

    def monotonic(self) -> float:
        """Seconds."""
        return self.now_s

    def sleep(self, pause_s: float) -> None:
        """Let time pass."""
        assert pause_s > 0
        self.now_s += pause_s
        self.asleep()


def be_patient() -> None:
    """Have this process wait for other writers of a store, and for slow clients, as long as tests do."""
    sqlite_file.WAIT_S = PATIENCE_S
    local_server._RequestHandler.timeout = int(PATIENCE_S)
