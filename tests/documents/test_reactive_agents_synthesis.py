"""What the document on synthesis of Reactive Agents shows, block by block, and its modes, tiers and phases."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lading import Message, Session, SessionOptions, Summarizer
from lading.events import ContextSynthesized
from lading.models.card import Tier
from lading.presets import (
    Signals,
    SynthesisConfig,
    SynthesisInput,
    resolve_synthesis_config_for_strategy,
    synthesis,
)
from tests.documents.blocks import Block, check_absent, check_blocks, check_tests, text_of, to_come
from tests.presets.reactive_agents.synthesised import Model, turn

BLOCKS = (
    Block("Top-level fields apply to every strategy", 1, ".withReasoning({", "})", "runtime", ("with_reasoning",)),
    Block("Per-strategy overrides apply only when", 1, ".withReasoning({", "})", "runtime", ("with_reasoning",)),
)
FOR_ALL = {
    "synthesis": "auto",
    "synthesisModel": "claude-3-5-haiku-20241022",
    "synthesisProvider": "anthropic",
    "synthesisTemperature": 0,
}
OVERRIDDEN = {
    "synthesis": "fast",
    "strategies": {
        "reactive": {"synthesis": "deep", "synthesisModel": "gpt-4o-mini"},
        "planExecute": {"synthesis": "off"},
    },
}
STRATEGIES = ["reactive", "plan-execute-reflect", "tree-of-thought", "reflexion", "adaptive"]


class Seen:
    """The last request of a run of rounds, what a model was asked in it, and each request's event."""

    def __init__(self, config: SynthesisConfig, *, signals: Signals | None = None, rounds: int = 12) -> None:
        self.model, self.events = Model(), list[ContextSynthesized]()
        strategy = synthesis(config, signals or Signals())
        options = SessionOptions(summarizer=Summarizer(self.model))
        with Session("gpt-4o-mini", strategy=strategy, options=options) as session:
            session.add("Read f9 last, then write the report.").pack()
            for number in range(rounds):
                pack = session.add(turn(number)).pack()
                self.events += [event for event in pack.events if isinstance(event, ContextSynthesized)]
        self.messages: list[dict[str, Any]] = pack.request["messages"]
        self.raw = sum(map(len, map(turn, range(rounds)))) + 1

    @property
    def paths(self) -> set[str]:
        """The paths taken."""
        return {event.path for event in self.events}


def test_every_code_block_of_the_document_is_listed(shared: Path) -> None:
    check_blocks(BLOCKS, text_of(shared, "001"))


def test_every_block_has_its_test() -> None:
    check_tests(BLOCKS, sys.modules[__name__])


@to_come(BLOCKS)
def test_what_a_part_brings_is_not_there_yet(block: Block) -> None:
    check_absent(block)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_fields_for_all_strategies(strategy: str) -> None:
    """ "Top-level fields apply to every strategy", block 1."""
    config = resolve_synthesis_config_for_strategy(FOR_ALL, strategy)
    assert config == SynthesisConfig("auto", "claude-3-5-haiku-20241022", "anthropic", 0)
    spelled = {
        "synthesis": "auto",
        "synthesis_model": "claude-3-5-haiku-20241022",
        "synthesis_provider": "anthropic",
        "synthesis_temperature": 0,
    }
    assert resolve_synthesis_config_for_strategy(spelled, strategy) == config


def test_auto_asks_the_named_model_where_the_run_needs_it() -> None:
    """ "Top-level fields apply to every strategy", block 1."""
    config = resolve_synthesis_config_for_strategy(FOR_ALL, "reactive")
    calm, unsure = Seen(config), Seen(config, signals=Signals(entropy=0.9))
    assert (calm.paths, calm.model.asked) == ({"fast"}, [])
    assert "deep" in unsure.paths
    asked = unsure.model.asked[0]
    assert (asked.model, asked.provider, asked.temperature) == ("claude-3-5-haiku-20241022", "anthropic", 0)


@pytest.mark.parametrize(
    ("strategy", "mode", "model"),
    [
        ("reactive", "deep", "gpt-4o-mini"),
        ("plan-execute-reflect", "off", None),
        ("planExecute", "off", None),
        ("tree-of-thought", "fast", None),
        ("reflexion", "fast", None),
        ("adaptive", "fast", None),
    ],
)
def test_a_strategy_has_its_own_fields_over_those_for_all(strategy: str, mode: str, model: str | None) -> None:
    """ "Per-strategy overrides apply only when", block 1."""
    config = resolve_synthesis_config_for_strategy(OVERRIDDEN, strategy)
    assert (config.mode, config.model) == (mode, model)
    seen = Seen(config)
    if mode == "off":
        assert (len(seen.messages), seen.events, seen.model.asked) == (seen.raw, [], [])
        return
    assert len(seen.messages) < seen.raw
    assert seen.messages[1]["content"].startswith("[Prior work: called read → result 0")
    assert [asked.model for asked in seen.model.asked[:1]] == ([model] if model else [])
    assert ("deep" in seen.paths) == (mode == "deep")
    assert ("Next action: call read for f9" in seen.messages[1]["content"]) == (mode == "deep")


def test_without_fields_the_mode_is_auto() -> None:
    assert resolve_synthesis_config_for_strategy({}, "reactive") == SynthesisConfig("auto")


def test_custom_shows_what_a_function_of_the_caller_returns() -> None:
    given: list[SynthesisInput] = []

    def newest(asked: SynthesisInput) -> Sequence[Message]:
        given.append(asked)
        return [asked.messages[0], *asked.messages[-2:]]

    config = resolve_synthesis_config_for_strategy({"synthesis": "custom", "synthesisStrategy": newest}, "reactive")
    seen = Seen(config)
    assert seen.paths == {"custom"}
    assert given[0].task == "Read f9 last, then write the report."
    assert [len(seen.messages), "result 11" in str(seen.messages), "result 3" in str(seen.messages)] == [
        4,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("tier", "turns", "chars"), [("local", 2, 100), ("mid", 3, 200), ("large", 5, 400), ("frontier", 8, 600)]
)
def test_the_last_turns_stay_and_arguments_are_cut_by_tier(tier: Tier, turns: int, chars: int) -> None:
    with Session("gpt-4o", strategy=synthesis(SynthesisConfig("fast"), profile=tier)) as session:
        session.add("Write them all.").pack()
        for number in range(12):
            arguments = json.dumps({"path": f"f{number}", "content": f"{number} " * 500})
            call = {
                "id": f"c{number}",
                "type": "function",
                "function": {"name": "file-write", "arguments": arguments},
            }
            session.add({"role": "assistant", "content": None, "tool_calls": [call]})
            pack = session.add({"role": "tool", "tool_call_id": f"c{number}", "content": "written"}).pack()
    messages = pack.request["messages"]
    calls = [call["function"]["arguments"] for message in messages for call in message.get("tool_calls", ())]
    assert len(calls) == turns
    # The model has not answered the newest turn yet: it stays whole.
    most = max(chars, 160)  # sixty characters of a text and a note with a pointer are left of it
    assert [len(arguments) <= most for arguments in calls] == [True] * (turns - 1) + [False]
    assert all(json.loads(arguments)["path"] for arguments in calls)
    roles = [message["role"] for message in messages[2:]]
    assert roles[: 2 * turns] == ["assistant", "tool"] * turns
    assert "Completed: file-write" in messages[-1]["content"]


@pytest.mark.parametrize(
    ("required", "called", "words"),
    [
        (["web-search"], "read", "Call web-search next."),
        ([], "read", "produce what the task asks for"),
        (["read"], "read", "give the final summary"),
        (["file-write"], "file-write", "confirm it and sum up"),
    ],
    ids=["gather", "produce", "synthesize", "verify"],
)
def test_a_request_ends_with_the_steering_of_its_phase(required: list[str], called: str, words: str) -> None:
    signals = Signals(required_tools=tuple(required))
    with Session("gpt-4o-mini", strategy=synthesis(SynthesisConfig("fast"), signals)) as session:
        session.add("Do it.").pack()
        session.add(turn(0, name=called)).pack()
        pack = session.add(turn(1, name=called)).pack()
    assert words in pack.request["messages"][-1]["content"]


def test_the_event_has_the_signals() -> None:
    event = Seen(SynthesisConfig("fast"), signals=Signals(required_tools=("read",))).events[-1]
    assert (event.path, event.phase) == ("fast", "synthesize")
    assert (event.signals.tier, event.signals.iteration, event.signals.last_errors) == ("mid", 12, ())
    assert event.signals.tools_used == ("read",)
