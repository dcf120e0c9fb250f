"""What the document on context engineering of Reactive Agents shows, block by block, as its users write it here."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from lading import Session, SessionOptions, tool_result
from lading.presets import (
    CONTEXT_PROFILES,
    allocate_budget,
    build_context,
    categorize_tool_name,
    context_profile,
    derive_result_kind,
    estimate_tokens,
    observation_result,
    progressive,
    track_usage,
)
from tests.documents.blocks import Block, check_absent, check_blocks, check_tests, text_of, to_come

BUILDER = ("ReactiveAgents", "with_context_profile", "with_reasoning", "with_tools")
BLOCKS = (
    Block("Using Context Profiles", 1, "// Use the tier auto-detection", ".build();", "runtime", BUILDER),
    Block("Using Context Profiles", 2, "// Override specific thresholds", ".build();", "runtime", BUILDER),
    Block("Using the ContextEngine Directly", 1, "import { buildContext }", "});"),
    Block("Context Budget", 1, "import { allocateBudget, estimateTokens }", "tokens still available"),
    Block("Working Memory (recall)", 1, "// Write: model emits tool_use", 'write report" }', "memory", ("recall",)),
    Block("Structured Tool Observations", 1, "import { categorizeToolName", "preserveOnCompaction: true"),
    Block(
        "Real Sub-Agent Delegation",
        1,
        "const coordinator = await ReactiveAgents",
        "tokensUsed }",
        "runtime",
        ("ReactiveAgents", "with_agent_tool", "MAX_RECURSION_DEPTH"),
    ),
    Block(
        "Dynamic Sub-Agent Spawning",
        1,
        "const agent = await ReactiveAgents",
        ".build();",
        "runtime",
        ("with_dynamic_sub_agents", "spawn_agent"),
    ),
)
TASK = "Write a report on TypeScript performance"


def round_of(number: int, tool: str, arguments: str, result: str) -> list[dict[str, Any]]:
    """A thought with one call, and its result, as a client of OpenAI has them."""
    call = {"id": f"c{number}", "type": "function", "function": {"name": tool, "arguments": arguments}}
    return [
        {"role": "assistant", "content": f"Thought {number}.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": result},
    ]


def cut_result(profile: dict[str, Any], *, model: str) -> str:
    """What a session with this profile shows of a result of 5,000 characters."""
    options = SessionOptions(profile=profile)
    with Session(model, strategy="reactive_agents/progressive", options=options) as session:
        call = {"id": "c1", "type": "function", "function": {"name": "file-read", "arguments": "{}"}}
        session.add("Read it.").add({"role": "assistant", "content": None, "tool_calls": [call]})
        pack = session.add(tool_result("c1", "\n".join(f"line {number}" for number in range(500)))).pack()
    return str(pack.request["messages"][-1]["content"])


def test_every_code_block_of_the_document_is_listed(shared: Path) -> None:
    check_blocks(BLOCKS, text_of(shared, "000"))


def test_every_block_has_its_test_or_the_part_that_brings_it() -> None:
    check_tests(BLOCKS, sys.modules[__name__])


@to_come(BLOCKS)
def test_what_a_part_brings_is_not_there_yet(block: Block) -> None:
    check_absent(block)


def test_the_tier_is_detected() -> None:
    """ "Using Context Profiles", block 1."""
    profile = context_profile("qwen3:4b", {"tier": "local"}, provider="ollama")
    assert profile == context_profile("qwen3:4b", provider="ollama") == CONTEXT_PROFILES["local"]
    assert 300 < len(cut_result({"tier": "local"}, model="ollama/qwen3:4b")) <= 400


def test_thresholds_are_overridden() -> None:
    """ "Using Context Profiles", block 2."""
    given = {"tier": "mid", "toolResultMaxChars": 1000, "compactAfterSteps": 8}
    profile = context_profile("claude-haiku-4-5-20251001", given, provider="anthropic")
    assert (profile.tier, profile.tool_result_max_chars, profile.compact_after_steps) == ("mid", 1_000, 8)
    assert profile.full_detail_steps == CONTEXT_PROFILES["mid"].full_detail_steps
    assert 800 < len(cut_result(given, model="gpt-4o-mini")) <= 1_000


@pytest.mark.parametrize("spelled", ["snake", "camel", "mapping"])
def test_a_prompt_is_built_of_steps(spelled: str) -> None:
    """ "Using the ContextEngine Directly", block 1."""
    previous_steps = [
        message
        for number in range(4)
        for message in round_of(number, "web-search", f'{{"query": "part {number}"}}', f"found {number}")
    ]
    semantic_memory = [
        {"content": "The reader knows TypeScript.", "relevance": 0.8},
        {"content": "The weather is fine.", "relevance": 0.29},
    ]
    tool_schemas = "web-search(query), file-write(path, content)"
    profile = CONTEXT_PROFILES["mid"]
    options: dict[str, Any] = {
        "task": TASK,
        "iteration": 4,
        "maxIterations": 10,
        "steps": previous_steps,
        "memoryItems": semantic_memory,
        "toolSchemas": tool_schemas,
        "profile": profile,
    }
    if spelled == "snake":
        built = build_context(
            task=TASK,
            iteration=4,
            max_iterations=10,
            steps=previous_steps,
            memory_items=semantic_memory,
            tool_schemas=tool_schemas,
            profile=profile,
        )
    else:
        built = build_context(options) if spelled == "mapping" else build_context(**options)
    prompt = str(built)
    assert prompt == built.text
    assert tool_schemas in prompt
    assert "The reader knows TypeScript." in prompt
    assert "The weather is fine." not in prompt
    assert "[Iteration 5/10]" in prompt
    assert f"Task: {TASK}" in prompt
    # Of twelve steps the last five stay whole; an older one has its line.
    assert [f"found {number}" in prompt for number in range(4)] == [True] * 4
    assert "[Earlier steps" in prompt
    assert prompt.index("[Recent steps]:") < prompt.index("Observation: found 3")


def test_a_budget_is_allocated_by_section() -> None:
    """ "Context Budget", block 1."""
    profile = context_profile("claude-haiku-4-5")
    budget = allocate_budget(
        128_000,  # total model context tokens
        profile,
        3,  # current iteration
        10,  # max iterations
    )
    assert budget.allocated.step_history == 41_779
    assert budget.allocated.tool_schemas == 8_704
    assert budget.remaining == budget.available == 87_040
    text = "x" * 4_001
    assert estimate_tokens(text) == 1_001
    assert track_usage(budget, "step_history", text=text).remaining == 86_039


def test_categories_come_from_names() -> None:
    """ "Structured Tool Observations", block 1."""
    kinds = {
        name: (categorize_tool_name(name), derive_result_kind(categorize_tool_name(name)))
        for name in ("file-write", "web-search", "file-read")
    }
    assert kinds == {
        "file-write": ("file-write", "side-effect"),
        "web-search": ("web-search", "data"),
        "file-read": ("file-read", "data"),
    }
    for name in kinds:
        failed = observation_result(name, "no such file", success=False)
        assert (failed.category, failed.result_kind, failed.preserve_on_compaction) == ("error", "error", True)
    with Session("gpt-4o", strategy=progressive("local")) as session:
        session.add("Read them all.")
        failing = [*round_of(0, "file-read", '{"path": "a.py"}', "ok"), *round_of(1, "file-read", "{}", "ok")]
        wrong = round_of(2, "file-read", '{"path": "gone.py"}', "")[0]
        session.add(failing).add(wrong).add(tool_result("c2", "ENOENT: gone.py", is_error=True))
        for number in range(3, 14):
            session.add(round_of(number, "file-read", f'{{"path": "{number}.py"}}', f"text {number}"))
        request = str(session.pack().request)
    assert "ENOENT: gone.py" in request
    assert "text 3" not in request
