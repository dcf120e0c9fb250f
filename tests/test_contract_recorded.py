"""Every preset keeps every promise over recorded sessions, at four windows, on both wires: over a choice of them.

``python -m bench contract`` plays them all.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from lading.wire import WIRES
from tests.contract import Step, Verdict, play
from tests.preset_cases import PRESETS
from tests.trajectories import FILES, WINDOWS, chosen

pytestmark = pytest.mark.full
PARTS = 4
"""A preset plays every so many of the chosen sessions at a window on a wire, and all of them at some."""
EVERY = 5
"""Requests that extend the last one are judged once in so many; all others are."""


@pytest.fixture(scope="module")
def recorded(shared: Path) -> list[tuple[str, list[Step]]]:
    """The chosen sessions."""
    return chosen(shared / "data")


@pytest.mark.parametrize("wire", sorted(WIRES))
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_every_preset_keeps_every_promise_over_recorded_sessions(
    wire: str, preset: str, recorded: list[tuple[str, list[Step]]]
) -> None:
    verdicts: dict[tuple[str, int], Verdict] = {}
    is_twice = wire == "openai_chat"  # That a second engine says the same is no matter of the wire.
    for number, window in enumerate(WINDOWS, start=sorted(WIRES).index(wire)):
        for name, script in recorded[number % PARTS :: PARTS]:
            verdicts[name, window] = play(
                script, PRESETS[preset], window=window, wire=wire, twice=is_twice, every=EVERY
            )
    assert {key: verdict.faults for key, verdict in verdicts.items() if verdict.faults} == {}
    assert sum(verdict.requests + verdict.refused for verdict in verdicts.values()) > 100


def test_recorded_sessions_of_every_file_are_played(recorded: list[tuple[str, list[Step]]]) -> None:
    assert len({name.partition("/")[0] for name, _ in recorded}) == len(FILES)
    played = [(number + wire) % PARTS for number, wire in product(range(len(WINDOWS)), range(len(WIRES)))]
    assert set(played) == set(range(PARTS))
