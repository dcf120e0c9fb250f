from __future__ import annotations

import json
from typing import Any

import pytest

from lading.compaction.call_kinds import split_name
from lading.compaction.effects import says_done, tells_failure
from lading.messages import user_text
from tests.compaction.acted import acted
from tests.compaction.test_record import written
from tests.compaction.test_record_calls import called

REFUND = {"order_id": "O1", "amount": 20}

BY_FRAMEWORKS = [
    "An error occurred while running the tool. Please try again. Error: the order is held",
    "Tool 'issue_refund' timed out after 30 seconds.",
    "Error invoking tool 'issue_refund' with kwargs {'a': 1} with error:\n the order is held\n Please wait",
    "Error executing tool issue_refund: the order is held",
    "Error calling tool 'issue_refund': the order is held",
    "MCP error -32603: the order is held",
    "Error executing tool 'issue_refund' with arguments {}: ValueError: the order is held\nAs a reminder, ...",
    "Failed to invoke Tool `issue_refund` with parameters {'order_id': 'O1'}. Error: the order is held",
    "<tool_error>the order is held</tool_error>",
]
"""What frameworks give a model for an exception of a tool, without a flag."""
OPEN = [
    {"job_id": "j7", "status": "queued"},
    {"status": "declined", "code": "card_expired"},
    {"status": "requires_action"},
    {"detail": "Order not found"},
    {"code": 404, "message": "Order not found"},
    {"id": "r1", "state": "FAILED"},
    {"refunded": False, "window": "closed"},
    {"message": "held", "errorCode": "ENTITY_IS_HELD"},
    {"data": {"refundCreate": {"refund": None, "userErrors": [{"field": ["input"], "message": "held"}]}}},
    "The order is held.\n\nFix the errors and try again.",
    "Could not refund: held",
    {"refunded": 0},
    {"success": True, "count": 0, "time": 0.5},
    "0 of the orders were refunded",
    {"ok": True, "skipped": True},
    {"result": "no_change", "reason": "already done"},
    {"id": "O1", "rows_changed": 3, "note": "as agreed on the phone today", "where": "in the archive of the shop"},
    "A manager has to approve this.",
    {"id": "O1", "status": "pending", **{f"item{at}": at for at in range(5)}},
]
DONE = [
    {"refund_id": "r1", "status": "succeeded", "error": None},
    {"success": True},
    {"ok": True, "message": "Refund issued."},
    {"status": "completed", "at": "2026-02-01T10:00", "sum": 20.0, "id": "R-0"},
    "OK",
    "Refunded 20 EUR.",
    "Success: 20 EUR are on their way",
    {"id": "O1", "owner": "Ann Miller", "insurance": "no", **{f"item{at}": f"thing {at}" for at in range(20)}},
]


def shortest(tool: str, arguments: object, answer: object) -> str:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return next(iter(acted(tool, arguments, text).write_forms()))[0]


@pytest.mark.parametrize("answer", BY_FRAMEWORKS)
def test_the_error_of_a_framework_is_a_failure(answer: str) -> None:
    act = acted("issue_refund", REFUND, answer)
    assert act.failed
    assert act.brief.startswith("issue_refund order_id O1, amount 20: failed: ")
    assert act.brief.count("is held") <= 1
    report = f"{answer}\n" + "and a text that is longer than the answer of a framework. " * 20
    assert not acted("get_article", {"id": "7"}, report).failed


@pytest.mark.parametrize("answer", OPEN, ids=str)
def test_an_answer_that_does_not_say_that_it_was_done_stays_with_its_call(answer: object) -> None:
    said = acted("issue_refund", REFUND, answer if isinstance(answer, str) else json.dumps(answer)).ended.text
    assert said
    assert shortest("issue_refund", REFUND, answer) == f"issue_refund order_id O1, amount 20: {said}"


@pytest.mark.parametrize("answer", DONE, ids=str)
def test_an_answer_that_says_that_it_was_done_is_left_out_first(answer: object) -> None:
    assert shortest("issue_refund", REFUND, answer) == "issue_refund order_id O1, amount 20"


@pytest.mark.parametrize(
    ("tool", "answer", "is_done"),
    [
        ("cancel_order", "order_id O1, status cancelled", True),
        ("issue_refund", "order_id O1, status cancelled", False),
        ("scheduleMeeting", "Meeting scheduled.", True),
        ("book_flight", "Seat requested, booked later", False),
        ("approve_request", "status approved, but on hold", False),
        ("set_limit", "limit 5", False),
        ("set_limit", "ok, limit 5", True),
        ("set_limit", "ok, limit 4", False),
        ("update_rows", "ok, updated 3 of 5", False),
        ("update_rows", "Done. 0 rows were updated.", False),
        ("update_rows", "success, but rolled back", False),
        ("cancel_order", "Only unshipped orders can be cancelled.", False),
        ("assign_ticket", "T-1 is assigned to lee; use force.", False),
        ("book_room", "It is booked by another team.", False),
        ("assign_ticket", "T-1 was assigned to lee.", True),
        ("update_rows", "ok true, dry_run true", False),
        ("add_user", "User added.", True),
        ("create_user", "created 2026-02-01, id u-7", True),
        ("submit_form", "submitted true", True),
        ("close_ticket", "status closed, result error", False),
    ],
)
def test_the_verb_of_the_tool_says_what_was_done(tool: str, answer: str, is_done: bool) -> None:
    assert says_done(answer, split_name(tool), given="limit 5", is_object=False) is is_done


def test_what_a_tool_cancels_is_no_failure() -> None:
    order = {"order_id": "O1", "status": "cancelled", **{f"item{at}": f"thing {at}" for at in range(20)}}
    assert shortest("cancel_order", {"order_id": "O1"}, order) == "cancel_order order_id O1"
    assert "status cancelled" in shortest("get_order", {"order_id": "O1"}, order)


def test_a_call_that_was_stopped_is_not_done() -> None:
    assert shortest("cancel_order", {"order_id": "O1"}, "The user cancelled the call.") == (
        "cancel_order order_id O1: The user cancelled the call."
    )


def test_a_failed_call_and_its_repetition_are_not_one_line_of_two() -> None:
    history = [user_text("Work through the queue.")]
    for number in range(30):
        for answer in (OPEN[number % len(OPEN)], {"status": "ok"}):
            text = answer if isinstance(answer, str) else json.dumps(answer)
            history += called("issue_refund", text, order_id=f"O{number}")
    for most_tokens in (900, 1_500, 4_000):
        lines = written(history, most_tokens)
        assert any("issue_refund" in line for line in lines)
        assert not any(" x2" in line for line in lines)


def test_a_job_that_failed_is_told_before_what_else_was_looked_up() -> None:
    history = [user_text("Work through the queue.")]
    for number in range(30):
        job: dict[str, Any] = {
            "job_id": f"j{number}",
            "type": "refund",
            "status": "failed" if number % 3 == 0 else "succeeded",
        }
        job |= {"error": {"code": "card_expired"}} if number % 3 == 0 else {"refund_id": f"r{number}"}
        order = {"order_id": f"O{number}", **{f"key{at}": f"value {at}" for at in range(20)}}
        history += called("get_order", json.dumps(order), order_id=f"O{number}")
        history += called(
            "issue_refund", json.dumps({"job_id": f"j{number}", "status": "queued"}), order_id=f"O{number}"
        )
        history += called("get_job", json.dumps(job), job_id=f"j{number}")
    text = "\n".join(written(history, 1_800))
    for number in range(0, 30, 3):
        assert f"job_id j{number}: job_id j{number}, type refund, status failed" in text
    assert text.count("status queued") == 30


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("job_id j7, status failed, error.code card_expired", True),
        ("status declined", True),
        ("id 7, state FAILED", True),
        ("payment.status failed, amount 3", False),
        ("id 7, previous_status failed, status succeeded", False),
        ("title the status failed to load", False),
        ("id 7, status completed, conclusion failure", True),
        ("jobStatus FAILED", True),
        ("id 7, status completed_with_errors, rows 9", True),
        ("name operations/7, done true, error.code 5", True),
        ("id 7, status cancelled", True),
        ("rows_failed 3, rows 9", True),
        ("pod web, exitCode 137", True),
        ("error_rate 0.1, errors 0, error null", False),
    ],
)
def test_a_lookup_tells_a_failure_by_its_own_status(answer: str, told: bool) -> None:
    assert tells_failure(answer) is told
