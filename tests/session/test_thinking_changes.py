"""Thinking that is enabled in the middle of a tool loop: it is left out until the loop has ended, with an event."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from lading import Session, SessionOptions, Tool, tool_result, verify
from lading.events import FieldLeftOut, Repaired
from lading.request.pack import Pack
from lading.stores.memory import MemoryStore
from lading.testing.legality import find_unpaired
from lading.wire import check, find_wire
from tests.replies import chat_reply, messages_reply

TOOLS = [Tool("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})]
ENABLED = {"type": "enabled", "budget_tokens": 1_024}
THINKING: dict[str, Any] = {"max_tokens": 4_000, "thinking": ENABLED}
CLEARING = {"edits": [{"type": "clear_thinking_20251015"}]}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
WITHOUT_THINKING = ("gpt-4o", "claude-opus-5-5", "claude-sonnet-4-5")
WITH_BUDGET = ("claude-sonnet-4-5", "anthropic.claude-3-7-sonnet-20250219-v1:0")


def said(session: Session, number: int, *, thinks: bool) -> None:
    """The reply of the model of this session: a call, with thinking before it."""
    if session.wire.name == "anthropic":
        call = {"type": "tool_use", "id": f"c{number}", "name": "read", "input": {"path": "a"}}
        session.reply(messages_reply(*[THOUGHT][: int(thinks)], call))
    else:
        session.reply(chat_reply(None, (f"c{number}", "read", {"path": "a"}), number=number))


def sent(session: Session, fields: dict[str, Any]) -> tuple[Pack, list[str]]:
    """The request with these fields, which is legal, and the fields that are left out."""
    pack = session.pack(TOOLS, fields=fields)
    wire, body = session.wire.name, pack.request
    assert not [*check(body, find_wire(wire), card=session.settings.card, strict=True), *find_unpaired(wire, body)]
    assert not pack.violations
    return pack, [event.field for event in pack.events if isinstance(event, FieldLeftOut)]


@pytest.mark.parametrize(
    ("before", "after", "beside", "answered_late"),
    [*product(WITHOUT_THINKING, WITH_BUDGET, ("", "And?"), (0, 1))],
)
def test_thinking_waits_for_the_end_of_a_loop_that_began_without_it(
    before: str, after: str, beside: str, answered_late: int
) -> None:
    store, plain = MemoryStore(), {"max_tokens": 4_000}
    with Session(before, store=store) as session:
        session.add("Find it.")
        sent(session, plain)
        said(session, 1, thinks=False)
        if not answered_late:
            session.add(tool_result("c1", "Here."))
    with Session(after, store=store) as session:
        if answered_late:
            session.add(tool_result("c1", "Here."))
        if beside:
            session.add(beside)
        for number in (2, 3):
            pack, left_out = sent(session, THINKING | {"context_management": CLEARING})
            assert left_out == ["thinking", "context_management"]
            assert not {*left_out} & pack.request.keys()
            said(session, number, thinks=False)
            session.add(tool_result(f"c{number}", "Here."))
        session.reply(messages_reply({"type": "text", "text": "Found."}))
        session.add("And now?")
        for number in (4, 5):
            pack, left_out = sent(session, THINKING)
            assert (left_out, pack.request["thinking"]) == ([], ENABLED)
            said(session, number, thinks=True)
            session.add(tool_result(f"c{number}", "Here."))
    assert {found.problem for found in verify(store, tenant="default", session="session")} == {""}


def test_other_edits_of_the_context_stay() -> None:
    edits = {"edits": [{"type": "clear_tool_uses_20250919"}]}
    with Session("claude-sonnet-4-5") as session:
        session.add("Find it.")
        said(session, 1, thinks=False)
        session.add(tool_result("c1", "Here."))
        pack, left_out = sent(session, THINKING | {"context_management": edits})
        assert (left_out, pack.request["context_management"]) == (["thinking"], edits)


@pytest.mark.parametrize("thinking", [{"type": "adaptive"}, {"type": "disabled"}, None])
def test_other_thinking_stays(thinking: Any) -> None:
    with Session("claude-opus-5-5") as session:
        session.add("Find it.")
        said(session, 1, thinks=False)
        session.add(tool_result("c1", "Here."))
        pack, left_out = sent(session, {"max_tokens": 4_000, "thinking": thinking} if thinking else {})
        assert (left_out, pack.request.get("thinking")) == ([], thinking)


@pytest.mark.parametrize(
    "beside", [{"role": "system", "content": "Be brief."}, {"role": "developer", "content": "x"}]
)
def test_a_late_system_message_that_is_the_user_s_begins_a_loop(beside: dict[str, Any]) -> None:
    with Session("claude-sonnet-4-5") as session:
        session.add("Find it.")
        sent(session, THINKING)
        said(session, 1, thinks=True)
        session.add([tool_result("c1", "Here.")])
        sent(session, THINKING)
        session.reply(messages_reply(THOUGHT, {"type": "text", "text": "Found."}))
        session.add([beside])
        sent(session, {"max_tokens": 4_000})
        said(session, 2, thinks=False)
        session.add(tool_result("c2", "Here."))
        assert sent(session, THINKING)[1] == ["thinking"]


@pytest.mark.parametrize("text", [[], [{"type": "text", "text": "I go"}]])
@pytest.mark.parametrize("after", [[], [{"role": "assistant", "content": "on."}]])
def test_no_model_continues_a_final_message_with_thinking(text: list[Any], after: list[Any]) -> None:
    with Session("claude-haiku-4-5") as session:
        session.add("Hello").add([{"role": "assistant", "content": [THOUGHT, *text]}, *after])
        pack = sent(session, {"max_tokens": 4_000})[0]
        assert pack.request["messages"][-1]["role"] == "user"
        assert [event.rule for event in pack.events if isinstance(event, Repaired)] == ["ends_with_assistant"]


@pytest.mark.parametrize("model", ["claude-sonnet-5", "gpt-4o"])
def test_thinking_in_a_message_of_the_user_is_left_out_where_thinking_is_shown(model: str) -> None:
    redacted = {"type": "redacted_thinking", "data": "b3BhcXVl"}
    with Session(model, options=SessionOptions(force_reasoning_text=True)) as session:
        session.add([{"role": "user", "content": [THOUGHT, redacted, {"type": "text", "text": "Hello"}]}])
        pack = sent(session, {})[0]
        assert b"thinking" not in pack.body
        assert "reasoning_left_out" in [event.rule for event in pack.events if isinstance(event, Repaired)]
