"""The options in either spelling, what they become, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import lading
from lading.compaction import STRATEGIES, find_strategy
from lading.errors import InputError
from lading.messages import Message
from lading.presets.open_multi_agent import (
    AgentConfig,
    Compact,
    Custom,
    MinChars,
    SlidingWindow,
    Summarize,
    agent_config,
    strategy_for,
)
from lading.presets.open_multi_agent.presets import PRESETS
from lading.wire.reasoning import ReasoningPolicy


def same(messages: Sequence[Message], _estimated_tokens: int) -> Sequence[Message]:
    """What a function of a caller's may be."""
    return messages


@pytest.mark.parametrize(
    ("options", "config"),
    [
        ({}, AgentConfig()),
        (
            {"name": "long-runner", "model": "gpt-4o", "provider": "openai", "contextStrategy": None},
            AgentConfig(name="long-runner", model="gpt-4o", provider="openai"),
        ),
        (
            {"contextStrategy": {"type": "sliding-window", "maxTurns": 20}},
            AgentConfig(context_strategy=SlidingWindow(20)),
        ),
        (
            {"context_strategy": {"type": "summarize", "max_tokens": 80_000, "summary_model": "small"}},
            AgentConfig(context_strategy=Summarize(80_000, "small")),
        ),
        (
            {"contextStrategy": {"type": "compact", "maxTokens": 100_000, "preserveRecentTurns": 4}},
            AgentConfig(context_strategy=Compact(100_000, 4, 200, 2_000, 200)),
        ),
        (
            {"contextStrategy": {"type": "custom", "compress": same}},
            AgentConfig(context_strategy=Custom(same)),
        ),
        ({"compressToolResults": {"minChars": 2000}}, AgentConfig(compress_tool_results=MinChars(2_000))),
        (
            {"maxToolOutputChars": 10_000, "maxOutputChars": {"runShell": 5}},
            AgentConfig(max_tool_output_chars=10_000, max_output_chars={"runShell": 5}),
        ),
        ({"compressReasoningText": {"minChars": 4_000}}, AgentConfig(compress_reasoning_text=MinChars(4_000))),
    ],
)
def test_options_are_read_in_either_spelling(options: dict[str, object], config: AgentConfig) -> None:
    assert agent_config(options) == config


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"contextStrategie": None}, "no option 'contextStrategie'. Did you mean 'contextStrategy'"),
        ({"context_strategie": None}, "no option 'context_strategie'. Did you mean 'context_strategy'"),
        ({"contextStrategy": {"type": "sliding-window", "maxTurn": 2}}, "Did you mean 'maxTurns'"),
        ({"systemPrompt": "You are"}, "no option 'systemPrompt'"),
        ([("contextStrategy", None)], "as a mapping"),
        ({"contextStrategy": {"type": "window", "maxTurns": 2}}, "Invalid value 'window'"),
        ({"contextStrategy": {"type": "compact"}}, "missing required field `max_tokens`"),
        ({"contextStrategy": {"type": "summarize", "maxTokens": 0}}, "Expected `int` >= 1"),
        ({"contextStrategy": {"type": "custom", "compress": 3}}, "Expected `Callable`"),
        ({"compressToolResults": {"minChars": -1}}, "Expected `int` >= 0"),
        ({"maxToolOutputChars": 0}, "Expected `int` >= 1"),
        ({"maxToolOutputChars": 5, "max_tool_output_chars": 5}, "max_tool_output_chars is given twice"),
    ],
)
def test_what_is_no_option_is_refused(options: dict[str, object], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        agent_config(options)


@pytest.mark.parametrize(
    ("options", "as_text", "max_chars"),
    [
        ({}, False, 1_200),
        ({"preserveReasoningAsText": True}, True, 1_200),
        ({"preserveReasoningAsText": True, "compressReasoningText": True}, True, 1_200),
        ({"preserveReasoningAsText": True, "compressReasoningText": False}, True, None),
        ({"preserveReasoningAsText": True, "compressReasoningText": {"minChars": 4_000}}, True, 4_000),
    ],
)
def test_reasoning_is_left_out_unless_asked_for_and_cut_unless_told(
    options: dict[str, object], as_text: bool, max_chars: int | None
) -> None:
    assert strategy_for(options).reasoning == ReasoningPolicy(as_text, max_chars, by_table=True)


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (AgentConfig(), "open_multi_agent/unchanged"),
        (AgentConfig(context_strategy=SlidingWindow(20)), "open_multi_agent/sliding_window(max_turns=20)"),
        (AgentConfig(context_strategy=Summarize(9)), "open_multi_agent/summarize(max_tokens=9)"),
        (
            AgentConfig(context_strategy=Compact(9)),
            "open_multi_agent/compact(max_tokens=9, preserve_recent_turns=4)",
        ),
        (
            AgentConfig(context_strategy=Custom(same), compress_tool_results=True),
            "open_multi_agent/custom+compress_tool_results(min_chars=500)",
        ),
        (AgentConfig(max_tool_output_chars=7), "open_multi_agent/max_tool_output_chars(7)"),
        (AgentConfig(max_output_chars={"a": 7}), "open_multi_agent/max_tool_output_chars(by tool)"),
    ],
)
def test_a_strategy_is_named_after_its_options(config: AgentConfig, name: str) -> None:
    assert strategy_for(config).name == name


def test_each_has_a_row_of_its_own_with_the_numbers_of_the_documents_examples() -> None:
    assert {
        "open_multi_agent/compact": AgentConfig(context_strategy=Compact(100_000, preserve_recent_turns=4)),
        "open_multi_agent/compress_tool_results": AgentConfig(compress_tool_results=True),
        "open_multi_agent/sliding_window": AgentConfig(context_strategy=SlidingWindow(20)),
        "open_multi_agent/summarize": AgentConfig(context_strategy=Summarize(80_000)),
    } == PRESETS
    assert PRESETS["open_multi_agent/compress_tool_results"].compressed_chars == 500
    assert {find_strategy(name).name for name in PRESETS} == PRESETS.keys() <= STRATEGIES.keys()


def test_a_session_takes_a_strategy_as_it_is_and_its_manifests_name_it() -> None:
    config = agent_config({"model": "gpt-4o", "contextStrategy": {"type": "sliding-window", "maxTurns": 2}})
    with lading.Session(config.model, strategy=strategy_for(config)) as session:
        session.add("Hello.")
        assert session.pack().manifest.frame is not None
        assert session.pack().manifest.frame is None
        manifest = session.pack().manifest
        frames = [frame for frame in (manifest.frame, session._engine.frame) if frame]
        assert [frame.strategy for frame in frames] == ["open_multi_agent/sliding_window(max_turns=2)"]
        with session.fork("Hello, you.") as fork:
            assert fork.settings.strategy == session.settings.strategy


def test_options_that_are_objects_may_be_mappings_of_a_configuration() -> None:
    """The type checkers ask for the values; whoever uses none gets what was written, or an error."""
    window: Any = {"type": "sliding-window", "maxTurns": 20}
    config = AgentConfig(context_strategy=window, compress_tool_results={"min_chars": 9})  # type: ignore[arg-type]
    assert config == AgentConfig(context_strategy=SlidingWindow(20), compress_tool_results=MinChars(9))
    for wrong in ({"type": "sliding-window", "turns": 20}, {"type": "window"}, {"type": "compact"}):
        with pytest.raises(InputError, match=r"context_strategy|invalid"):
            AgentConfig(context_strategy=wrong)  # type: ignore[arg-type]


def test_a_strategy_is_built_of_options_too() -> None:
    options = {"contextStrategy": {"type": "sliding-window", "maxTurns": 20}}
    assert strategy_for(options).name == strategy_for(agent_config(options)).name
    with pytest.raises(InputError, match="contextStrateg"):
        strategy_for({"contextStrategies": {}})
