"""What a record says of calls of providers' own tools."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lading import Session
from lading.compaction.actions import read_action
from lading.compaction.fencing import write_transcript
from lading.compaction.kept_calls import read_calls
from lading.messages import Message
from lading.wire import find_wire

PICTURE = "data:image/png;base64,AAAA"


def shell(output: Any, *commands: str) -> list[dict[str, Any]]:
    call = {"type": "shell_call", "call_id": "c", "id": "s", "action": {"commands": commands, "timeout_ms": None}}
    return [call, {"type": "shell_call_output", "call_id": "c", "output": [output]}]


def patch(operation: dict[str, Any], **output: Any) -> list[dict[str, Any]]:
    call = {"type": "apply_patch_call", "call_id": "c", "id": "p", "status": "completed", "operation": operation}
    return [call, {"type": "apply_patch_call_output", "call_id": "c", **output}]


def served(name: str, given: dict[str, Any], result: dict[str, Any]) -> list[dict[str, Any]]:
    """What Anthropic's servers run."""
    kind = "mcp_tool_use" if result["type"].startswith("mcp") else "server_tool_use"
    asked = {"type": kind, "id": "srv_1", "name": name, "input": given}
    blocks = [asked, {"tool_use_id": "srv_1", **result}]
    return [{"role": "user", "content": "go"}, {"role": "assistant", "content": blocks}]


def generated(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    """What Google's servers run."""
    return [{"role": "user", "parts": [{"text": "go"}]}, {"role": "model", "parts": list(parts)}]


def executed(code: str, output: str, outcome: str = "OUTCOME_OK") -> list[dict[str, Any]]:
    called = {"executableCode": {"language": "PYTHON", "code": code}, "thoughtSignature": "AAAA"}
    return [called, {"codeExecutionResult": {"outcome": outcome, "output": output}}]


CASES: list[tuple[str, list[dict[str, Any]]]] = [
    (
        "shell pytest -q; ls: 3 passed in 1s",
        shell({"stdout": "3 passed in 1s\n", "outcome": {"type": "exit", "exit_code": 0}}, "pytest -q", "ls"),
    ),
    (
        "shell ls /x: failed: ls: cannot access '/x'",
        shell({"stderr": "ls: cannot access '/x'", "outcome": {"type": "exit", "exit_code": 2}}, "ls /x"),
    ),
    ("shell sleep 9: failed: timed out", shell({"stdout": "", "outcome": {"type": "timeout"}}, "sleep 9")),
    (
        "local_shell cat a.py: x = 1 y = 2",
        [
            {
                "type": "local_shell_call",
                "call_id": "c",
                "id": "l",
                "action": {"type": "exec", "command": ["bash", "-lc", "cat a.py"], "env": {}},
            },
            {"type": "local_shell_call_output", "id": "c", "output": "x = 1\ny = 2"},
        ],
    ),
    (
        "apply_patch src/a.py: + return 2",
        patch(
            {"type": "update_file", "path": "src/a.py", "diff": "@@ def f():\n-    return 1\n+    return 2\n"},
            status="completed",
        ),
    ),
    (
        "apply_patch src/a.py (type delete_file): failed: No such file",
        patch({"type": "delete_file", "path": "src/a.py"}, status="failed", output="No such file"),
    ),
    (
        "computer type click, x 1, y 2: [image, #1]",
        [
            {"type": "computer_call", "call_id": "c", "id": "u", "action": {"type": "click", "x": 1, "y": 2}},
            {
                "type": "computer_call_output",
                "call_id": "c",
                "output": {"type": "computer_screenshot", "image_url": PICTURE},
            },
        ],
    ),
    (
        "web_search type search, query uv lock",
        [{"type": "web_search_call", "id": "w", "action": {"type": "search", "query": "uv lock"}}],
    ),
    (
        "code_interpreter code print(1): 1",
        [
            {
                "type": "code_interpreter_call",
                "id": "i",
                "code": "print(1)",
                "outputs": [{"type": "logs", "logs": "1"}],
            }
        ],
    ),
    (
        "list_issues repo a/b: number 7, title Crash",
        [
            {
                "type": "mcp_call",
                "id": "m",
                "name": "list_issues",
                "arguments": '{"repo": "a/b"}',
                "output": '[{"number": 7, "title": "Crash"}]',
            }
        ],
    ),
    (
        "delete repo a/b: failed: not approved: Too risky.",
        [
            {"type": "mcp_approval_request", "id": "m", "name": "delete", "arguments": '{"repo": "a/b"}'},
            {
                "type": "mcp_approval_response",
                "approval_request_id": "m",
                "approve": False,
                "reason": "Too risky.",
            },
        ],
    ),
    (
        "web_search query uv lock: About it https://x.example/a",
        served(
            "web_search",
            {"query": "uv lock"},
            {
                "type": "web_search_tool_result",
                "content": [
                    {
                        "type": "web_search_result",
                        "title": "About it",
                        "url": "https://x.example/a",
                        "encrypted_content": "ZZ",
                    }
                ],
            },
        ),
    ),
    (
        "bash_code_execution ls /x: failed: ls: cannot access '/x'",
        served(
            "bash_code_execution",
            {"command": "ls /x"},
            {
                "type": "bash_code_execution_tool_result",
                "content": {
                    "type": "bash_code_execution_result",
                    "stdout": "",
                    "stderr": "ls: cannot access '/x'",
                    "return_code": 2,
                },
            },
        ),
    ),
    (
        "web_search query x: failed: too_many_requests",
        served(
            "web_search",
            {"query": "x"},
            {
                "type": "web_search_tool_result",
                "content": {"type": "web_search_tool_result_error", "error_code": "too_many_requests"},
            },
        ),
    ),
    (
        "echo a 1: hello",
        served("echo", {"a": 1}, {"type": "mcp_tool_result", "content": [{"type": "text", "text": "hello"}]}),
    ),
    ("code_execution code print(7): 7", generated(*executed("print(7)", "7\n"))),
    (
        "code_execution code 1/0: failed: ZeroDivisionError: division by zero",
        generated(*executed("1/0", "ZeroDivisionError: division by zero", "OUTCOME_FAILED")),
    ),
    (
        "code_execution code f(): failed: timed out",
        generated(
            {"executable_code": {"language": "PYTHON", "code": "f()", "id": "x"}},
            {"code_execution_result": {"outcome": "OUTCOME_DEADLINE_EXCEEDED", "id": "x"}},
        ),
    ),
    (
        "google_search_web queries uv lock",
        generated(
            {"toolCall": {"id": "s", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["uv lock"]}}},
            {
                "toolResponse": {
                    "id": "s",
                    "toolType": "GOOGLE_SEARCH_WEB",
                    "response": {"search_suggestions": "<b>"},
                }
            },
        ),
    ),
]


def decode(items: list[dict[str, Any]]) -> list[Message]:
    if "parts" in items[0]:
        return list(find_wire("gemini").decode({"contents": items}).messages)
    native = "role" in items[0]
    body = {"model": "m", "messages" if native else "input": items}
    return list(find_wire("anthropic" if native else "openai_responses").decode(body).messages)


@pytest.mark.parametrize(("line", "items"), CASES, ids=[line.split(":")[0] for line, _ in CASES])
def test_a_line_of_a_record_tells_of_the_call_and_its_outcome(line: str, items: list[dict[str, Any]]) -> None:
    messages = decode(items)
    read = [read_calls(message) for message in messages]
    [call] = [call for calls, _ in read for call in calls]
    [result] = [result for _, results in read for result in results]
    assert call.id == result.call_id
    media = "[image, #1]" if "image" in line else ""
    assert read_action(call, result, media=media).detail == line
    assert f"[call of {call.name}]" in write_transcript(messages, most_chars=10_000)


def test_an_agent_that_works_by_a_shell_of_openai_reads_what_it_did() -> None:
    session = Session("gpt-5.2", wire="openai_responses", window=16_000)
    session.add([{"role": "user", "content": "Find the bug."}])
    for number in range(30):
        session.pack([{"type": "shell"}])
        printed = "\n".join(f"{at}: token_{number} at {at * 7}" for at in range(120))
        done = shell({"stdout": printed, "outcome": {"type": "exit", "exit_code": 0}}, f"grep token_{number} a.py")
        session.add([item | {"call_id": f"c{number}"} for item in done])
    sent = json.dumps(session.pack([{"type": "shell"}]).request["input"])
    assert "Record of messages" in sent
    assert [number for number in range(30) if f"grep token_{number} a.py" not in sent] == []


def test_code_that_gemini_runs_without_ids_has_its_own_results() -> None:
    parts = [*executed("f(1)", "one"), *executed("f(2)", "two", "OUTCOME_FAILED"), *executed("f(3)", "three")]
    session = Session("gemini-3-pro", wire="gemini", window=16_000)
    session.add(generated(*parts, {"text": "Done."}))
    for number in range(20):
        session.pack()
        said = generated(*executed(f"read({number})", f"line {number} " * 200), {"text": f"Read {number}."})[1]
        session.add([{"role": "user", "parts": [{"text": "Go on."}]}, said])
    sent = json.dumps(session.pack().request["contents"])
    lines = ("code f(1): one", "code f(2): failed: two", "code f(3): three", "code read(9): line 9 ")
    assert [line for line in lines if f"code_execution {line}" not in sent] == []
