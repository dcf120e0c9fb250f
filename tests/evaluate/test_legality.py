from __future__ import annotations

import math

from msgspec.structs import replace

from lading.evaluate.legality import Legality, check_requests
from lading.evaluate.plan import PlanOptions, plan_replay
from lading.evaluate.replay import find_calls
from lading.messages import Message, Opaque
from lading.sources import Recording, open_tool
from tests.evaluate.sessions import asks, gives, recorded, said

TOOLS = (open_tool("read"),)


def check(recording: Recording, *, wire: str = "openai_chat") -> Legality:
    plan, _ = plan_replay(recording, PlanOptions(wire=wire))
    tokens = [1] * len(recording.messages)
    return check_requests(recording, plan, tools=TOOLS, calls=find_calls(recording.messages), tokens=tokens)


LEGAL = (said("user", "go"), asks(("1", "read", "{}")), gives("1", "hi"), said("assistant", "done"))
INTERRUPTED = (
    said("user", "go"),
    asks(("1", "read", "{}")),
    said("user", "stop"),
    said("assistant", "stopped"),
    said("user", "and now"),
    said("assistant", "done"),
)


def test_a_legal_session() -> None:
    assert check(recorded(*LEGAL)) == Legality(requests=2)
    assert check(recorded(*LEGAL), wire="anthropic") == Legality(requests=2)


def test_a_rule_is_counted_in_each_request_that_holds_the_message() -> None:
    found = check(recorded(*INTERRUPTED))
    assert (found.requests, found.illegal_requests) == (3, 2)
    (broken,) = found.broken
    assert (broken.rule, broken.requests, broken.places) == ("C1", 2, 1)
    assert (broken.session, broken.message_index, broken.path) == ("s", 3, "messages.1")
    assert dict(found.repairs) == {"unanswered_call": 1}


def test_a_request_that_ends_with_an_assistant_message_is_found_though_the_last_does_not() -> None:
    twice = (said("user", "go"), said("assistant", "a"), said("assistant", "b"), said("user", "x"))
    found = check(recorded(*twice, said("assistant", "c"), model="claude-opus-5"), wire="anthropic")
    assert (found.requests, found.illegal_requests) == (3, 1)
    assert [broken.rule for broken in found.broken] == ["A13"]
    assert dict(found.repairs) == {"ends_with_assistant": 1}


def test_without_a_model_call_the_history_is_checked_as_a_whole() -> None:
    found = check(recorded(said("user", "a"), gives("1", "orphan")))
    assert (found.requests, found.illegal_requests) == (1, 1)
    assert found.broken[0].message_index == 1


def test_what_json_cannot_carry_is_a_violation_from_there_on() -> None:
    bad = Message("user", (Opaque({"type": "x", "n": math.nan}),), origin="openai_chat")
    found = check(recorded(said("user", "a"), said("assistant", "b"), bad, *LEGAL[1:]))
    assert (found.requests, found.illegal_requests) == (3, 2)
    assert [(broken.rule, broken.requests) for broken in found.broken] == [("JSON", 2)]


def test_checks_add_up_by_rule_and_keep_the_first_place() -> None:
    one = check(recorded(*INTERRUPTED))
    other = check(replace(recorded(*INTERRUPTED), id="t"))
    both = one + other
    assert (both.requests, both.illegal_requests) == (6, 4)
    assert [(broken.session, broken.requests, broken.places) for broken in both.broken] == [("s", 4, 2)]
    assert both.repairs == (("unanswered_call", 2),)
    assert one + Legality() == one


def test_a_request_body_is_a_request_though_its_reply_is_not_recorded() -> None:
    open_call = (said("user", "go"), asks(("1", "read", "{}")))
    body = replace(recorded(*open_call, said("user", "and?")), params={"model": "gpt-4o"})
    assert check(body).illegal_requests == 1
    assert check(replace(body, params=None)).illegal_requests == 0
    answered = replace(recorded(*LEGAL), params={"model": "gpt-4o"})
    assert check(answered) == Legality(requests=2)
