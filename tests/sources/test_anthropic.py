from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lading.sources import RecordedUsage, source
from tests.sources.written import read_all, read_one, write

BODY: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 100,
    "system": "Help.",
    "tools": [{"name": "run", "description": "Runs.", "input_schema": {"type": "object"}}],
    "messages": [
        {"role": "user", "content": "Go."},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
                {"type": "tool_use", "id": "t1", "name": "run", "input": {"cmd": "ls"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "a.py", "is_error": True},
                {"type": "text", "text": "And?"},
            ],
        },
    ],
}
REPLY = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": "Done."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 50},
}


def test_a_body(tmp_path: Path) -> None:
    recording = read_one(write(tmp_path, [BODY], name="call.jsonl.gz"))
    assert (recording.id, recording.origin, recording.model) == ("call", "anthropic", "claude-sonnet-4-5")
    assert [message.role for message in recording.messages][:3] == ["system", "user", "assistant"]
    assert recording.raw_indices[:3] == (-1, 0, 1)
    assert set(recording.raw_indices[3:]) == {2}
    assert [call.id for call in recording.messages[2].calls] == ["t1"]
    (result,) = [result for message in recording.messages for result in message.results]
    assert (result.call_id, result.text, result.is_error) == ("t1", "a.py", True)
    assert [(tool.name, tool.schema) for tool in recording.tools] == [("run", {"type": "object"})]
    assert recording.tools_recorded
    assert recording.params is not None
    assert recording.params["max_tokens"] == 100
    assert len(recording.times_s) == len(recording.messages)


def test_the_reply_becomes_the_last_message(tmp_path: Path) -> None:
    recording = read_one(write(tmp_path, [{"request": BODY, "response": REPLY}]))
    last = recording.messages[-1]
    assert (last.role, last.text) == ("assistant", "Done.")
    assert recording.raw_indices[-1] == 3
    assert recording.usage == (RecordedUsage(3, "claude-sonnet-4-5", 5, 2, cache_read_tokens=50),)


def test_a_bare_list(tmp_path: Path) -> None:
    recording = read_one(write(tmp_path, [BODY["messages"]]))
    assert recording.origin == "anthropic"
    assert recording.raw_indices[0] == 0


def test_bad_fields_cost_only_themselves(tmp_path: Path) -> None:
    bad = {**BODY, "tools": [3, *BODY["tools"]], "messages": [3, *BODY["messages"], {"role": "wizard"}]}
    recordings, problems = read_all(write(tmp_path, [bad, 7, {**BODY, "system": 5}]))
    assert [tool.name for tool in recordings[0].tools] == ["run"]
    assert recordings[0].raw_indices[0] == 1
    assert [problem.line for problem in problems] == [1, 1, 1, 1, 2, 3]
    assert recordings[1].raw_indices[0] == 0
    assert recordings[1].tools_recorded


MESSAGES = [{"role": "user", "content": "Go."}]
CHAT = {"role": "system", "content": "Help."}


@pytest.mark.parametrize(
    ("value", "is_anthropic"),
    [
        (BODY, True),
        ({"messages": MESSAGES, "system": "x"}, True),
        ({"messages": MESSAGES, "tools": [3, {"name": "a", "input_schema": {}}]}, True),
        ({"messages": MESSAGES, "model": "claude-x", "max_tokens": 5}, True),
        ({"request": {"messages": MESSAGES}, "response": REPLY}, True),
        ({"messages": MESSAGES, "model": "claude-x"}, False),
        ({"messages": [CHAT, *MESSAGES], "model": "anthropic/claude-x", "max_tokens": 5}, False),
        ({"messages": MESSAGES, "model": "claude-x", "max_tokens": 5, "tools": [{"function": {}}]}, False),
        ({"messages": [{"role": "tool", "content": "x"}], "system": "x"}, False),
        ({"messages": [{"role": ["odd"], "content": [{"type": {}}]}]}, False),
        ({"messages": MESSAGES}, False),
        ({"messages": 3}, False),
        (3, False),
    ],
)
def test_what_is_recognised(value: Any, is_anthropic: bool) -> None:
    assert source("anthropic").recognises([value]) is is_anthropic
