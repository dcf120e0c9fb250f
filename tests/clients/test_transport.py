"""What is no conversation goes by untouched; what is one survives what networks do."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anthropic import Anthropic
from openai import (
    APIConnectionError,
    APIError,
    APIStatusError,
    APITimeoutError,
    AsyncOpenAI,
    DefaultAsyncHttpxClient,
    DefaultHttpxClient,
    InternalServerError,
    OpenAI,
    RateLimitError,
)

from lading.clients import wrap
from lading.events import Event, ReplyLost, UsageMissing
from lading.stores import open_store
from lading.testing import Fault, StrictProvider
from tests.clients.agents import CLIENTS, anthropic_client, openai_client
from tests.clients.mocks import HI, MODEL, Streamed, chunks, events_of, over
from tests.replies import chat_reply
from tests.waiting import happens


def test_what_is_no_conversation_goes_by_byte_for_byte(tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_bytes(b'{"a": 1}\n' * 50_000)
    seen: list[list[tuple[str, str, bytes]]] = []

    def answering(request: httpx2.Request) -> httpx2.Response:
        body = request.read()
        boundary = request.headers.get("content-type", "").partition("boundary=")[2].encode() or b"-none-"
        seen[-1].append((request.method, str(request.url), body.replace(boundary, b"")))
        if "threads" in request.url.path:
            return httpx2.Response(404, json={"error": {"message": "gone"}})
        return httpx2.Response(200, json={"id": "x", "object": "list", "data": []})

    for wraps in (False, True):
        seen.append([])
        client = wrap(over(answering)) if wraps else over(answering)
        client.embeddings.create(model="e", input=["a", "b"], encoding_format="float")
        client.models.list()
        with file.open("rb") as lines:
            client.files.create(file=lines, purpose="batch")
        client.completions.create(model="old", prompt="hi")
        with pytest.raises(APIError):
            client.post("/threads/t/messages", body={"role": "user", "content": "hi"}, cast_to=object)
        assert not wraps or client.lading.sessions == ()  # type: ignore[attr-defined]
        client.close()
    assert seen[0] == seen[1]
    assert len(seen[0]) == 5


def test_an_upload_is_not_gathered_before_it_is_sent() -> None:
    steps: list[str] = []

    def pieces() -> Iterator[bytes]:
        for piece in (b"a", b"b"):
            steps.append(f"made {piece.decode()}")
            yield piece

    class Sending(httpx2.BaseTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            assert isinstance(request.stream, httpx2.SyncByteStream)
            steps.extend(f"sent {piece.decode()}" for piece in request.stream)
            return httpx2.Response(200, json={})

    http = DefaultHttpxClient(transport=Sending())
    client: Any = wrap(OpenAI(base_url="http://here/v1", api_key="test", http_client=http))
    client._client.post("http://here/v1/files", content=pieces())
    assert steps == ["made a", "sent a", "made b", "sent b"]


def test_tokens_are_counted_by_the_provider_as_asked() -> None:
    seen: list[bytes] = []

    def answering(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.read())
        return httpx2.Response(200, json={"input_tokens": 7})

    http = DefaultHttpxClient(transport=httpx2.MockTransport(answering))
    client = Anthropic(base_url="http://here", api_key="test", http_client=http)
    for one in (client, wrap(client)):
        one.messages.count_tokens(model="claude-sonnet-5", messages=[{"role": "user", "content": "hi"}])
    assert seen[0] == seen[1]


@pytest.mark.parametrize("status", [429, 500, 529])
@pytest.mark.parametrize("name", CLIENTS)
def test_the_sdk_tries_again_with_the_same_bytes(name: str, status: int) -> None:
    make, wire = CLIENTS[name]
    with StrictProvider(MODEL, faults={1: Fault(status=status), 2: Fault(status=status)}) as provider:
        client = wrap(make(provider).with_options(max_retries=2))
        fields = HI if wire == "openai_chat" else HI | {"model": "claude-sonnet-5", "max_tokens": 50}
        made = (client.chat.completions if wire == "openai_chat" else client.messages).create(**fields)
        if asyncio.iscoroutine(made):
            asyncio.run(made)
        bodies = {request.raw for request in provider.requests}
        assert (len(provider.requests), len(bodies)) == (3, 1)
        (session,) = client.lading.sessions
        assert len(session.entries) == 2


@pytest.mark.parametrize(("status", "error"), [(429, RateLimitError), (500, InternalServerError)])
def test_an_error_reaches_the_caller_as_it_is(status: int, error: type[APIStatusError]) -> None:
    with StrictProvider(MODEL, faults={1: Fault(status=status)}) as provider:
        client = wrap(openai_client(provider))
        with pytest.raises(error) as raised:
            client.chat.completions.create(**HI)
        assert raised.value.response.headers["retry-after-ms"] == "1"
        client.chat.completions.create(**HI)
        assert len(client.lading.sessions) == 1


@pytest.mark.parametrize(
    ("cause", "error"), [(httpx2.ConnectError, APIConnectionError), (httpx2.ReadTimeout, APITimeoutError)]
)
def test_a_broken_connection_is_the_sdk_s_error(cause: type[Exception], error: type[Exception]) -> None:
    broken = [True, False]

    def answering(_: httpx2.Request) -> httpx2.Response:
        if broken.pop(0):
            raise cause("broken")
        return httpx2.Response(200, json=chat_reply("yes"))

    client: Any = wrap(over(answering))
    with pytest.raises(error):
        client.chat.completions.create(**HI)
    assert client.chat.completions.create(**HI).choices[0].message.content == "yes"
    (session,) = client.lading.sessions
    assert len(session.entries) == 2


@pytest.mark.parametrize("cut_after", [0, 1, 3])
@pytest.mark.parametrize("name", ["OpenAI", "Anthropic"])
def test_a_stream_that_is_cut_is_the_caller_s_error_and_not_recorded(name: str, cut_after: int) -> None:
    make, wire = CLIENTS[name]
    events: list[Event] = []
    with StrictProvider(MODEL, faults={1: Fault(cut_after=cut_after)}) as provider:
        client = wrap(make(provider), on_event=events.append)
        fields = HI if wire == "openai_chat" else HI | {"model": "claude-sonnet-5", "max_tokens": 50}
        calls = client.chat.completions if wire == "openai_chat" else client.messages
        with pytest.raises((httpx2.RemoteProtocolError, APIError, APIConnectionError)):
            list(calls.create(stream=True, **fields))
        list(calls.create(stream=True, **fields))
        (session,) = client.lading.sessions
        assert [entry.message.role for entry in session.entries] == ["user", "assistant"]
        assert [type(event) for event in events if not isinstance(event, UsageMissing)] == [ReplyLost]


def test_a_stream_that_is_left_gives_the_conversation_back() -> None:
    bodies = [Streamed(chunks("a", done=False), chunks("b")) for _ in range(4)]
    sent = iter(bodies)
    client: Any = wrap(over(lambda _: events_of(next(sent))))
    never_read = client.chat.completions.create(stream=True, **HI)
    never_read.close()
    left = client.chat.completions.create(stream=True, **HI)
    next(left)
    left.close()
    forgotten = client.chat.completions.create(stream=True, **HI)
    del forgotten
    gc.collect()
    assert [chunk.choices[0].delta.content for chunk in client.chat.completions.create(stream=True, **HI)]
    (session,) = client.lading.sessions
    assert len(session.entries) == 2
    assert [body.is_closed for body in bodies] == [True, True, False, True]


def test_a_stream_that_is_left_gives_the_conversation_back_to_tasks_too() -> None:
    bodies = [Streamed(chunks("a", done=False), chunks("b")) for _ in range(3)]
    sent = iter(bodies)
    http = DefaultAsyncHttpxClient(transport=httpx2.MockTransport(lambda _: events_of(next(sent))))
    client: Any = wrap(AsyncOpenAI(base_url="http://here/v1", api_key="test", http_client=http))

    async def talk() -> None:
        never_read = await client.chat.completions.create(stream=True, **HI)
        await never_read.close()
        left = await client.chat.completions.create(stream=True, **HI)
        await left.__anext__()
        await left.close()
        async for _ in await client.chat.completions.create(stream=True, **HI):
            pass

    asyncio.run(talk())
    (session,) = client.lading.sessions
    assert len(session.entries) == 2
    assert all(body.is_closed for body in bodies)


TALK = [*HI["messages"], {"role": "assistant", "content": "Hello."}, {"role": "user", "content": "What is new?"}]
GONE_ON = {
    "answered": [{"role": "assistant", "content": "a"}, {"role": "user", "content": "go on"}],
    "unanswered": [{"role": "user", "content": "go on"}],
}


@pytest.mark.parametrize("goes_on", GONE_ON.values(), ids=GONE_ON)
@pytest.mark.parametrize("read", [0, 1, 2])
def test_a_stream_that_is_kept_gives_the_conversation_to_the_request_after_it(
    goes_on: list[Any], read: int
) -> None:
    events: list[Event] = []
    pieces = (chunks("a", done=False), chunks("b", done=False), chunks("c"))
    replies = iter([Streamed(*pieces), Streamed(chunks("d"))])
    client: Any = wrap(over(lambda _: events_of(next(replies))), on_event=events.append)
    fields: dict[str, Any] = {"stream": True, "model": "gpt-4o"}
    kept = client.chat.completions.create(messages=TALK, **fields)
    said = [next(kept) for _ in range(read)]
    list(client.chat.completions.create(messages=[*TALK, *goes_on], **fields))
    assert len(said + list(kept)) == 4
    (session,) = client.lading.sessions
    assert [entry.message.role for entry in session.entries[3:]] == [
        *(message["role"] for message in goes_on),
        "assistant",
    ]
    assert [type(event) for event in events if isinstance(event, ReplyLost)] == [ReplyLost]


def test_a_stream_that_is_kept_gives_the_conversation_to_tasks_too() -> None:
    replies = iter([Streamed(chunks("a", done=False), chunks("b")), Streamed(chunks("c"))])
    http = DefaultAsyncHttpxClient(transport=httpx2.MockTransport(lambda _: events_of(next(replies))))
    client: Any = wrap(AsyncOpenAI(base_url="http://here/v1", api_key="test", http_client=http))
    fields: dict[str, Any] = {"stream": True, "model": "gpt-4o"}

    async def talk() -> None:
        kept = await client.chat.completions.create(messages=TALK, **fields)
        after = [*TALK, *GONE_ON["unanswered"]]
        async for _ in await client.chat.completions.create(messages=after, **fields):
            pass
        assert len([chunk async for chunk in kept]) == 3

    asyncio.run(talk())
    (session,) = client.lading.sessions
    assert [entry.message.role for entry in session.entries[3:]] == ["user", "assistant"]


def test_a_whole_reply_in_a_stream_that_is_kept_is_taken_in() -> None:
    replies = iter([Streamed(chunks("a")), Streamed(chunks("c"))])
    client: Any = wrap(over(lambda _: events_of(next(replies))))
    fields: dict[str, Any] = {"stream": True, "model": "gpt-4o"}
    kept = client.chat.completions.create(messages=TALK, **fields)
    next(kept)
    list(client.chat.completions.create(messages=[*TALK, *GONE_ON["answered"]], **fields))
    (session,) = client.lading.sessions
    assert [entry.message.role for entry in session.entries[3:]] == ["assistant", "user", "assistant"]


def test_the_same_request_beside_a_stream_is_another_conversation() -> None:
    replies = iter([Streamed(chunks("a")), Streamed(chunks("b"))])
    client: Any = wrap(over(lambda _: events_of(next(replies))))
    both = [client.chat.completions.create(stream=True, **HI) for _ in range(2)]
    assert [len(list(stream)) for stream in both] == [2, 2]
    assert [len(session.entries) for session in client.lading.sessions] == [2, 2]


def test_a_task_that_is_cancelled_gives_the_conversation_back() -> None:
    async def answering(_: httpx2.Request) -> httpx2.Response:
        if waits:
            asked.set()
            await asyncio.Event().wait()
        return httpx2.Response(200, json=chat_reply("yes"))

    waits, asked = [True], asyncio.Event()
    http = DefaultAsyncHttpxClient(transport=httpx2.MockTransport(answering))
    client: Any = wrap(AsyncOpenAI(base_url="http://here/v1", api_key="test", http_client=http))

    async def talk() -> None:
        # Before it begins, while it is on its way, and while it waits for the answer.
        for steps in (0, 1, 5, 20, None):
            asked.clear()
            calling = asyncio.create_task(client.chat.completions.create(**HI))
            if steps is None:
                await happens(asked, "the provider is asked")
            for _ in range(steps or 0):
                await asyncio.sleep(0)
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
        waits.clear()
        await client.chat.completions.create(**HI)

    asyncio.run(talk())
    (session,) = client.lading.sessions
    assert len(session.entries) == 2


def test_closing_lets_go_of_everything(tmp_path: Path) -> None:
    with StrictProvider(MODEL) as provider:
        with wrap(openai_client(provider), store=tmp_path) as client:
            client.chat.completions.create(**HI)
        assert client.is_closed()
        with open_store("sqlite", str(tmp_path)) as store:
            for tenant, session in store.sessions():
                store.lease(tenant, session).release()

        async def talk() -> None:
            async with wrap(openai_client(provider, AsyncOpenAI), store=tmp_path) as client:
                await client.chat.completions.create(**HI)

        asyncio.run(talk())
        with wrap(anthropic_client(provider), store=tmp_path) as other:
            other.messages.create(max_tokens=9, **HI | {"model": "claude-sonnet-5"})
    assert threading.active_count() < 20


def test_a_client_that_is_forgotten_lets_go(tmp_path: Path) -> None:
    with StrictProvider(MODEL) as provider, open_store("sqlite", str(tmp_path)) as store:
        client = wrap(openai_client(provider), store=store)
        client.chat.completions.create(**HI)
        (name,) = [session.name for session in client.lading.sessions]
        del client
        gc.collect()
        store.lease("default", name).release()
