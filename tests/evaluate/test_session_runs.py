from __future__ import annotations

import pytest
from msgspec.structs import replace

from lading.budget import Budget
from lading.compaction import Arrival, Compaction, Pressure, Strategy
from lading.economics import Rates, Usage
from lading.effects import Summarizer, Summary
from lading.errors import InputError
from lading.evaluate.plan import PlanOptions, plan_replay
from lading.evaluate.replay import replay
from lading.evaluate.session_runs import (
    RunCall,
    SummaryTokens,
    make_arm_input,
    make_counter,
    prepare_session,
    run_arm,
    run_strategy,
    show_everything,
)
from lading.history.log import Draft
from lading.messages import Message, Text, ToolCall
from lading.sources import open_tool
from tests.evaluate.contests import ORPHAN, SHORT, TAIL, rounds, session, ticking
from tests.evaluate.sessions import asks, gives, recorded, said
from tests.histories import tool_loop

RATES = Rates(0.1, 1.25)


def in_full(*messages: Message) -> list[RunCall]:
    walked = session(*messages)
    return list(run_arm(walked, show_everything, count=make_counter(walked), clock=ticking))


def test_calls_are_the_assistant_messages_after_the_first_user_message() -> None:
    walked = session(said("system", "s"), said("assistant", "hello"), said("user", "a"), said("assistant", "b"))
    assert (walked.calls, walked.raw_calls) == ((3,), (3,))


def test_what_is_mended_at_the_border_moves_the_calls() -> None:
    history = (said("user", "go"), asks(("1", "read", "{}")), said("assistant", "x"), said("assistant", "y"))
    walked = session(*history)
    assert walked.raw_calls == (1, 2, 3)
    assert walked.calls == (1, 3, 4)
    assert [walked.messages[at] for at in walked.calls] == [history[at] for at in walked.raw_calls]


def test_the_tools_of_a_call_are_those_known_by_then() -> None:
    walked = session(*rounds(1), tools=(open_tool("shell"),))
    assert [[tool.name for tool in tools] for tools in walked.tools] == [["shell"], ["shell", "read"]]


def test_the_yardstick_is_the_one_of_a_replay() -> None:
    walked = session()
    calls = list(replay(walked.recording, walked.plan, session="s"))
    steps = in_full()
    assert [step.usage for step in steps] == [call.append_only for call in calls]
    assert [step.tokens for step in steps] == [call.append_only_tokens for call in calls]


@pytest.mark.parametrize("window", [150, 400])
def test_a_strategy_walks_as_it_replays(window: int) -> None:
    walked = session()
    settings = replace(walked.plan.settings, budget=Budget(window, 0, 0), rates=RATES, strategy="basic")
    plan = replace(walked.plan, settings=settings)
    calls = list(replay(walked.recording, plan, session="s"))
    steps = list(run_strategy(replace(walked, plan=plan), "basic", rates=RATES, clock=ticking))
    assert [step.usage for step in steps] == [call.billed for call in calls]
    assert [step.forced_edits + step.voluntary_edits for step in steps] == [len(call.edits) for call in calls]
    assert [step.seconds for step in steps] == [1.0] * len(steps)


def reshape(arrival: Arrival, pressure: Pressure) -> Draft | None:
    """Every result in capitals, as if that said the same."""
    message, entry = arrival.item.message, arrival.item.entry
    if not message.results:
        return None
    shout = tuple(replace(result, parts=(Text(result.text.upper()),)) for result in message.results)
    return Draft("reshaped", entry, entry, (message.with_parts(shout),), "shout", (pressure.address(str(entry)),))


SHOUTING = Strategy("shouting", lambda _view, _pressure: Compaction(), reshape)


def test_what_a_strategy_reshapes_is_told_with_what_it_was() -> None:
    walked = session()
    steps = list(run_strategy(walked, "tests.evaluate.test_session_runs:SHOUTING", rates=RATES, clock=ticking))
    results = [message for message in walked.messages if message.results]
    assert [said for step in steps for _, said in step.reshaped] == results
    assert [len(step.reshaped) for step in steps] == [0, *[1] * 8]
    assert all(shown in step.shown for step in steps for shown, _ in step.reshaped)


def test_a_call_without_a_request_shows_nothing() -> None:
    walked = session(said("user", "word " * 300_000), said("assistant", "x"))
    (step,) = run_strategy(walked, "basic", rates=RATES, clock=ticking)
    assert step == RunCall((), 0, None, seconds=1.0)


def test_an_arm_is_billed_for_what_it_shows() -> None:
    walked = session()
    steps = list(run_arm(walked, TAIL.show, count=make_counter(walked), clock=ticking))
    assert [len(step.shown) for step in steps] == [1, *[3] * 8]
    assert not any(step.broken_rules for step in steps)
    first, second, third = steps[:3]
    assert first.usage == Usage(written_tokens=first.tokens)
    assert second.usage == Usage(read_tokens=first.tokens, written_tokens=second.tokens - first.tokens)
    assert third.usage == Usage(read_tokens=first.tokens, written_tokens=third.tokens - first.tokens)
    assert [step.own for step in steps[:3]] == [SummaryTokens(), SummaryTokens(), SummaryTokens(10, 2, 1)]
    assert steps[2].own.cost(RATES) == 1.0 + 2.0 + 5.0


def test_own_calls_of_a_strategy_are_charged_as_they_were_read() -> None:
    whom = Summarizer(lambda _request: Summary("Goal: go on", 900, 10, read_tokens=700, written_tokens=150))
    recording = recorded(*tool_loop(150, result_words=80))
    plan, _ = plan_replay(recording, PlanOptions(window_tokens=6_000, counter="estimate", summarizer=whom))
    walked = prepare_session(recording, plan, name="s")
    steps = run_strategy(walked, "priced", rates=RATES, clock=ticking)
    own = next(step.own for step in steps if step.own != SummaryTokens())
    assert own == SummaryTokens(700, 50, 10, 150)
    assert own.cost(RATES) == pytest.approx(700 * RATES.read + 50 + 150 * RATES.write + 10 * 5.0)


def test_an_arm_is_checked() -> None:
    walked = session()
    steps = list(run_arm(walked, ORPHAN.show, count=make_counter(walked), clock=ticking))
    assert all("C2" in step.broken_rules for step in steps)


def test_an_arm_owes_a_request_for_each_call() -> None:
    walked = session()
    with pytest.raises(InputError, match="gave 1 requests for 9 calls"):
        list(run_arm(walked, SHORT.show, count=make_counter(walked), clock=ticking))


def test_the_case_of_an_arm_leaves_room_for_the_tools() -> None:
    walked = session(*rounds(1), tools=(open_tool("shell"),))
    count = make_counter(walked)
    case = make_arm_input(walked, count=count)
    assert case.window_tokens == walked.plan.settings.budget.window_tokens
    assert case.window_tokens - case.room_tokens == walked.plan.settings.meter.count_tools(walked.tools[-1]) > 0
    assert case.count(gives("1", "a b")) == case.count(gives("1", "a")) + 1


def test_times_make_caches_cool() -> None:
    history = (said("user", "a"), said("assistant", "b"), said("user", "c"), said("assistant", "d"))
    walked = session(*history, times_s=(0.0, 1.0, 2.0, 9.0))
    read = []
    for ttl_s in (5.0, 20.0):
        plan = replace(walked.plan, settings=replace(walked.plan.settings, cache_ttl_s=ttl_s))
        steps = run_arm(replace(walked, plan=plan), show_everything, count=make_counter(walked), clock=ticking)
        read.append([step.usage.read_tokens > 0 for step in steps if step.usage])
    assert read == [[False, False], [False, True]]
    assert walked.at_s(1) == 9.0


def test_a_message_is_counted_as_the_wire_writes_it() -> None:
    walked = session()
    message = Message("assistant", (ToolCall("c", "read", "{}"),))
    assert (
        make_counter(walked)(message)
        == make_counter(walked)(message)
        == walked.plan.settings.meter.count_message(message)
    )
