from __future__ import annotations

from typing import Any

from lading.evaluate.plan import PlanOptions, plan_replay
from lading.sources import Recording
from lading.wire import find_wire

EPHEMERAL = {"type": "ephemeral"}


def recorded(body: dict[str, Any]) -> Recording:
    """A recording of one Anthropic body."""
    conversation = find_wire("anthropic").decode(body)
    messages = conversation.messages
    return Recording("a", messages, tuple(range(len(messages))), model="m", params=conversation.template)


def test_a_body_that_asks_for_no_caching_is_given_the_mark_its_bill_assumes() -> None:
    plain = recorded({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]})
    plan, _ = plan_replay(plain, PlanOptions())
    assert plan.template["cache_control"] == EPHEMERAL
    assert plan.template["max_tokens"] == 9


def test_a_body_with_marks_of_its_own_keeps_them() -> None:
    marked = [{"type": "text", "text": "hi", "cache_control": EPHEMERAL}]
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": marked}]}
    plan, _ = plan_replay(recorded(body), PlanOptions())
    assert "cache_control" not in plan.template


def test_the_margin_of_a_replay_is_nothing_and_unknown_models_are_told() -> None:
    plan, events = plan_replay(recorded({"model": "m", "messages": []}), PlanOptions(model="nobody-knows-it"))
    assert plan.settings.budget.margin_tokens == 0
    assert len(events) == 1
