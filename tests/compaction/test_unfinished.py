"""What a record says of a check that was run again, and of which no result shows how it ended."""

from __future__ import annotations

import pytest

from lading.compaction.outcomes import read_outcome
from lading.compaction.shell_commands import parse_command
from lading.compaction.unfinished import find_unfinished
from lading.messages import Text, ToolResult
from tests.compaction.test_checks import FAILED, PASSED
from tests.compaction.test_record import ran, written

BEGUN = "tests/test_a.py ......\ntests/test_b.py ..."
UNFINISHED = {
    "an id of the background": "Command running in background with ID: bash_1",
    "moved by a timeout": "Command did not complete within its timeout and was moved to the background (b1a2).",
    "a session": f"Chunk ID: 1\nWall time: 10.0 seconds\nProcess running with session ID 45231\nOutput:\n{BEGUN}",
    "a process moved": "Command moved to background (PID: 4321). Output hidden. Press Ctrl+Shift+L to view.",
    "no new output": f"{BEGUN}\n[The command has no new output after 30 seconds. Send an empty command to wait.]\n"
    "[Current working directory: /repo]\n[Command finished with exit code -1]",
    "a terminal of the user": f"Command is still running in the user's terminal.\nThe output so far:\n{BEGUN}",
    "an id of a terminal": "Command is running in terminal with ID=7b1c",
    "captured so far": f"Command is running in the background. The following output was captured so far:\n{BEGUN}",
    "not finished": f"{BEGUN}\nThe process has not finished yet; ask again for more.",
    "a started task": "Background task 7 started.",
    "running in the background": "Running in the background (pid 42).",
    "a state in JSON": '{"task_id": "t1", "status": "running"}',
    "a state in tags": f"<status>running</status>\n<stdout>\n{BEGUN}\n</stdout>",
}
FINISHED = [
    "",
    PASSED,
    f"{BEGUN}\n{PASSED}",
    "All checks passed! (process 12)",
    "running 3 tests\ntest result: ok. 3 passed; 0 failed",
    "Process exited with code 0\nOutput:\nok",
    "test process_is_restarted ... ok",
    "Background PIDs: (none)\nExit Code: 0",
    "Finished running 12 commands.\n12 passed",
    '{"status": "completed", "passed": 12}',
]


@pytest.mark.parametrize("result", UNFINISHED.values(), ids=UNFINISHED)
def test_a_check_that_runs_on_has_not_passed(result: str) -> None:
    lines = written([*ran("pytest tests", FAILED), *ran("ls", "tests"), *ran("pytest tests", result)])
    assert lines[0] == f"- shell pytest tests: failed: {FAILED}"
    assert find_unfinished(result)[:40] in lines[2]
    assert not lines[-1].startswith("Failing at the end")
    later = written([*ran("pytest tests", FAILED), *ran("pytest tests", result), *ran("pytest tests", PASSED)])
    assert later[0] == f"- shell pytest tests: failed: {FAILED} (passed later)"


@pytest.mark.parametrize("result", FINISHED)
def test_a_check_that_ended_has_passed(result: str) -> None:
    assert find_unfinished(result) == ""
    lines = written([*ran("pytest tests", FAILED), *ran("pytest tests", result)])
    assert lines[0] == f"- shell pytest tests: failed: {FAILED} (passed later)"


@pytest.mark.parametrize(
    "result",
    [
        "  41 passing (4ms)\n  2 failing\n\n  1) Calc\n       subtracts",
        "ℹ tests 2\nℹ pass 1\nℹ fail 1\n\n✖ failing tests:",
        "     Running `target/debug/x`\nthread 'main' panicked at src/main.rs:3:5:\nindex out of bounds",
        "......\nEXECUTION TIMED OUT after 120 seconds",
        "Killed",
        "00:01 +3 -1: Some tests failed.",
        "Listening on 8080\nUnhandled worker crash; shutting down",
        "9 passed in 1.1s\n  py311: FAIL code 1 (3.2 seconds)",
    ],
)
def test_a_result_that_leaves_doubt_is_no_success(result: str) -> None:
    lines = written([*ran("pytest tests", FAILED), *ran("pytest tests", result)])
    assert not lines[0].endswith("(passed later)")
    lines = written(
        [*ran("pytest tests", f"Exit code: 1\n{FAILED}"), *ran("pytest tests", f"Exit code: 0\n{result}")]
    )
    assert lines[0].endswith("(passed later)")


@pytest.mark.parametrize(
    "result", ["9 passed, 1 xfailed in 1s", "ok. 3 passed; 0 failed; 0 ignored", "Done in 2s."]
)
def test_a_result_without_doubt_is_a_success(result: str) -> None:
    assert written([*ran("pytest tests", FAILED), *ran("pytest tests", result)])[0].endswith("(passed later)")


@pytest.mark.parametrize("command", ["pytest tests &", "nohup pytest tests > log 2>&1 &"])
def test_a_check_that_is_not_waited_for_has_not_passed(command: str) -> None:
    lines = written([*ran(command, FAILED), *ran(command, "[1] 4321")])
    assert lines[0] == f"- shell {command}: failed: {FAILED}"


def test_a_command_that_took_too_long_failed() -> None:
    cancelled = (
        "The command 'pytest tests' was cancelled because it took more than 30 seconds. Please try a different "
        "command that completes more quickly."
    )
    for text in (cancelled, "Command 'make all' timed out after 120 seconds"):
        assert read_outcome(ToolResult("c", (Text(text),)), "command", shell=parse_command("x")).failed


@pytest.mark.parametrize(
    ("cut", "lines", "is_shown"),
    [
        ("head", 10, False),
        ("head", 9, True),
        ("head -n 20", 20, False),
        ("head -20", 19, True),
        ("tail -5", 50, True),
    ],
)
def test_a_success_in_an_output_that_is_cut_behind_it_is_none(cut: str, lines: int, is_shown: bool) -> None:
    output = "\n".join(["ok   api  0.1s", *(f"building part {at}" for at in range(lines - 1))])
    output = "\n".join(output.split("\n")[::-1]) if cut.startswith("tail") else output
    said = written([*ran("go test ./...", FAILED), *ran(f"go test ./... 2>&1 | {cut}", output)])
    assert said[0] == f"- shell go test ./...: failed: {FAILED}{' (passed later)' * is_shown}"
