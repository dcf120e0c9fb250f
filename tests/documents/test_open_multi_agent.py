"""What the document on context management of open-multi-agent shows, block by block, as its users write it here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lading import Message, Session, SessionOptions, Summarizer, SummaryRequest, tool_result
from lading.presets import AgentConfig, Compact, MinChars, SlidingWindow, agent_config, strategy_for
from lading.wire import WIRES, find_wire
from tests.documents.blocks import Block, check_blocks, check_tests, text_of

AGENT = "const agent: AgentConfig = {"
BLOCKS = (
    Block("Set contextStrategy on AgentConfig", 1, AGENT, "=> ... },\n}"),
    Block("compressToolResults replaces already-consumed tool results", 1, AGENT, "minChars: 2000 },\n}"),
    Block("maxToolOutputChars caps the raw output length", 1, AGENT, "10 k chars\n}"),
    Block("preserveReasoningAsText opts into", 1, AGENT, "4000 },\n}"),
)
NAMED = {"name": "long-runner", "model": "claude-sonnet-4-6"}
OLD = "word " * 8_000
"""40,000 characters: ten thousand tokens, as the document's system estimates them."""


def calls(number: int, *tools: str) -> dict[str, Any]:
    """An assistant message that calls these tools."""
    made = [
        {"id": f"c{number}-{tool}", "type": "function", "function": {"name": tool, "arguments": "{}"}}
        for tool in tools
    ]
    return {"role": "assistant", "content": f"Step {number}.", "tool_calls": made}


def requests(
    config: AgentConfig,
    *,
    rounds: int,
    result: str,
    tool: str = "read",
    summarize: Callable[..., str] | None = None,
) -> list[list[dict[str, Any]]]:
    """The messages of the request after each round of a run of the agent."""
    options = SessionOptions(summarizer=Summarizer(summarize) if summarize else None)
    found: list[list[dict[str, Any]]] = []
    with Session(
        config.model, name=config.name, wire="openai_chat", strategy=strategy_for(config), options=options
    ) as session:
        session.add("The task.").pack()
        for number in range(rounds):
            session.add([calls(number, tool), tool_result(f"c{number}-{tool}", f"{number}: {result}")])
            found.append(session.pack().request["messages"])
    return found


def results_of(messages: list[dict[str, Any]]) -> list[str]:
    return [message["content"] for message in messages if message["role"] == "tool"]


def test_every_code_block_of_the_document_is_listed(shared: Path) -> None:
    check_blocks(BLOCKS, text_of(shared, "002"))


def test_every_block_has_its_test_or_the_part_that_brings_it() -> None:
    check_tests(BLOCKS, sys.modules[__name__])


@pytest.mark.parametrize(("more", "chars"), [({}, 1_200), ({"compressReasoningText": {"minChars": 4_000}}, 3_000)])
def test_reasoning_of_another_provider_is_shown_as_text(more: dict[str, Any], chars: int) -> None:
    """ "preserveReasoningAsText opts into", block 1."""
    named = {"name": "cross-provider", "model": "gpt-5", "provider": "openai", "preserveReasoningAsText": True}
    agent = agent_config({**named, **more})
    thought = {"type": "thinking", "thinking": "plan" * 750, "signature": "c2ln"}
    with Session(agent.model, name=agent.name, wire="openai_chat", strategy=strategy_for(agent)) as session:
        session.add("The task.").add({"role": "assistant", "content": [thought, {"type": "text", "text": "Done."}]})
        sent = session.add("And now?").pack().request["messages"][1]["content"]
    before, _, text = sent.partition("</thinking>")
    assert text == "Done."
    assert before.startswith("<thinking>planplan")
    assert abs(len(before.removeprefix("<thinking>")) - chars) < 100


def test_a_sliding_window_keeps_the_task_and_the_newest_turns() -> None:
    """ "Set contextStrategy on AgentConfig", block 1."""
    agent = agent_config({**NAMED, "contextStrategy": {"type": "sliding-window", "maxTurns": 20}})
    assert agent == AgentConfig(
        name="long-runner", model="claude-sonnet-4-6", context_strategy=SlidingWindow(max_turns=20)
    )
    at_twenty, *_, last = requests(agent, rounds=25, result="text")[19:]
    assert len(at_twenty) == 41
    assert last[0]["content"] == "The task."
    assert "[Earlier conversation history truncated — 5 turn(s) removed]" in str(last[1]["content"])
    # Two messages a turn: the newest twenty rounds, whole.
    assert [message["content"] for message in last if message["role"] == "assistant"] == [
        f"Step {number}." for number in range(5, 25)
    ]
    assert len(results_of(last)) == 20


def test_summarize_puts_a_summary_of_another_model_in_place_of_old_turns() -> None:
    """ "Set contextStrategy on AgentConfig", block 1."""
    strategy = {"type": "summarize", "maxTokens": 80_000, "summaryModel": "claude-haiku-4-5"}
    agent = agent_config({**NAMED, "contextStrategy": strategy})
    asked: list[SummaryRequest] = []

    def summarize(request: SummaryRequest) -> str:
        asked.append(request)
        return "Goal: The task.\nDone: read the first files."

    *before, last = requests(agent, rounds=8, result=OLD, summarize=summarize)
    assert [request.model for request in asked] == ["claude-haiku-4-5"]
    assert len(before[-1]) == 15
    assert last[0]["content"] == "The task."
    assert "read the first files" in str(last[1]["content"])
    assert [text.partition(":")[0] for text in results_of(last)] == ["4", "5", "6", "7"]


def test_compact_shortens_old_results_by_rules() -> None:
    """ "Set contextStrategy on AgentConfig", block 1."""
    strategy = {"type": "compact", "maxTokens": 100_000, "preserveRecentTurns": 4}
    agent = agent_config({**NAMED, "contextStrategy": strategy})
    assert agent.context_strategy == Compact(100_000, 4)
    *_, before, last = requests(agent, rounds=10, result=OLD)
    assert results_of(before) == [f"{number}: {OLD}" for number in range(9)]
    shortened = [text.startswith("[Tool result: read — 40003 chars, compacted]") for text in results_of(last)]
    assert shortened == [True] * 6 + [False] * 4
    assert len(last) == 21


def test_custom_calls_a_function_before_every_request() -> None:
    """ "Set contextStrategy on AgentConfig", block 1."""
    given: list[int] = []

    def compress(messages: Sequence[Message], estimated_tokens: int) -> Sequence[Message]:
        given.append(estimated_tokens)
        return [messages[0], *messages[-4:]]

    agent = agent_config({**NAMED, "contextStrategy": {"type": "custom", "compress": compress}})
    last = requests(agent, rounds=6, result="x" * 400)[-1]
    assert len(given) == 7
    assert given[0] == 3
    assert [text[:1] for text in results_of(last)] == ["4", "5"]


def test_used_results_become_a_marker() -> None:
    """ "compressToolResults replaces already-consumed tool results", block 1."""
    agent = agent_config({**NAMED, "compressToolResults": True})
    short, long = (requests(agent, rounds=3, result="x" * size)[-1] for size in (497, 498))
    assert results_of(short) == [f"{number}: {'x' * 497}" for number in range(3)]
    marked = [
        text.startswith("[Tool output compressed — 501 chars, already processed]") for text in results_of(long)
    ]
    assert marked == [True, True, False]


def test_a_threshold_of_its_own() -> None:
    """ "compressToolResults replaces already-consumed tool results", block 1."""
    agent = agent_config({**NAMED, "compressToolResults": {"minChars": 2000}})
    assert agent.compress_tool_results == MinChars(2_000)
    assert (
        AgentConfig(name="long-runner", model="claude-sonnet-4-6", compress_tool_results=MinChars(2_000)) == agent
    )
    short, long = (requests(agent, rounds=2, result="x" * size)[-1] for size in (1_997, 1_998))
    assert results_of(short)[0] == f"0: {'x' * 1_997}"
    assert "2001 chars, already processed" in results_of(long)[0]


def test_errors_and_delegated_answers_are_exempt_and_a_window_works_beside_it() -> None:
    """ "compressToolResults replaces already-consumed tool results", block 1."""
    both = {"contextStrategy": {"type": "sliding-window", "maxTurns": 2}, "compressToolResults": True}
    agent = agent_config({**NAMED, **both})
    last = requests(agent, rounds=4, result="x" * 600, tool="delegate_to_agent")[-1]
    assert results_of(last) == [f"{number}: {'x' * 600}" for number in (2, 3)]
    with Session("gpt-4o", strategy=strategy_for(agent)) as session:
        session.add("The task.").pack()
        session.add([calls(0, "read"), tool_result("c0-read", "e" * 600, is_error=True)]).pack()
        pack = session.add([calls(1, "read"), tool_result("c1-read", "ok")]).pack()
    assert results_of(pack.request["messages"])[0].endswith("e" * 600)


def test_an_output_is_cut_to_its_head_and_tail_as_it_arrives() -> None:
    """ "maxToolOutputChars caps the raw output length", block 1."""
    agent = agent_config({**NAMED, "maxToolOutputChars": 10_000})
    assert agent == AgentConfig(name="long-runner", model="claude-sonnet-4-6", max_tool_output_chars=10_000)
    text = "".join(f"{number:06}" for number in range(5_000))
    (shown,) = results_of(requests(agent, rounds=1, result=text)[0])
    cut, _, pointer = shown.rpartition("\n")
    assert (len(cut), pointer.startswith("[Original: artifact://")) == (10_000, True)
    assert cut.startswith("0: 000000000001")
    assert cut.endswith("004999")
    assert "\n\n[...truncated " in cut


DECLARED: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "openai_chat": lambda tool: {"type": "function", "function": tool | {"parameters": {"type": "object"}}},
    "openai_responses": lambda tool: {"type": "function", **tool, "parameters": {"type": "object"}},
    "anthropic": lambda tool: tool | {"input_schema": {"type": "object"}},
    "gemini": lambda tool: {"functionDeclarations": [tool, {"name": "list"}]},
}


@pytest.mark.parametrize("name", ["maxOutputChars", "max_output_chars"])
@pytest.mark.parametrize("wire", WIRES)
def test_the_limit_of_a_tool_comes_first(wire: str, name: str) -> None:
    """ "maxToolOutputChars caps the raw output length", block 1."""
    agent = agent_config({**NAMED, "maxToolOutputChars": 10_000})
    tools = [DECLARED[wire]({"name": "read", name: 500})]
    results = [tool_result(f"c0-{tool}", tool[0] * 20_000) for tool in ("read", "list")]
    with Session("gpt-4o", strategy=strategy_for(agent), wire=wire) as session:
        session.add("The task.").pack(tools)
        session.add([calls(0, "read", "list"), *results])
        pack = session.pack(tools)
    shown = find_wire(wire).decode(pack.request).messages
    texts = [result.text for message in shown for result in message.results]
    assert [len(text.rpartition("\n")[0]) for text in texts] == [500, 10_000]
    assert name not in str(pack.request)
