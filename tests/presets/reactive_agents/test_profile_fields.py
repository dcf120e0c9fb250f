"""Each field of a context profile changes a request of a session, or a prompt where it is about words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import lading
from lading.compaction import Compaction, Pressure, Strategy
from lading.effects import Summarizer
from lading.errors import InputError
from lading.events import ContextSynthesized, ToolsReduced
from lading.history.view import View
from lading.messages import Message, Tool, ToolCall, user_text
from lading.models.profiles import CONTEXT_PROFILES, Profile, ProfileLike, context_profile
from lading.presets.reactive_agents.context import ContextInput, build_context
from lading.presets.reactive_agents.progressive import LOCAL, progressive
from lading.presets.reactive_agents.scoring import MemoryItem
from lading.presets.reactive_agents.steps import steps_of
from lading.presets.reactive_agents.synthesis import synthesis
from lading.presets.reactive_agents.synthesis_options import SynthesisConfig, SynthesisMode
from lading.presets.reactive_agents.synthesis_signals import Signals
from lading.settings import apply_profile, settings_for
from lading.stores.memory import MemoryStore
from tests.histories import answered, called

TOOLS = (
    Tool("read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),
    Tool("shell", "Runs a command."),
)


def profile(overrides: Mapping[str, Any]) -> Profile:
    """A profile of the mid tier, with these fields."""
    return context_profile("", {"tier": "mid", **overrides})


def rounds(count: int, *, words: int = 40) -> list[Message]:
    """A task, and rounds of a call and its result: two steps each."""
    history = [user_text("Do the task.")]
    for number in range(count):
        call = Message("assistant", (ToolCall(f"c{number}", "read", json.dumps({"path": f"f{number}"})),))
        history += [call, answered(f"c{number}", f"result {number} " + "word " * words)]
    return history


def sent(
    overrides: Mapping[str, Any],
    *,
    strategy: str = "reactive_agents/progressive",
    history: Sequence[Message] = (),
    window: int = 20_000,
) -> dict[str, Any]:
    """The last request of a session that keeps to a profile."""
    options = lading.SessionOptions(profile=profile(overrides), strict=True)
    with lading.Session(
        "gpt-4o", strategy=strategy, window=window, output_reserve=0, wire="openai_chat", options=options
    ) as session:
        session.add(list(history or rounds(8)))
        request: dict[str, Any] = session.pack(TOOLS).request
        return request


def texts(request: Mapping[str, Any]) -> list[str]:
    return [str(message.get("content") or "") for message in request["messages"]]


def whole_results(request: Mapping[str, Any]) -> int:
    return sum(text.startswith("result ") for text in texts(request))


def test_tier_names_the_numbers_of_whatever_goes_by_it() -> None:
    history = rounds(10)
    local, frontier = (
        sent({"tier": tier}, strategy="reactive_agents/synthesis_fast", history=history)
        for tier in ("local", "frontier")
    )
    assert (whole_results(local), whole_results(frontier)) == (2, 8)
    local, frontier = (sent({"tier": tier}, history=history) for tier in ("local", "frontier"))
    assert whole_results(local) < whole_results(frontier)


def test_compact_after_steps_says_when_compaction_begins_and_how_many_have_a_line() -> None:
    history = rounds(8)
    assert whole_results(sent({"compactAfterSteps": 16}, history=history)) == 8
    begun = sent({"compactAfterSteps": 15}, history=history)
    assert whole_results(begun) < 8
    fewer = sent({"compactAfterSteps": 6}, history=history)
    assert texts(begun)[1].count("\nObservation: ") > texts(fewer)[1].count("\nObservation: ")


@pytest.mark.parametrize(("full", "kept"), [(2, 1), (6, 3), (10, 5)])
def test_full_detail_steps_says_how_many_stay_whole(full: int, kept: int) -> None:
    assert whole_results(sent({"fullDetailSteps": full})) == kept


def test_with_no_full_detail_steps_only_the_newest_block_stays_whole() -> None:
    request = sent({"fullDetailSteps": 0, "compactAfterSteps": 0})
    results = [message["content"] for message in request["messages"] if message["role"] == "tool"]
    assert len(results) == 1
    assert "result 7" in results[0]


def test_full_detail_steps_are_kept_before_scores_where_steps_are_scored() -> None:
    history = rounds(30)
    history[6] = answered("c2", "result 2 " + "penguins " * 20)
    history[0] = user_text("Count penguins.")
    few, many = (
        sent({"fullDetailSteps": full}, strategy="reactive_agents/scored", history=history, window=1_300)
        for full in (1, 25)
    )
    assert "penguins penguins" in "".join(texts(few))
    assert "penguins penguins" not in "".join(texts(many))


CAPPING = ["progressive", "scored", "synthesis", "synthesis_fast", "synthesis_deep"]


@pytest.mark.parametrize("strategy", [f"reactive_agents/{name}" for name in CAPPING])
@pytest.mark.parametrize("most", [300, 800, 2_500])
def test_tool_result_max_chars_bounds_each_result_by_levels_scores_and_synthesis(strategy: str, most: int) -> None:
    history = rounds(1, words=4_000)
    request = sent({"toolResultMaxChars": most}, strategy=strategy, history=history)
    (shown,) = (message["content"] for message in request["messages"] if message["role"] == "tool")
    assert most * 0.5 < len(shown) <= most


@pytest.mark.parametrize(
    "given",
    ["local", {"tier": "local", "toolResultMaxChars": 400}, {"tier": "local", "tool_result_max_chars": 400}],
)
def test_a_profile_by_name_or_dict_of_either_spelling_is_what_a_strategy_sees(given: ProfileLike) -> None:
    seen: list[object] = []

    def compact(_view: View, pressure: Pressure) -> Compaction:
        seen.append(pressure.tier)
        return Compaction()

    def with_profile(chosen: Profile) -> Strategy:
        seen.append(chosen)
        return Strategy("mine", compact)

    mine = Strategy("mine", compact, with_profile=with_profile)
    with lading.Session("claude-opus-4-1", strategy=mine, options=lading.SessionOptions(profile=given)) as session:
        session.add("Go.")
        session.pack()
    assert seen == [CONTEXT_PROFILES["local"], "local"]


@pytest.mark.parametrize("mode", ["auto", "fast", "deep", "off"])
def test_synthesis_takes_a_profile_by_name_or_fields(mode: SynthesisMode) -> None:
    def shown(given: ProfileLike | None) -> int:
        chosen = synthesis(SynthesisConfig(mode), profile=given)
        with lading.Session("claude-sonnet-4-5", strategy=chosen) as session:
            session.add(rounds(1, words=4_000))
            return len(session.pack(TOOLS).request["messages"][-1]["content"][0]["content"])

    assert shown(None) > 20_000
    assert 200 < shown("local") <= 400
    assert 800 < shown({}) <= 1_200
    assert 500 < shown({"toolResultMaxChars": 1_000}) <= 1_000
    with pytest.raises(InputError, match="no tier 'huge'"):
        synthesis(profile={"tier": "huge"})


def test_max_iterations_of_a_profile_is_what_synthesis_counts_to() -> None:
    """Of the ten of the tier five would not be late."""
    signals = Signals(required_tools=("write",))
    chosen = synthesis(SynthesisConfig("auto"), signals, profile={"tier": "mid", "maxIterations": 8})
    with lading.Session("gpt-4o-mini", strategy=chosen, summarizer=Summarizer(lambda _asked: "{}")) as session:
        session.add(rounds(5))
        (event,) = (event for event in session.pack(TOOLS).events if isinstance(event, ContextSynthesized))
    assert event.reason.startswith("tools are missing after 5 of 8 iterations")


def built(overrides: Mapping[str, Any], **given: Any) -> str:
    """A prompt of the last iteration, in which there is much to tell."""
    history = [message for n in range(10) for message in (called(f"c{n}"), answered(f"c{n}"))]
    options: dict[str, Any] = {"task": "T", "iteration": 9, "steps": steps_of(history), "tool_schemas": TOOLS}
    options |= given
    return build_context(ContextInput(profile=profile(overrides), **options)).text


def test_rules_complexity_says_how_the_rules_are_told() -> None:
    simple, standard, detailed = (
        built({"rulesComplexity": level}) for level in ("simplified", "standard", "detailed")
    )
    assert "1. Act once in a turn." in simple
    assert "1. Take one action in each turn and wait for its result." in standard
    assert "sub-agent" in detailed
    assert "sub-agent" not in standard


def test_prompt_verbosity_says_how_much_is_explained() -> None:
    memories = (MemoryItem("known", 1.0),)
    minimal, standard, full = (
        built({"promptVerbosity": level}, memory_items=memories) for level in ("minimal", "standard", "full")
    )
    assert "Answer now." in minimal
    assert "The run ends soon" in standard
    assert "Memories are background" in full
    assert "Memories are background" not in standard


@pytest.mark.parametrize(
    ("detail", "description", "parameters"),
    [
        ("names-only", None, {"type": "object"}),
        ("names-and-types", None, {"type": "object", "properties": {"path": {"type": "string"}}}),
        ("full", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),
    ],
)
@pytest.mark.parametrize("strategy", ["priced", "reactive_agents/progressive", "append-only"])
def test_tool_schema_detail_says_what_a_request_tells_of_each_tool(
    strategy: str, detail: str, description: str | None, parameters: dict[str, Any]
) -> None:
    tools = sent({"toolSchemaDetail": detail}, strategy=strategy)["tools"]
    read = next(tool["function"] for tool in tools if tool["function"]["name"] == "read")
    assert (read.get("description") or None) == description
    assert read["parameters"] == parameters


def test_few_shot_example_count_says_how_many_examples_are_told() -> None:
    examples = ("first example", "second example", "third example")
    for count in range(4):
        text = built({"fewShotExampleCount": count}, examples=examples)
        assert sum(example in text for example in examples) == count


def test_context_budget_percent_bounds_the_request_and_its_reply() -> None:
    tokens: list[int] = []
    for percent in (30, 60, 100):
        options = lading.SessionOptions(profile=profile({"contextBudgetPercent": percent}), strict=True)
        with lading.Session(
            "gpt-4o", strategy="basic", window=10_000, output_reserve=500, options=options
        ) as session:
            session.add(rounds(160))
            pack = session.pack(TOOLS)
            room = 10_000 * percent // 100 - 500 - session.settings.budget.margin_tokens
            assert pack.tokens + pack.manifest.counts["slack"] == room
            tokens.append(pack.tokens)
    assert tokens == sorted(set(tokens))


def test_what_usage_teaches_does_not_widen_the_share() -> None:
    options = lading.SessionOptions(profile=profile({"contextBudgetPercent": 30}), strict=True)
    with lading.Session("gpt-4o", strategy="basic", window=10_000, output_reserve=0, options=options) as session:
        session.add("Do the task.")
        for number in range(60):
            pack = session.pack(TOOLS)
            assert pack.tokens <= 3_000
            call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
            usage = {"prompt_tokens": pack.tokens, "completion_tokens": 5, "total_tokens": pack.tokens + 5}
            session.reply({"id": f"r{number}", "choices": [{"index": 0, "message": message}], "usage": usage})
            session.add(lading.tool_result(f"c{number}", f"result {number} " + "word " * 60))


def test_a_share_that_leaves_no_room_is_refused() -> None:
    options = lading.SessionOptions(profile=profile({"contextBudgetPercent": 20}))
    with pytest.raises(InputError, match="20 % of a window of 1000 tokens"):
        lading.Session("gpt-4o", window=1_000, output_reserve=200, options=options)


def test_max_iterations_is_what_a_prompt_counts_to() -> None:
    assert "[Iteration 10/40]" in built({"maxIterations": 40})
    assert "[Iteration 10/10] The run ends soon" in built({"maxIterations": 10})


def test_temperature_stands_in_no_request_unless_the_caller_puts_it_there() -> None:
    chosen = profile({"temperature": 0.3})
    with lading.Session("gpt-4o", options=lading.SessionOptions(profile=chosen)) as session:
        session.add("Hello.")
        assert "temperature" not in session.pack().request
        assert session.pack(fields={"temperature": chosen.temperature}).request["temperature"] == 0.3


def test_a_profile_holds_after_reopening_and_in_a_fork() -> None:
    options = lading.SessionOptions(
        profile=profile({"contextBudgetPercent": 50, "toolSchemaDetail": "names-only", "fullDetailSteps": 2})
    )
    store = MemoryStore()
    settings: dict[str, Any] = {
        "store": store,
        "strategy": "reactive_agents/progressive",
        "window": 20_000,
        "options": options,
    }
    with lading.Session("gpt-4o", **settings) as session:
        session.add(rounds(8))
        first = session.pack(TOOLS)
        with session.fork(rounds(8)) as fork:
            assert fork.settings.budget == session.settings.budget
            assert fork.pack().request["tools"] == first.request["tools"]
            assert whole_results(fork.pack().request) == 1
    with lading.Session("gpt-4o", **settings) as session:
        assert session.pack().body == first.body
        assert session.settings.budget.room_tokens < 10_000
    assert [outcome.problem for outcome in lading.verify(store, tenant="default", session="session")] == [""] * 2


def test_a_profile_that_is_chosen_later_reduces_the_tools_and_none_brings_them_back() -> None:
    store = MemoryStore()
    names = lading.SessionOptions(profile=profile({"toolSchemaDetail": "names-only"}))
    details: list[str] = []
    events: list[ToolsReduced] = []
    for options in (lading.SessionOptions(), names, lading.SessionOptions()):
        with lading.Session("gpt-4o", store=store, options=options) as session:
            session.add(f"Go on {len(details)}.")
            pack = session.pack(TOOLS)
            details.append(pack.manifest.tool_detail)
            events += [event for event in pack.events if isinstance(event, ToolsReduced)]
    assert [(event.call, event.detail) for event in events] == [(2, "names")]
    assert details == ["full", "names", "names"]
    assert [outcome.problem for outcome in lading.verify(store, tenant="default", session="session")] == [""] * 3


def test_a_strategy_with_numbers_of_its_own_keeps_them() -> None:
    few = profile({"compactAfterSteps": 3, "fullDetailSteps": 1})
    settings = settings_for(lading.find_card("gpt-4o")[0], strategy="reactive_agents/progressive")
    assert isinstance(apply_profile(settings, few).strategy, Strategy)
    assert apply_profile(settings, few).strategy_name == "reactive_agents/progressive"
    for own in (LOCAL, progressive(few)):
        chosen = settings_for(settings.card, strategy=own)
        assert apply_profile(chosen, profile({})).strategy is own
    assert apply_profile(settings_for(settings.card), few).strategy == "priced"


def test_without_a_profile_nothing_is_kept_out_of_use() -> None:
    budget = settings_for(lading.find_card("gpt-4o")[0]).budget
    assert budget.unused_tokens == 0
    assert budget.limit_tokens == budget.window_tokens - budget.output_reserve_tokens
