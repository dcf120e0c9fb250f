"""Tables of aether-frame's document: what a pack is, where its content comes from, and what leaves it first.

The others (layers, manifest fields, required items, floors, profiles, signals) are in ``test_aether_frame.py``.
"""

from __future__ import annotations

import pytest

from lading import Evidence, Memory, TaskOptions
from lading.task.overflow import DROPPED, MEMORY_SUMMARY, OLDER_EVIDENCE
from lading.task.packing import LayerUse, StepContext, assemble
from lading.task.record import PayloadRecord
from tests.documents.test_aether_frame import (
    CONCISE,
    INDEX,
    OPTIONS,
    REPORT,
    REQUEST,
    STEP,
    TASK,
    begun,
    manifest_of,
    payload_of,
)
from tests.task.samples import call, said

TOOL = {"type": "function", "function": {"name": "search_web", "parameters": {"type": "object"}}}


def section(text: str, header: str) -> str:
    """The lines below a header of a payload, up to the next blank line."""
    return text.partition(f"\n{header}\n")[2].partition("\n\n")[0]


def record_of(window: int, *, evidence: list[Evidence], memory: list[Memory]) -> PayloadRecord:
    context = StepContext(task=TASK, step=STEP, request=REQUEST, evidence=evidence, memory=memory)
    use = LayerUse(window_tokens=window, reserve_tokens=0)
    return assemble(context, TaskOptions(overflow="document"), use=use, count=lambda text: len(text) // 4).record


# Table: Relationship


def test_table_of_the_relationship_of_pack_payload_and_manifest() -> None:
    with begun() as session:
        pack = session.pack([TOOL])
        manifest = manifest_of(session, pack)
    assert {*pack.request} >= {"model", "messages", "tools"}  # Context Pack: the request object
    assert pack.request["messages"][-1]["role"] == "user"  # Pack Payload: the final user message
    assert payload_of(pack).startswith("CONTEXT PACK\n")
    assert manifest["pack_id"].encode() not in pack.body  # Manifest: not seen by the model
    assert manifest["checksum"].encode() not in pack.body


# Table: Where Pack Content Comes From


def test_table_of_where_pack_content_comes_from() -> None:
    with begun(system="You are a research agent.") as session:
        session.pack([TOOL])
        session.add(said("Older answer."))
        session.add("And the risks?")
        pack = session.pack([TOOL])
    text, messages = payload_of(pack), pack.request["messages"]
    assert messages[0] == {"role": "system", "content": "You are a research agent."}  # system prompt
    assert (
        section(text, "STEP:") == "- Extract top 5 differentiators.\n- Provide risks and gaps."
    )  # Task Board step
    assert section(text, "ACCEPTANCE:").startswith("- [links] include sources + evidence links")  # its checklist
    assert [tool["function"]["name"] for tool in pack.request["tools"]][:1] == ["search_web"]  # available tools
    assert messages[-2]["content"] == "Older answer."  # session events
    assert "Older answer." not in text
    assert section(text, "MEMORY:") == "- User prefers concise output (2026-01-20)"  # search hits, with timestamps
    assert REPORT.summary in text  # artifact URIs, summaries only
    assert REPORT.uri in text


def test_raw_tool_outputs_are_artifacts_and_the_payload_carries_their_lines_and_addresses() -> None:
    raw = "\n".join(f"filler {at}" for at in range(200)) + "\nsources: the differentiators of Acme"
    with begun(TaskOptions()) as session:
        session.pack([TOOL])
        session.add([*call(1, raw)])
        session.begin("step-4")
        text = payload_of(session.pack([TOOL]))
        assert session.artifacts.get("artifact://tasks/42/step-3/search_web") == raw.encode()
    assert "artifact://tasks/42/step-3/search_web (search_web): in the conversation" in text
    assert "filler" not in text


# Table: Key Concepts


def test_table_of_key_concepts_in_the_request() -> None:
    with begun() as session:
        pack = session.pack([TOOL])
        text = payload_of(pack)
        manifest = manifest_of(session, pack)
    assert "- search_web(query, max_results)" in section(text, "TOOLS (step-only):")
    assert INDEX.uri in manifest["artifact_uris"]  # Evidence
    assert CONCISE.text in text  # Memory
    assert "CONVERSATION" not in text  # Conversation tail: prior messages, verbatim
    reserve = session.settings.budget.output_reserve_tokens
    assert 0 < pack.manifest.counts["slack"] <= 128_000 - pack.tokens - reserve  # Slack: the answer's is reserved
    assert manifest["truncation_events"] == []


# Table: Truncation Order, and the flow of the overflow algorithm


@pytest.mark.parametrize("window", [1_200, 2_000, 4_000])
def test_table_of_truncation_order_literally(window: int) -> None:
    memory = [Memory(f"mem_{at}", f"memory {at} " * 30, at / 20) for at in range(20)]
    evidence = [
        Evidence(f"artifact://tasks/42/step-3/{at}", f"sources {at}\n" * 60, covers=("links",) if at % 2 else ())
        for at in range(12)
    ]
    record = record_of(window, evidence=evidence, memory=memory)
    dropped = {(one.layer, one.reason): one.dropped_ids for one in record.dropped}
    assert ("memory", MEMORY_SUMMARY) in dropped  # compress before drop
    gone = dropped.get(("memory", DROPPED), ())
    assert gone == tuple(one.id for one in memory[: len(gone)])  # 1: lowest score first
    left = dropped.get(("evidence", DROPPED), ())
    order = [*evidence[0::2], *evidence[1::2]]
    assert left == tuple(one.uri for one in order[: len(left)])  # 2: lowest coverage, then oldest
    assert not left or len(gone) == len(memory)
    summarized = dropped.get(("evidence", OLDER_EVIDENCE), ())
    assert summarized == tuple(one.uri for one in evidence[: len(summarized)])  # older ones first
    assert {one.layer for one in record.dropped} <= {"memory", "evidence"}  # System, Task, Tools: never


def test_the_same_inputs_leave_the_same() -> None:
    with begun(OPTIONS) as one, begun(OPTIONS) as other:
        assert one.pack([TOOL]).body == other.pack([TOOL]).body
