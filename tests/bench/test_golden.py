"""Every request of the example sessions is as noted by ``python -m bench.golden write bench/golden.json``."""

from __future__ import annotations

import json

import pytest

from bench.golden import OWN_DIGESTS, Play, played, plays

PLAYS = plays()
ALL_WINDOWS = frozenset(("priced", "wrap"))
OTHER_WINDOWS = {"anthropic": 16_000, "openai_chat": 4_000}
"""Of other strategies, by format; ``python -m bench.golden check bench/golden.json`` plays every window."""
NOTED: dict[str, str] = json.loads(OWN_DIGESTS.read_text(encoding="utf-8"))


def test_each_play_is_noted() -> None:
    assert sorted(map(str, PLAYS)) == sorted(NOTED)


@pytest.mark.full
@pytest.mark.parametrize("strategy", sorted({play.strategy for play in PLAYS}))
@pytest.mark.parametrize("wire", sorted({play.wire for play in PLAYS}))
def test_requests_and_decisions_are_those_noted(strategy: str, wire: str) -> None:
    chosen = [
        play
        for play in PLAYS
        if (play.strategy, play.wire) == (strategy, wire)
        and (strategy in ALL_WINDOWS or play.window == OTHER_WINDOWS[wire])
    ]
    assert {str(play): played(play).digest for play in chosen} == {str(play): NOTED[str(play)] for play in chosen}


def test_a_request_of_other_bytes_has_another_digest() -> None:
    play = Play("bug-hunt", "basic", "openai_chat", 8_000)
    noted, other = played(play), played(play._replace(window=4_000))
    assert noted.digest == NOTED[str(play)]
    assert noted.requests[:3] == other.requests[:3]
    assert noted.digest != other.digest
