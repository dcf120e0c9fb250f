"""The requests that a model is asked: whatever the session, they are legal, and a question is at their end."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.errors import IllegalRequest
from lading.evaluate.plan import PlanOptions, plan_replay
from lading.evaluate.request_pairs import build_pairs, find_packed_calls, make_body, plan_for
from lading.evaluate.session_runs import prepare_session
from lading.messages import Message, user_text
from lading.wire import check, find_wire
from tests.evaluate.asked import model
from tests.evaluate.sessions import asks, gives, recorded, said
from tests.histories import histories

MODELS = {"openai_chat": "gpt-5-mini", "anthropic": "claude-sonnet-5"}


@pytest.mark.fuzz
@given(histories(), st.sampled_from(list(MODELS)), st.sampled_from([300, 700, 50_000]))
def test_what_is_asked_is_legal_and_ends_with_the_question(history: list[Message], wire: str, window: int) -> None:
    asked, recording = model(MODELS[wire], wire=wire), recorded(*history)
    plan, _ = plan_replay(recording, plan_for(asked, PlanOptions(window_tokens=window, strategy="basic")))
    try:
        session = prepare_session(recording, plan, name="s")
    except IllegalRequest:
        return
    for pair in build_pairs(session, "basic", calls=range(1, len(session.calls) + 1)):
        for side in (pair.packed, pair.full):
            if not side.body or side.broken_rules:
                continue
            for added in ([], [user_text("What was found?")]):
                body = make_body(asked, side.body, added=added)
                assert check(body, find_wire(wire), card=asked.card) == []
            assert "What was found?" in json.dumps(body["messages"][-1])
            before = json.loads(side.body)["messages"]
            assert body["messages"][: len(before) - 1] == before[:-1]


@pytest.mark.parametrize("wire", MODELS)
def test_pairs_are_built_where_the_requests_differ(wire: str) -> None:
    rounds = [
        message
        for number in range(12)
        for message in (asks((f"c{number}", "read", "{}")), gives(f"c{number}", "word " * 400))
    ]
    recording = recorded(said("user", "Look around."), *rounds, said("assistant", "Done."))
    asked = model(MODELS[wire], wire=wire)
    plan, _ = plan_replay(recording, plan_for(asked, PlanOptions(window_tokens=3_000, strategy="basic")))
    session = prepare_session(recording, plan, name="s")
    calls = find_packed_calls(session, "basic")
    assert calls[-1] == 13
    first, *others = build_pairs(session, "basic", calls=[1, *calls[-2:]])
    assert (first.call, first.packed.body) == (1, first.full.body)
    assert [item.call for item in others] == calls[-2:]
    assert all(0 < item.packed.tokens < item.full.tokens for item in others)
    whole = others[-1].full.body
    assert make_body(asked, whole) == json.loads(whole)
    # The mark that caches a whole request is of use only where the request is sent again.
    marks = ["cache_control" in make_body(asked, whole, added=added) for added in ([], [user_text("Why?")])]
    assert marks == [wire == "anthropic", False]


def test_the_window_leaves_room_for_the_answer() -> None:
    asked = model(answer_tokens=1_000)
    assert plan_for(asked, PlanOptions()).window_tokens == asked.input_tokens
    assert plan_for(asked, PlanOptions(window_tokens=5_000)).window_tokens == 5_000
    assert asked.input_tokens == model(answer_tokens=2_000).input_tokens + 1_000
    assert asked.input_tokens <= asked.card.limits.window_tokens - 1_000
