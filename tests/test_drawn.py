"""Random histories, each under one drawn format, strategy and window (``tests/drawn.py``, ``bench/fuzz.py``)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bench import fuzz
from lading.messages import Message
from lading.request.pack import Pack
from tests import drawn
from tests.drawn import FAULTS, Drawn, Fault, draw, play
from tests.engines import settings
from tests.examples import quick_first
from tests.histories import tool_loop

# Seeds that found: a first content with a call, names that did not follow their call, a result without a call,
# an empty system instruction, a card that wants the user last and continues its own message.
FOUND = (101, 298, 1576, 2299, 1155, 48, 209, 101_788, 110_767, 115_608)


@pytest.mark.parametrize("seed", [*FOUND, *quick_first(range(1_000, 1_400), 40)])
def test_a_random_history_is_legal_and_every_repair_is_told(seed: int) -> None:
    assert play(seed).faults == ()


def test_a_seed_says_everything() -> None:
    assert [draw(seed).messages for seed in range(20)] == [draw(seed).messages for seed in range(20)]
    kinds = {draw(seed).kind for seed in range(200)}
    assert {"legal", "spoilt", "legal, gemini", "spoilt, openai_chat"} <= kinds
    assert len({draw(seed).preset for seed in range(400)}) > 30


def test_a_slow_machine_is_not_a_fault() -> None:
    assert [figure.met for figure in fuzz.list_times(fuzz.Sum(histories=1, cpu_s=1e9), 1e9)] == [None, None]


def _of(pack: Pack, body: bytes) -> Pack:
    return Pack(**{name: getattr(pack, name) for name in pack.__struct_fields__} | {"body": body})


BROKEN: dict[str, Callable[[Pack], Pack]] = {
    "illegal": lambda pack: _of(pack, pack.body.replace(b'"role":"user"', b'"role":"usher"')),
    "untold": lambda pack: _of(pack, pack.body.replace(b"Fix the bug", b"Fix")),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_request_that_is_wrong_is_found(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    played = drawn._Play(_plain())
    pack = played.engine.pack
    monkeypatch.setattr(played.engine, "pack", lambda **given: BROKEN[kind](pack(**given)))
    assert kind in {fault.kind for fault in played.run().faults}


def test_a_repair_without_an_event_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert play(298).repairs
    monkeypatch.setattr(drawn, "Repaired", Fault)
    assert {fault.kind for fault in play(298).faults} == {"untold"}


def test_an_exception_is_a_fault_of_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(_playing: object) -> Message:
        raise RuntimeError("no")

    monkeypatch.setattr(drawn._Play, "run", explode)
    assert play(3).faults == (Fault("error", "RuntimeError: no"),)


def test_the_benchmark_adds_up_and_names_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    total = fuzz.play_some(0, 3) + fuzz.play_some(3, 2)
    assert total.histories == 5
    assert total.requests == sum(play(seed).requests for seed in range(5))
    verdict = drawn.Verdict(1, faults=(Fault("illegal", "A5"),))
    monkeypatch.setattr(fuzz, "GENERATORS", {"histories": (lambda _seed: verdict, FAULTS)})
    wrong = fuzz.play_some(7, 1)
    assert (wrong.faults["illegal"], wrong.failed) == (1, ["7: illegal, A5"])
    assert set(FAULTS) == {"illegal", "unpaired", "too long", "untold", "error"}


def _plain() -> Drawn:
    """A legal history that nothing compacts."""
    chosen = settings(200_000, wire="openai_chat", strategy="append-only")
    return Drawn("openai_chat", "append-only", chosen, tuple(tool_loop(4)), "legal")
