"""The document's overflow order of a payload: each step only while it does not fit, with its reason and ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import Session
from lading.errors import FloorsExceedWindow, InputError
from lading.task.citing import load_manifest
from lading.task.evidence import Evidence, Memory
from lading.task.overflow import (
    DROPPED,
    MEMORY_SUMMARY,
    OLDER_EVIDENCE,
    STEP_SUMMARY,
    SUMMARY_CHARS,
    TOOL_EXAMPLES,
)
from lading.task.packing import LayerUse, Payload, StepContext, TaskOptions, assemble
from lading.task.task import Task, TaskStep, read_step
from tests.session.test_task_steps import last

STEP: TaskStep = read_step(
    {
        "id": "s",
        "text": "Name the price.",
        "checklist": [{"id": "price", "text": "price", "proof": "evidence"}],
        "tools": [{"name": "search", "purpose": "Find.", "examples": ["search(query='the price of Acme') " * 12]}],
    }
)
MEMORIES = [Memory(f"m{at}", f"memory {at}. " + f"more of {at} " * 40, score=(at + 1) / 10) for at in range(4)]
EVIDENCE = [
    Evidence(f"artifact://tasks/t/s/{at}", f"other line {at}\n" * 60 + f"the price is {at}\n", covers=of)
    for at, of in enumerate([("price",), *[()] * 10, ("price",)])
]
SUMMARY = "Older messages are summarized at the start of the conversation. " * 4
ORDER = [
    ("memory", MEMORY_SUMMARY),
    ("evidence", OLDER_EVIDENCE),
    ("tools", TOOL_EXAMPLES),
    ("conversation", STEP_SUMMARY),
    ("memory", DROPPED),
    ("evidence", DROPPED),
]


def pack(window: int, *, evidence: Sequence[Evidence] = EVIDENCE, memory: Sequence[Memory] = MEMORIES) -> Payload:
    context = StepContext(
        task=Task(id="t", goal="g"),
        step=STEP,
        request="Go.",
        tools=STEP.tools,
        evidence=evidence,
        memory=memory,
        summary=SUMMARY,
    )
    options = TaskOptions(overflow="document")
    return assemble(context, options, use=LayerUse(window_tokens=window, reserve_tokens=0), count=count)


def count(text: str) -> int:
    return -(-len(text) // 4)


def reasons(payload: Payload) -> list[tuple[str, str]]:
    return [(one.layer, one.reason) for one in payload.record.dropped]


def test_while_it_fits_everything_is_whole() -> None:
    payload = pack(20_000)
    assert reasons(payload) == []
    assert all(f"more of {at}" in payload.text for at in range(len(MEMORIES)))
    assert all(f"other line {at}" in payload.text for at in range(len(EVIDENCE)))
    assert "example: search(query='the price of Acme')" in payload.text


def test_each_step_is_taken_only_while_it_does_not_fit_in_the_document_s_order() -> None:
    seen: list[list[tuple[str, str]]] = []
    for window in range(5_000, 150, -10):
        try:
            found = reasons(pack(window))
        except FloorsExceedWindow:
            break
        if found not in seen:
            seen.append(found)
    assert seen == [ORDER[:at] for at in range(len(ORDER) + 1)]


def test_memory_becomes_a_summary_and_older_evidence_what_the_step_asks_for() -> None:
    payload = next(found for window in range(5_000, 150, -10) if len(reasons(found := pack(window))) == 2)
    memory, evidence = payload.record.dropped
    assert memory.dropped_ids == ("m0", "m1", "m2", "m3")
    notes = [line for line in payload.text.splitlines() if line.startswith("- memory ")]
    assert len(notes) == 4
    assert max(map(len, notes)) <= SUMMARY_CHARS + len("- ...")
    assert evidence.dropped_ids[0] == "artifact://tasks/t/s/0"
    assert "the price is 0" in payload.text


def test_then_the_lowest_score_and_the_lowest_coverage_and_the_oldest_are_dropped() -> None:
    payload = next(found for window in range(900, 200, -5) if len(reasons(found := pack(window))) == 6)
    dropped = {(one.layer, one.reason): one.dropped_ids for one in payload.record.dropped}
    assert dropped["memory", DROPPED] == ("m0", "m1", "m2", "m3")
    assert dropped["evidence", DROPPED][0] == "artifact://tasks/t/s/1"
    assert STEP.text[0] in payload.text
    assert "[price] price (cite the evidence)" in payload.text


@given(
    st.lists(st.integers(0, 3_000), max_size=6),
    st.lists(st.integers(1, 2_000), max_size=6),
    st.integers(800, 6_000),
)
def test_whatever_is_given_it_fits_and_all_that_is_missing_is_reported(
    texts: list[int], notes: list[int], window: int
) -> None:
    evidence = [Evidence(f"artifact://tasks/t/s/{at}", "x " * size) for at, size in enumerate(texts)]
    memory = [Memory(f"m{at}", "y " * size) for at, size in enumerate(notes)]
    record = pack(window, evidence=evidence, memory=memory).record
    left = {name for one in record.dropped for name in one.dropped_ids}
    assert {one.uri for one in evidence} <= left | {one.uri for one in record.artifacts}
    assert {one.id for one in memory} <= left | {*record.memory_ids}
    assert sum(layer.used for layer in record.layers.values()) <= window


def test_a_session_packs_in_the_document_s_order_and_says_so_in_its_manifest() -> None:
    memories = [Memory(f"m{at}", f"memory {at} " * 400, score=at / 20) for at in range(20)]
    options = TaskOptions(overflow="document", memory=lambda _: memories)
    with Session("gpt-4o", window=8_000, output_reserve=500) as session:
        session.add("Go.")
        session.begin(STEP, options=options)
        assert "memory 19" in last(session.pack())
        events: list[dict[str, Any]] = load_manifest(session.store, session.settings.owner)["truncation_events"]
    assert [(one["layer"], one["reason"]) for one in events] == [("memory", MEMORY_SUMMARY)]
    with pytest.raises(InputError, match="overflow"):
        TaskOptions(overflow="other")  # type: ignore[arg-type]
