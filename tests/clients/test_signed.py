"""A request whose body is signed goes out as it came: with another body its signature would be wrong."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from lading.clients import wrap
from lading.events import Event, Unpacked
from tests.clients.agents import MODELS, awaited
from tests.clients.mocks import HI, over
from tests.clients.signing import install, is_signed, sign
from tests.replies import chat_reply

MESSAGE = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": MODELS["anthropic"],
    "content": [{"type": "text", "text": "Yes."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 20, "output_tokens": 2},
}
TOOL = {"name": "read", "description": "Read.", "input_schema": {"type": "object", "properties": {}}}
FUNCTION: Any = {
    "type": "function",
    "function": {"name": "read", "parameters": {"type": "object", "properties": {}}},
}
_AWS: dict[str, Any] = {"aws_region": "us-east-1", "base_url": "http://here/v1", "max_retries": 0}
_KEYS = {"aws_access_key": "A", "aws_secret_key": "B"}
_OPENAI_KEYS = {"aws_access_key_id": "A", "aws_secret_access_key": "B"}
SIGNING: dict[str, tuple[Any, dict[str, str]]] = {
    "AnthropicAWS": (anthropic.AnthropicAWS, {**_KEYS, "workspace_id": "w"}),
    "AsyncAnthropicAWS": (anthropic.AsyncAnthropicAWS, {**_KEYS, "workspace_id": "w"}),
    "AnthropicBedrockMantle": (anthropic.AnthropicBedrockMantle, _KEYS),
    "AsyncAnthropicBedrockMantle": (anthropic.AsyncAnthropicBedrockMantle, _KEYS),
    "AnthropicBedrock": (anthropic.AnthropicBedrock, _KEYS),
    "AsyncAnthropicBedrock": (anthropic.AsyncAnthropicBedrock, _KEYS),
    "BedrockOpenAI": (openai.BedrockOpenAI, _OPENAI_KEYS),
    "AsyncBedrockOpenAI": (openai.AsyncBedrockOpenAI, _OPENAI_KEYS),
}


class Server:
    """Accepts signed requests only, and keeps them."""

    def __init__(self) -> None:
        self.requests: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        if not is_signed(request):
            return httpx2.Response(403, json={"message": "The signature does not match."})
        return httpx2.Response(200, json=chat_reply("Yes.") if "chat" in request.url.path else MESSAGE)


def http_client(server: Callable[[httpx2.Request], httpx2.Response], *, is_async: bool) -> Any:
    made = openai.DefaultAsyncHttpxClient if is_async else openai.DefaultHttpxClient
    return made(transport=httpx2.MockTransport(server))


async def ask(client: Any, number: int) -> str:
    """The answer of a client to a request with tools."""
    messages: list[Any] = [{"role": "user", "content": f"hi {number}"}]
    if isinstance(client, OpenAI | AsyncOpenAI):
        asked = client.chat.completions.create(model="gpt-oss-120b", messages=messages, tools=[FUNCTION])
        return str((await awaited(asked)).choices[0].message.content)
    asked = client.messages.create(model=MODELS["anthropic"], max_tokens=50, messages=messages, tools=[TOOL])
    return str((await awaited(asked)).content[0].text)


@pytest.mark.parametrize("is_named", [False, True], ids=["", "named"])
@pytest.mark.parametrize("kind", SIGNING)
def test_what_an_sdk_signed_is_accepted_and_told_of_once(
    kind: str, is_named: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(monkeypatch)
    make, keys = SIGNING[kind]
    server, events = Server(), list[Event]()

    async def run() -> None:
        plain = make(http_client=http_client(server, is_async=kind.startswith("Async")), **_AWS, **keys)
        client = wrap(plain, on_event=events.append)
        asked = client.lading.session("ticket") if is_named else client
        for number in range(2):
            assert await ask(plain, number) == await ask(asked, number) == "Yes."
        assert client.lading.sessions == ()

    with caplog.at_level(logging.WARNING, "lading"):
        asyncio.run(run())
    bodies = [request.content for request in server.requests]
    assert bodies[::2] == bodies[1::2]
    assert not [request for request in server.requests if "x-lading-session" in request.headers]
    (event,) = events
    assert isinstance(event, Unpacked)
    other = "the endpoint .../invoke" if kind.endswith("Bedrock") else "a request with a signed body"
    assert event.what == other
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "AWS4-ECDSA-P256-SHA256 Credential=A, Signature=x"},
        {"authorization": "TC3-HMAC-SHA256 Credential=A, Signature=x"},
        {"authorization": "ACS3-HMAC-SHA256 Credential=A, Signature=x"},
        {"authorization": "SDK-HMAC-SHA256 Access=A, Signature=x"},
        {"authorization": "HMAC A:x"},
        {"authorization": 'Signature version="1",keyId="k",headers="date x-content-sha256",signature="x"'},
        {"authorization": "HMAC-SHA256 SignedHeaders=x-ms-date&Signature=x"},
        {"content-digest": "sha-256=:x=:"},
        {"Content-MD5": "x"},
        {"X-Amz-Content-SHA256": "x"},
    ],
    ids=lambda headers: next(iter(headers)),
)
def test_other_signatures_of_a_body(headers: dict[str, str]) -> None:
    sent, events = list[httpx2.Request](), list[Event]()

    def answering(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return httpx2.Response(200, json=chat_reply("Yes."))

    client = wrap(over(answering, default_headers=headers), on_event=events.append)
    client.chat.completions.create(**HI, tools=[FUNCTION])
    assert b"restore" not in sent[0].content
    assert headers.items() <= {name: sent[0].headers[name] for name in headers}.items()
    assert [event.what for event in events if isinstance(event, Unpacked)] == ["a request with a signed body"]


class Signing(httpx2.Auth):
    """Signs what an HTTP client sends."""

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        hook(request)
        yield request


def hook(request: httpx2.Request) -> None:
    given = {"content-type": request.headers["content-type"]}
    request.headers["authorization"] = sign(request.method, str(request.url), given, body=request.read())


@pytest.mark.parametrize("own", [{"auth": Signing()}, {"event_hooks": {"request": [hook]}}], ids=["auth", "hook"])
def test_what_the_http_client_itself_signs_is_packed(own: dict[str, Any]) -> None:
    server, events = Server(), list[Event]()
    http = openai.DefaultHttpxClient(transport=httpx2.MockTransport(server), **own)
    client = wrap(OpenAI(base_url="http://here/v1", api_key="k", http_client=http), on_event=events.append)
    for _ in range(2):
        client.lading.session("ticket").chat.completions.create(**HI, tools=[FUNCTION])
    assert len(client.lading.sessions) == 1
    assert [b"restore" in request.content for request in server.requests] == [True, True]
    assert not [event for event in events if isinstance(event, Unpacked)]
