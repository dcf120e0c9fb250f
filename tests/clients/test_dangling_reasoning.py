"""Reasoning of OpenAI's Responses API whose item its caller was not shown."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from openai import DefaultHttpxClient, OpenAI

import lading
from lading.addresses import RESTORE
from lading.events import Event, Repaired
from tests.clients.test_kept_calls import PLACE, SAID, find_broken, respond, stream

MODEL = "gpt-5.2"
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_r", "name": RESTORE, "arguments": PLACE}
READ = {"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "read", "arguments": "{}"}
TOOLS: list[Any] = [{"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}}]


def thought(number: int) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": "Hm."}, {"type": "summary_text", "text": "So."}]
    return {"type": "reasoning", "id": f"rs_{number}", "summary": summary, "encrypted_content": f"E{number}"}


class Provider:
    """Answers with these responses in order, and keeps the items of each request."""

    def __init__(self, *outputs: list[dict[str, Any]]) -> None:
        self.sent: list[list[Any]] = []
        self.events: list[Event] = []
        self._outputs = iter(outputs)

    def client(self, name: str = "") -> OpenAI:
        http = DefaultHttpxClient(transport=httpx2.MockTransport(self._answer))
        raw = OpenAI(api_key="k", base_url="http://x/v1", max_retries=0, http_client=http)
        client = lading.wrap(raw, on_event=self.events.append)
        return client.lading.session(name) if name else client

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        if request.url.path.endswith("/chat/completions"):
            choice = {"index": 0, "message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}
            return httpx2.Response(200, json={"id": "c", "object": "chat.completion", "choices": [choice]})
        assert find_broken("openai_responses", body) == []
        self.sent.append(
            [item.get("id") or item.get("type", "message") for item in body["input"] if item.get("role") != "user"]
        )
        items = [item | {"status": "completed"} for item in next(self._outputs)]
        response = respond(len(self.sent), *items)
        if body.get("stream"):
            return httpx2.Response(200, content=stream(response), headers={"content-type": "text/event-stream"})
        return httpx2.Response(200, json=response)


def ask(client: OpenAI, items: list[Any], *, is_streamed: bool) -> list[Any]:
    fields: dict[str, Any] = {"model": MODEL, "input": items, "tools": TOOLS, "store": False}
    if not is_streamed:
        return [item.to_dict() for item in client.responses.create(**fields).output]
    with client.responses.stream(**fields) as events:
        for _ in events:
            pass
        return [item.to_dict() for item in events.get_final_response().output]


def ask_chat(client: OpenAI, messages: list[Any]) -> None:
    function = {"name": "read", "parameters": {"type": "object", "properties": {}}}
    tools: list[Any] = [{"type": "function", "function": function}]
    client.chat.completions.create(model=MODEL, messages=messages, tools=tools)


@pytest.mark.parametrize(
    "answer", [[thought(2), SAID], [thought(2), READ], [READ]], ids=["text", "call", "no reasoning"]
)
def test_reasoning_of_a_hidden_call_is_left_out_without_the_log(answer: list[dict[str, Any]]) -> None:
    provider = Provider([thought(1), CALL], answer, [SAID], [SAID])
    client = provider.client()
    items: list[Any] = [{"role": "user", "content": "the secret is plum"}]
    items += ask(client, items, is_streamed=True)
    if any(item["type"] == "function_call" for item in items[1:]):
        items.append({"type": "function_call_output", "call_id": "call_2", "output": "ok"})
    items.append({"role": "user", "content": "More."})
    assert "rs_1" in [item.get("id") for item in items]
    ask(client, items, is_streamed=False)
    assert provider.sent[-1][:3] == ["rs_1", "fc_1", "function_call_output"]
    assert not any(isinstance(event, Repaired) for event in provider.events)
    ask(provider.client(), items, is_streamed=False)
    if answer[0]["type"] == "reasoning":
        assert provider.sent[-1][:2] == ["rs_2", answer[1]["id"]]
        assert [event.rule for event in provider.events if isinstance(event, Repaired)] == ["reasoning_left_out"]


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_reasoning_that_was_issued_in_several_items_is_sent_back(is_streamed: bool) -> None:
    provider = Provider([thought(1), thought(2), SAID], [SAID])
    client = provider.client()
    items: list[Any] = [{"role": "user", "content": "go"}]
    items += ask(client, items, is_streamed=is_streamed)
    items.append({"role": "user", "content": "More."})
    ask(client, items, is_streamed=is_streamed)
    assert provider.sent[-1] == ["rs_1", "rs_2", "msg_1"]
    assert not any(isinstance(event, Repaired) for event in provider.events)


@pytest.mark.parametrize("last", [CALL, None], ids=["hidden call", "cut short"])
def test_items_keep_their_ids_beside_their_own_reasoning(last: dict[str, Any] | None) -> None:
    provider = Provider([thought(1), READ, thought(2), *([last] if last else [])], [SAID], [SAID])
    client = provider.client()
    items: list[Any] = [{"role": "user", "content": "the secret is plum"}]
    items += ask(client, items, is_streamed=True)
    items.append({"type": "function_call_output", "call_id": "call_2", "output": "ok"})
    ask(provider.client(), items, is_streamed=False)
    assert provider.sent[-1] == ["rs_1", "fc_2", "function_call_output"]


@pytest.mark.parametrize("answer", [[SAID], [READ], [SAID, READ]], ids=["text", "call", "both"])
@pytest.mark.parametrize("first", ["openai_responses", "openai_chat"])
def test_reasoning_that_a_caller_gives_later_is_sent_with_its_items(
    first: str, answer: list[dict[str, Any]]
) -> None:
    provider = Provider([SAID | {"id": "msg_2"}], [SAID | {"id": "msg_3"}])
    client = provider.client("one")
    question: dict[str, Any] = {"role": "user", "content": "go"}
    whole = [thought(1), *(item | {"status": "completed"} for item in answer)]
    more: dict[str, Any] = {"role": "user", "content": "More."}
    if READ in answer:
        more = {"type": "function_call_output", "call_id": "call_2", "output": "ok"}
    if first == "openai_responses":
        without = [{key: inner for key, inner in item.items() if key != "id"} for item in whole[1:]]
        ask(client, [question, *without, more], is_streamed=False)
    else:
        function = {"name": "read", "arguments": "{}"}
        calls = [{"id": "call_2", "type": "function", "function": function}] if READ in answer else None
        reply = {"role": "assistant", "content": "Done." if SAID in answer else None}
        result = {"role": "tool", "tool_call_id": "call_2", "content": "ok"} if READ in answer else more
        ask_chat(client, [question, reply | ({"tool_calls": calls} if calls else {}), result])
    told = {"role": "assistant", "content": "Done."}
    ask(client, [question, *whole, more, told, {"role": "user", "content": "And?"}], is_streamed=False)
    assert provider.sent[-1][: 1 + len(answer)] == ["rs_1", *(item["id"] for item in answer)]


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("answer", [SAID, READ], ids=["text", "call"])
def test_reasoning_given_later_behind_a_hidden_call_is_its_own(answer: dict[str, Any], is_streamed: bool) -> None:
    provider = Provider(
        [thought(1), CALL], [thought(2), answer], [SAID | {"id": "msg_2"}], [SAID | {"id": "msg_3"}]
    )
    client = provider.client("one")
    question: dict[str, Any] = {"role": "user", "content": "the secret is plum"}
    reminder: dict[str, Any] = {"role": "user", "content": "It is noon."}
    whole = ask(client, [question, reminder], is_streamed=is_streamed)
    more: dict[str, Any] = {"role": "user", "content": "More."}
    if answer is READ:
        more = {"type": "function_call_output", "call_id": "call_2", "output": "ok"}
    without = [{key: inner for key, inner in item.items() if key != "id"} for item in whole]
    ask(
        client,
        [question, *(item for item in without if item["type"] != "reasoning"), more],
        is_streamed=is_streamed,
    )
    said = {"role": "assistant", "content": "Done."}
    ask(client, [question, *whole, more, said, {"role": "user", "content": "And?"}], is_streamed=is_streamed)
    assert provider.sent[-1][:5] == ["rs_1", "fc_1", "function_call_output", "rs_2", answer["id"]]
