"""A replay sends the system messages that the recorded requests sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lading.audit.snapshots import load_trail as stored_record
from lading.audit.why import why
from lading.economics import Rates
from lading.evaluate.bill_reconciliation import compare_bills
from lading.evaluate.inspection import inspect_recording
from lading.evaluate.plan import PlanOptions, plan_replay
from lading.evaluate.replay import ReplayedCall, replay
from lading.evaluate.session_runs import make_counter, prepare_session, run_arm, run_strategy, show_everything
from lading.messages import Message
from lading.sources import RecordedRequest, RecordedUsage, Recording
from lading.stores.memory import MemoryStore
from tests.evaluate.contests import ticking
from tests.evaluate.sessions import recorded, said

RATES = Rates(0.1, 1.25)


def conversation(*clocks: str, words: int = 40, model: str = "gpt-4o") -> Recording:
    """A call for each system prompt; each request states its own."""
    prompts = [said("system", f"The time is {clock}. " + "Rule. " * words) for clock in clocks]
    messages: list[Message] = [prompts[0]]
    requests: list[RecordedRequest] = []
    for at, prompt in enumerate(prompts):
        messages.append(said("user", f"Question {at}. " + "More. " * words))
        stated = None if not at or prompt == prompts[at - 1] else (prompt,)
        requests.append(RecordedRequest(len(messages), 0, (), None if stated is None else 0, stated))
        messages.append(said("assistant", f"Answer {at}."))
    return recorded(*messages, requests=tuple(requests), model=model)


def calls_of(recording: Recording, *, window: int | None = None, strategy: str = "basic") -> list[ReplayedCall]:
    plan, _ = plan_replay(recording, PlanOptions(strategy=strategy, window_tokens=window))
    return list(replay(recording, plan, session="s"))


def prompt_of(call: ReplayedCall) -> str:
    assert call.pack is not None
    body: dict[str, Any] = json.loads(call.pack.body)
    said = body["system"] if "system" in body else body["messages"][0]["content"]
    return str(said if isinstance(said, str) else said[0]["text"])


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5"])
@given(clocks=st.lists(st.sampled_from("ABC"), min_size=1, max_size=8))
def test_each_request_has_the_prompt_of_its_call(model: str, clocks: list[str]) -> None:
    calls = calls_of(conversation(*clocks, model=model))
    assert [prompt_of(call).split()[3] for call in calls] == [f"{clock}." for clock in clocks]


def test_a_changed_prompt_is_a_cache_miss_of_the_strategy_and_of_everything_sent() -> None:
    calls = calls_of(conversation("10:00", "10:00", "10:01", "10:01", words=1_500), strategy="append-only")
    assert [call.append_only.read_tokens > 0 for call in calls] == [False, True, False, True]
    assert [call.billed for call in calls] == [call.append_only for call in calls]
    assert [call.edits for call in calls] == [()] * 4


@pytest.mark.parametrize("strategy", ["basic", "priced"])
def test_a_window_that_overflows_keeps_the_newest_prompt(strategy: str) -> None:
    clocks = [f"{at:02}" for at in range(20)]
    calls = calls_of(conversation(*clocks, words=100), window=1_500, strategy=strategy)
    assert [prompt_of(call).split()[3] for call in calls] == [f"{clock}." for clock in clocks]
    assert any(call.edits for call in calls)


def test_what_the_last_prompt_said_is_in_the_log_and_rebuilds() -> None:
    recording = conversation("10:00", "10:01", "10:02")
    last = RecordedRequest(len(recording.messages), 0, (), 0, (said("system", "The time is 10:03."),))
    recording = replace(recording, requests=(*recording.requests, last))
    plan, _ = plan_replay(recording, PlanOptions())
    store = MemoryStore()
    list(replay(recording, plan, session="s", store=store))
    verdicts = [why(store, f"is 10:0{at}", tenant="default", session="s").verdict for at in range(5)]
    assert verdicts == ["removed", "removed", "present", "later", "never"]
    assert len(stored_record(store, tenant="default", session="s").edits) == 3


@given(clocks=st.lists(st.sampled_from("ABC"), min_size=1, max_size=6))
def test_comparison_and_inspection_bill_what_the_replay_bills(clocks: list[str]) -> None:
    recording = conversation(*clocks)
    plan, _ = plan_replay(recording, PlanOptions(strategy="basic"))
    plan = replace(plan, settings=replace(plan.settings, rates=RATES))
    calls = list(replay(recording, plan, session="s"))
    walked = prepare_session(recording, plan, name="s")
    arm = list(run_arm(walked, show_everything, count=make_counter(walked), clock=ticking, bodies=range(9)))
    assert [step.usage for step in arm] == [call.append_only for call in calls]
    line = list(run_strategy(walked, "basic", rates=RATES, clock=ticking))
    assert (
        [step.body for step in line]
        == [call.pack and call.pack.body for call in calls]
        == [step.body for step in arm]
    )
    assert [step.voluntary_edits for step in line] == [len(call.edits) for call in calls]
    # What is judged of a request is judged by the log.
    assert all(step.shown[0] is walked.messages[0] for step in (*arm, *line))


def test_inspection_bills_the_misses_of_changed_prompts() -> None:
    recording = conversation("10:00", "10:00", "10:01", "10:02 and a half", words=1_500)
    sent = inspect_recording(recording, PlanOptions()).found.append_only
    calls = calls_of(recording)
    assert sent.input.tokens == sum(call.append_only.tokens for call in calls)
    assert sent.input.read_tokens == calls[1].append_only.read_tokens > 0


def bills(calls: list[ReplayedCall]) -> Iterator[RecordedUsage]:
    """What a provider bills that caches as the simulation does."""
    for call in calls:
        read = call.append_only.read_tokens
        yield RecordedUsage(call.upto, "gpt-4o", call.append_only.tokens - read, cache_read_tokens=read)


def test_a_miss_that_the_simulation_has_too_is_no_difference() -> None:
    recording = conversation("10:00", "10:00", "10:01", "10:01", words=1_500)
    recording = replace(recording, usage=tuple(bills(calls_of(recording))))
    plan, _ = plan_replay(recording, PlanOptions(strategy="basic"))
    found = compare_bills(recording, plan, replays={"basic": list(replay(recording, plan, session="s"))})
    assert found is not None
    assert [part for part in found.differences if part.part == "missed"] == []
    assert found.recorded.cost == pytest.approx(found.simulated["append-only"].cost)
