from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lading.errors import SourceError
from lading.messages import Opaque
from lading.sources import Problem, Recording, read
from tests.cli.commands import lading
from tests.sources.written import read_all, read_one, write

LINES: list[dict[str, Any]] = [
    {"role": "system", "content": "You are an agent."},
    {"role": "user", "content": "Read a.py."},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    ]},
    {"role": "nobody", "content": "?"},
    {"role": "tool", "tool_call_id": "c1", "content": "x = 1"},
]  # fmt: skip
SAMPLE = [line for line in LINES if line["role"] != "nobody"]


def test_one_message_a_line_is_one_session(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text("\n".join(map(json.dumps, LINES)))
    *problems, recording = read(path)
    assert isinstance(recording, Recording)
    assert recording.origin == "message_lines"
    assert [message.role for message in recording.messages] == ["system", "user", "assistant", "tool"]
    assert recording.raw_indices == (0, 1, 2, 4)
    assert [problem.line for problem in problems if isinstance(problem, Problem)] == [4]


def test_a_file_without_a_readable_message_says_so(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text('{"role": "user", "content": 7}')
    found = list(read(path))
    assert found
    assert all(isinstance(item, Problem) for item in found)


GO: dict[str, Any] = {"role": "user", "content": "Go."}
SYSTEM: dict[str, Any] = {"role": "system", "content": "Be brief."}
TEXT_BLOCK: dict[str, Any] = {"type": "text", "text": "I look."}
USE: dict[str, Any] = {"type": "tool_use", "id": "t", "name": "read", "input": {"path": "a.py"}}
RESULT: dict[str, Any] = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x = 1\n" * 50}],
}
DONE: dict[str, Any] = {"role": "assistant", "content": "Done."}
ANTHROPIC: list[dict[str, Any]] = [GO, {"role": "assistant", "content": [TEXT_BLOCK, USE]}, RESULT, DONE]
ENVELOPE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "model": "claude-sonnet-4-5",
    "stop_sequence": None,
    "usage": {},
}
CALL: dict[str, Any] = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
ANSWER: dict[str, Any] = {"role": "tool", "tool_call_id": "c1", "content": "x = 1"}
CHAT: list[dict[str, Any]] = [GO, {"role": "assistant", "content": None, "tool_calls": [CALL]}, ANSWER, DONE]
ITEMS: list[dict[str, Any]] = [
    GO,
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "read", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "x = 1"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
]
TYPED: dict[str, Any] = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]}
CONTENTS: list[dict[str, Any]] = [
    {"role": "user", "parts": [{"text": "Go."}]},
    {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "x = 1"}}}]},
    {"role": "model", "parts": [{"text": "Done."}]},
]
SMALL_TALK: list[dict[str, Any]] = [GO, DONE] * 40
NULLS: dict[str, Any] = {"inline_data": None, "thought": None}
NULL_CONTENTS: list[dict[str, Any]] = [
    {"role": "user", "parts": [{"text": "Go.", **NULLS}]},
    {
        "role": "model",
        "parts": [{"function_call": {"id": None, "name": "read", "args": {}}, "text": None, **NULLS}],
    },
    {"role": "user", "parts": [{"function_response": {"name": "read", "response": {"output": "x"}}, **NULLS}]},
]
LISTS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "chat": ("openai_chat", CHAT),
    "chat with nulls": ("openai_chat", [GO, {**CHAT[1], "refusal": None}, ANSWER, {**DONE, "tool_calls": None}]),
    "chat with types": ("openai_chat", [{**item, "type": "message"} for item in CHAT]),
    "plain text": ("openai_chat", [GO, DONE]),
    "anthropic": ("anthropic", ANTHROPIC),
    "anthropic with nulls": (
        "anthropic",
        [GO, {"role": "assistant", "content": [{**TEXT_BLOCK, "citations": None}, USE], **ENVELOPE}, RESULT],
    ),
    "anthropic with an empty reply": (
        "anthropic",
        [*ANTHROPIC[:3], {**ENVELOPE, "role": "assistant", "content": []}],
    ),
    "anthropic after small talk": ("anthropic", [*SMALL_TALK, *ANTHROPIC]),
    "items": ("openai_responses", ITEMS),
    "items with nulls": ("openai_responses", [GO, {**ITEMS[1], "status": None}, *ITEMS[2:]]),
    "items with types": ("openai_responses", [TYPED, *ITEMS[1:], GO]),
    "items of replies": ("openai_responses", [*ITEMS[1:], GO]),
    "items after small talk": ("openai_responses", [*SMALL_TALK, *ITEMS]),
    "contents": ("gemini", CONTENTS),
    "contents with nulls": ("gemini", NULL_CONTENTS),
}


@pytest.mark.parametrize("start", [[], [SYSTEM]], ids=["", "system"])
@pytest.mark.parametrize("case", LISTS)
def test_lines_read_like_the_list(tmp_path: Path, case: str, start: list[Any]) -> None:
    wire, items = LISTS[case]
    items = [*start, *items]
    (listed,), listed_problems = read_all(write(tmp_path, json.dumps(items).encode()))
    (lines,), problems = read_all(write(tmp_path, items))
    assert lines.messages == listed.messages
    assert {message.origin for message in lines.messages} == {wire}
    assert [problem.text for problem in problems] == [problem.text for problem in listed_problems]
    # Contents of Gemini have no system role: this one line is left out.
    assert len(problems) == (wire == "gemini" and len(start))
    assert lines.raw_indices == listed.raw_indices
    calls = sum(len(message.calls) for message in lines.messages)
    assert calls == sum(len(message.results) for message in lines.messages) == (0 if case == "plain text" else 1)
    assert not any(isinstance(part, Opaque) for message in lines.messages for part in message.parts)


@pytest.mark.parametrize("damage", [7, None, [], {"role": "nobody", "content": "?"}])
@pytest.mark.parametrize("case", LISTS)
def test_a_line_that_cannot_be_read_is_all_that_is_lost(tmp_path: Path, case: str, damage: Any) -> None:
    _, items = LISTS[case]
    whole = read_one(write(tmp_path, items))
    (recording,), problems = read_all(write(tmp_path, [*items, damage]))
    assert recording.messages == whole.messages
    assert [problem.line for problem in problems] == [len(items) + 1]


@pytest.mark.parametrize("form", ["lines", "list"])
def test_a_list_of_several_formats_says_so(tmp_path: Path, form: str) -> None:
    items = [*CHAT, *ANTHROPIC]
    (recording,), (problem,) = read_all(write(tmp_path, items if form == "lines" else json.dumps(items).encode()))
    assert len(recording.messages) == len(items)
    assert problem.line == (6 if form == "lines" else 1)
    assert "read as openai_chat, 2 of 8 messages have parts of anthropic" in problem.text


@pytest.mark.parametrize(
    ("lines", "origin"),
    [
        ([{"messages": CHAT[:1], "model": "m"}, {"messages": CHAT, "model": "m"}], "openai_chat"),
        ([{"messages": ANTHROPIC[:3], "max_tokens": 9}, {"messages": ANTHROPIC, "max_tokens": 9}], "anthropic"),
        ([{"contents": CONTENTS[:1]}, {"contents": CONTENTS}], "gemini"),
        ([{"input": ITEMS[:1]}, {"input": ITEMS}], "openai_responses"),
        ([ANTHROPIC[:3], ANTHROPIC], "anthropic"),
        ([{"id": "a", "messages": CHAT}], "trajectories"),
    ],
)
def test_lines_with_whole_lists_stay_requests(tmp_path: Path, lines: list[Any], origin: str) -> None:
    recording = read_one(write(tmp_path, lines))
    assert recording.origin == origin
    assert len(recording.messages) == 4


@pytest.mark.parametrize(
    "line",
    [
        {"id": "m", "role": "user", "parts": [{"type": "text", "text": "Go."}]},
        {"role": "human", "text": "Go."},
        {"type": "message", "message": GO},
        {"type": "compaction", "text": "Go."},
    ],
)
def test_lines_of_other_tools_are_refused(tmp_path: Path, line: dict[str, Any]) -> None:
    with pytest.raises(SourceError, match="not a session file of a known format"):
        read_all(write(tmp_path, [line, line]))


def _remove_times(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _remove_times(value) for key, value in data.items() if key != "ms_per_call"}
    return list(map(_remove_times, data)) if isinstance(data, list) else data


@pytest.mark.parametrize("command", ["inspect", "replay --window=8000", "compare --windows=8k"])
@pytest.mark.parametrize("case", ["chat", "anthropic", "items", "contents"])
def test_commands_show_lines_like_the_list(tmp_path: Path, case: str, command: str) -> None:
    shown = []
    for data in (LISTS[case][1], json.dumps(LISTS[case][1]).encode()):
        path = write(tmp_path, data)
        ended = lading(*command.split(), path, "--json")
        shown.append((ended.code, ended.err, _remove_times(ended.data)))
    assert shown[0] == shown[1]
