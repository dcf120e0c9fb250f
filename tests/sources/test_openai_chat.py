from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lading.sources import RecordedUsage
from tests.sources.written import read_all, read_one, write

BODY: dict[str, Any] = {
    "model": "gpt-4.1",
    "temperature": 0.5,
    "messages": [{"role": "system", "content": "Help."}, {"role": "user", "content": "Hi."}],
}
REPLY = {
    "id": "chatcmpl-1",
    "created": 1763681630,
    "model": "gpt-4.1-2025",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}}],
    "usage": {"prompt_tokens": 12, "completion_tokens": 2},
}


def test_a_body_as_json_and_as_json_lines(tmp_path: Path) -> None:
    recording = read_one(write(tmp_path, json.dumps(BODY, indent=2).encode(), name="one.json"))
    assert (recording.id, recording.origin, recording.model) == ("one", "openai_chat", "gpt-4.1")
    assert [message.role for message in recording.messages] == ["system", "user"]
    assert recording.raw_indices == (0, 1)
    assert recording.times_s == (None, None)
    assert recording.params is not None
    assert recording.params["temperature"] == 0.5
    recordings, problems = read_all(write(tmp_path, [BODY, BODY], name="two.jsonl.gz"))
    assert problems == []
    assert [item.id for item in recordings] == ["two", "two-2"]
    assert all(item.messages == recording.messages for item in recordings)


def test_a_bare_message_list(tmp_path: Path) -> None:
    messages = BODY["messages"]
    recording = read_one(write(tmp_path, json.dumps(messages).encode(), name="list.json"))
    assert [message.text for message in recording.messages] == ["Help.", "Hi."]
    assert recording.model == ""
    recordings, _ = read_all(write(tmp_path, [messages, messages]))
    assert len(recordings) == 2


@pytest.mark.parametrize(
    "line",
    [
        {"request": BODY, "response": REPLY},
        {**BODY, "response": REPLY},
        {**REPLY, **BODY},
    ],
    ids=["request", "response", "choices"],
)
def test_the_reply_becomes_the_last_message(tmp_path: Path, line: Any) -> None:
    recording = read_one(write(tmp_path, [line]))
    assert [message.role for message in recording.messages] == ["system", "user", "assistant"]
    assert recording.messages[2].text == "Hello."
    assert recording.raw_indices == (0, 1, 2)
    assert [(usage.message_index, usage.input_tokens) for usage in recording.usage] == [(2, 12)]
    assert recording.times_s == (None, None, 1763681630.0)
    assert recording.model == "gpt-4.1"
    assert recording.params is not None
    assert set(recording.params) == set(BODY)


def test_a_bare_reply_and_replies_that_are_none(tmp_path: Path) -> None:
    reply = {"role": "assistant", "content": "Hello."}
    assert read_one(write(tmp_path, [{**BODY, "response": reply}])).messages[2].text == "Hello."
    nones: list[Any] = [None, "text", {}, {"choices": []}, {"choices": [{"message": 3}]}, {"role": "user"}]
    for none in nones:
        recording = read_one(write(tmp_path, [{"request": BODY, "response": none}]))
        assert len(recording.messages) == 2
        assert recording.usage == ()


def test_a_record_may_have_an_id(tmp_path: Path) -> None:
    recordings, _ = read_all(write(tmp_path, [{"id": "x", "request": BODY}, {"id": 5, "request": BODY}]))
    assert [recording.id for recording in recordings] == ["x", "session"]


def test_the_model_of_the_reply_when_the_request_names_none(tmp_path: Path) -> None:
    recording = read_one(write(tmp_path, [{"messages": BODY["messages"], "response": REPLY}]))
    assert recording.model == "gpt-4.1-2025"
    assert recording.usage == (RecordedUsage(2, "gpt-4.1-2025", 12, 2, at_s=1763681630.0),)


def test_tools_of_the_body_are_recorded(tmp_path: Path) -> None:
    tool = {"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}
    recording = read_one(write(tmp_path, [{**BODY, "tools": [tool]}]))
    assert [(item.name, item.synthetic) for item in recording.tools] == [("run", False)]
    assert recording.tools_recorded
    recordings, problems = read_all(write(tmp_path, [{**BODY, "tools": [3, tool]}]))
    assert [item.name for item in recordings[0].tools] == ["run"]
    assert len(recordings[0].messages) == 2
    assert [problem.line for problem in problems] == [1, 1]


def test_damage_costs_only_itself(tmp_path: Path) -> None:
    bad = {**BODY, "messages": [*BODY["messages"], {"role": "wizard", "content": "x"}]}
    lines = [bad, '{"messages": [', 3, {"messages": []}, {"request": 3}, BODY]
    recordings, problems = read_all(write(tmp_path, lines))
    assert [len(recording.messages) for recording in recordings] == [2, 2]
    assert [problem.line for problem in problems] == [1, 2, 3, 4, 5]
    assert "messages.2" in problems[0].text


def test_named_agents(tmp_path: Path) -> None:
    messages = [
        {"role": "assistant", "name": "a", "content": "x"},
        {"role": "assistant", "content": "y"},
    ]
    recording = read_one(write(tmp_path, [messages]))
    assert [(message.role, message.text) for message in recording.messages] == [
        ("user", "a: x"),
        ("assistant", "y"),
    ]
