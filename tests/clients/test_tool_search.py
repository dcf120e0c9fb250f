"""A wrapped client answers ``search_tools`` of a step unseen, whole and streamed, sync and async."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import openai
import pytest

import lading
from lading.models.tool_policy import ToolPolicy
from tests.replies import chat_reply

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {"type": "object", "properties": {"value": {"type": "string"}}},
        },
    }
    for name, description in {
        "send_mail": "Send a mail.",
        "read_file": "Read a file.",
        "add_event": "Add an event to the calendar.",
    }.items()
]
STEP = {"id": "step-1", "text": "Plan the day.", "checklist": ["An event"]}
SEARCH = ("c1", "search_tools", {"query": "calendar"})


class Provider:
    """Answers the first request with a call of ``search_tools``, each later one with a text."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        self.bodies.append(body)
        first = len(self.bodies) == 1
        answer = chat_reply(None, SEARCH) if first else chat_reply("Done.", number=len(self.bodies))
        return httpx2.Response(200, json=answer) if not body.get("stream") else stream(answer)


def stream(answer: dict[str, Any]) -> httpx2.Response:
    choice = answer["choices"][0]
    delta = {key: value for key, value in choice["message"].items() if value is not None}
    calls = [{"index": at, **call} for at, call in enumerate(delta.pop("tool_calls", ()))]
    delta |= {"tool_calls": calls} if calls else {}
    head = {"id": answer["id"], "object": "chat.completion.chunk", "model": answer["model"]}
    chunks = [
        head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        head | {"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]},
    ]
    data = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return httpx2.Response(200, content=data, headers={"content-type": "text/event-stream"})


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_the_schema_is_found_unseen_by_the_caller(is_async: bool, streamed: bool) -> None:
    provider = Provider()
    transport = httpx2.MockTransport(provider)
    messages: Any = [{"role": "user", "content": "Plan my day."}]
    given: dict[str, Any] = {"model": "gpt-4o", "messages": messages, "tools": TOOLS, "stream": streamed}

    async def call() -> str:
        async with httpx2.AsyncClient(transport=transport) as http:
            client: Any = begin(lading.wrap(openai.AsyncOpenAI(api_key="test", http_client=http)))
            answer = await client.chat.completions.create(**given)
            if not streamed:
                return read(answer)
            return "".join([piece async for chunk in answer for piece in texts(chunk)])

    if is_async:
        said = asyncio.run(call())
    else:
        with httpx2.Client(transport=transport) as http:
            client: Any = begin(lading.wrap(openai.OpenAI(api_key="test", http_client=http)))
            answer = client.chat.completions.create(**given)
            said = "".join(piece for chunk in answer for piece in texts(chunk)) if streamed else read(answer)
    assert said == "Done."
    first, second = provider.bodies
    assert "Add an event" not in json.dumps(first["tools"])
    assert second["messages"][-1]["tool_call_id"] == "c1"
    assert '"description":"Add an event to the calendar."' in second["messages"][-1]["content"]


def begin(client: Any) -> Any:
    options = lading.TaskOptions(tools=ToolPolicy(search=True, shown=0))
    client.lading.begin(STEP, options=options)
    return client


def read(answer: Any) -> str:
    message = answer.choices[0].message
    assert not message.tool_calls
    return str(message.content)


def texts(chunk: Any) -> list[str]:
    assert not any(choice.delta.tool_calls for choice in chunk.choices)
    return [choice.delta.content or "" for choice in chunk.choices]
