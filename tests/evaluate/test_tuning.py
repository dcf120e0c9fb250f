"""Which layers starved or wasted, over the payloads of many sessions."""

from __future__ import annotations

import pytest

from lading import Memory, Session, TaskOptions
from lading.evaluate.tuning import SentPayload, advise, read_payloads, tune
from lading.stores.memory import MemoryStore
from lading.task.record import DroppedItems, LayerRecord, PayloadRecord
from tests.task.samples import TASK, call


def payload(*dropped: DroppedItems, **used: int) -> SentPayload:
    """A payload of a window of 10,000 tokens whose layers have a tenth each."""
    layers = {name: LayerRecord("10%", 1_000, tokens) for name, tokens in used.items()}
    return SentPayload(
        PayloadRecord(task_id="t", step_id="s", role="operator", layers=layers, dropped=dropped), 10_000
    )


def left_out(layer: str, count: int = 2, reason: str = "overflow") -> DroppedItems:
    return DroppedItems(layer, reason, tuple(map(str, range(count))))


def test_evidence_that_did_not_fit_starves_and_unused_memory_wastes() -> None:
    found = tune([payload(left_out("evidence"), evidence=950, memory=10), payload(evidence=900, memory=0)])
    assert (found.starved, found.wasted) == (("evidence",), ("memory",))
    evidence, memory = found.layers
    assert (evidence.starved, evidence.dropped, evidence.share_tokens, evidence.held_tokens) == (1, 2, 1_000, 925)
    assert (memory.starved, memory.wasted) == (0, 2)
    assert "a profile with less memory and more evidence" in advise(found)


def test_other_reasons_are_no_starvation_and_rare_ones_no_verdict() -> None:
    many = [payload(evidence=800) for _ in range(19)]
    assert tune([*many, payload(left_out("evidence", reason="vanished"), evidence=800)]).layers[0].starved == 0
    rare = tune([*many, payload(left_out("evidence"), evidence=800)])
    assert (rare.layers[0].starved, rare.starved, advise(rare)) == (1, (), "Nothing has to change.")


@pytest.mark.parametrize(
    ("used", "starved", "advice"),
    [
        ({"task": 1_200}, ("task",), "Shorten task"),
        ({"task": 1_040}, (), "Nothing has to change."),
        ({"conversation": 1_001}, ("conversation",), "a larger window"),
        ({"tools": 100}, (), "A smaller window would do"),
    ],
)
def test_fixed_layers_starve_above_their_floor(used: dict[str, int], starved: tuple[str, ...], advice: str) -> None:
    found = tune([payload(**used)])
    assert found.starved == starved
    assert advice in advise(found)


def test_each_payload_of_a_session_is_read_once_with_its_window() -> None:
    store = MemoryStore()
    memories = [Memory(f"mem_{at}", "fact " * 300, at / 100) for at in range(60)]
    with Session("gpt-4o", store=store, window=16_000, output_reserve=500) as session:
        session.add("Compare the vendors.")
        session.begin("step-2", task=TASK, options=TaskOptions(memory=lambda _: memories))
        session.pack()
        session.add(call(1))
        session.pack()
        session.begin("step-3")
        session.pack()
    read = read_payloads(store, tenant="default", session="session")
    assert [(one.record.step_id, one.window_tokens) for one in read] == [("step-2", 16_000), ("step-3", 16_000)]
    assert tune(read).starved == ("memory", "conversation")


def test_a_session_without_steps_has_none() -> None:
    with Session("gpt-4o") as session:
        session.add("Hi.")
        session.pack()
        assert read_payloads(session.store, tenant="default", session="session") == []
