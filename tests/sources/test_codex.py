from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lading.messages import Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from lading.sources import RecordedUsage, tools_at
from tests.sources.written import read_all, read_one, write


def line(kind: str, payload: Any, *, second: float = 0.0) -> dict[str, Any]:
    """A line of the log, so many seconds after the session's start."""
    stamp = f"2026-03-01T10:{int(second) // 60:02}:{second % 60:06.3f}Z"
    return {"timestamp": stamp, "type": kind, "payload": payload}


def item(kind: str, *, second: float = 0.0, **fields: Any) -> dict[str, Any]:
    return line("response_item", {"type": kind, **fields}, second=second)


def said(role: str, text: str, *, second: float = 0.0) -> dict[str, Any]:
    block = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": block, "text": text}], second=second)


def call(call_id: str, *, second: float = 0.0) -> dict[str, Any]:
    return item("function_call", name="exec_command", arguments='{"cmd":"ls"}', call_id=call_id, second=second)


def output(call_id: str, said: Any, *, second: float = 0.0) -> dict[str, Any]:
    return item("function_call_output", call_id=call_id, output=said, second=second)


def bill(fresh: int, cached: int, written: int, *, total: int, second: float = 0.0) -> dict[str, Any]:
    """A bill as events for the screen show it: the input holds what was cached."""
    info = {"total_token_usage": {"total_tokens": total}, "last_token_usage": usage(fresh, cached, written)}
    return line("event_msg", {"type": "token_count", "info": info, "rate_limits": None}, second=second)


def usage(fresh: int, cached: int, written: int) -> dict[str, int]:
    return {
        "input_tokens": fresh + cached,
        "cached_input_tokens": cached,
        "output_tokens": written,
        "reasoning_output_tokens": 1,
        "total_tokens": fresh + cached + written,
    }


META = {"id": "s-1", "timestamp": "2026-03-01T10:00:00Z", "cwd": "/project", "originator": "codex-tui"}
TURN = line("turn_context", {"model": "gpt-5.2-codex", "cwd": "/project"}, second=1)
LOG = [
    line("session_meta", {**META, "base_instructions": {"text": "You are an agent."}}),
    line("event_msg", {"type": "task_started", "model_context_window": 258_400}),
    said("developer", "<permissions>", second=1),
    TURN,
    said("user", "List the files.", second=1),
    line("event_msg", {"type": "user_message", "message": "List the files."}, second=1),
    item("reasoning", summary=[{"type": "summary_text", "text": "Hm."}], encrypted_content="gAAA", second=3),
    said("assistant", "Looking.", second=4),
    call("c1", second=5),
    call("c2", second=5),
    bill(1_000, 0, 50, total=1_050, second=5),
    output("c1", "a.py", second=6),
    output("c2", "b.py", second=6),
    bill(1_000, 0, 50, total=1_050, second=7),
    line("world_state", {"full": True, "state": {}}, second=7),
    said("assistant", "Two files.", second=9),
    bill(100, 1_000, 9, total=2_159, second=9),
]


def test_a_log(tmp_path: Path) -> None:
    recording = read_one(write(tmp_path, LOG))
    assert (recording.id, recording.origin, recording.model) == ("s-1", "codex", "gpt-5.2-codex")
    assert [message.role for message in recording.messages] == [
        "system",
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    assert recording.raw_indices == (0, 2, 4, 6, 11, 12, 15)
    assert recording.messages[3] == Message(
        "assistant",
        (
            Reasoning("Hm.", data="gAAA", provenance="openai_responses"),
            Text("Looking."),
            ToolCall("c1", "exec_command", '{"cmd":"ls"}'),
            ToolCall("c2", "exec_command", '{"cmd":"ls"}'),
        ),
    )
    assert recording.messages[4] == Message("tool", (ToolResult("c1", (Text("a.py"),)),))
    assert recording.times_s[0] == 1772359200.0
    assert recording.times_s[3] == 1772359203.0
    assert [tool.name for tool in tools_at(recording, 7)] == ["exec_command"]


def test_each_call_is_billed_once_without_what_was_cached(tmp_path: Path) -> None:
    assert read_one(write(tmp_path, LOG)).usage == (
        RecordedUsage(6, "gpt-5.2-codex", 1_000, 50, at_s=1772359205.0),
        RecordedUsage(15, "gpt-5.2-codex", 100, 9, cache_read_tokens=1_000, at_s=1772359209.0),
    )


def test_a_bill_before_its_reply(tmp_path: Path) -> None:
    log = [LOG[0], said("user", "Go."), bill(10, 0, 1, total=11), call("c1"), output("c1", "x")]
    log += [bill(12, 0, 1, total=24), said("assistant", "Done.")]
    assert [found.message_index for found in read_one(write(tmp_path, log)).usage] == [3, 6]


def test_bills_as_records_beside_the_events(tmp_path: Path) -> None:
    def record(*figures: int) -> dict[str, Any]:
        return line("token_usage_record", {"response_id": "r", "usage": usage(*figures)}, second=2)

    log = [said("user", "Go."), said("assistant", "One."), bill(10, 0, 1, total=11), record(10, 0, 1)]
    log += [said("user", "On."), said("assistant", "Two."), record(20, 5, 1), bill(20, 5, 1, total=37)]
    found = read_one(write(tmp_path, log)).usage
    assert [(one.message_index, one.input_tokens) for one in found] == [(1, 10), (5, 20)]
    odd = [*log[:3], line("token_usage_record", {"usage": 7}), log[4], log[5]]
    assert len(read_one(write(tmp_path, odd)).usage) == 1


def test_a_fork_is_not_billed_for_what_it_copied(tmp_path: Path) -> None:
    copied = [
        line("session_meta", {**META, "id": "parent", "base_instructions": {"text": "Not mine."}}, second=100),
        said("user", "Go.", second=100),
        said("assistant", "One.", second=100.2),
        bill(10, 0, 1, total=11, second=100.2),
        said("assistant", "Two.", second=100.3),
        bill(20, 0, 1, total=32, second=100.4),
    ]
    own = [said("user", "Elsewhere.", second=100.5), said("assistant", "Three.", second=104)]
    log = [line("session_meta", {**META, "forked_from_id": "parent"}, second=100), *copied, *own]
    recording = read_one(write(tmp_path, [*log, bill(30, 0, 1, total=63, second=104)]))
    assert recording.id == "s-1"
    assert [message.text for message in recording.messages] == ["Go.", "One.", "Two.", "Elsewhere.", "Three."]
    assert [(one.message_index, one.input_tokens) for one in recording.usage] == [(8, 30)]


def test_a_compaction_brings_its_summary(tmp_path: Path) -> None:
    history = [said("user", "Go.")["payload"], said("user", "Summary: it went well.")["payload"]]
    history.append({"type": "compaction", "encrypted_content": "gBBB"})
    log = [said("user", "Go."), said("assistant", "Gone.")]
    compacted = line("compacted", {"message": "Summary", "replacement_history": history})
    recording = read_one(write(tmp_path, [*log, compacted, said("assistant", "On.")]))
    texts = [message.text for message in recording.messages]
    assert texts == ["Go.", "Gone.", "Summary: it went well.", "", "On."]
    assert recording.messages[3].parts == (Reasoning(data="gBBB", provenance="openai_responses"),)
    assert recording.raw_indices == (0, 1, 2, 2, 3)
    bare = read_one(write(tmp_path, [*log, line("compacted", {"message": "Summary"})]))
    assert bare.messages[-1] == Message("user", (Text("Summary"),))


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "*** Begin"}, "*** Begin"),
        ({"type": "function_call", "call_id": "c", "namespace": "mcp__x", "name": "y", "arguments": "{"}, "{"),
        ({"type": "local_shell_call", "call_id": "c", "action": {"type": "exec"}}, '{"type":"exec"}'),
        ({"type": "tool_search_call", "call_id": "c", "arguments": {"query": "x"}}, '{"query":"x"}'),
    ],
)
def test_calls_of_every_kind(tmp_path: Path, fields: dict[str, Any], part: str) -> None:
    (message,) = read_one(write(tmp_path, [line("response_item", fields)])).messages
    (found,) = message.calls
    assert found.arguments == part
    assert found.name in ("apply_patch", "mcp__x__y", "local_shell", "tool_search")


@pytest.mark.parametrize(
    ("answer", "text", "failed"),
    [
        ("plain", "plain", False),
        ({"content": "no", "success": False}, "no", True),
        ("Exit code: 2\nWall time: 0 seconds\nOutput:\nbad", None, True),
        ("Chunk ID: 1\nProcess exited with code 0\nOutput:\nExit code: 2", None, False),
        ("Exit code: 2", None, False),
        ('{"output":"bad\\n","metadata":{"exit_code":1,"duration_seconds":0.1}}', None, True),
        ('{"output":"good","metadata":{"exit_code":0,"duration_seconds":0.1}}', None, False),
        ([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}], "a\nb", False),
        (None, "", False),
    ],
)
def test_results_and_whether_they_failed(tmp_path: Path, answer: Any, text: str | None, failed: bool) -> None:
    recording = read_one(write(tmp_path, [call("c"), output("c", answer)]))
    (result,) = recording.messages[1].results
    assert (result.text, result.is_error) == (answer if text is None else text, failed)


def test_pictures_and_what_is_not_known_are_kept(tmp_path: Path) -> None:
    odd = {"type": ["input_audio"], "data": "x"}
    picture = {"type": "input_image", "image_url": "data:image/png;base64,QUJD"}
    log = [
        item(
            "message", role="user", content=[{"type": "input_image", "image_url": "https://x/y.png"}, picture, odd]
        ),
        item("web_search_call", status="completed", action={"type": "search", "query": "x"}),
        item("image_generation_call", id="i", result="QUJD"),
        item("configuration_update", text="x"),
        item("tool_search_output", call_id="t", tools=[{"name": "x"}]),
        item("tool_search_output", call_id=None, tools=[]),
        item("tool_search_call", call_id=None, arguments={}),
        item("agent_message", author="/root", content=[{"type": "input_text", "text": "Start."}]),
        line("inter_agent_communication", {"author": "/root/a", "recipient": "/root", "content": "Done."}),
        item("ghost_snapshot", ghost_commit={}),
    ]
    messages = read_one(write(tmp_path, log)).messages
    assert messages[0].parts == (Image("https://x/y.png"), Image(media_type="image/png", data="QUJD"), Opaque(odd))
    assert [message.role for message in messages] == [
        "user",
        "assistant",
        "user",
        "tool",
        "user",
        "assistant",
        "user",
        "user",
    ]
    assert isinstance(messages[1].parts[0], Opaque)
    assert messages[1].parts[1:] == (Opaque({"type": "image_generation_call", "id": "i"}), Image(data="QUJD"))
    assert messages[3].results[0].text == '[{"name":"x"}]'
    assert [message.text for message in messages[6:]] == ["/root: Start.", "/root/a: Done."]


def test_the_bare_form(tmp_path: Path) -> None:
    head = {"id": "old", "timestamp": "2025-08-01T10:00:00Z", "instructions": "Be brief.", "git": {}}
    bare = [said("user", "Go.")["payload"], call("c")["payload"], output("c", "x")["payload"]]
    for start in ([head, {"record_type": "state"}], [head]):
        recording = read_one(write(tmp_path, [*start, *bare]))
        assert (recording.id, recording.usage) == ("old", ())
        assert [message.role for message in recording.messages] == ["system", "user", "assistant", "tool"]
    (first, *_) = read_one(write(tmp_path, bare)).messages
    assert first.text == "Go."


def test_the_form_of_one_document(tmp_path: Path) -> None:
    head = {"id": "oldest", "timestamp": "2025-05-01T10:00:00Z", "instructions": ""}
    document = {"session": head, "items": [said("user", "Go.")["payload"], said("assistant", "Gone.")["payload"]]}
    recording = read_one(write(tmp_path, [document], name="rollout.json"))
    assert recording.id == "oldest"
    assert [message.text for message in recording.messages] == ["Go.", "Gone."]
    assert recording.raw_indices == (1, 2)


def test_tools_of_the_session_alone_are_known_by_schema(tmp_path: Path) -> None:
    schema = {"type": "object"}
    listed = [{"name": "mine", "description": "Mine.", "inputSchema": schema}, {"name": "no schema"}, 7]
    recording = read_one(write(tmp_path, [line("session_meta", {**META, "dynamic_tools": listed}), call("c")]))
    assert not recording.tools_recorded
    assert [(tool.name, tool.synthetic) for tool in tools_at(recording, 1)] == [
        ("mine", False),
        ("exec_command", True),
    ]


@pytest.mark.parametrize(
    "bad",
    [
        7,
        "{not json}",
        {"type": "response_item", "payload": 7},
        {"role": "user"},
        item("message", role="wizard", content=[]),
        item("message", role="user", content=7),
        item("message", role="user", content=[{"type": "input_text"}]),
        item("function_call", call_id="c"),
        item("function_call_output", output="x"),
        line("new_kind", {}),
        line("compacted", {"replacement_history": [7]}),
        line("response_item", {"type": 7}),
        {"type": []},
        {"type": {}, "payload": {}},
        item("message", role=["user"], content=[]),
    ],
)
def test_a_bad_line_costs_only_itself(tmp_path: Path, bad: Any) -> None:
    recordings, problems = read_all(write(tmp_path, [said("user", "One."), bad, said("user", "Two.")]))
    assert [message.text for message in recordings[0].messages] == ["One.", "Two."]
    assert recordings[0].raw_indices == (0, 2)
    assert [problem.line for problem in problems] == [2]


def test_odd_marks_do_no_harm(tmp_path: Path) -> None:
    log = [
        line("session_meta", {"id": 7, "base_instructions": "x", "dynamic_tools": {}}),
        line("session_meta", {"id": [8]}),
        line("turn_context", {"model": 5}),
        line("event_msg", {"type": "token_count", "info": {"last_token_usage": [1]}}),
        line("event_msg", {"type": "token_count", "info": None}),
        {**said("user", "One."), "timestamp": 10**30},
        bill(1, 0, 1, total=2),
    ]
    recording = read_one(write(tmp_path, log, name="odd.jsonl"))
    assert (recording.id, recording.model, recording.usage) == ("odd", "", ())


def test_a_log_without_messages_holds_no_session(tmp_path: Path) -> None:
    recordings, problems = read_all(write(tmp_path, [line("session_meta", META)]))
    assert recordings == []
    assert ["No session" in problem.text for problem in problems] == [True]
