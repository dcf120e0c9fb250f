"""What a record says of calls that act elsewhere, or that change what cannot be read again."""

from __future__ import annotations

import json

import pytest

from lading.messages import Message, ToolCall, tool_result, user_text
from tests.compaction.test_record import ran, written


def called(tool: str, result: str, **arguments: str) -> list[Message]:
    return [Message("assistant", (ToolCall("c", tool, json.dumps(arguments)),)), tool_result("c", result)]


@pytest.mark.parametrize(
    ("tool", "key"),
    [("shell", "workdir"), ("shell", "working_directory"), ("ssh", "host"), ("docker", "container")],
)
def test_the_same_command_elsewhere_is_another_one(tool: str, key: str) -> None:
    failed = called(tool, "3 failed, 9 passed", command="npm test", **{key: "/repo/api"})
    passed = called(tool, "20 passed", command="npm test", **{key: "/repo/web"})
    lines = written([*failed, *passed])
    assert lines == [
        f"- {tool} npm test ({key} /repo/api): failed: 3 failed, 9 passed",
        f"- {tool} npm test ({key} /repo/web): 20 passed",
        f"Failing at the end: {tool} npm test ({key} /repo/api): failed: 3 failed, 9 passed",
    ]
    assert written([*failed, *called(tool, "9 passed", command="npm test", **{key: "/repo/api"})])[0].endswith(
        "(passed later)"
    )


def test_the_same_command_in_another_folder_of_an_open_shell_is_another_one() -> None:
    there = [*ran("cd /repo/api", ""), *ran("npm test", "3 failed, 9 passed")]
    elsewhere = [*ran("cd ../web", ""), *ran("npm test", "20 passed")]
    failing = "Failing at the end: shell npm test: failed: 3 failed, 9 passed"
    assert written([*there, *elsewhere])[-1] == failing
    assert written([*there, *ran("cd gone", "cd: gone: No such file or directory"), *ran("npm test", "9 passed")])[
        1
    ].endswith("(passed later)")
    back = [*ran("cd ../api", ""), *ran("npm test", "9 passed")]
    assert written([*there, *elsewhere, *back])[1].endswith("(passed later)")
    assert written([*there, *called("other", "20 passed", command="cd ../web"), *ran("npm test", "9 passed")])[
        1
    ].endswith("(passed later)")


def test_the_same_file_of_another_repository_is_another_one() -> None:
    file = {"path": "package.json", "content": "{}"}
    lines = written(
        [*called("put", '{"error": "conflict"}', repo="api", **file), *called("put", "ok", repo="web", **file)]
    )
    assert lines[-1].startswith("Failing at the end: put package.json (repo api): failed:")


def test_what_a_command_changed_stays_longer_than_what_can_be_read_again() -> None:
    history = [user_text("Fix it.")]
    commands = [f"git commit -am 'Fix {number}'" for number in range(40)]
    for number, command in enumerate(commands):
        history += [*called("read", "text " * 50, path=f"a{number}.py"), *ran(command, f"[main {number}] Fix")]
        history += ran(f"pytest tests/b{number}.py", "3 passed")
    lines = "\n".join(written([*history, user_text("Go on.")], most_tokens=800))
    assert [command for command in commands if command not in lines] == []
    assert "pytest" not in lines
