from __future__ import annotations

import json

import pytest

from tests.compaction.acted import acted

STOPPED = """[Request interrupted by user]
The user doesn't want to take this action right now. STOP what you are doing and wait.
aborted by user after 3.2s
exec command rejected by user
command aborted
[Operation Cancelled] Reason: User did not allow tool call
Command was cancelled by user before it could complete.
The operation was cancelled by the user.
User cancelled the operation.
The user denied this operation and gave this feedback: use npm, and run the tests again with coverage for all parts
User rejected this tool call
The user skipped this command
Rejected: User chose to skip
User chose to skip this.
User aborted
The user rejected permission to use this specific tool call.
Tool execution aborted
User aborted the command
Skipped due to queued user message.
Cancelled
canceled.
Interrupted
User rejected the tool call for `x` with id y
Tool execution was not approved.
The user has declined to run this tool. DO NOT attempt to call this tool again.
Tool execution denied.
Tool canceled by user
Permission to run tool denied by user
Permission to use Edit has been denied.
You requested permissions to write to /w/a.py, but you haven't granted it yet.
Search aborted by user
Command 'ls' was aborted
The tool call was skipped because an earlier one failed.
Request cancelled
Patch rejected: writing outside of the project
Operation blocked by hook: protected path""".splitlines()
DONE = """cancel_booking: Cancelled booking B1.
cancel_booking: Cancelled.
cancel_booking: Booking cancelled by user.
cancel_task: Task cancelled.
deny_request: Request denied.
deny_request: Access request R4 of user kim denied.
reject_call: Call rejected.
skip_step: Skipped: step 3
skip_step: Skipped step 3.
update: Subscription S1 for user u_17 was cancelled.
update: Cancelled order B1. Refund of 30.00 EUR issued.
update: Rejected 3 applications.
update: Request R4 denied.
update: Skipped 3 rows, imported 7
get_user: user u1: account status denied, plan pro
get_event: User kim denied the invitation.
get_event: The user declined the meeting invitation.
get_order: Order W1 was cancelled by the customer
get_order: Order W1 cancelled by user kim""".splitlines()


@pytest.mark.parametrize("text", STOPPED)
def test_a_call_that_was_not_carried_out_is_recognised(text: str) -> None:
    for tool, arguments in (("edit", {"path": "a.py", "old_string": "x", "new_string": "y"}), ("x", {"id": "B1"})):
        act = acted(tool, arguments, text)
        assert (act.ended.ran, act.failed) == (False, False)


@pytest.mark.parametrize(
    "text", ["Cancelled by the user", "The user denied this operation.", "Tool call cancelled."]
)
def test_a_tool_that_cancels_can_be_stopped_too(text: str) -> None:
    assert not acted("cancel_order", {"id": "B1"}, text).ended.ran


@pytest.mark.parametrize("line", DONE)
def test_what_a_call_stopped_is_not_the_call(line: str) -> None:
    tool, _, text = line.partition(": ")
    act = acted(tool, {"id": "B1"}, text)
    assert (act.ended.ran, act.failed) == (True, False)


CALL_FAILED: list[dict[str, object]] = [
    {"status": "failed", "transaction_id": "t1", "reason": "no funds"},
    {"error": "locked", "order_id": "W1"},
    {"order_id": "W1", "error": "locked"},
    {"error": "not enough seats", "flight": "H1", "requested": 3, "available": 1},
    {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "no"}},
    {"content": [{"type": "text", "text": "no"}], "isError": True},
    {"timestamp": "2025", "status": 404, "error": "Not Found", "path": "/x"},
    {"status": "error", "message": "Order W1 is locked"},
    {"type": "error", "error": {"type": "overloaded"}, "request_id": "r1"},
    {"success": False, "order": {"id": "W1", "items": 3}},
    {"data": None, "error": "x"},
    {"ok": False, "reason": "too late"},
]
SUBJECT_FAILED: list[dict[str, object]] = [
    {"id": "p_12", "status": "failed", "amount": 30.0, "currency": "EUR"},
    {"job_id": "j1", "status": "completed", "error": "2 rows skipped"},
    {"status": "failed", "job_id": "j1", "rows": 320},
    {"order_id": "W1", "status": "error", "items": 3},
    {"number": 77, "success": False, "branch": "main", "commit": "3f2a1bc"},
]


@pytest.mark.parametrize("answer", CALL_FAILED)
def test_an_answer_that_reports_how_the_call_went_is_its_failure(answer: object) -> None:
    assert acted("update", {"id": "B1"}, json.dumps(answer)).failed


@pytest.mark.parametrize("answer", SUBJECT_FAILED)
def test_data_about_something_that_failed_is_no_failure_of_the_call(answer: object) -> None:
    act = acted("fetch_it", {"id": "B1"}, json.dumps(answer))
    assert not act.failed
    assert "failed:" not in act.detail
    # An edit that answers so was not made.
    edit = acted("edit", {"path": "a.py", "old_string": "x", "new_string": "y"}, json.dumps({"status": "failed"}))
    assert edit.failed


def test_the_answer_to_a_question_may_be_no() -> None:
    assert not acted("check_email", {"address": "a@x"}, '{"ok": false, "reason": "mx missing"}').failed
    assert acted("check_email", {"address": "a@x"}, '{"ok": false, "error": "timeout"}').failed
    assert acted("test_connection", {"host": "x"}, '{"ok": false, "error": "timeout"}').failed


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "<error_details>\nNo similar match (83%)\n\nDebug:\n- 83%\n</error_details>",
            "No similar match (83%) / - 83%",
        ),
        ("<error_details>\nSeveral separators in one block\n</error_details>", "Several separators in one block"),
        ("<tool_response>\nFile not found\n</tool_response>", "File not found"),
        ('<result status="error">\nTwo blocks\n</result>', "Two blocks"),
        ('<result>\n\n<error code="3">\nTwo blocks\n</error></result>', "Two blocks"),
        ("<r>\n<path>a.py</path>\n<status>failed</status>\n</r>", "<r> <path>a.py</path> <status>failed</status>"),
        ("Exit code: 1\nOutput:\nTwo blocks", "Exit code: 1 / Two blocks"),
        ("You must read the file first.", "You must read the file first."),
    ],
)
def test_an_edit_that_is_refused_in_any_layout_failed(text: str, says: str) -> None:
    act = acted("apply", {"path": "a.py", "old_string": "x", "new_string": "y"}, text)
    assert act.brief.startswith(f"apply a.py: failed: {says}")


@pytest.mark.parametrize(
    "text",
    [
        "<result>\n<path>a.py</path>\n<operation>modified</operation>\n<notice>read it again</notice>\n</result>",
        "<result>\nThe file was updated\n<error>\n</result>",
        "<edited>\n 1 x\n 2 <error>y</error>\n</edited>",
        "<success/>",
    ],
)
def test_an_edit_that_is_made_in_a_layout_of_tags_is_made(text: str) -> None:
    assert not acted("apply", {"path": "a.xml", "old_string": "x", "new_string": "y"}, text).failed


@pytest.mark.parametrize("tool", ["get_build", "get_test_run", "fetchBuild", "list_test_runs", "describe-build"])
def test_a_tool_that_looks_up_builds_and_tests_gives_data(tool: str) -> None:
    answer = json.dumps({"id": 77, "failed": 3, "artifact": "app-3f2a.tar.gz"}, indent=2)
    act = acted(tool, {"id": 77}, answer)
    assert (act.kind, act.failed) == ("", False)
    assert act.detail == f"{tool} id 77: id 77, failed 3, artifact app-3f2a.tar.gz"


def test_a_tool_that_runs_tests_is_told_by_all_values_of_its_answer() -> None:
    for failed in (0, 3):
        act = acted("run_tests", {"suite": "a"}, json.dumps({"passed": 9, "failed": failed, "took": 3}, indent=2))
        assert (act.kind, act.failed) == ("command", failed > 0)
    assert acted("run_tests", {"suite": "a"}, '{\n "passed": 9,\n "failed": 0\n}').detail.endswith(
        "passed 9, failed 0"
    )
