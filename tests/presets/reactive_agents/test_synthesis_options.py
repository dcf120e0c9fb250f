"""The options of synthesis: both spellings, what stands before what, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from lading.errors import InputError
from lading.messages import Message
from lading.presets.reactive_agents.synthesis_options import (
    BUNDLES,
    MODES,
    SynthesisConfig,
    SynthesisInput,
    resolve_synthesis_config_for_strategy,
)


def mine(given: SynthesisInput) -> list[Message]:
    return list(given.messages)


def test_the_modes_and_bundles_of_the_document() -> None:
    assert MODES == ("auto", "fast", "deep", "custom", "off")
    assert BUNDLES == {
        "reactive": "reactive",
        "plan-execute-reflect": "plan_execute",
        "tree-of-thought": "tree_of_thought",
        "reflexion": "reflexion",
    }


@pytest.mark.parametrize("execution", [*BUNDLES, "adaptive"])
def test_the_default_is_auto(execution: str) -> None:
    assert resolve_synthesis_config_for_strategy({}, execution) == SynthesisConfig("auto", None, None, None, None)


@pytest.mark.parametrize("execution", [*BUNDLES, "adaptive"])
def test_options_for_all_in_either_spelling(execution: str) -> None:
    camel = {
        "synthesis": "deep",
        "synthesisModel": "small",
        "synthesisProvider": "someone",
        "synthesisTemperature": 0.4,
        "synthesisStrategy": mine,
    }
    snake = {
        "synthesis": "deep",
        "synthesis_model": "small",
        "synthesis_provider": "someone",
        "synthesis_temperature": 0.4,
        "synthesis_strategy": mine,
    }
    wanted = SynthesisConfig("deep", "small", "someone", 0.4, mine)
    assert resolve_synthesis_config_for_strategy(camel, execution) == wanted
    assert resolve_synthesis_config_for_strategy(snake, execution) == wanted


OVERRIDDEN = {
    "synthesis": "fast",
    "synthesisProvider": "someone",
    "strategies": {
        "reactive": {"synthesis": "deep", "synthesisModel": "small"},
        "planExecute": {"synthesis": "off"},
        "treeOfThought": {"synthesisTemperature": 1},
        "reflexion": {"synthesis": "custom", "synthesis_strategy": mine},
    },
}


@pytest.mark.parametrize(
    ("execution", "config"),
    [
        ("reactive", SynthesisConfig("deep", "small", "someone")),
        ("plan-execute-reflect", SynthesisConfig("off", None, "someone")),
        ("tree-of-thought", SynthesisConfig("fast", None, "someone", 1)),
        ("reflexion", SynthesisConfig("custom", None, "someone", None, mine)),
        ("adaptive", SynthesisConfig("fast", None, "someone")),
    ],
)
def test_the_options_of_a_strategy_stand_before_those_for_all(execution: str, config: SynthesisConfig) -> None:
    assert resolve_synthesis_config_for_strategy(OVERRIDDEN, execution) == config
    spelled = {**OVERRIDDEN, "strategies": {"plan_execute": {"synthesis": "off"}}}
    assert resolve_synthesis_config_for_strategy(spelled, "plan-execute-reflect").mode == "off"


@pytest.mark.parametrize(
    ("execution", "mode"),
    [
        ("plan-execute-reflect", "off"),
        ("planExecute", "off"),
        ("plan_execute", "off"),
        ("tree-of-thought", "deep"),
        ("treeOfThought", "deep"),
        ("tree_of_thought", "deep"),
        ("adaptive", "fast"),
    ],
)
def test_a_strategy_goes_by_its_name_or_that_of_its_options(execution: str, mode: str) -> None:
    own = {"planExecute": {"synthesis": "off"}, "treeOfThought": {"synthesis": "deep"}}
    options = {"synthesis": "fast", "strategies": own}
    assert resolve_synthesis_config_for_strategy(options, execution).mode == mode


@pytest.mark.parametrize("execution", ["another", "", "plan"])
def test_a_strategy_that_there_is_not_is_refused(execution: str) -> None:
    known = "reactive, plan-execute-reflect, tree-of-thought, reflexion, adaptive"
    with pytest.raises(InputError, match=f"no execution strategy '{execution}'. Choose one of: {known}"):
        resolve_synthesis_config_for_strategy({}, execution)


def test_a_legacy_configuration_stands_where_no_option_for_all_is_given() -> None:
    legacy = SynthesisConfig("deep", "old")
    bundles = {"strategies": {"reactive": {"synthesisModel": "small"}}}
    assert resolve_synthesis_config_for_strategy({}, "adaptive", legacy=legacy) == legacy
    assert resolve_synthesis_config_for_strategy(bundles, "reactive", legacy=legacy) == SynthesisConfig(
        "deep", "small"
    )
    told = resolve_synthesis_config_for_strategy({"synthesisModel": "m"}, "reactive", legacy=legacy)
    assert told == SynthesisConfig("auto", "m")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"synthesis": "quick"}, "quick"),
        ({"synthesisMode": "fast"}, "synthesis_mode"),
        ({"synthesisModel": 3}, "synthesis_model"),
        ({"synthesisTemperature": -1}, "synthesis_temperature"),
        ({"synthesisModel": "a", "synthesis_model": "b"}, "given twice"),
        ({"synthesis": "custom"}, "give it as synthesis_strategy"),
        ({"synthesis": "custom", "synthesisStrategy": "mine"}, "synthesis_strategy"),
        ({"strategies": []}, "by its name"),
        ({"strategies": {"reactive": "deep"}}, "as a mapping, not as a str"),
        ({"strategies": {"reactive": {"mode": "deep"}}}, "mode"),
        ({"strategies": {"adaptive": {}}}, "No strategy 'adaptive' has options of its own: reactive, plan_execute"),
    ],
)
def test_what_is_no_option_is_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        resolve_synthesis_config_for_strategy(options, "reactive")


def test_a_configuration_is_checked_however_it_is_made() -> None:
    mode: Any = "quick"
    with pytest.raises(InputError, match=r"no synthesis 'quick'\. Choose one of: auto, fast, deep, custom, off"):
        SynthesisConfig(mode)
    with pytest.raises(InputError, match="custom needs a function"):
        SynthesisConfig("custom")
