from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lading.messages import Reasoning, Text, ToolCall, ToolResult, user_text
from lading.sources import RecordedUsage, open_tool
from tests.sources.written import read_all, read_one, write

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}}
SESSION: dict[str, Any] = {
    "id": "team/one",
    "dataset": "own",
    "model": "gpt-4o",
    "tools": None,
    "messages": [
        {"role": "system", "content": "Help."},
        {"role": "user", "content": "Read it.", "timestamp": 1763681630000},
        {"role": "assistant", "content": "", "reasoning_content": "Hm.", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "name": "read", "content": "No file.", "is_error": True},
        {"role": "assistant", "content": "It is missing."},
    ],
    "tools_observed": {"read": ["path", "limit"], "odd name": []},
}


def test_a_session(tmp_path: Path) -> None:
    recording = read_one(write(tmp_path, [SESSION]))
    assert (recording.id, recording.origin, recording.model) == ("team/one", "trajectories", "gpt-4o")
    assert recording.raw_indices == (0, 1, 2, 3, 4)
    assert [message.role for message in recording.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    asked = recording.messages[2]
    (call,) = asked.calls
    assert (call.id, call.name, call.arguments) == ("c1", "read", '{"path": "a.py"}')
    assert [part.text for part in asked.parts if isinstance(part, Reasoning)] == ["Hm."]
    (result,) = recording.messages[3].results
    assert (result.call_id, result.text, result.is_error) == ("c1", "No file.", True)
    assert recording.tools == (open_tool("read", ["path", "limit"]),)
    assert not recording.tools_recorded
    assert recording.times_s == (None, 1763681630.0, None, None, None)
    assert recording.usage == ()
    assert recording.params is None


def test_what_is_not_openais_is_no_part_of_the_message(tmp_path: Path) -> None:
    noisy = read_one(write(tmp_path, [SESSION]))
    plain = [
        {key: value for key, value in message.items() if key not in ("is_error", "timestamp")}
        for message in SESSION["messages"]
    ]
    clean = read_one(write(tmp_path, [{**SESSION, "messages": plain}]))
    assert noisy.messages[:3] == clean.messages[:3]
    assert noisy.messages[3].template == clean.messages[3].template


def test_recorded_schemas(tmp_path: Path) -> None:
    tool = {"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": SCHEMA}}
    recording = read_one(write(tmp_path, [{**SESSION, "tools": [tool]}]))
    ((name, description, schema, synthetic),) = [
        (tool.name, tool.description, tool.schema, tool.synthetic) for tool in recording.tools
    ]
    assert (name, description, schema, synthetic) == ("read", "Reads.", SCHEMA, False)
    assert recording.tools_recorded


@pytest.mark.parametrize(
    "tools", [[], "read", [{"type": "function", "function": {"name": "x", "parameters": 5}}, 7]]
)
def test_tools_that_are_none_leave_the_observed_ones(tmp_path: Path, tools: Any) -> None:
    recordings, problems = read_all(write(tmp_path, [{**SESSION, "tools": tools}]))
    assert [tool.name for tool in recordings[0].tools] == ["read"]
    assert not recordings[0].tools_recorded
    assert len(problems) == {0: 0, 4: 1, 2: 2}[len(tools)]


def test_names_alone_were_observed(tmp_path: Path) -> None:
    recording = read_one(write(tmp_path, [{**SESSION, "tools_observed": ["read", "Bash"]}]))
    assert recording.tools == (open_tool("read"), open_tool("Bash"))
    assert all(tool.synthetic for tool in recording.tools)


def test_usage_in_both_shapes(tmp_path: Path) -> None:
    usage = [
        {
            "message_index": 2,
            "model": "m",
            "timestamp": 1763681640000,
            "input": 3,
            "output": 9,
            "cacheRead": 5,
        },
        {"message_index": 4, "msg_id": "x", "input_tokens": 4, "cache_creation_input_tokens": 6},
        {"message_index": 4, "input_tokens": 0},
    ]
    recording = read_one(write(tmp_path, [{**SESSION, "usage": usage}]))
    assert recording.usage == (
        RecordedUsage(2, "m", 3, 9, cache_read_tokens=5, at_s=1763681640.0),
        RecordedUsage(4, input_tokens=4, cache_write_tokens=6),
    )
    assert recording.times_s == (None, 1763681630.0, 1763681640.0, None, None)


@pytest.mark.parametrize("usage", [7, [3], [{"message_index": 5, "input": 1}], [{"message_index": True}], [{}]])
def test_usage_that_names_no_message_is_reported(tmp_path: Path, usage: Any) -> None:
    recordings, problems = read_all(write(tmp_path, [{**SESSION, "usage": usage}]))
    assert recordings[0].usage == ()
    assert [problem.line for problem in problems] == [1]


@pytest.mark.parametrize("bad", [None, 3, {}, {"role": "wizard", "content": "x"}, {"role": "user", "content": 5}])
def test_a_bad_message_costs_only_itself(tmp_path: Path, bad: Any) -> None:
    messages = list(SESSION["messages"])
    messages.insert(1, bad)
    recordings, problems = read_all(write(tmp_path, [SESSION, {**SESSION, "id": "b", "messages": messages}]))
    assert recordings[1].raw_indices == (0, 2, 3, 4, 5)
    assert recordings[1].messages == recordings[0].messages
    ((line, text),) = [(problem.line, problem.text) for problem in problems]
    assert line == 2
    assert "messages.1" in text


def test_lines_that_are_no_session(tmp_path: Path) -> None:
    lines = [SESSION, 3, {"id": "x"}, {"id": "y", "messages": []}, {**SESSION, "id": "z"}]
    recordings, problems = read_all(write(tmp_path, lines))
    assert [recording.id for recording in recordings] == ["team/one", "z"]
    assert [problem.line for problem in problems] == [2, 3, 4]


def test_other_agents_speak_as_users(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "name": "human", "content": "Find it."},
        {"role": "assistant", "name": "Lead", "content": "Search."},
        {"role": "assistant", "name": "Searcher", "content": "Found."},
    ]
    session: dict[str, Any] = {"id": "w", "messages": messages, "tools": None, "tools_observed": {}}
    recording = read_one(write(tmp_path, [session]))
    assert recording.messages == tuple(
        user_text(text) for text in ("human: Find it.", "Lead: Search.", "Searcher: Found.")
    )


def test_empty_results_and_repeated_call_ids_stay_as_they_are(tmp_path: Path) -> None:
    answer = {"role": "tool", "tool_call_id": "c1", "content": ""}
    asking = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    messages = [{"role": "user", "content": "go"}, asking, answer, asking, answer]
    recording = read_one(write(tmp_path, [{"id": "r", "messages": messages}]))
    assert [[call.id for call in message.calls] for message in recording.messages] == [
        [],
        ["c1"],
        [],
        ["c1"],
        [],
    ]
    assert [result.text for message in recording.messages for result in message.results] == ["", ""]


def test_arguments_keep_their_text(tmp_path: Path) -> None:
    broken = {"id": "c", "type": "function", "function": {"name": "run", "arguments": '{"cmd": "ls'}}
    messages = [{"role": "user", "content": "\ud83d lone"}, {"role": "assistant", "tool_calls": [broken]}]
    recording = read_one(write(tmp_path, [{"id": "r", "messages": messages}]))
    (part,) = recording.messages[0].parts
    assert isinstance(part, Text)
    assert part.text == "\ud83d lone"
    (call,) = recording.messages[1].parts
    assert isinstance(call, ToolCall)
    assert call.arguments == '{"cmd": "ls'


def test_only_results_are_marked_as_errors(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "go", "is_error": True}]
    recording = read_one(write(tmp_path, [{"id": "r", "messages": messages}]))
    assert not any(isinstance(part, ToolResult) for part in recording.messages[0].parts)
    assert recording.messages[0].text == "go"
