"""The payload of a step as a function of values."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from lading.errors import InputError, PackInvalid
from lading.task.acceptance import Acceptance, Checks, ItemOutcome
from lading.task.evidence import Evidence, Memory, Provenance
from lading.task.packing import LayerUse, Payload, StepContext, TaskOptions, assemble, check_required
from lading.task.record import DroppedItems, dump_record, load_record
from lading.task.task import Checklist, ChecklistItem, Constraints, StepTool, TaskStep
from tests.task.samples import TASK

STEP = TASK.plan.find("step-3")
HEADER = re.compile(r"^([A-Z][A-Z ]+(?:\([A-Za-z -]+\))?):$", re.MULTILINE)


def count(text: str) -> int:
    return len(text) // 4 + 1


def pack(window: int = 100_000, options: TaskOptions = TaskOptions(), **given: Any) -> Payload:  # noqa: B008 - frozen
    values: dict[str, Any] = {"task": TASK, "step": STEP, "request": "Compare."}
    context = StepContext(**values | given)
    return assemble(context, options, use=LayerUse(window_tokens=window, reserve_tokens=window // 10), count=count)


def evidence(number: int, text: str = "", **given: Any) -> Evidence:
    return Evidence(f"artifact://tasks/42/step-2/r{number}", text or f"sources include {number}", **given)


def test_its_headers_are_the_document_s_in_order_and_the_most_important_last() -> None:
    text = pack(
        tools=(StepTool("read", "Read a file.", "path", "text"),),
        evidence=[evidence(at) for at in range(5)],
        memory=[Memory("m", "short", 0.5)],
        summary="Older.",
    ).text
    assert HEADER.findall(text) == [
        *("INTERPRETATION RULES", "ROLE", "GOAL", "STEP", "CONSTRAINTS", "TOOLS (step-only)", "EVIDENCE", "MEMORY"),
        *(
            "CONVERSATION SUMMARY",
            "STOP CONDITIONS AND NEXT",
            "ACCEPTANCE",
            "USER REQUEST (VERBATIM)",
            "TOP EVIDENCE",
        ),
    ]
    assert text.endswith("    sources include 4")
    assert "- read(path) -> text: Read a file." in text
    assert "- Latency <= 8s; cost <= $0.20" in text


def test_failed_items_are_highlighted_behind_the_checklist() -> None:
    failed = Acceptance((ItemOutcome("risks", "failed", "empty"), ItemOutcome("sources", "passed")))
    text = pack(failed=failed, repair=1).text
    assert "[risks] Name risks\n\nREPAIR (failed items of ACCEPTANCE):\n- [risks] FAILED: empty\n\nUSER" in text


def test_a_step_s_own_limits_go_before_the_task_s() -> None:
    step = replace(STEP, constraints=Constraints(latency_s=2, token_budget=500, risk="high"))
    assert "- Latency <= 2s; cost <= $0.20; tokens <= 500; risk: high" in pack(step=step).text


def test_what_the_checklist_asks_for_is_chosen_before_what_it_does_not() -> None:
    filler = [evidence(at, "nothing of interest here, " * 40) for at in range(60)]
    wanted = Evidence("artifact://tasks/42/step-2/wanted", "include sources and evidence links " * 10)
    payload = pack(3_000, evidence=[wanted, *filler])
    assert wanted.uri in [one.uri for one in payload.record.artifacts]
    (dropped,) = payload.record.dropped
    assert (dropped.layer, dropped.reason) == ("evidence", "overflow")
    assert len(dropped.dropped_ids) + len(payload.record.artifacts) == 61
    assert payload.record.evidence_needed == ()
    assert count(payload.text) < 3_000


def test_evidence_that_is_asked_for_and_missing_is_needed() -> None:
    assert pack().record.evidence_needed == ("sources",)
    assert pack(evidence=[evidence(1, covers=("risks",))]).record.evidence_needed == ("sources",)
    assert pack(evidence=[evidence(1, covers=("sources",))]).record.evidence_needed == ()
    assert "EVIDENCE:\n- none" in pack().text


def test_what_vanished_or_was_forged_is_reported_and_not_shown() -> None:
    forged = evidence(1, "forged", provenance=Provenance(sha256="0" * 64))
    gone = Evidence("artifact://tasks/42/step-2/gone")
    payload = pack(evidence=[forged, gone, evidence(2), evidence(2, "again")])
    assert [one.uri for one in payload.record.artifacts] == [evidence(2).uri]
    assert payload.record.dropped == (
        DroppedItems("evidence", "changed", (forged.uri,)),
        DroppedItems("evidence", "vanished", (gone.uri,)),
    )
    assert "again" not in payload.text


def test_memories_are_shown_from_the_threshold_on_the_best_last() -> None:
    memories = [Memory(f"m{at}", f"fact {at}", at / 10) for at in range(10)]
    payload = pack(options=TaskOptions(memory_threshold=0.8), memory=memories)
    assert "MEMORY:\n- fact 8\n- fact 9\n" in payload.text
    assert payload.record.memory_ids == ("m8", "m9")
    assert payload.record.dropped == (
        DroppedItems("memory", "below the threshold", tuple(f"m{at}" for at in range(8))),
    )


def test_the_lowest_memory_leaves_first() -> None:
    memories = [Memory(f"m{at}", f"fact {at} " * 200, at / 10) for at in range(1, 10)]
    kept = pack(4_000, memory=memories).record.memory_ids
    assert kept
    assert kept == tuple(f"m{at}" for at in range(10 - len(kept), 10))


def test_budgets_and_signals_are_recorded() -> None:
    memories = [Memory("m", "x", 0.82, age_days=2.0)]
    record = pack(options=TaskOptions(profile="docs", floors="quality-first"), memory=memories).record
    assert {name: layer.percent for name, layer in record.layers.items()}["task"] == "10%"
    assert [*record.layers] == ["system", "task", "tools", "evidence", "memory", "conversation", "slack_min"]
    assert record.signals["similarity"] == 0.82
    assert record.signals["checklist_evidence_ratio"] == 0.5
    assert load_record(dump_record(record)[1]) == record


def test_recitation_and_the_document_s_order_are_options() -> None:
    assert (
        "First restate STEP and ACCEPTANCE in one or two lines." in pack(options=TaskOptions(recitation=True)).text
    )
    text = pack(options=TaskOptions(templates="document"), evidence=[evidence(1)], memory=[Memory("m", "x")]).text
    assert HEADER.findall(text)[1:] == [
        *("ROLE", "GOAL", "STEP", "CONSTRAINTS", "EVIDENCE", "MEMORY", "USER REQUEST (VERBATIM)")
    ]


@pytest.mark.parametrize("role", ["planner", "operator", "reviewer", "critic"])
def test_each_role_has_its_template(role: str) -> None:
    name = {"planner": "Planner", "operator": "Operator"}.get(role, "Critic")
    assert f"- You are the {name}" in pack(step=replace(STEP, role=role)).text


@pytest.mark.parametrize(
    "given",
    [
        {"evidence": 7},
        {"memory_threshold": 2.0},
        {"overflow": "oldest"},
        {"contract": "footer"},
        {"floors": {"system": 5}},
        {"templates": {"operator": "x"}},
    ],
)
def test_options_that_cannot_be_used_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        TaskOptions(**given)


def test_a_negative_number_of_repairs_is_refused() -> None:
    with pytest.raises(InputError, match="most_repairs"):
        Checks(most_repairs=-1)


def test_a_planner_that_gives_no_better_step_is_asked_once() -> None:
    asked: list[PackInvalid] = []

    def planner(problem: PackInvalid) -> TaskStep:
        asked.append(problem)
        return TaskStep(id="again", text=(" ",))

    with pytest.raises(PackInvalid):
        check_required(TaskStep(id="s", text=("x",)), planner)
    assert len(asked) == 1


def test_a_checklist_of_a_thousand_items_and_two_hundred_candidates() -> None:
    items = tuple(ChecklistItem(f"a{at}", f"value {at} is named", "evidence") for at in range(1_000))
    step = replace(STEP, checklist=Checklist(items))
    payload = pack(1_000_000, step=step, evidence=[evidence(at, f"value {at}") for at in range(200)])
    assert payload.text.count("(cite the evidence)") == 1_000
    assert len(payload.record.artifacts) == 200
