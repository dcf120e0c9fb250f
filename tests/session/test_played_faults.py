"""Faults that played sessions found (``tests/played.py``), each by its smallest play."""

from __future__ import annotations

from typing import Any

import pytest

from lading import Session, verify
from lading.events import FieldLeftOut, Repaired
from lading.messages import Tool
from lading.request.pack import Pack
from lading.stores.memory import MemoryStore
from lading.wire import check
from tests.replies import chat_reply, messages_reply

READ = Tool("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})


def legal(session: Session, **given: Any) -> Pack:
    """The request of a session, which breaks no rule."""
    pack = session.pack([READ], **given)
    assert not check(pack.request, session.wire, card=session.settings.card, strict=True)
    assert not pack.violations
    return pack


def left_out(pack: Pack) -> list[int]:
    """The entries whose reasoning the request leaves out, by its events."""
    return [event.entry for event in pack.events if isinstance(event, Repaired)]


def responses_answer(number: int, *, encrypted: str | None = None, calls: bool = True) -> dict[str, Any]:
    """A Responses answer with reasoning."""
    reasoning: dict[str, Any] = {"type": "reasoning", "id": f"rs_{number}", "summary": []}
    call = {
        "type": "function_call",
        "id": f"fc_{number}",
        "call_id": f"c{number}",
        "name": "read",
        "arguments": "{}",
    }
    content = [{"type": "output_text", "text": f"Said {number}.", "annotations": []}]
    said = {
        "type": "message",
        "id": f"msg_{number}",
        "role": "assistant",
        "status": "completed",
        "content": content,
    }
    output = [reasoning | ({"encrypted_content": encrypted} if encrypted else {}), call if calls else said]
    return {"id": f"resp_{number}", "object": "response", "status": "completed", "output": output}


def output_of(number: int) -> dict[str, Any]:
    """The output of the call in that answer."""
    return {"type": "function_call_output", "call_id": f"c{number}", "output": "Here."}


def kinds(pack: Pack) -> list[str]:
    """The types of the items of a request."""
    return [item.get("type", "message") for item in pack.request["input"]]


def test_reasoning_without_encrypted_content_is_left_out_once_nothing_is_stored() -> None:
    """And stays out; what is encrypted is sent, and an item that leaves its reasoning leaves its id (R5)."""
    store = MemoryStore()
    with Session("gpt-5-mini", store=store, wire="openai_responses") as session:
        session.add("Find it.")
        legal(session)
        session.reply(responses_answer(1))
        session.add(output_of(1))
        assert "reasoning" in kinds(legal(session))
        session.reply(responses_answer(2, encrypted="gAAA"))
        session.add(output_of(2))
        pack = legal(session, fields={"store": False})
        assert left_out(pack) == [1]
        sent = ["message", "function_call", "function_call_output"]
        assert kinds(pack) == [*sent, "reasoning", *sent[1:]]
        assert ["id" in item for item in pack.request["input"] if item.get("type") == "function_call"] == [
            False,
            True,
        ]
        assert pack.manifest.prefix.why == "reasoning_left_out"
        session.reply(responses_answer(3, calls=False))
        session.add("And?")
        assert left_out(legal(session)) == [5]
    with Session("gpt-5-mini", store=store, wire="openai_responses") as session:
        pack = session.add("So?").pack()
        assert not left_out(pack)
        assert kinds(pack).count("reasoning") == 1
        assert kinds(legal(session, fields={"store": True})).count("reasoning") == 1
    assert {found.problem for found in verify(store, tenant="default", session="session")} == {""}


def test_a_call_of_a_hosted_tool_leaves_its_id_with_its_reasoning() -> None:
    search = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "x"},
    }
    reasoning, said = responses_answer(1, calls=False)["output"]
    with Session("gpt-5-mini", wire="openai_responses") as session:
        session.add("Find it.").add([reasoning, search, said]).add("And?")
        assert legal(session).request["input"][2] == search
        assert legal(session, fields={"store": False}).request["input"][1] == {
            key: value for key, value in search.items() if key != "id"
        }


def test_reasoning_that_comes_back_in_another_form_is_left_out_again() -> None:
    bare = responses_answer(1, calls=False)["output"]
    with Session("gpt-5-mini", wire="openai_responses") as session:
        session.add("Find it.").add(bare).add("And?")
        assert left_out(legal(session, fields={"store": False})) == [1]
        renamed = [bare[0], bare[1] | {"id": "msg_9"}]
        session.add([{"role": "user", "content": "Find it."}, *renamed, {"role": "user", "content": "And?"}])
        assert "reasoning" not in kinds(legal(session))


def test_a_failed_request_leaves_the_reasoning_as_it_was() -> None:
    with Session("gpt-5-mini", wire="openai_responses", window=2_000, output_reserve=100) as session:
        session.add("Find it.").add(responses_answer(1, calls=False)["output"]).add("And?")
        with pytest.raises(Exception, match="tokens"):
            session.pack(fields={"store": False}, tail="much " * 3_000)
        assert left_out(legal(session, fields={"store": False})) == [1]


@pytest.mark.parametrize("content", [None, "", []])
def test_an_answer_of_reasoning_alone_has_content_in_chat_completions(content: Any) -> None:
    with Session("deepseek-v4-pro") as session:
        session.add("Find it.")
        legal(session)
        session.add([{"role": "assistant", "content": content, "reasoning_content": "Hm."}])
        session.add("Well?")
        answer = legal(session).request["messages"][1]
        assert (answer["content"], answer["reasoning_content"]) == ("", "Hm.")


@pytest.mark.parametrize(("other", "lost"), [("claude-3-5-haiku", "thinking"), ("claude-opus-4-1", "")])
def test_thinking_that_the_next_model_refuses_is_left_out(other: str, lost: str) -> None:
    store, enabled = MemoryStore(), {"type": "enabled", "budget_tokens": 1_024}
    with Session("claude-sonnet-4-5", store=store) as session:
        session.add("Find it.")
        legal(session, fields={"max_tokens": 4_000, "thinking": enabled, "temperature": 1})
        session.reply(messages_reply({"type": "text", "text": "Found."}))
    with Session(other, store=store) as session:
        session.add("And?")
        assert [event.field for event in session.events if isinstance(event, FieldLeftOut)] == [lost][: len(lost)]
        body = legal(session).request
        assert ("thinking" in body, body["temperature"]) == (not lost, 1)


def test_a_budget_above_the_next_limit_is_left_out() -> None:
    store, enabled = MemoryStore(), {"type": "enabled", "budget_tokens": 9_000}
    with Session("claude-sonnet-4-5", store=store) as session:
        session.add("Find it.")
        legal(session, fields={"max_tokens": 10_000, "thinking": enabled})
    with Session("claude-opus-4-1", store=store, window=30_000, output_reserve=2_000) as session:
        assert "thinking" not in legal(session).request


@pytest.mark.parametrize("content", [{"role": "model"}, {"role": "model", "parts": None}])
def test_a_content_of_the_model_without_parts_is_taken(content: dict[str, Any]) -> None:
    with Session("gemini-2.5-flash", wire="gemini") as session:
        session.add([{"role": "user", "parts": [{"text": "Find it."}]}, content])
        session.add("Well?")
        assert [one["role"] for one in legal(session).request["contents"]] == ["user", "model", "user"]


EMPTY: dict[str, tuple[str, dict[str, Any]]] = {
    "openai_chat": ("gpt-4o", chat_reply("")),
    "openai_responses": ("gpt-5-mini", {"id": "r", "object": "response", "status": "incomplete", "output": []}),
    "anthropic": ("claude-sonnet-4-5", messages_reply()),
    "gemini": ("gemini-2.5-flash", {"candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}]}),
}


@pytest.mark.parametrize("wire", EMPTY)
@pytest.mark.parametrize("kept", [[], [{"role": "assistant", "content": ""}]], ids=["no item", "an item"])
def test_a_history_without_the_item_of_an_empty_answer_goes_on(wire: str, kept: list[Any]) -> None:
    model, empty = EMPTY[wire]
    with Session(model, wire=wire) as session:
        given: list[Any] = [{"role": "user", "content": "Find it."}]
        session.add(given)
        session.reply(empty)
        for number in range(2):
            given = [*given, *(kept if number == 0 else []), {"role": "user", "content": f"Again, {number}."}]
            session.add(given)
            legal(session)
        texts = [entry.message.text for entry in session.entries if entry.message.role == "user"]
        assert texts == ["Find it.", "Again, 0.", "Again, 1."]
        assert len(session.entries) == 4


def test_the_manifest_says_what_another_model_has_changed() -> None:
    store = MemoryStore()
    call = {"functionCall": {"name": "read", "args": {}}}
    result = {"functionResponse": {"name": "read", "response": {"output": "Here."}}}
    with Session("gemini-2.5-flash", store=store, wire="gemini") as session:
        session.add("Find it.")
        session.add([{"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}])
        legal(session)
    with Session("gemini-3-pro", store=store, wire="gemini") as session:
        prefix = legal(session).manifest.prefix
    assert (prefix.units, prefix.first_changed, prefix.why) == (2, "messages.1", "for another model: unsigned_call")
    assert prefix.price > 0
