"""What cannot be used is refused where it is handed in, and the error says what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

import lading
from lading.clients import wrap
from lading.errors import InputError, UnknownName
from lading.models.profiles import context_profile
from lading.presets.aether_frame import Tail
from lading.presets.aether_frame import strategy as tail_strategy
from lading.presets.agentrail import Agentrail, Reactive, configured, summarizer
from lading.presets.agentrail import strategy as agentrail_strategy
from lading.presets.agentrail.providers import transforming
from lading.presets.open_multi_agent import agent_config
from lading.presets.reactive_agents import Signals
from lading.presets.reactive_agents.progressive import progressive
from lading.presets.reactive_agents.scored import scored
from lading.testing import Say, StrictProvider
from lading.validation import snake_case
from tests.clients.agents import openai_client

WRONG: Any = {"type": "sliding-window", "maxTurns": 2}


def summarize(_request: lading.SummaryRequest) -> str:
    return "Goal: none"


OPENINGS: dict[str, tuple[dict[str, Any], str]] = {
    "options as strategy": ({"strategy": WRONG}, r"strategy_for\(config\), configured\(options\)"),
    "a configuration": ({"strategy": agent_config({"compressToolResults": True})}, r"strategy_for\(config\)"),
    "a tail": ({"strategy": Tail()}, r"strategy\(options\)"),
    "no strategy": ({"strategy": None}, "a strategy is a name"),
    "a function": ({"strategy": summarize}, "a strategy is a name"),
    "window in words": ({"window": "16k"}, "window is '16k'"),
    "window of nothing": ({"window": 0}, "from 1 on"),
    "window of true": ({"window": True}, "window is True"),
    "reserve below nothing": ({"output_reserve": -1}, "output_reserve is -1"),
    "reserve in parts": ({"output_reserve": 1.5}, "output_reserve is 1.5"),
    "no share": (
        {"when": 0},
        "when is 0; give 'pays', 'full' or a share of the window between 0 and 1, such as 0.8",
    ),
    "more than all": ({"when": 1.5}, "when is 1.5; give"),
    "no number": ({"when": float("nan")}, "when is nan; give"),
    "no word for it": ({"when": "sometimes"}, "when is 'sometimes'; give"),
    "when it is true": ({"when": True}, "when is True; give"),
    "nothing verbatim": (
        {"options": lading.SessionOptions(verbatim=0)},
        "verbatim is 0; give a share of the window of at most 0.9, such as 0.3",
    ),
    "nearly all of it verbatim": ({"options": lading.SessionOptions(verbatim=0.95)}, "verbatim is 0.95; give"),
    "more verbatim than the share": (
        {"when": 0.3, "options": lading.SessionOptions(verbatim=0.5)},
        "Give a larger when, or a smaller verbatim",
    ),
    "a strategy that goes by neither": (
        {"strategy": "basic", "when": "full"},
        "basic has no options when and verb",
    ),
    "options by name": ({"options": {"strict": True}}, "lading.SessionOptions"),
}


@pytest.mark.parametrize(("given", "fault"), OPENINGS.values(), ids=OPENINGS)
def test_a_session_and_wrap_refuse_alike_what_no_session_can_be_opened_with(
    given: dict[str, Any], fault: str
) -> None:
    with pytest.raises(InputError, match=fault):
        lading.Session("gpt-4o", **given)
    with StrictProvider(lambda _seen: Say("hi")) as provider, pytest.raises(InputError, match=fault):
        wrap(openai_client(provider), **given)


def test_an_unknown_strategy_is_refused_with_the_nearest_name_also_by_wrap() -> None:
    for name, meant in (
        ("sliding_window", "open_multi_agent/sliding_window"),
        ("compact-tool-results", "agentrail/tool_results"),
        ("compressToolResults", "open_multi_agent/compress_tool_results"),
    ):
        with pytest.raises(UnknownName, match=f"Did you mean '{meant}'"):
            lading.Session("gpt-4o", strategy=name)
    with StrictProvider(lambda _seen: Say("hi")) as provider, pytest.raises(UnknownName, match="no strategy named"):
        wrap(openai_client(provider), strategy="nope")


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda: lading.SessionOptions(summarizer=cast(Any, summarize)), r"Summarizer\(function\)"),
        (lambda: lading.SessionOptions(profile=cast(Any, ["mid"])), "context_profile"),
        (lambda: lading.SessionOptions(loop_detection=WRONG), "LoopDetection"),
        (lambda: progressive(cast(Any, 7)), "CONTEXT_PROFILES"),
        (lambda: scored(cast(Any, "huge")), "no tier 'huge'"),
        (lambda: context_profile("gpt-4o", cast(Any, ["x"])), "as a mapping"),
        (lambda: tail_strategy(WRONG), r"Tail\(\.\.\.\)"),
        (lambda: Tail(last_n_turns=cast(Any, "3")), "last_n_turns of Tail cannot be '3'"),
        (lambda: Reactive(micro_trigger_pct=cast(Any, "85")), "micro_trigger_pct of Reactive"),
        (lambda: Agentrail(reactive=WRONG), "reactive of Agentrail"),
        (lambda: agentrail_strategy(WRONG), "configured"),
        (lambda: configured(cast(Any, [1])), "as a mapping"),
        (lambda: configured({"triggerToken": 1}), "no option 'triggerToken'. Did you mean 'triggerTokens'"),
        (lambda: configured({"trigger_token": 1}), "Did you mean 'trigger_tokens'"),
        (lambda: configured({"reactive": {"microTrigerPct": 1}}), "Did you mean 'microTriggerPct'"),
        (lambda: summarizer(cast(Any, "x")), "a function of messages and a reason"),
        (lambda: Signals(tier=cast(Any, "big")), "tier of Signals cannot be 'big'"),
        (lambda: Signals(required_tools=cast(Any, "web-search")), "required_tools of Signals"),
        (lambda: transforming(cast(Any, "x"), name="mine"), "a function of messages"),
    ],
)
def test_what_is_of_another_type_is_refused_when_it_is_made(make: Callable[[], object], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        make()


def test_a_run_of_capitals_is_one_word() -> None:
    spelled = {"synthesisURL": 1, "baseURLPath": 2, "maxTokens": 3, "already_so": 4}
    assert list(snake_case(spelled)) == ["synthesis_url", "base_url_path", "max_tokens", "already_so"]
