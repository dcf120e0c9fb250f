"""Tasks, plans and checklists: dicts that are read, and those that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from lading.errors import AddressError, InputError, LadingError, PlanError, UnknownName
from lading.task.task import read_task


def task(*steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"id": "42", "goal": "Summarize.", "plan": [*steps], **fields}


def test_both_spellings_are_read() -> None:
    camel = task({"id": "a"}, {"id": "b", "dependsOn": ["a"], "constraints": {"budgetUsd": 0.2}})
    snake = task({"id": "a"}, {"id": "b", "depends_on": ["a"], "constraints": {"budget_usd": 0.2}})
    assert read_task(camel) == read_task(snake)
    assert read_task(camel).plan.find("b").constraints.budget_usd == 0.2


def test_texts_become_checklist_items_without_proof() -> None:
    (step,) = read_task(task({"id": "a", "text": "Search.", "checklist": ["Include sources."]})).plan.steps
    (item,) = step.checklist.items
    assert (item.id, item.text, item.proof) == ("a1", "Include sources.", "none")
    assert step.text == ("Search.",)


def test_only_proof_by_evidence_needs_evidence() -> None:
    item = {"id": "a1", "text": "Include sources.", "proof": "evidence"}
    steps = read_task(task({"id": "a", "checklist": [item]}, {"id": "b", "checklist": ["Be short."]})).plan.steps
    assert [step.checklist.needs_evidence for step in steps] == [True, False]


def test_the_critic_is_the_reviewer() -> None:
    assert read_task(task({"id": "a", "role": "Critic"})).plan.steps[0].role == "reviewer"


def test_steps_are_ordered_behind_those_they_depend_on() -> None:
    steps: list[dict[str, Any]] = [{"id": "c", "depends_on": ["b"]}, {"id": "b", "depends_on": ["a"]}, {"id": "a"}]
    assert read_task(task(*steps)).plan.order() == ("a", "b", "c")


def test_a_schema_cannot_be_changed_by_its_caller() -> None:
    schema: dict[str, Any] = {"required": ["a"]}
    item = {"id": "a1", "text": "JSON.", "proof": "json_schema", "argument": schema}
    (step,) = read_task(task({"id": "a", "checklist": [item]})).plan.steps
    schema["required"].append("b")
    assert step.checklist.items[0].argument == {"required": ["a"]}


REFUSED: dict[str, tuple[dict[str, Any], type[LadingError], str]] = {
    "cycle": (
        task({"id": "a", "depends_on": ["b"]}, {"id": "b", "depends_on": ["a"]}),
        PlanError,
        "The plan is cyclic",
    ),
    "cycle of one": (task({"id": "a", "depends_on": ["a"]}), PlanError, "The plan is cyclic: a -> a"),
    "id twice": (task({"id": "a"}, {"id": "a"}), PlanError, "Two steps have the id 'a'"),
    "unknown dependency": (task({"id": "a", "depends_on": ["b"]}), PlanError, "no step of the plan"),
    "tool not allowed": (task({"id": "a", "tools": ["rm"]}, tools=["ls"]), PlanError, "does not allow"),
    "above the task's budget": (
        task({"id": "a", "constraints": {"budget_usd": 2}}, constraints={"budget_usd": 1}),
        PlanError,
        "above 1 of the task",
    ),
    "unknown role": (task({"id": "a", "role": "operatr"}), UnknownName, "Did you mean 'operator'"),
    "path as id": (task({"id": "../etc"}), AddressError, "cannot be the name of a step"),
    "item twice": (
        task({"id": "a", "checklist": [{"id": "x", "text": "A."}, {"id": "x", "text": "B."}]}),
        InputError,
        "Two checklist items have the id 'x'",
    ),
    "blank item": (task({"id": "a", "checklist": [" "]}), InputError, "needs an id and a text"),
    "pattern missing": (
        task({"id": "a", "checklist": [{"id": "x", "text": "A.", "proof": "pattern"}]}),
        InputError,
        "give its text as argument",
    ),
    "unknown option": (task({"id": "a", "dependsUpon": []}), InputError, "no option 'dependsUpon'"),
    "steps as text": (task(plan="a"), InputError, "give steps as a list"),
    "id as number": ({"id": 1, "goal": "Go."}, InputError, "Expected `str`, got `int`"),
    "negative limit": (task(constraints={"latency_s": -1}), InputError, "give a finite number from 0 on"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_used_is_refused_with_advice(name: str) -> None:
    given, error, words = REFUSED[name]
    with pytest.raises(error) as caught:
        read_task(given)
    assert words in str(caught.value)
    assert isinstance(caught.value, error)


def test_a_thousand_items_are_read() -> None:
    items = [f"Item {number}." for number in range(1_000)]
    (step,) = read_task(task({"id": "a", "checklist": items})).plan.steps
    assert step.checklist.items[-1].id == "a1000"
