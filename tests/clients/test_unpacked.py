"""Conversations that are not packed go out as they are, and an event tells of them once."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic import beta_async_tool, beta_tool
from openai import AsyncOpenAI, OpenAI

from lading import Session
from lading.clients import wrap
from lading.events import Event, Unpacked
from lading.testing import Say, Seen, StrictProvider, Use
from tests.clients.agents import MODELS, anthropic_client, awaited, each
from tests.clients.mocks import HI, over
from tests.clients.test_signed import MESSAGE, TOOL

LINES = {f"file-{number}": f"{number}: " + "a line of the file " * 300 for number in range(12)}


@beta_tool
def read(path: str) -> str:
    """Read a file.

    Args:
        path: Which one.
    """
    return LINES[path]


@beta_async_tool(name="read")
async def aread(path: str) -> str:
    """Read a file.

    Args:
        path: Which one.
    """
    return LINES[path]


def reading(seen: Seen) -> Say:
    """Reads one file after the other, and says how many it has read."""
    number = sum(len(message.calls) for message in seen.conversation.messages)
    number = max(number, max((int(text.split(": ")[0]) + 1 for text in answers(seen)), default=0))
    if number == len(LINES):
        return Say(f"I have read {number} files.")
    return Say(f"File {number}.", (Use("read", {"path": f"file-{number}"}),))


def answers(seen: Seen) -> list[str]:
    return [passage.text for passage in seen.passages() if passage.role == "tool" and passage.text[:1].isdigit()]


async def ran(client: Any, *, stream: bool, **fields: Any) -> str:
    """The last text of the SDK's own loop."""
    tool = read if isinstance(client, anthropic.Anthropic) else aread
    asked: dict[str, Any] = {"model": MODELS["anthropic"], "max_tokens": 900, "tools": [tool], "stream": stream}
    asked |= {"messages": [{"role": "user", "content": "Read all files."}], "system": "Be brief."}
    said: Any = None
    async for said in each(client.beta.messages.tool_runner(**asked | fields)):
        if stream:
            async for _ in each(said):
                pass
            said = await awaited(said.get_final_message())
    return "".join(block.text for block in said.content if block.type == "text")


KINDS = pytest.mark.parametrize("kind", [anthropic.Anthropic, anthropic.AsyncAnthropic], ids=["sync", "async"])
STREAMS = pytest.mark.parametrize(
    "fields",
    [{"stream": False}, {"stream": True}, {"stream": True, "run_tools_eagerly": True}],
    ids=["whole", "streamed", "eager"],
)


@KINDS
@STREAMS
def test_the_loop_of_the_sdk_is_packed_where_it_sends_the_whole_history(kind: Any, fields: dict[str, Any]) -> None:
    with StrictProvider(reading) as provider:
        client = wrap(anthropic_client(provider, kind), window=9_000)
        assert asyncio.run(ran(client, thread=False, **fields)) == "I have read 12 files."
        assert provider.violations == []
        (session,) = client.lading.sessions
        # The system message, one of the user, twelve calls with their results, and the answer.
        assert len([entry for entry in session.entries if entry.known_as]) == 2 + 2 * 12 + 1
        assert max(answer.prompt_tokens for answer in provider.answers) < 9_000


@KINDS
@STREAMS
def test_the_loop_of_the_sdk_goes_out_as_it_is_where_the_provider_keeps_it(
    kind: Any, fields: dict[str, Any]
) -> None:
    events: list[Event] = []
    sent = []
    for wraps in (False, True):
        with StrictProvider(reading) as provider:
            plain = anthropic_client(provider, kind)
            client = wrap(plain, window=9_000, on_event=events.append) if wraps else plain
            assert asyncio.run(ran(client, **fields)) == "I have read 12 files."
            assert provider.violations == []
            sent.append([request.raw for request in provider.requests])
            assert len(sent[-1]) == 13
            assert not wraps or client.lading.sessions == ()
    assert sent[0] == sent[1]
    assert [event.what for event in events if isinstance(event, Unpacked)] == ["the field thread"]
    assert len(events) == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("thread", {"type": "continue", "previous_message_id": "m"}),
        ("previous_response_id", "r"),
        ("conversation", {"id": "c"}),
        ("container", "box"),
        ("container", {"id": "box", "skills": []}),
    ],
)
def test_a_request_that_goes_on_with_what_the_provider_keeps_is_not_packed(
    field: str, value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    events: list[Event] = []
    sent: list[Any] = []

    def answering(request: httpx2.Request) -> httpx2.Response:
        sent.append(json.loads(request.read()))
        return httpx2.Response(200, json={})

    client: Any = wrap(over(answering), on_event=events.append)
    with caplog.at_level(logging.WARNING, "lading"):
        for one in (client, client.lading.session("other")):
            one._client.post("http://here/v1/messages", json=HI | {field: value})
    assert sent == [HI | {field: value}] * 2
    assert client.lading.sessions == ()
    (event,) = events
    assert isinstance(event, Unpacked)
    assert event.what == f"the field {field}"
    assert caplog.text.count(field) >= 1
    assert len(caplog.records) == 1


def test_a_container_that_is_only_asked_for_is_nothing_kept() -> None:
    client: Any = wrap(over(lambda _: httpx2.Response(200, json={})))
    client._client.post("http://here/v1/messages", json=HI | {"container": {"skills": []}, "thread": None})
    assert len(client.lading.sessions) == 1


@pytest.mark.parametrize("kind", [OpenAI, AsyncOpenAI])
def test_a_websocket_is_told_of_once(
    kind: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    opened: list[str] = []

    def refuse(url: str, **_: Any) -> None:
        opened.append(url)
        raise ConnectionRefusedError

    monkeypatch.setattr("websockets.sync.client.connect", refuse)
    monkeypatch.setattr("openai.lib._websocket._WebSocketConnect", refuse)
    events: list[Event] = []
    client: Any = wrap(kind(base_url="http://provider/v1", api_key="k"), on_event=events.append)
    with caplog.at_level(logging.WARNING, "lading"):
        for one in (client, client.lading.session("other"), client.copy()):
            with pytest.raises(ConnectionRefusedError):
                asyncio.run(entered(one.responses.connect()))
    assert opened == ["ws://provider/v1/responses"] * 3
    assert [event.what for event in events if isinstance(event, Unpacked)] == ["the websocket .../responses"]
    assert len(events) == len(caplog.records) == 1


async def entered(connection: Any) -> None:
    await awaited(connection.enter())


def test_an_endpoint_that_is_not_packed_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    events: list[Event] = []
    client: Any = wrap(over(lambda _: httpx2.Response(200, json={"data": []})), on_event=events.append)
    with caplog.at_level(logging.WARNING, "lading"):
        for _ in range(2):
            client.responses.compact(model="gpt-4o", input="hi")
            client.completions.create(model="old", prompt="hi")
        client.models.list()
    told = [event.what for event in events if isinstance(event, Unpacked)]
    assert told == ["the endpoint .../responses/compact", "the endpoint .../completions"]
    assert len(events) == len(caplog.records) == 2


@pytest.mark.parametrize(
    ("path", "advised"),
    [
        ("completions", "chat.completions, responses or messages"),
        ("messages/batches", "chat.completions, responses or messages"),
        ("interactions", "models.generate_content or chats"),
        ("models/m:batchGenerateContent", "models.generate_content or chats"),
        ("model/m/invoke", "messages.create(**session.pack(tools).request)"),
        ("model/m/invoke-with-response-stream", "messages.create(**session.pack(tools).request)"),
        ("projects/p/models/m:rawPredict", "messages.create(**session.pack(tools).request)"),
        ("projects/p/models/m:streamRawPredict", "messages.create(**session.pack(tools).request)"),
    ],
)
def test_the_advice_names_what_clients_of_the_endpoint_have(path: str, advised: str) -> None:
    events: list[Event] = []
    client: Any = wrap(over(lambda _: httpx2.Response(200, json={})), on_event=events.append)
    client._client.post(f"http://here/v1/{path}", json=HI)
    (event,) = events
    assert isinstance(event, Unpacked)
    assert advised in event.advice
    assert "lading.Session" in event.advice


_CLOUDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "bedrock": (anthropic.AnthropicBedrock, {"api_key": "k", "aws_region": "us-east-1"}),
    "vertex": (anthropic.AnthropicVertex, {"access_token": "t", "project_id": "p", "region": "us-east5"}),
}


@pytest.mark.parametrize("cloud", _CLOUDS)
def test_the_advice_for_clients_of_other_clouds_can_be_followed(cloud: str) -> None:
    sent, events = list[Any](), list[Event]()

    def answering(request: httpx2.Request) -> httpx2.Response:
        sent.append(json.loads(request.read()))
        return httpx2.Response(200, json=MESSAGE)

    make, fields = _CLOUDS[cloud]
    http = anthropic.DefaultHttpxClient(transport=httpx2.MockTransport(answering))
    client = make(http_client=http, **fields)
    asked: Any = {"model": MODELS["anthropic"], "max_tokens": 50, "messages": HI["messages"]}
    wrap(client, on_event=events.append).messages.create(**asked)
    assert sent[0]["messages"] == HI["messages"]
    (event,) = events
    assert isinstance(event, Unpacked)
    assert "messages.create(**session.pack(tools).request)" in event.advice
    with Session(MODELS["anthropic"]) as session:
        session.add([*HI["messages"], {"role": "user", "content": [{"type": "text", "text": "there"}]}])
        request = session.pack([TOOL], fields={"max_tokens": 50}).request
        request["messages"][-1]["content"][-1]["cache_control"] = request.pop("cache_control")
        assert session.reply(client.messages.create(**request)).message.text == "Yes."
    assert [tool["name"] for tool in sent[1]["tools"]] == ["read", "restore"]
    assert "cache_control" not in sent[1]
    assert sent[1]["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}
