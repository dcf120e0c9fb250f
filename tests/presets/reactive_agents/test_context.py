"""``build_context``: its sections in order, every input in the text, and what each field of a profile does."""

from __future__ import annotations

from typing import Any

import pytest

from lading.errors import InputError
from lading.messages import Tool, user_text
from lading.models.profiles import CONTEXT_PROFILES, context_profile
from lading.presets.reactive_agents.context import (
    BuiltContext,
    ContextInput,
    build_context,
    context_input,
    describe_tools,
    write_rules,
)
from lading.presets.reactive_agents.scoring import MemoryItem
from lading.presets.reactive_agents.section_budget import allocate_budget, estimate_tokens
from lading.presets.reactive_agents.steps import Step, steps_of
from tests.histories import answered, called, said

MID = CONTEXT_PROFILES["mid"]
TOOLS = (
    Tool(
        "web-search",
        "Search the web.",
        {"properties": {"query": {"type": "string"}, "n": {}}, "required": ["query"]},
    ),
    Tool("brief"),
)


def section(built: BuiltContext, name: str) -> str:
    """The text of one section; empty where there is none."""
    return dict(built.sections).get(name, "")


def many(count: int, text: str = "found nothing") -> tuple[Step, ...]:
    """Rounds of a call and its result, as steps."""
    history = [message for n in range(count) for message in (called(f"c{n}"), answered(f"c{n}", f"{n}: {text}"))]
    return steps_of(history)


def test_every_input_reaches_the_text_in_the_documented_order() -> None:
    given = ContextInput(
        task="TASK-SENTINEL",
        profile=MID,
        iteration=4,
        steps=(*many(6), *steps_of([said("LATEST-SENTINEL"), user_text("STEER-SENTINEL")])),
        memory_items=(MemoryItem("MEMORY-SENTINEL", 0.5),),
        tool_schemas=(Tool("TOOL-SENTINEL"),),
        required_tools=("REQUIRED-SENTINEL",),
        examples=("EXAMPLE-SENTINEL", "one too many"),
        prior_context="PRIOR-SENTINEL",
    )
    built = build_context(given)
    assert [name for name, _ in built.sections] == [
        *("tools", "examples", "prior context", "memories", "history", "done"),
        *("required tools", "iteration", "task", "rules"),
    ]
    sentinels = ["TOOL", "EXAMPLE", "PRIOR", "MEMORY", "LATEST", "STEER", "REQUIRED", "TASK"]
    places = [built.text.index(f"{name}-SENTINEL") for name in sentinels]
    assert places == sorted(places)
    assert "one too many" not in built.text
    assert built.text == "\n\n".join(text for _, text in built.sections)


def test_what_stays_the_same_is_apart_from_what_changes() -> None:
    first, second = (
        build_context(ContextInput(task="T", profile=MID, iteration=n, steps=many(n), tool_schemas=TOOLS))
        for n in (1, 5)
    )
    assert first.static_text == second.static_text
    assert first.dynamic_text != second.dynamic_text
    assert "Task: T" in first.static_text
    assert "[Iteration 2/10]" in first.dynamic_text


def test_the_scorer_chooses_what_a_small_window_tells() -> None:
    steps = list(many(60, "nothing of interest, " * 3))
    steps[21] = Step("observation", "penguin colonies", 10, "read", "a.py")
    steps[31] = Step("observation", "no such file", 15, "read", "a.py", failed=True)
    given = ContextInput(
        task="Count penguin colonies.", profile=MID, iteration=60, steps=tuple(steps), total_tokens=2_000
    )
    history = section(build_context(given), "history")
    assert "penguin colonies" in history
    assert "✗ no such file" in history
    assert "✓ 10: nothing" not in history
    assert "steps of the lowest scores are left out]" in history
    budget = allocate_budget(2_000, MID, iteration=60, max_iterations=10)
    assert estimate_tokens(history) <= budget.allocated.step_history * 1.2


def test_without_a_small_window_no_step_is_left_out() -> None:
    history = section(build_context(ContextInput(task="T", profile=MID, iteration=9, steps=many(10))), "history")
    assert "left out" not in history
    assert history.startswith("[Earlier steps — 15 steps]:\nAction: read(")
    recent = history.partition("[Recent steps]:\n")[2].splitlines()
    assert len(recent) == 5
    assert recent[0] == "Observation: 7: found nothing"


def test_up_to_the_trigger_all_steps_are_whole() -> None:
    history = section(build_context(ContextInput(task="T", profile=MID, iteration=3, steps=many(3))), "history")
    assert history.splitlines()[:2] == ['Action: read({"path": "a.py"})', "Observation: 0: found nothing"]


def test_what_the_user_says_is_told_whole_however_old() -> None:
    steering = "Steer left. " * 40
    steps = (*steps_of([user_text(steering)]), *many(10))
    assert steering in build_context(ContextInput(task="T", profile=MID, iteration=9, steps=steps)).text


def test_memories_below_three_tenths_are_dropped() -> None:
    items = (MemoryItem("kept", 0.3), MemoryItem("gone", 0.2))
    built = build_context(ContextInput(task="T", profile=MID, memory_items=items))
    assert section(built, "memories") == "[Relevant memories]:\n- kept"
    assert not section(build_context(ContextInput(task="T", profile=MID, memory_items=items[1:])), "memories")


def test_done_counts_results_that_succeeded_wherever_they_stand() -> None:
    parallel = [
        called("a"),
        called("b", "shell"),
        answered("b", "ok", "shell"),
        answered("a"),
        *[called("c"), answered("c")],
    ]
    steps = (*steps_of(parallel), Step("observation", "no", tool="http-get", failed=True))
    built = build_context(ContextInput(task="T", profile=MID, steps=steps, required_tools=("shell", "http-get")))
    assert section(built, "done") == "ALREADY DONE: shell, read (2x)"
    assert section(built, "required tools") == "Still required: http-get"


@pytest.mark.parametrize(
    ("iteration", "told"),
    [(0, ""), (5, ""), (6, "be decisive"), (7, "be decisive"), (8, "The run ends soon"), (9, "The run ends soon")],
)
def test_the_last_iterations_are_told_to_decide(iteration: int, told: str) -> None:
    found = section(build_context(ContextInput(task="T", profile=MID, iteration=iteration)), "iteration")
    assert found.startswith(f"[Iteration {iteration + 1}/10]")
    assert told in found
    assert bool(told) == (len(found) > len(f"[Iteration {iteration + 1}/10]"))


@pytest.mark.parametrize(
    ("detail", "expected"),
    [
        ("names-only", "Tools: web-search, brief"),
        ("names-and-types", "Tools:\n- web-search(query: string*, n: any)\n- brief()"),
        ("full", "Tools:\n- web-search(query: string*, n: any): Search the web.\n- brief()"),
    ],
)
def test_tool_schema_detail(detail: str, expected: str) -> None:
    assert (
        describe_tools(TOOLS, profile=context_profile("", {"tier": "mid", "toolSchemaDetail": detail})) == expected
    )


def test_tools_as_text_stand_as_they_are_and_many_are_told_briefly() -> None:
    assert describe_tools("web-search(query)", profile=MID) == "web-search(query)"
    assert describe_tools((), profile=MID) == ""
    assert "Search the web." not in describe_tools(TOOLS[:1] * 21, profile=MID)
    odd = Tool("odd", schema={"properties": {"a": "no schema"}, "required": "a"})
    assert describe_tools([odd], profile=MID) == "Tools:\n- odd(a: any)"


def test_rules_complexity() -> None:
    simple, standard, detailed = (
        write_rules(CONTEXT_PROFILES[tier], ("x",)) for tier in ("local", "mid", "frontier")
    )
    assert len(simple) < len(standard) < len(detailed)
    assert [text.count("\n") for text in (simple, standard, detailed)] == [6, 6, 7]
    assert all("x." in text or ": x" in text for text in (simple, standard, detailed))
    assert write_rules(CONTEXT_PROFILES["local"]).count("\n") == 5


def test_prompt_verbosity() -> None:
    def built(verbosity: str) -> str:
        profile = context_profile("", {"tier": "mid", "promptVerbosity": verbosity})
        memories = (MemoryItem("known", 1.0),)
        given = ContextInput(task="T", profile=profile, iteration=9, steps=many(10), memory_items=memories)
        return build_context(given).text

    assert len(built("minimal")) < len(built("standard")) < len(built("full"))
    assert "Memories are background" in built("full")
    assert "[Iteration 10/10] Answer now." in built("minimal")


def test_the_document_s_spelling_is_taken() -> None:
    options: dict[str, Any] = {
        "task": "Write a report on TypeScript performance",
        "iteration": 4,
        "maxIterations": 12,
        "steps": many(2),
        "memoryItems": (MemoryItem("a", 0.9),),
        "toolSchemas": "web-search(query), file-write(path, content)",
        "profile": MID,
    }
    given = context_input(options)
    assert (given.max_iterations, given.memory_items, given.tool_schemas) == (
        12,
        (MemoryItem("a", 0.9),),
        options["toolSchemas"],
    )
    assert "[Iteration 5/12]" in build_context(given).text


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"task": "T", "profile": MID, "step": ()}, "no option 'step'"),
        ({"task": "T"}, "profile"),
        ({"task": 3, "profile": MID}, "task"),
        ({"task": "T", "profile": MID, "maxIterations": 1, "max_iterations": 2}, "given twice"),
    ],
)
def test_options_that_are_none_are_refused_by_name(options: dict[str, Any], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        context_input(options)
