"""Requests of one conversation become one recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lading.messages import Message
from lading.sources import Recording, ToolsSoFar, restated
from lading.sources.conversations import MAX_OPEN
from tests.cli.commands import lading, long_session
from tests.sources.written import read_all, read_one, write


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def reply(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def asked(call_id: str) -> dict[str, Any]:
    call = {"id": call_id, "type": "function", "function": {"name": "run", "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def answered(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def body(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "gpt-4.1", "messages": list(messages), **fields}


def billed(request: dict[str, Any], text: str, prompt: int, cached: int = 0, *, at_s: int = 0) -> dict[str, Any]:
    """A line with the request, its reply and the bill."""
    usage = {"prompt_tokens": prompt, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": cached}}
    created = {"created": 1_763_681_630 + at_s} if at_s else {}
    return {"request": request, "response": {"choices": [{"message": reply(text)}], "usage": usage, **created}}


def texts(recording: Recording) -> list[str]:
    return [message.text or "".join(result.text for result in message.results) for message in recording.messages]


def contents(recording: Recording) -> list[list[str]]:
    """The words of what each request held, put together again from what it kept and added."""
    held: list[Message] = []
    found = []
    for request in recording.requests:
        held = [*held[: request.kept], *request.added]
        found.append([message.text or "".join(result.text for result in message.results) for message in held])
    return found


LOG = [user("Go."), reply("One."), user("On."), reply("Two."), user("And on."), reply("Three.")]
GROWING = [body(*LOG[:1]), body(*LOG[:3]), body(*LOG[:5])]


def test_growing_requests_are_one_session(tmp_path: Path) -> None:
    recording = read_one(write(tmp_path, GROWING))
    assert texts(recording) == ["Go.", "One.", "On.", "Two.", "And on."]
    assert recording.raw_indices == (0, 1, 2, 3, 4)
    assert [(item.message_index, item.kept, len(item.added)) for item in recording.requests] == [
        (1, 0, 1),
        (3, 1, 2),
        (5, 3, 2),
    ]
    assert [item.changed_index for item in recording.requests] == [None, None, None]
    assert contents(recording) == [["Go."], ["Go.", "One.", "On."], texts(recording)]


def test_replies_and_bills_of_each_call(tmp_path: Path) -> None:
    lines = [
        billed(GROWING[0], "One.", 10, at_s=1),
        billed(GROWING[1], "Two.", 20, 10, at_s=9),
        billed(GROWING[2], "Three.", 30, 20, at_s=20),
    ]
    recording = read_one(write(tmp_path, lines))
    assert texts(recording) == ["Go.", "One.", "On.", "Two.", "And on.", "Three."]
    assert [(item.message_index, item.input_tokens, item.cache_read_tokens) for item in recording.usage] == [
        (1, 10, 0),
        (3, 10, 10),
        (5, 10, 20),
    ]
    assert recording.times_s == (None, 1763681631.0, None, 1763681639.0, None, 1763681650.0)
    assert {recording.messages[item.message_index].role for item in recording.usage} == {"assistant"}


def test_a_reply_that_the_next_request_does_not_hold(tmp_path: Path) -> None:
    lines = [billed(body(user("Go.")), "Lost.", 10), body(user("Go."), user("Again."))]
    recordings, problems = read_all(write(tmp_path, lines))
    assert texts(recordings[0]) == ["Go.", "Again."]
    assert [(problem.line, "reply was left out" in problem.text) for problem in problems] == [(1, True)]


def test_other_conversations_in_between(tmp_path: Path) -> None:
    other = [body(user("Title?")), body(user("Go."), reply("Elsewhere."))]
    lines = [GROWING[0], other[0], GROWING[1], other[1], GROWING[2]]
    recordings, problems = read_all(write(tmp_path, lines))
    assert problems == []
    assert {item.messages[0].text: len(item.messages) for item in recordings} == {"Title?": 1, "Go.": 5}
    assert [len(item.requests) for item in recordings] == [0, 0, 3]


def test_runs_of_one_task_stay_apart(tmp_path: Path) -> None:
    runs = [body(user("Go."), reply("One."), user("On."), reply(text)) for text in ("a", "b", "c")]
    recordings, _ = read_all(write(tmp_path, [*runs, runs[0]]))
    assert [len(item.messages) for item in recordings] == [4, 4, 4, 4]


def test_marks_for_the_cache_are_no_difference(tmp_path: Path) -> None:
    def said(role: str, text: str, *, marked: bool = False) -> dict[str, Any]:
        mark = {"cache_control": {"type": "ephemeral"}} if marked else {}
        return {"role": role, "content": [{"type": "text", "text": text, **mark}]}

    def result(*, marked: bool) -> dict[str, Any]:
        block = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}
        return {"role": "user", "content": [{**block, **({"cache_control": {}} if marked else {})}]}

    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "run", "input": {}}]}
    system = [{"type": "text", "text": "Help.", "cache_control": {"type": "ephemeral"}}]
    first = {"system": system, "max_tokens": 9, "messages": [said("user", "Go.", marked=True)]}
    second = {"system": "Help.", "max_tokens": 9, "messages": [user("Go."), use, result(marked=True)]}
    messages = [said("user", "Go."), use, result(marked=False), said("assistant", "Done.")]
    recording = read_one(write(tmp_path, [first, second, {**second, "messages": messages}]))
    assert len(recording.requests) == 3
    assert [item.changed_index for item in recording.requests] == [None, None, None]
    assert recording.raw_indices == (-1, 0, 1, 2, 3)


def system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


def test_a_system_prompt_that_changes_is_stated_by_its_request(tmp_path: Path) -> None:
    on = user("On.")
    log = [user("Go."), reply("One."), on, reply("Two."), on, reply("Three."), on]
    clocks = ["10:00", "10:01", "10:01", "10:02"]
    lines = [body(system(clock), *log[: 2 * at + 1]) for at, clock in enumerate(clocks)]
    recording = read_one(write(tmp_path, lines))
    assert texts(recording) == ["10:00", "Go.", "One.", "On.", "Two.", "On.", "Three.", "On."]
    said = [item.system and [message.text for message in item.system] for item in recording.requests]
    assert said == [None, ["10:01"], None, ["10:02"]]
    assert [item.changed_index for item in recording.requests] == [None, 0, None, 0]
    found = restated(recording)
    assert found.left_out == 0
    assert {at: [(entry, message.text) for entry, message in said] for at, said in found.at.items()} == {
        4: [(0, "10:01")],
        8: [(0, "10:02")],
    }


def test_a_system_text_outside_of_the_list_is_stated_too(tmp_path: Path) -> None:
    lines = [{"max_tokens": 9, "system": f"10:0{at}", "messages": LOG[: 2 * at + 1]} for at in range(3)]
    recording = read_one(write(tmp_path, lines))
    assert [item.changed_index for item in recording.requests] == [None, -1, -1]
    assert [[message.text for message in item.system or ()] for item in recording.requests] == [
        [],
        ["10:01"],
        ["10:02"],
    ]


def test_another_number_of_system_messages_cannot_be_restated(tmp_path: Path) -> None:
    lines = [body(system("a"), *LOG[:1]), body(system("a"), *LOG[:3]), body(system("a"), system("b"), *LOG[:5])]
    recording = read_one(write(tmp_path, lines))
    assert texts(recording) == ["a", "Go.", "One.", "On.", "Two.", "And on."]
    assert restated(recording) == ({}, 1)


def test_conversations_that_start_alike_are_told_apart_by_their_system_prompts(tmp_path: Path) -> None:
    lines = [body(system(name), *LOG[:end]) for end in (1, 3, 5) for name in ("a", "b")]
    recordings, problems = read_all(write(tmp_path, lines))
    assert problems == []
    assert [texts(item)[0] for item in recordings] == ["a", "b"]
    assert [[request.system for request in item.requests] for item in recordings] == [[None] * 3, [None] * 3]


def test_another_reply_is_another_conversation(tmp_path: Path) -> None:
    lines = [billed(body(system("a"), *LOG[:1]), "Else.", 9), body(system("b"), *LOG[:3])]
    recordings, _ = read_all(write(tmp_path, lines))
    assert [texts(item) for item in recordings] == [["a", "Go.", "Else."], ["b", "Go.", "One.", "On."]]


def test_the_tools_of_each_request(tmp_path: Path) -> None:
    def tools(*names: str) -> list[dict[str, Any]]:
        schema = {"type": "object"}
        return [{"type": "function", "function": {"name": name, "parameters": schema}} for name in names]

    lines = [
        {**GROWING[0], "tools": tools("run")},
        {**GROWING[1], "tools": tools("run")},
        {**GROWING[2], "tools": tools("run", "ask")},
        {**body(*LOG), "tools": tools("ask")},
    ]
    recording = read_one(write(tmp_path, lines))
    known = ToolsSoFar(recording)
    assert [[tool.name for tool in known.at(upto)] for upto in (1, 3, 5, 6)] == [
        ["run"],
        ["run"],
        ["run", "ask"],
        ["ask"],
    ]


REWRITTEN = [
    body(user("Go."), asked("a"), answered("a", "long " * 9)),
    body(user("Go."), asked("a"), answered("a", "long " * 9), asked("b"), answered("b", "more")),
    body(user("Go."), asked("a"), answered("a", "[cleared]"), asked("b"), answered("b", "more"), asked("c")),
]


def test_a_rewritten_request_changes_nothing_that_was_said(tmp_path: Path) -> None:
    recording = read_one(write(tmp_path, REWRITTEN))
    assert [result.text for message in recording.messages for result in message.results] == ["long " * 9, "more"]
    assert [message.role for message in recording.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert [item.changed_index for item in recording.requests] == [None, None, 2]
    assert contents(recording)[2] == ["Go.", "", "[cleared]", "", "more", ""]


def test_a_result_in_a_new_form_at_the_end_is_not_said_twice(tmp_path: Path) -> None:
    last = body(user("Go."), asked("a"), answered("a", "x"), asked("b"), answered("b", "[cut]"), asked("c"))
    recording = read_one(write(tmp_path, [*REWRITTEN[:2], last]))
    assert [result.call_id for message in recording.messages for result in message.results] == ["a", "b"]
    assert recording.messages[-1].calls[0].id == "c"
    assert recording.raw_indices == (0, 1, 2, 3, 4, 6)


def test_a_changed_system_text_or_tool_is_outside_the_list(tmp_path: Path) -> None:
    tool = {"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}
    lines = [GROWING[0], {**GROWING[1], "tools": [tool]}, {**GROWING[2], "tools": [tool]}]
    recording = read_one(write(tmp_path, lines))
    assert [item.changed_index for item in recording.requests] == [None, -1, None]
    assert [item.name for item in recording.tools] == ["run"]


def test_a_session_that_is_named_decides(tmp_path: Path) -> None:
    lines = [{"session": name, "request": body(user(text))} for name, text in (("a", "x"), ("b", "x"), ("a", "y"))]
    lines += [{"session": "b", "request": body(user("x"), reply("z"))}]
    recordings, problems = read_all(write(tmp_path, lines))
    assert problems == []
    assert {item.id: texts(item) for item in recordings} == {"a": ["x", "y"], "b": ["x", "z"]}


def test_a_request_sent_again_is_a_call_of_its_own(tmp_path: Path) -> None:
    recording = read_one(write(tmp_path, [*GROWING, GROWING[2]]))
    assert texts(recording) == ["Go.", "One.", "On.", "Two.", "And on."]
    assert [(item.kept, item.added, item.changed_index) for item in recording.requests[3:]] == [(5, (), None)]


def test_many_conversations_are_not_all_kept_open(tmp_path: Path) -> None:
    others = [body(user(f"Other {number}.")) for number in range(MAX_OPEN)]
    recordings, _ = read_all(write(tmp_path, [GROWING[0], *others, GROWING[1]]))
    assert [len(item.messages) for item in recordings if item.messages[0].text == "Go."] == [1, 3]


@pytest.mark.parametrize("bad", [{"role": "wizard"}, 7, None, {"role": "user", "content": 5}])
def test_a_bad_message_costs_only_itself(tmp_path: Path, bad: Any) -> None:
    lines = [body(user("Go."), bad), body(user("Go."), bad, reply("One.")), body(user("Go."), bad, *LOG[1:4])]
    recordings, problems = read_all(write(tmp_path, lines))
    assert [texts(item) for item in recordings] == [["Go.", "One.", "On.", "Two."]]
    assert recordings[0].raw_indices == (0, 2, 3, 4)
    assert [problem.line for problem in problems] == [1, 2, 3]


def test_deep_nesting_does_no_harm(tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(300):
        deep = [{"content": deep}]
    lines = [body(user("Go."), {"role": "user", "content": deep}), body(user("Go."), tools=deep, system=deep)]
    recordings, _ = read_all(write(tmp_path, lines))
    assert [texts(item) for item in recordings] == [["Go."], ["Go."]]


@pytest.mark.parametrize("strategy", ["basic", "priced"])
def test_requests_that_lading_made_read_as_the_session_they_came_from(tmp_path: Path, strategy: str) -> None:
    source, emitted = long_session(tmp_path / "long.json"), tmp_path / "requests.jsonl"
    settings = ("--window", "3000", "--strategy", strategy)
    assert lading("replay", source, *settings, "--emit", emitted).code == 0
    requests = [json.loads(line)["request"] for line in emitted.read_bytes().splitlines()]
    recording, original = read_one(emitted), read_one(source)
    assert len(recording.requests) == len(requests) > 10
    assert any(item.changed_index is not None for item in recording.requests)
    assert [len(held) for held in contents(recording)] == [len(request["messages"]) for request in requests]
    roles = [message.role for message in original.messages]
    assert [message.role for message in recording.messages] == roles[: len(recording.messages)]
    assert [call.id for message in recording.messages for call in message.calls] == [
        call.id for message in original.messages for call in message.calls
    ]
