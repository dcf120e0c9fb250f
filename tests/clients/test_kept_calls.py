"""Calls of providers' own tools beside the model's calls of ``restore``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import httpx2
import pytest
from anthropic import Anthropic
from anthropic import DefaultHttpxClient as AnthropicHttp
from openai import DefaultHttpxClient, OpenAI

import lading
from lading.addresses import RESTORE
from lading.errors import Violation
from lading.events import Event
from lading.models.catalog import find_card
from lading.testing.legality import find_unpaired
from lading.wire import check, find_wire

PLACE = json.dumps({"address": "artifact://log/0"})
TOOLS: list[Any] = [
    {"type": "shell"},
    {"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}, "strict": None},
]
SCREEN = {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"}
KEPT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "shell_call": ({"action": {"commands": ["ls"]}}, {"output": []}),
    "local_shell_call": ({"action": {"type": "exec", "command": ["ls"], "env": {}}}, {"output": "a"}),
    "apply_patch_call": ({"operation": {"type": "delete_file", "path": "a"}}, {"status": "completed"}),
    "computer_call": ({"action": {"type": "screenshot"}, "pending_safety_checks": []}, {"output": SCREEN}),
    "tool_search_call": ({"arguments": {}, "execution": "client"}, {"tools": []}),
    "mcp_approval_request": ({"server_label": "x", "name": "look", "arguments": "{}"}, {"approve": True}),
}
"""The calls that the caller answers, each with its fields and those of its output."""
SAID = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
}


def find_broken(wire: str, body: Any) -> list[Violation]:
    return [
        *check(body, find_wire(wire), card=find_card(body["model"])[0], strict=True),
        *find_unpaired(wire, body),
    ]


def respond(number: int, *items: dict[str, Any]) -> dict[str, Any]:
    usage = {"input_tokens": 60, "output_tokens": 9, "total_tokens": 69}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    fixed = {"object": "response", "created_at": 1, "status": "completed", "model": "gpt-5.2", "tools": []}
    return {
        **fixed,
        "id": f"resp_{number}",
        "output": [*items],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "usage": usage | details,
    }


def stream(response: dict[str, Any]) -> bytes:
    events: list[dict[str, Any]] = [{"type": "response.created", "response": response | {"output": []}}]
    for at, item in enumerate(response["output"]):
        events += [
            {"type": f"response.output_item.{end}", "output_index": at, "item": item} for end in ("added", "done")
        ]
    events.append({"type": "response.completed", "response": response})
    told = [event | {"sequence_number": at} for at, event in enumerate(events)]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in told).encode()


def make_call(kind: str) -> dict[str, Any]:
    named: dict[str, Any] = {"call_id": "call_k", "status": "completed"} if kind.endswith("_call") else {}
    return {"type": kind, "id": "kept_1", **named, **KEPT[kind][0]}


def make_output(kind: str) -> dict[str, Any]:
    if kind == "mcp_approval_request":
        return {"type": "mcp_approval_response", "approval_request_id": "kept_1", **KEPT[kind][1]}
    written = "tool_search_output" if kind == "tool_search_call" else f"{kind}_output"
    return {"type": written, "call_id": "call_k", **KEPT[kind][1]}


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", KEPT)
def test_a_call_of_openai_s_own_tools_beside_restore_reaches_the_caller(kind: str, is_streamed: bool) -> None:
    sent: list[Any] = []
    restore = {"type": "function_call", "id": "fc_1", "call_id": "call_r", "name": RESTORE, "arguments": PLACE}
    first = respond(1, make_call(kind), restore | {"status": "completed"})

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(json.loads(request.content))
        response = first if len(sent) == 1 else respond(2, SAID)
        if is_streamed:
            return httpx2.Response(200, content=stream(response), headers={"content-type": "text/event-stream"})
        return httpx2.Response(200, json=response)

    http = DefaultHttpxClient(transport=httpx2.MockTransport(answer))
    client = lading.wrap(OpenAI(api_key="k", base_url="http://x/v1", max_retries=0, http_client=http))
    items: list[Any] = [{"role": "user", "content": "the secret is plum"}]
    for _ in range(2):
        output: Sequence[Any]
        if is_streamed:
            with client.responses.stream(model="gpt-5.2", input=items, tools=TOOLS) as events:
                for _ in events:
                    pass
                output = events.get_final_response().output
        else:
            output = client.responses.create(model="gpt-5.2", input=items, tools=TOOLS).output
        shown = [item.to_dict() for item in output]
        if kind == shown[0]["type"]:
            items += [*shown, make_output(kind)]
    assert [item["type"] for item in items[1:]] == [kind, make_output(kind)["type"]]
    assert [item["type"] for item in shown] == ["message"]
    assert len(sent) == 2
    kinds = [item.get("type", "message") for item in sent[1]["input"]]
    assert sorted(kinds[1:3]) == sorted([kind, "function_call"])
    assert sorted(kinds[3:]) == sorted([make_output(kind)["type"], "function_call_output"])
    assert "plum" in str([item for item in sent[1]["input"] if item.get("type") == "function_call_output"])
    assert find_broken("openai_responses", sent[1]) == []


SEARCH: dict[str, Any] = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {"query": "x"},
}
FOUND: dict[str, Any] = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
NATIVE: list[Any] = [
    {"type": "web_search_20250305", "name": "web_search"},
    {"name": "read", "input_schema": {"type": "object"}},
]


def test_a_server_tool_that_runs_after_restore_is_whole_in_the_answer() -> None:
    """The history is legal without Lading's log, too."""
    sent: list[Any] = []
    asked = {"type": "tool_use", "id": "toolu_1", "name": RESTORE, "input": json.loads(PLACE)}
    contents = [
        [{"type": "text", "text": "I search."}, SEARCH, asked],
        [FOUND, {"type": "text", "text": "Found."}],
        [{"type": "text", "text": "Yes."}],
    ]

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(json.loads(request.content))
        assert find_broken("anthropic", sent[-1]) == []
        content = contents[len(sent) - 1]
        stop = "tool_use" if content[-1].get("name") == RESTORE else "end_turn"
        body: dict[str, Any] = {
            "id": f"msg_{len(sent)}",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": content,
        }
        body |= {"stop_reason": stop, "stop_sequence": None, "usage": {"input_tokens": 60, "output_tokens": 9}}
        return httpx2.Response(200, json=body)

    messages: list[Any] = [{"role": "user", "content": "the secret is plum"}]
    events: list[Event] = []
    for number in range(2):
        http = AnthropicHttp(transport=httpx2.MockTransport(answer))
        # Another process, which has no log.
        client = lading.wrap(Anthropic(api_key="k", max_retries=0, http_client=http), on_event=events.append)
        reply = client.messages.create(model="claude-sonnet-5", max_tokens=99, tools=NATIVE, messages=messages)
        messages += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": "More."}]
        if number == 0:
            assert [block.type for block in reply.content] == [
                "text",
                "server_tool_use",
                "web_search_tool_result",
                "text",
            ]
            assert reply.usage.input_tokens == 120
    assert [type(event).__name__ for event in events if type(event).__name__ != "Restored"] == []


ASKED = {"type": "tool_use", "id": "toolu_1", "name": RESTORE, "input": json.loads(PLACE)}
ASKED_AGAIN = ASKED | {"id": "toolu_2"}
READ = {"type": "tool_use", "id": "toolu_3", "name": "read", "input": {}}
WORDS = {"type": "text", "text": "Found."}
ANSWER = [{"type": "text", "text": "Yes."}]


@pytest.mark.parametrize("opening", [[SEARCH], [SEARCH, READ]], ids=["paused", "beside a call"])
@pytest.mark.parametrize(
    "rest",
    [
        [[FOUND, WORDS, ASKED], ANSWER],
        [[FOUND, ASKED], [WORDS, ASKED_AGAIN], ANSWER],
        [
            [FOUND, WORDS, ASKED],
            [SEARCH | {"id": "srvtoolu_2"}, ASKED_AGAIN],
            [FOUND | {"tool_use_id": "srvtoolu_2"}],
        ],
    ],
    ids=["once", "twice", "another search"],
)
def test_the_result_of_a_call_that_was_open_is_in_the_answer(opening: list[Any], rest: list[list[Any]]) -> None:
    """What the caller has is legal without Lading's log, too."""
    told: list[Any] = []
    queue = [opening, *rest, ANSWER]

    def answer(request: httpx2.Request) -> httpx2.Response:
        told.append(json.loads(request.content))
        assert find_broken("anthropic", told[-1]) == []
        content = queue.pop(0)
        last = content[-1]["type"]
        stop = {"tool_use": "tool_use", "server_tool_use": "pause_turn"}.get(last, "end_turn")
        body: dict[str, Any] = {"id": f"msg_{len(told)}", "type": "message", "role": "assistant", "model": "m"}
        body |= {"content": content, "stop_reason": stop, "stop_sequence": None}
        return httpx2.Response(200, json=body | {"usage": {"input_tokens": 60, "output_tokens": 9}})

    def wrapped() -> Anthropic:
        http = AnthropicHttp(transport=httpx2.MockTransport(answer))
        return lading.wrap(Anthropic(api_key="k", max_retries=0, http_client=http))

    client = wrapped()
    messages: list[Any] = [{"role": "user", "content": "the secret is plum"}]
    for number in range(3):
        # The last one is another process, which has no log.
        asked = wrapped() if number == 2 else client
        reply = asked.messages.create(model="claude-sonnet-5", max_tokens=99, tools=NATIVE, messages=messages)
        messages.append({"role": "assistant", "content": reply.content})
        if opening[-1] is READ and number == 0:
            result = {"type": "tool_result", "tool_use_id": "toolu_3", "content": "ok"}
            messages.append({"role": "user", "content": [result]})
        elif number == 1:
            assert reply.content[0].type == "web_search_tool_result"
            messages.append({"role": "user", "content": "More."})
    assert queue == []
