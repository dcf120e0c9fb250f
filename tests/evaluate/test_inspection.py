from __future__ import annotations

import math
from pathlib import Path

import pytest

from lading.errors import UnknownName
from lading.evaluate.inspection import Inspection, add_up, inspect_recording, summarize
from lading.evaluate.layers import TokenTotal
from lading.evaluate.plan import PlanOptions, plan_replay
from lading.evaluate.replay import replay
from lading.events import UnknownModel
from lading.messages import Message, Text, user_text
from lading.sources import RecordedUsage, Recording, open_tool, read
from lading.tokens.meter import MESSAGE_TOKENS, RESULT_TOKENS
from tests.evaluate.sessions import WORDS_COUNTER, asks, gives, recorded, said

BY_WORDS = PlanOptions(counter=WORDS_COUNTER)

SESSION = recorded(
    said("system", "be brief"),
    said("user", "read the file"),
    asks(("1", "read", '{"path":"a"}')),
    gives("1", "seven words stand in this one result"),
    said("assistant", "it is read"),
    said("user", "thanks"),
    usage=(RecordedUsage(2, input_tokens=10), RecordedUsage(4, input_tokens=20)),
)


def test_counts() -> None:
    counts = inspect_recording(SESSION, BY_WORDS).found.counts
    assert (counts.sessions, counts.messages, counts.turns, counts.rounds, counts.model_calls) == (1, 6, 2, 2, 2)
    roles = (counts.system_messages, counts.user_messages, counts.assistant_messages, counts.tool_messages)
    assert roles == (1, 2, 2, 1)


def test_a_message_of_results_alone_is_no_turn() -> None:
    results = Message("user", gives("1", "x").parts)
    both = Message("user", (*gives("2", "x").parts, Text("and this")))
    found = inspect_recording(recorded(said("user", "go"), results, both), BY_WORDS).found
    assert (found.counts.user_messages, found.counts.turns) == (3, 1)


def test_layers_say_what_is_there_and_what_is_sent() -> None:
    found = inspect_recording(SESSION, BY_WORDS).found
    layers = dict(found.layers)
    assert layers["system"] == TokenTotal(1, 2, 4)
    assert layers["user_text"] == TokenTotal(2, 4, 6)
    assert layers["assistant_text"] == TokenTotal(1, 3, 0)
    assert layers["tool_calls"] == TokenTotal(1, 2, 2)
    assert layers["tool_results"] == TokenTotal(1, 7 + RESULT_TOKENS, 7 + RESULT_TOKENS)
    assert layers["framing"] == TokenTotal(6, 6 * MESSAGE_TOKENS, (2 + 4) * MESSAGE_TOKENS)
    assert layers["tools"].items == 1
    assert layers["tools"].sent_tokens == 2 * layers["tools"].tokens > 0
    assert found.tokens == sum(mass.tokens for mass in layers.values())


def test_what_is_sent_is_what_is_billed() -> None:
    found = inspect_recording(SESSION, BY_WORDS).found
    assert sum(mass.sent_tokens for mass in found.layers.values()) == found.append_only.input.tokens


def test_append_only_is_the_yardstick_of_a_replay() -> None:
    recording = recorded(*SESSION.messages, tools=(open_tool("read"),), tools_recorded=True)
    found = inspect_recording(recording, BY_WORDS).found.append_only
    plan, _ = plan_replay(recording, BY_WORDS)
    calls = list(replay(recording, plan, session="s"))
    assert found.calls == len(calls)
    assert found.peak_tokens == calls[-1].append_only_tokens
    bill = sum((call.append_only for call in calls[1:]), calls[0].append_only)
    assert (found.input.read_tokens, found.input.written_tokens) == (bill.read_tokens, bill.written_tokens)


@pytest.mark.parametrize(
    ("fields", "origin"),
    [
        ({"tools": (open_tool("read"),), "tools_recorded": True}, "recorded"),
        ({"tools": (open_tool("read"),)}, "synthetic"),
        ({}, "synthetic"),
    ],
)
def test_where_the_tool_schemas_come_from_is_said(fields: dict[str, object], origin: str) -> None:
    assert inspect_recording(recorded(*SESSION.messages, **fields), BY_WORDS).setting.tools == origin


def test_the_setting() -> None:
    setting = inspect_recording(SESSION, PlanOptions(model="claude-sonnet-4-5", counter="cl100k")).setting
    assert (setting.model, setting.card) == ("claude-sonnet-4-5", "claude-sonnet-4-5")
    assert (setting.counter, setting.multiplier, setting.window_tokens) == ("cl100k", 1.0, 200_000)
    assert setting.wire == "openai_chat"


def test_an_unknown_model_is_an_event_and_a_counter_an_error() -> None:
    inspected = inspect_recording(recorded(said("user", "hi"), model="nobody-knows-it"), PlanOptions())
    assert inspected.setting.tools == "none"
    assert [type(event) for event in inspected.events] == [UnknownModel]
    with pytest.raises(UnknownName, match="no counter named 'sand'"):
        inspect_recording(SESSION, PlanOptions(counter="sand"))


def test_another_model_prices_what_was_billed() -> None:
    mini, full = (
        inspect_recording(SESSION, PlanOptions(model=name, counter=WORDS_COUNTER)).found.billed
        for name in ("gpt-4o-mini", "gpt-4o")
    )
    assert mini is not None
    assert full is not None
    assert 0 < mini.cost_usd < full.cost_usd


def test_the_check_is_made_when_asked_for() -> None:
    assert inspect_recording(SESSION, BY_WORDS).found.legality is None
    legality = inspect_recording(SESSION, BY_WORDS, check=True).found.legality
    assert legality is not None
    assert (legality.requests, legality.illegal_requests) == (2, 0)


def test_a_session_of_named_agents_without_a_user() -> None:
    talk = recorded(*(user_text(f"Expert_{number}: hello") for number in range(3)), model="various")
    summary = summarize(inspect_recording(talk, BY_WORDS, check=True).found, top=5)
    assert (summary["counts"].messages, summary["counts"].model_calls) == (3, 0)
    assert summary["append_only"].calls == summary["append_only"].peak_tokens == 0
    assert summary["tools"]["largest_results"] == ()


def test_inspections_add_up() -> None:
    one = inspect_recording(SESSION, BY_WORDS).found
    other = inspect_recording(recorded(said("user", "hi")), BY_WORDS, check=True).found
    both = add_up([one, other, one])
    assert both.tokens == 2 * one.tokens + other.tokens
    assert both.counts.sessions == 3
    assert both.legality == other.legality
    assert both.billed is not None
    assert one.billed is not None
    assert both.billed.input_tokens == 2 * one.billed.input_tokens
    assert [result.first_words for result in both.use.results] == ["seven words stand in this one result"] * 2
    assert add_up([one]) == one
    assert add_up([]) == Inspection()


def test_a_summary_is_cut_to_the_largest() -> None:
    results = [gives(str(number), "word " * number) for number in range(1, 6)]
    summary = summarize(inspect_recording(recorded(*results), BY_WORDS).found, top=2)
    assert [result.place.message_index for result in summary["tools"]["largest_results"]] == [4, 3]
    assert len(summary["tools"]["orphans"]) == 5
    assert [row.name for row in summary["tools"]["by_tool"]] == ["(no call)"]
    assert math.isclose(sum(row.share for row in summary["tools"]["by_content"]), 1.0)


def test_recorded_sessions(shared: Path) -> None:
    files = sorted((shared / "data").glob("*.jsonl.gz"))
    read_from = [file for file in files if not file.name.startswith(("locomo", "bfcl"))]
    recordings = [item for file in read_from for item in read(file) if isinstance(item, Recording)]
    assert len(recordings) == 215
    for recording in recordings:
        found = inspect_recording(recording, PlanOptions(), check=True).found
        assert found.counts.messages == len(recording.messages)
        assert sum(mass.sent_tokens for mass in found.layers.values()) == found.append_only.input.tokens
        assert found.append_only.calls_over_window == 0


def test_a_large_session_was_billed_far_above_append_only(shared: Path) -> None:
    (recording,) = read(shared / "data" / "pi_large_session.jsonl.gz")
    assert isinstance(recording, Recording)
    found = inspect_recording(recording, PlanOptions()).found
    assert found.billed is not None
    assert (found.counts.model_calls, found.billed.calls) == (439, 439)
    assert len(found.use.unanswered) == 18
    assert sum(result.is_error for result in found.use.results) == 19
    assert found.billed.cost_usd > 1.5 * (found.append_only.input_usd + found.append_only.output_usd)
