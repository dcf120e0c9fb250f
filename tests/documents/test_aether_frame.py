"""The code and the tables of aether-frame's document about the Context Pack, with its names and values."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

import lading
from lading.errors import FloorsExceedWindow
from lading.presets.aether_frame import STEP_ONLY
from lading.task.allocator import BUDGETS, FLOOR_RANGES, LAYERS, PROFILES, allocate
from lading.task.citing import load_manifest
from lading.task.evidence import Evidence, Memory
from lading.task.packing import LayerUse, Payload, StepContext, TaskOptions, assemble
from lading.task.signals import AllocatorSignals, measure_freshness, weigh_risk
from lading.task.task import Task, read_task
from lading.task.templates import CONTRACT, RULES
from tests.documents.blocks import Block, check_absent, check_blocks, check_tests, text_of, to_come

BLOCKS = (
    Block("Contract placement options:", 1, "You will receive a CONTEXT PACK", "hidden tools exist."),
    Block("Option B (Pack Payload header", 1, "INTERPRETATION RULES:", "and request tools."),
    Block("Example `manifest.json` (abridged):", 1, '{\n  "pack_id"', '"checksum": "sha256:..."\n}'),
    Block(
        "Code sketch (conceptual):",
        1,
        "from google.genai import types",
        "return None",
        part="adapters",
        absent=("before_model",),
    ),
    Block("Pack Serialization Example (Excerpt)", 1, "ROLE:\n- You are", "CONVERSATION SUMMARY here instead."),
    Block("shape of the final LLM request:", 1, "system_instruction:", "<step-only tool schemas>"),
    Block("Overflow Algorithm (Pseudocode)", 1, "candidates = {", "log_truncation(manifest)"),
    Block("Sectioned Prompt Template (Excerpt)", 1, "ROLE:\n- You are", "{topk}"),
)
REQUEST = "Summarize the competitor analysis, please."
TASK: Task = read_task(
    {
        "id": "42",
        "goal": "Summarize competitor analysis with sources.",
        "constraints": {"latencyS": 8, "budgetUsd": 0.20},
        "plan": [
            {
                "id": "step-3",
                "text": ["Extract top 5 differentiators.", "Provide risks and gaps."],
                "checklist": [{"id": "links", "text": "include sources + evidence links", "proof": "evidence"}],
                "tools": [
                    {"name": "search_web", "inputs": "query, max_results"},
                    {"name": "file_read", "inputs": "path"},
                ],
                "stopConditions": ["five differentiators are named"],
                "next": "hand over to the Critic",
            },
            {"id": "step-4", "text": "Review.", "checklist": ["links work"], "role": "Critic"},
        ],
    }
)
STEP = TASK.plan.find("step-3")
REPORT = Evidence("artifact://tasks/42/step-3/report.md", summary="five reports, links included", covers=("links",))
INDEX = Evidence("artifact://tasks/42/step-3/source_index.json", '{"sources": 5}')
CONCISE = Memory("mem_3", "User prefers concise output", 0.82, "2026-01-20", 2.0)
OPTIONS = TaskOptions(evidence=lambda _: [REPORT, INDEX], memory=lambda _: [CONCISE])


def test_every_code_block_of_the_document_is_listed(shared: Path) -> None:
    check_blocks(BLOCKS, text_of(shared, "004"))


def test_every_block_has_its_test() -> None:
    check_tests(BLOCKS, sys.modules[__name__])


@to_come(BLOCKS)
def test_what_comes_with_a_later_part_is_not_here_yet(block: Block) -> None:
    check_absent(block)


@contextmanager
def begun(options: TaskOptions = OPTIONS, system: str = "You help.", **given: Any) -> Iterator[lading.Session]:
    with lading.Session("gpt-4.1", window=128_000, **given) as session:
        session.add([{"role": "system", "content": system}, {"role": "user", "content": REQUEST}])
        session.begin("step-3", task=TASK, options=options)
        yield session


def payload_of(pack: lading.Pack) -> str:
    return str(pack.request["messages"][-1]["content"])


def manifest_of(session: lading.Session, pack: lading.Pack) -> dict[str, Any]:
    return load_manifest(session.store, session.settings.owner, call=pack.manifest.place.call)


def pack_values(window: int = 128_000, **given: Any) -> Payload:
    values: dict[str, Any] = {"task": TASK, "step": STEP, "request": REQUEST}
    context = StepContext(**values | given)
    use = LayerUse(window_tokens=window, reserve_tokens=0)
    return assemble(context, TaskOptions(), use=use, count=lambda text: len(text) // 4)


# The code blocks


def test_contract_a_is_the_document_s_and_is_for_the_system_prompt(shared: Path) -> None:
    """ "Contract placement options:", block 1."""
    assert CONTRACT in text_of(shared, "004")
    options = TaskOptions(contract="system")
    with begun(options, f"You help.\n\n{CONTRACT}") as session:
        assert "INTERPRETATION RULES" not in session.pack().body.decode()


def test_contract_b_is_the_document_s_and_is_the_payload_s_header(shared: Path) -> None:
    """ "Option B (Pack Payload header", block 1."""
    assert RULES in text_of(shared, "004")
    with begun() as session:
        assert payload_of(session.pack()).startswith(f"CONTEXT PACK\n\n{RULES}\n")


def test_the_manifest_of_the_example_has_its_fields_and_budgets() -> None:
    """ "Example `manifest.json` (abridged):", block 1."""
    options = TaskOptions(evidence=OPTIONS.evidence, memory=OPTIONS.memory)
    with begun(options, output_reserve=8_000) as session:
        manifest = manifest_of(session, session.pack())
    assert manifest["pack_id"].startswith("pack_task_42_step_step-3_")
    assert (manifest["model"], manifest["window"]) == ("gpt-4.1", 128_000)
    fixed = {name: manifest["layer_budgets"][name] for name in ("system", "task", "tools", "slack_min")}
    assert fixed == {"system": "6%", "task": "8%", "tools": "5%", "slack_min": "10%"}
    assert sorted(manifest["artifact_uris"]) == [REPORT.uri, INDEX.uri]
    assert manifest["checksum"].startswith("sha256:")


def test_the_serialization_of_the_document_is_the_preset_document() -> None:
    """ "Pack Serialization Example (Excerpt)", block 1."""
    options = TaskOptions(templates="document", evidence=OPTIONS.evidence, memory=OPTIONS.memory, contract="system")
    with begun(options, CONTRACT) as session:
        text = payload_of(session.pack())
    told = (
        "ROLE:\n- You are the Operator executing step step-3.",
        "GOAL:\n- Summarize competitor analysis with sources.",
        "STEP:\n- Extract top 5 differentiators.\n- Provide risks and gaps.",
        "CONSTRAINTS:\n- Latency <= 8s; cost <= $0.20",
        "include sources + evidence links",
        "TOOLS (step-only):\n- search_web(query, max_results)\n- file_read(path)",
        "EVIDENCE:\n",
        "- artifact://tasks/42/step-3/report.md (summary: five reports",
        "MEMORY:\n- User prefers concise output (2026-01-20)",
        f"USER REQUEST (VERBATIM):\n{REQUEST}",
    )
    places = [text.index(part) for part in told]
    assert places == sorted(places)
    assert "CONVERSATION TAIL" not in text


def test_the_final_request_has_its_shape() -> None:
    """ "shape of the final LLM request:", block 1."""
    with begun() as session:
        session.pack([])
        session.add({"role": "assistant", "content": "<older assistant turn>"})
        session.add("<the next request>")
        messages = session.pack().request["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[2]["content"] == "<older assistant turn>"
    assert messages[3]["content"].startswith("CONTEXT PACK")
    assert "<the next request>" in messages[3]["content"]
    assert messages[3]["content"].count("<older assistant turn>") == 0


def test_what_does_not_fit_is_logged_and_acceptance_and_step_never_leave() -> None:
    """ "Overflow Algorithm (Pseudocode)", block 1."""
    long = [Evidence(f"artifact://tasks/42/step-3/{at}.md", f"text {at}\n" * 300) for at in range(150)]
    memories = [Memory(f"mem_{at}", f"memory {at} " * 60, at / 40) for at in range(40)]
    payload = pack_values(6_000, evidence=[REPORT, *long], memory=memories)
    assert len(payload.text) // 4 < 6_000
    assert {(one.layer, one.reason) for one in payload.record.dropped} == {
        ("evidence", "overflow"),
        ("memory", "overflow"),
    }
    assert all(line in payload.text for line in (*STEP.text, "include sources + evidence links", REQUEST))


def test_a_template_has_places_for_what_a_step_is() -> None:
    """ "Sectioned Prompt Template (Excerpt)", block 1."""
    template = (
        "ROLE:\n- You are the Operator executing step {step_id} of a plan.\n\nGOAL:\n{goal}\n\nSTEP:\n{step}\n\n"
        "CONSTRAINTS:\n{constraints}\n{acceptance}\n\nTOOLS (current step only):\n{tools}\n\n"
        "EVIDENCE/MEMORY:\n{evidence}\n{top_evidence}\n{memory}\n\n{request}"
    )
    options = TaskOptions(templates={"operator": template}, evidence=OPTIONS.evidence, memory=OPTIONS.memory)
    with begun(options) as session:
        text = payload_of(session.pack())
    assert text.startswith("ROLE:\n- You are the Operator executing step step-3 of a plan.\n\nGOAL:")
    assert text.endswith(REQUEST)


# Table: Layer Order, and Where Each Layer Lands in the LLM Request


def test_table_of_layers_and_where_they_land() -> None:
    assert LAYERS == ("system", "task", "tools", "evidence", "memory", "conversation", "slack_min")
    tool = {"type": "function", "function": {"name": "search_web", "parameters": {"type": "object"}}}
    with begun() as session:
        pack = session.pack([tool])
        manifest = manifest_of(session, pack)
    assert pack.request["messages"][0] == {"role": "system", "content": "You help."}
    assert pack.request["tools"][0]["function"]["name"] == "search_web"
    text = payload_of(pack)
    assert all(header in text for header in ("STEP:", "ACCEPTANCE:", "EVIDENCE:", "MEMORY:"))
    assert "slack" not in text.lower()
    assert [*manifest["layer_budgets"]] == [*LAYERS]


# Table: Tools (step-only), and the responsibility to log the tool policy


def test_step_only_tools_replace_the_tools_of_the_request_and_the_policy_is_logged() -> None:
    tools = [lading.Tool(name, "", {"type": "object"}) for name in ("search_web", "file_read", "send_mail")]
    with begun(lading.TaskOptions(tools=STEP_ONLY)) as session:
        pack = session.pack(tools)
        manifest = manifest_of(session, pack)
    named = [tool["function"]["name"] for tool in pack.request["tools"]]
    assert named == ["search_web", "file_read", "restore"]
    assert manifest["tool_scope"]["scope"] == "step-only"
    assert manifest["tool_scope"]["withheld"] == ("send_mail",)


# Table: Key Concepts


def test_table_of_key_concepts() -> None:
    with begun() as session:
        pack = session.pack()
        manifest = manifest_of(session, pack)
        assert session.step == STEP  # Step, acceptance checklist
        assert manifest["artifact_uris"]  # evidence
        assert manifest["memory_ids"] == ["mem_3"]  # memory
        assert pack.manifest.counts["slack"] > 0
        assert [one.problem for one in lading.verify(session.store, tenant="default", session="session")] == [""]


# Table: Manifest Fields


def test_table_of_manifest_fields() -> None:
    fields = ("pack_id", "model", "window", "layer_budgets", "truncation_events", "artifact_uris", "checksum")
    with begun() as session:
        pack = session.pack()
        manifest = manifest_of(session, pack)
        again = manifest_of(session, pack)
    assert [name for name in fields if name not in manifest] == []
    assert manifest == again
    assert manifest["signals"]["similarity"] == 0.82
    memories = [Memory(f"mem_{at}", "x " * 900, at / 30) for at in range(30)]
    (event,) = msgspec.to_builtins(pack_values(8_000, memory=memories).record.dropped)
    assert (event["layer"], event["reason"]) == ("memory", "overflow")
    assert "mem_0" in event["dropped_ids"]


# Table: Required vs Optional Items


def test_table_of_required_and_optional_items() -> None:
    with begun() as session:
        for step, missing in (({"id": "a", "text": "x"}, "acceptance"), ({"id": "a", "checklist": ["x"]}, "step")):
            session.begin(step)
            with pytest.raises(lading.PackInvalid) as invalid:
                session.pack()
            assert invalid.value.missing == missing
        session.begin("step-3", options=TaskOptions())
        pack = session.pack()
        assert manifest_of(session, pack)["evidence_needed"] == ["links"]
        assert "EVIDENCE:\n- none" in payload_of(pack)  # kept empty
        assert "MEMORY:\n- none" in payload_of(pack)  # acceptable
        assert len(pack.request["messages"]) == 2  # conversation: empty on the first turn
    with begun(TaskOptions(memory=OPTIONS.memory, memory_threshold=0.9)) as session:
        assert "concise" not in payload_of(session.pack())


# Table: Truncation Order


def test_table_of_truncation_order() -> None:
    memories = [Memory(f"mem_{at}", "word " * 100, (at + 1) / 21) for at in range(20)]
    kept = pack_values(6_000, memory=memories).record.memory_ids
    assert kept == tuple(f"mem_{at}" for at in range(20 - len(kept), 20))  # lowest score first
    texts = [Evidence(f"artifact://tasks/42/s/{at}", f"same {at % 7} " * 200, covers=()) for at in range(150)]
    shown = [one.uri for one in pack_values(6_000, evidence=[REPORT, *texts]).record.artifacts]
    assert REPORT.uri in shown  # lowest coverage leaves first
    assert texts[0].uri not in shown  # the oldest leaves first
    assert texts[-1].uri in shown
    with pytest.raises(FloorsExceedWindow):  # System, Task and Tools: never
        pack_values(6_000, request="word " * 6_000)


# Table: Floors


@pytest.mark.parametrize(("layer", "low", "high"), [("system", 6, 8), ("task", 6, 10), ("tools", 4, 6)])
def test_table_of_floors(layer: str, low: int, high: int) -> None:
    assert FLOOR_RANGES[layer] == (low, high)
    assert FLOOR_RANGES["slack_min"] == (10, 15)
    assert (getattr(BUDGETS["cost-first"], layer), getattr(BUDGETS["quality-first"], layer)) == (low, high)
    with begun(TaskOptions(floors="quality-first")) as session:
        assert manifest_of(session, session.pack())["layer_budgets"][layer] == f"{high}%"


# Table: Task Profiles


@pytest.mark.parametrize(
    ("name", "evidence", "memory", "conversation"),
    [
        ("research", (55, 65), (20, 25), (10, 15)),
        ("requirements", (45, 55), (25, 30), (15, 20)),
        ("test_construction", (50, 60), (20, 25), (10, 15)),
    ],
)
def test_table_of_task_profiles(
    name: str, evidence: tuple[int, int], memory: tuple[int, int], conversation: tuple[int, int]
) -> None:
    profile = PROFILES[name]
    assert (profile.evidence, profile.memory, profile.conversation) == (evidence, memory, conversation)
    shares = allocate(128_000, profile=name).shares
    for layer, (low, high) in (("evidence", evidence), ("memory", memory), ("conversation", conversation)):
        assert low <= shares[layer] <= high
    with begun(TaskOptions(profile=name)) as session:
        assert manifest_of(session, session.pack())["layer_budgets"]["evidence"].endswith("%")


# Table: Allocator Signals


def test_table_of_allocator_signals() -> None:
    assert (weigh_risk("High"), round(measure_freshness([2]), 2)) == (1.0, 0.82)
    low, high = allocate(128_000), allocate(128_000, signals=AllocatorSignals(unresolved_questions=4))
    assert high.tokens["conversation"] > low.tokens["conversation"]
    with begun() as session:
        session.pack()
        session.add({"role": "assistant", "content": "Which of the five do you mean?"})
        session.add("All. What else is there?")
        signals = manifest_of(session, session.pack())["signals"]
    assert signals["checklist_evidence_ratio"] == 1.0
    assert signals["expected_tool_calls"] == 0
    assert (signals["unresolved_questions"], signals["dialogue_depth"]) == (1, 2)
    assert round(signals["freshness"], 2) == 0.82


# Acceptance, and the comprehension guardrails


def test_acceptance_gates_the_output_and_the_critic_reads_the_same_list() -> None:
    with begun() as session:
        session.pack()
        session.add({"role": "assistant", "content": "Five differentiators, trust me."})
        assert [one.id for one in session.check_acceptance().failed] == ["links"]
        assert "REPAIR (failed items of ACCEPTANCE):\n- [links] FAILED" in payload_of(session.pack())
        session.add({"role": "assistant", "content": f"Five differentiators: {REPORT.uri}"})
        assert session.check_acceptance().passed
        session.begin("step-4")
        review = payload_of(session.pack())
    assert "- You are the Critic of step step-4." in review
    assert "ACCEPTANCE:\n- [a1] links work" in review


def test_guardrails_of_the_payload() -> None:
    with begun(TaskOptions(evidence=OPTIONS.evidence, recitation=True)) as session:
        first = payload_of(session.pack())
        assert first.index("ACCEPTANCE:") < first.index("USER REQUEST") < first.index("TOP EVIDENCE")
        assert "First restate STEP and ACCEPTANCE in one or two lines." in first
        assert "- stop: five differentiators are named\n- next: hand over to the Critic" in first
        session.add({"role": "assistant", "content": "Done."})
        session.add("Again.")
        second = payload_of(session.pack())
    headers = [
        [line for line in text.splitlines() if line.endswith(":") and line.isupper()] for text in (first, second)
    ]
    assert headers[0] == headers[1]  # stable headers
