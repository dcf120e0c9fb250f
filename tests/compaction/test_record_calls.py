"""What a record says of calls that act elsewhere, or that change what cannot be read again."""

from __future__ import annotations

import json

import pytest

from lading.messages import Message, Text, ToolCall, ToolResult, tool_result, user_text
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


WIDER = [
    ("pytest tests/test_a.py -q", "pytest -q"),
    ("pytest tests/test_a.py -q", "pytest tests/ -q"),
    ("pytest tests/unit/test_a.py", "python -m pytest ./tests"),
    ("pytest tests/test_a.py::test_x -q", "pytest tests -q"),
    ("npx jest src/a.test.ts", "npx jest"),
    ("npx vitest run src/a.test.ts", "npx vitest run src"),
    ("npm test -- src/a.test.ts", "npm test"),
    ("go test ./internal/parse/...", "go test ./..."),
    ("go test ./internal/parse", "go test ./internal/..."),
    ("cargo test parse", "cargo test"),
    ("mypy src/a.py", "mypy src"),
    ("pytest -q", "python -m pytest tests/ -q"),
    ("ruff check src/a.py", "ruff check ."),
    ("cd /w && pytest tests/test_a.py", "cd /w && pytest"),
    ("ssh a pytest tests/test_a.py", "ssh a pytest"),
    ("pytest --cov=app --cov-report=term -rA tests/test_a.py", "pytest"),
]
NOT_WIDER = [
    ("pytest tests/test_a.py", "pytest src"),
    ("pytest tests/test_a.py", "pytest -k other"),
    ("pytest", "pytest tests/test_a.py"),
    ("pytest tests", "pytest tests/unit"),
    ("npx jest src/a.test.ts", "npx vitest"),
    ("pytest -q", "npx vitest run"),
    ("npx vitest run src/a.test.ts", "pytest -q"),
    ("cargo test parse", "cargo build"),
    ("cargo test", "cargo test parse"),
    ("go test ./internal/parse/...", "go test ./cmd/..."),
    ("ssh a pytest tests/test_a.py", "pytest"),
    ("cd api && pytest tests/test_a.py", "cd web && pytest"),
    ("tox -e py38 tests/test_a.py", "tox -e py312"),
    ("mypy --strict src/a.py", "mypy src"),
    ("DB=pg pytest tests/test_a.py", "pytest"),
    ("go test -race ./...", "go test ./..."),
    ("pytest --cov-fail-under=90", "pytest"),
    ("npx jest --coverage", "npx jest"),
]


@pytest.mark.parametrize(("failed", "passed"), WIDER)
def test_what_a_wider_run_includes_does_not_fail_at_the_end(failed: str, passed: str) -> None:
    lines = written([*ran(failed, "1 failed, 3 passed in 0.2s"), *ran(passed, "120 passed in 3.1s")])
    assert lines == [
        f"- shell {failed}: failed: 1 failed, 3 passed in 0.2s",
        f"- shell {passed}: 120 passed in 3.1s",
    ]


@pytest.mark.parametrize(("failed", "passed"), NOT_WIDER)
def test_what_another_run_does_not_include_fails_at_the_end(failed: str, passed: str) -> None:
    lines = written([*ran(failed, "1 failed, 3 passed in 0.2s"), *ran(passed, "120 passed in 3.1s")])
    assert lines[-1] == f"Failing at the end: shell {failed}: failed: 1 failed, 3 passed in 0.2s"


def test_a_refused_edit_that_was_made_another_way_does_not_fail_at_the_end() -> None:
    refused = called("edit", "Error: old_string was not found", path="/w/src/a.py", old="1", new="2")
    for made in (
        ran("sed -i 's/1/2/' src/a.py", ""),
        called("shell", "", command="sed -i 's/1/2/' ./src/a.py", workdir="/w"),
        called("write", "ok", path="/w/src/a.py", content="2"),
    ):
        assert written([*refused, *made])[-1].startswith("Files changed: ")
    for other in (ran("sed -i 's/1/2/' b/a.py", ""), called("write", "ok", path="/w/lib/src/a.py", content="2")):
        assert written([*refused, *other])[-1].startswith("Failing at the end: edit /w/src/a.py")


def test_a_file_that_was_removed_is_no_change_and_does_not_fail() -> None:
    made = [
        *called("write", "ok", path="scratch/try.py", content="1"),
        *called("write", "ok", path="a.py", content="2"),
    ]
    failed = ran("python scratch/try.py", "Traceback (most recent call last):\nValueError: no")
    for command in (
        "rm scratch/try.py",
        "rm -rf scratch",
        "cd . && rm -f ./scratch/try.py && ls",
        "git rm -q scratch/try.py",
    ):
        lines = written([*made, *failed, *ran(command, "")])
        assert lines[-1] == "Files changed: a.py (#2)"
        assert lines[-3].endswith("ValueError: no")
    there = [*called("write", "ok", path="/w/try.py", content="1"), *ran("cd /w && rm -f try.py b.py", "")]
    assert not written(there)[-1].startswith("Files changed")
    kept = written([*made, *failed, *ran("rm scratch/other.py", "")])
    assert kept[-2:] == [
        "Files changed: scratch/try.py (#0), a.py (#2)",
        "Failing at the end: shell python scratch/try.py: failed: ValueError: no",
    ]
    refused = ran("rm scratch/try.py", "rm: cannot remove 'scratch/try.py': Permission denied")
    assert "scratch/try.py (#0)" in written([*made, *failed, *refused])[-2]


def test_one_file_in_two_spellings_was_changed_once() -> None:
    history = [*called("write", "ok", path="./src/a.py", content="1"), *ran("sed -i 's/1/2/' src/a.py", "")]
    assert written(history)[-1] == "Files changed: src/a.py (#2)"


def test_a_reminder_beside_a_result_is_no_new_request() -> None:
    call = Message("assistant", (ToolCall("d", "read", '{"path": "b.py"}'),))
    reminded = Message("user", (ToolResult("d", (Text("x = 1"),)), Text("<reminder>Be brief.</reminder>")))
    lines = written([user_text("Go."), *ran("make", "1 failed"), call, reminded])
    assert lines[-1] == "Failing at the end: shell make: failed: 1 failed"


@pytest.mark.parametrize(
    ("asks", "acts"),
    [
        ("get_order", "issue_refund"),
        ("find_customer", "charge_card"),
        ("list_users", "delete_user"),
        ("search_flights", "book_flight"),
        ("order_status", "cancelOrder"),
        ("check_stock", "mcp__shop__place_order"),
        ("order_details", "update_order_status"),
        ("issue_status", "check_in_passenger"),
        ("refund_history", "void_charge"),
        ("list_updates", "sendStatusUpdate"),
    ],
)
def test_what_was_done_is_told_rather_than_what_was_looked_up(asks: str, acts: str) -> None:
    history = [user_text("Work through the queue.")]
    for number in range(40):
        data = {"order": f"W{number}", **{f"key{at}": f"value {at} of {number}" for at in range(9)}}
        history += called(asks, json.dumps(data), order_id=f"W{number}")
        history += called(acts, '{"status": "ok"}', order_id=f"W{number}", note=f"thanks for order {number} " * 9)
    for most_tokens in (1_500, 2_500, 4_000):
        lines = written(history, most_tokens)
        done = " ".join(line for line in lines if line.startswith(f"- {acts}"))
        assert all(f"W{number}" in done.replace(",", " ").split() for number in range(40))
    shown = written(history, 900)
    left = 40 - sum(line.count("order_id W") for line in shown if line.startswith(f"- {acts}"))
    assert shown[-1] == f"({left} calls that changed something left out)"
