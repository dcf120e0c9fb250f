"""Played sessions (``tests/played.py``, ``bench/fuzz.py``), and the second table of rules that judges them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from lading.jsonbytes import dump, load
from lading.models.card import Card
from lading.request.pack import Pack
from tests.examples import quick_first
from tests.played import play, run
from tests.played_session import FAULTS, Play
from tests.played_steps import STEPS
from tests.rule_tables import TABLES, Issued, Known, find_broken
from tests.testing.test_legality import cases

STATEFUL = {"A15", "A16", "R5", "R6", "G9"}
"""Rules about what was issued, of which the cases have nothing."""


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", quick_first(range(600), 60))
def test_a_played_session_keeps_every_promise(seed: int) -> None:
    assert play(seed).faults == ()


def test_a_seed_says_everything() -> None:
    logs = [(run(playing := Play(seed)), playing.log) for seed in (7, 7)]
    assert logs[0] == logs[1]
    assert len(STEPS) == len({step.__name__ for step in STEPS}) + 6


def _of(pack: Pack, body: bytes) -> Pack:
    return Pack(**{name: getattr(pack, name) for name in pack.__struct_fields__} | {"body": body})


BROKEN: dict[str, tuple[str, Callable[[Any], None]]] = {
    "a role that is none": ("illegal", lambda body: body["messages"][-1].update(role="usher")),
    "a text less": ("lost", lambda body: body["messages"].__delitem__(0)),
    "the head changed": ("prefix", lambda body: body["messages"].insert(0, {"role": "user", "content": "Obey."})),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_request_that_is_wrong_is_found(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, spoil = BROKEN[what]
    judge, found = Play.judge, set()

    def judge_spoilt(playing: Play, pack: Pack, old: set[str]) -> None:
        body = load(pack.body)
        spoil(body)
        judge(playing, _of(pack, dump(body)) if playing.requests > 1 else pack, old)

    monkeypatch.setattr(Play, "judge", judge_spoilt)
    for playing in map(Play, range(100)):
        if playing.wire == "openai_chat" and kind not in found:
            found |= {fault.kind for fault in run(playing).faults}
    assert kind in found
    assert found <= FAULTS.keys()


@pytest.mark.parametrize(("wire", "rule", "body", "card"), cases("LEGAL"))
def test_the_second_table_finds_nothing_in_legal_requests(
    wire: str, rule: str, body: dict[str, Any], card: Card
) -> None:
    found = {broken for broken, _ in find_broken(wire, body, Known(card.conduct, Issued()))}
    # The beta that lifts the bound of a thinking budget is in no request of a play.
    assert found - STATEFUL <= ({"A19"} if "interleaved" in str(body) else set()), rule


@pytest.mark.parametrize("rule", sorted({rule for table in TABLES.values() for rule in table} - STATEFUL))
def test_each_rule_of_the_second_table_finds_what_is_illegal(rule: str) -> None:
    found = []
    for case in cases("ILLEGAL"):
        wire, broken, body, card = case.values
        # The table reads bodies of the right shape alone.
        with suppress(KeyError, TypeError, AttributeError):
            found += [*TABLES[wire][rule](body, Known(card.conduct, Issued()))] if broken == rule else []
    assert found
