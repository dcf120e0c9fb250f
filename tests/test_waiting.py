"""What never comes is named in the error, with what was seen last; a process that hangs is killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from threading import Event, Thread

import pytest

from tests.waiting import Clock, ended, finished, go_on, happened, happens, line, together, until

HANGING = """
import signal, sys
sys.stdout.write("ready\\nand more")
sys.stdout.flush()
if not sys.stdin.readline():
    signal.pause()
"""


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests have little patience."""
    monkeypatch.setattr("tests.waiting.PATIENCE_S", 0.05)


@pytest.fixture
def process() -> subprocess.Popen[str]:
    """It has printed a line and more, and waits."""
    started = subprocess.Popen(
        [sys.executable, "-c", HANGING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert line(started, "the process") == "ready"
    return started


def test_the_value_that_was_waited_for_is_given() -> None:
    left = [0, "", "third", "fourth"]
    assert until("a word", lambda: left.pop(0)) == "third"


@pytest.mark.usefixtures("hasty")
def test_a_condition_that_never_holds_is_named_with_what_was_seen() -> None:
    with pytest.raises(AssertionError, match=r"a row: not within 0.05 s; last seen: \[\]"):
        until("a row", list)
    with pytest.raises(AssertionError, match="last seen: 3 of 4"):
        until("a row", lambda: False, lambda: "3 of 4")


@pytest.mark.usefixtures("hasty")
def test_an_event_that_is_never_set_is_named() -> None:
    never = Event()
    with pytest.raises(AssertionError, match="the answer: not within"):
        happened(never, "the answer")
    with pytest.raises(AssertionError, match="the reply: not within"):
        asyncio.run(happens(asyncio.Event(), "the reply"))
    thread = Thread(target=never.wait, name="slow", daemon=True)
    thread.start()
    with pytest.raises(AssertionError, match="the writers: slow not within"):
        finished([thread], "the writers")
    never.set()


def test_what_is_run_together_gives_its_results_or_raises() -> None:
    assert together([lambda: 1, lambda: 2]) == [1, 2]
    with pytest.raises(ZeroDivisionError):
        together([lambda: 1, lambda: 1 // 0])


def test_the_rest_of_what_a_process_prints_is_given_at_its_end(process: subprocess.Popen[str]) -> None:
    go_on(process)
    assert ended(process, "the process")[0] == "and more"
    assert process.returncode == 0


@pytest.mark.parametrize("how", ["ended", "line"])
def test_a_process_that_hangs_is_killed_and_its_output_shown(
    process: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr("tests.waiting.PATIENCE_S", 0.05)
    with process, pytest.raises(AssertionError, match=r"the process: .*within 0.05 s.*and more"):
        ended(process, "the process") if how == "ended" else line(process, "the process")
    assert process.returncode == -9


def test_a_process_that_ends_without_a_line_is_named(process: subprocess.Popen[str]) -> None:
    with process:
        go_on(process)
        with pytest.raises(AssertionError, match="the process ended after b'and more'"):
            line(process, "a line")


def test_on_the_clock_of_a_test_time_passes_while_somebody_sleeps() -> None:
    sleeps: list[float] = []
    clock = Clock(5.0, asleep=lambda: sleeps.append(clock.time()))
    clock.sleep(2.0)
    assert (clock.monotonic(), sleeps) == (7.0, [7.0])
