"""What a long run says of its progress."""

from __future__ import annotations

import pytest

from lading.cli.terminal import show_progress


@pytest.mark.parametrize("steps", [1, 7, 333])
def test_a_long_run_without_a_terminal_says_how_far_it_is(steps: int, capsys: pytest.CaptureFixture[str]) -> None:
    total = 1_000
    with show_progress("comparing", total) as advance:
        for start in range(0, total, steps):
            advance(min(steps, total - start))
    said = [line.split()[-2] for line in capsys.readouterr().err.splitlines()]
    assert said[-1] == "100"
    assert said == sorted(set(said), key=int)
    assert len(said) == min(10, -(-total // steps))


def test_a_short_run_without_a_terminal_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress("comparing", 20) as advance:
        advance(20)
    assert capsys.readouterr().err == ""
