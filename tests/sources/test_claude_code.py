from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lading.messages import Text, ToolCall
from lading.sources import RecordedUsage, tools_at
from tests.sources.written import read_all, read_one, write


def event(kind: str, uuid: str, parent: str | None, content: Any, **fields: Any) -> dict[str, Any]:
    """A line of the log. ``message`` holds further fields of its message."""
    message = {"role": kind, "content": content, **fields.pop("message", {})}
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/project",
        "sessionId": "s-1",
        "version": "2.0.1",
        "type": kind,
        "message": message,
        "uuid": uuid,
        "timestamp": f"2025-11-20T10:00:0{len(uuid)}.000Z",
        **fields,
    }


def reply(uuid: str, parent: str, block: dict[str, Any], *, id_: str, **fields: Any) -> dict[str, Any]:
    """One of the lines of a reply, with the bill each of them repeats."""
    usage = {"input_tokens": 4, "output_tokens": fields.pop("output", 1), "cache_read_input_tokens": 90}
    about = {"id": id_, "type": "message", "model": "claude-sonnet-4-5", "stop_reason": None, "usage": usage}
    return event("assistant", uuid, parent, [block], message=about, requestId="req_1", **fields)


def use(id_: str, name: str = "Bash") -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": name, "input": {"command": "ls"}}


def answer(id_: str, text: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": id_, "content": text}]


LOG = [
    {"type": "summary", "summary": "A title", "leafUuid": "x"},
    {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
    event("user", "a", None, "<caveat>", isMeta=True),
    event("user", "b", "a", "List the files."),
    reply("c", "b", {"type": "thinking", "thinking": "Hm.", "signature": "sig"}, id_="m1"),
    reply("dd", "c", {"type": "text", "text": "Looking."}, id_="m1"),
    reply("e", "dd", use("t1"), id_="m1"),
    event("user", "f", "e", answer("t1", "a.py"), toolUseResult={"stdout": "a.py"}),
    reply("g", "e", use("t2", "Read"), id_="m1", output=30, costUSD=0.5),
    {**event("system", "h", "g", ""), "subtype": "notice"},
    event("user", "i", "h", answer("t2", "text")),
    {"type": "queue-operation", "operation": "enqueue", "sessionId": "s-1"},
    reply("j", "i", {"type": "text", "text": "Done."}, id_="m2", output=7),
]


def test_a_log(tmp_path: Path) -> None:
    recording = read_one(write(tmp_path, LOG))
    assert (recording.id, recording.origin, recording.model) == ("s-1", "claude_code", "claude-sonnet-4-5")
    roles = [message.role for message in recording.messages]
    assert roles[:3] == ["user", "user", "assistant"]
    assert roles[-1] == "assistant"
    assert len(roles) == 6
    assert recording.raw_indices == (2, 3, 4, 7, 10, 12)
    assert [result.text for message in recording.messages for result in message.results] == ["a.py", "text"]
    assert recording.times_s[2] == recording.times_s[0]
    assert not recording.tools_recorded
    assert [tool.name for tool in tools_at(recording, 3)] == ["Bash", "Read"]


def test_a_reply_over_several_lines_is_one_message_billed_once(tmp_path: Path) -> None:
    recording = read_one(write(tmp_path, LOG))
    asked = recording.messages[2]
    assert [type(part).__name__ for part in asked.parts] == ["Reasoning", "Text", "ToolCall", "ToolCall"]
    assert [part.id for part in asked.parts if isinstance(part, ToolCall)] == ["t1", "t2"]
    assert [part.text for part in asked.parts if isinstance(part, Text)] == ["Looking."]
    first, second = recording.usage
    assert first == RecordedUsage(
        4, "claude-sonnet-4-5", 4, 30, cache_read_tokens=90, cost_usd=0.5, at_s=recording.times_s[2]
    )
    assert (second.message_index, second.output_tokens) == (12, 7)


def test_merged_lines_read_like_one_message_with_all_blocks(tmp_path: Path) -> None:
    blocks = [{"type": "text", "text": "Looking."}, use("t1"), use("t2")]
    apart = [
        event("user", "a", None, "Go."),
        *(reply(f"r{i}", "a", b, id_="m") for i, b in enumerate(blocks)),
    ]
    whole = [apart[0], event("assistant", "r", "a", blocks)]
    assert read_one(write(tmp_path, apart)).messages == read_one(write(tmp_path, whole)).messages


def test_words_as_plain_string(tmp_path: Path) -> None:
    log = [event("user", "a", None, "Go."), event("assistant", "b", "a", "Gone.", message={"id": "m"})]
    log.append(event("assistant", "c", "b", "Really.", message={"id": "m"}))
    recording = read_one(write(tmp_path, log))
    assert [part.text for part in recording.messages[1].parts if isinstance(part, Text)] == [
        "Gone.",
        "Really.",
    ]
    assert recording.usage == ()


def test_sub_agents_are_recordings_of_their_own(tmp_path: Path) -> None:
    def side(kind: str, uuid: str, parent: str | None, text: str, **fields: Any) -> dict[str, Any]:
        return event(kind, uuid, parent, text, isSidechain=True, **fields)

    log = [
        event("user", "m1", None, "Go."),
        side("user", "x1", None, "task x"),
        side("user", "y1", "m1", "task y"),
        side("assistant", "x2", "x1", "did x"),
        side("assistant", "y2", "y1", "did y"),
        side("assistant", "y3", "missing", "did more"),
        event("assistant", "m2", "x2", "Done."),
        side("user", "z1", None, "task z", agentId="agent7"),
        side("assistant", "z2", None, "did z", agentId="agent7"),
    ]
    recordings, problems = read_all(write(tmp_path, log))
    assert problems == []
    assert {item.id: [message.text for message in item.messages] for item in recordings} == {
        "s-1": ["Go.", "Done."],
        "s-1/sidechain-1": ["task x", "did x"],
        "s-1/sidechain-2": ["task y", "did y", "did more"],
        "s-1/agent7": ["task z", "did z"],
    }
    assert recordings[1].raw_indices == (1, 3)


def test_a_resumed_session_goes_on_under_another_id(tmp_path: Path) -> None:
    log = [
        event("user", "a", None, "One."),
        event("user", "b", "a", "Two.", sessionId="s-2"),
        event("user", "c", "unknown", "Three.", sessionId="s-2"),
        event("user", "a", None, "One.", sessionId="s-2"),
        event("user", "d", None, "Other.", sessionId="s-3"),
        event("user", "e", None, "Four."),
    ]
    recordings, _ = read_all(write(tmp_path, log))
    assert {item.id: [message.text for message in item.messages] for item in recordings} == {
        "s-1": ["One.", "Two.", "Three.", "Four."],
        "s-3": ["Other."],
    }


def test_what_the_model_never_said(tmp_path: Path) -> None:
    about = {"model": "<synthetic>", "usage": {"input_tokens": 0, "output_tokens": 0}}
    log = [
        event("user", "a", None, "Go."),
        event("assistant", "b", "a", "API Error", message=about, isApiErrorMessage=True),
        event("assistant", "c", "a", "No response requested.", message=about),
    ]
    recording = read_one(write(tmp_path, log))
    assert [message.text for message in recording.messages] == ["Go.", "No response requested."]
    assert recording.model == ""
    assert recording.usage == ()


@pytest.mark.parametrize(
    "bad",
    [
        7,
        "{not json}",
        {"type": "user", "uuid": "q", "sessionId": "s-1"},
        {"type": "user", "uuid": "q", "sessionId": "s-1", "message": [3]},
        event("user", "q", "a", "x", message={"role": "wizard"}),
        event("user", "q", "a", 5),
        event("user", "q", "a", [5]),
    ],
)
def test_a_bad_line_costs_only_itself(tmp_path: Path, bad: Any) -> None:
    log = [event("user", "a", None, "One."), bad, event("user", "b", "q", "Two.")]
    recordings, problems = read_all(write(tmp_path, log))
    assert [message.text for message in recordings[0].messages] == ["One.", "Two."]
    assert recordings[0].raw_indices == (0, 2)
    assert [problem.line for problem in problems] == [2]


def test_odd_marks_do_no_harm(tmp_path: Path) -> None:
    odd = event("user", "a", None, "One.")
    odd.update(uuid=["x"], parentUuid={"y": 1}, sessionId=7, timestamp=[], isSidechain="no")
    answer_ = event("assistant", "b", None, "Two.", message={"id": [1], "model": 5, "usage": [2]})
    recordings, problems = read_all(write(tmp_path, [odd, answer_], name="odd.jsonl"))
    assert problems == []
    assert [item.id for item in recordings] == ["odd", "s-1"]


def test_a_log_without_messages_holds_no_session(tmp_path: Path) -> None:
    recordings, problems = read_all(write(tmp_path, LOG[:2]))
    assert recordings == []
    assert [(problem.line, "No session" in problem.text) for problem in problems] == [(0, True)]
