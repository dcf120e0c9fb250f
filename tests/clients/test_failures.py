"""Answers that are none, and requests that cannot be packed: the caller gets what it would get unwrapped."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import (
    APIConnectionError,
    BadRequestError,
)

from lading.clients import wrap
from lading.events import Event, PackingFailed, ReplyLost
from lading.stores import open_store
from lading.testing import Fault, StrictProvider
from tests.clients.agents import openai_client
from tests.clients.mocks import HI, MODEL, Streamed, chunks, over
from tests.replies import chat_reply


@pytest.mark.parametrize(
    "answer",
    [
        httpx2.Response(200, content=b""),
        httpx2.Response(200, html="<h1>Sign in</h1>"),
        httpx2.Response(200, json=[]),
        httpx2.Response(200, json={"choices": []}),
        httpx2.Response(200, json={"choices": [{"message": 7}]}),
        httpx2.Response(204),
        httpx2.Response(304),
    ],
    ids=lambda answer: f"{answer.status_code}-{answer.text[:12]}",
)
def test_an_answer_that_is_none_goes_by_as_it_came(answer: httpx2.Response) -> None:
    events: list[Event] = []
    client: Any = wrap(over(lambda _: answer), on_event=events.append)
    raw = client._client.post("http://here/v1/chat/completions", json=HI)
    assert (raw.status_code, raw.content) == (answer.status_code, answer.content)
    assert [type(event) for event in events] == ([ReplyLost] if answer.is_success else [])
    assert len(client.lading.sessions[0].entries) == 1


def test_a_compressed_answer_is_read() -> None:
    data = gzip.compress(json.dumps(chat_reply("pressed")).encode())
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    client: Any = wrap(over(lambda _: httpx2.Response(200, headers=headers, content=data)))
    assert client.chat.completions.create(**HI).choices[0].message.content == "pressed"
    assert client.lading.sessions[0].entries[-1].message.text == "pressed"


def test_a_compressed_stream_is_read() -> None:
    headers = {"content-encoding": "gzip", "content-type": "text/event-stream"}
    data = gzip.compress(chunks("pre", "ssed"))
    client: Any = wrap(over(lambda _: httpx2.Response(200, headers=headers, stream=Streamed(data[:20], data[20:]))))
    for _ in client.chat.completions.create(stream=True, **HI):
        pass
    assert client.lading.sessions[0].entries[-1].message.text == "pressed"


@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_without_usage_is_taken(stream: bool) -> None:
    with StrictProvider(MODEL, faults={1: Fault(usage=False)}) as provider:
        client = wrap(openai_client(provider))
        answer = client.chat.completions.create(stream=stream, **HI)
        list(answer) if stream else None
        assert client.lading.sessions[0].entries[-1].usage is None


def test_several_answers_are_the_caller_s_to_choose_from() -> None:
    both = chat_reply("one")
    both["choices"].append(both["choices"][0] | {"index": 1, "message": {"role": "assistant", "content": "two"}})
    sent: list[bytes] = []

    def answering(request: httpx2.Request) -> httpx2.Response:
        sent.append(request.read())
        return httpx2.Response(200, json=both)

    client: Any = wrap(over(answering))
    assert len(client.chat.completions.create(n=2, **HI).choices) == 2
    (session,) = client.lading.sessions
    assert [entry.message.text for entry in session.entries] == ["hi", "one"]
    told = [*HI["messages"], {"role": "assistant", "content": "two"}, {"role": "user", "content": "go on"}]
    client.chat.completions.create(model="gpt-4o", messages=told)
    assert client.lading.sessions == (session,)
    assert json.loads(sent[-1])["messages"] == told
    assert [entry.message.text for entry in session.list_newest_known(4)] == ["hi", "two", "go on", "one"]


def exact(request: dict[str, Any]) -> bytes:
    """The bytes that the SDK makes of a call."""
    seen: list[bytes] = []

    def answering(sent: httpx2.Request) -> httpx2.Response:
        seen.append(sent.read())
        return httpx2.Response(200, json=chat_reply("yes"))

    over(answering).chat.completions.create(**request)
    return seen[0]


def test_what_cannot_be_packed_goes_out_as_it_is_and_an_event_says_so(tmp_path: Path) -> None:
    sent: list[bytes] = []
    events: list[Event] = []

    def answering(request: httpx2.Request) -> httpx2.Response:
        sent.append(request.read())
        return httpx2.Response(200, json=chat_reply("yes", input_tokens=20))

    store = open_store("sqlite", str(tmp_path))
    client: Any = wrap(over(answering), store=store, on_event=events.append)
    client.chat.completions.create(**HI)
    store.close()
    client.chat.completions.create(**HI)
    assert sent[-1] == exact(HI)
    assert [type(event) for event in events] == [PackingFailed]
    strict: Any = wrap(over(answering), store=store, fail_open=False)
    with pytest.raises(Exception, match="closed"):
        strict.chat.completions.create(**HI)
    assert len(sent) == 2


def test_a_window_too_small_for_the_head_leaves_the_request_as_it_is() -> None:
    events: list[Event] = []
    sent: list[bytes] = []

    def answering(request: httpx2.Request) -> httpx2.Response:
        sent.append(request.read())
        return httpx2.Response(200, json=chat_reply("yes"))

    client: Any = wrap(over(answering), window=300, on_event=events.append)
    request = HI | {"messages": [{"role": "user", "content": "word " * 900}]}
    client.chat.completions.create(**request)
    assert sent == [exact(request)]
    (event,) = events
    assert isinstance(event, PackingFailed)
    assert "WindowExceeded" in event.error


def test_a_listener_that_fails_stops_nobody() -> None:
    def listener(_: Event) -> None:
        raise RuntimeError("the listener is broken")

    client: Any = wrap(over(lambda _: httpx2.Response(200, json=[])), on_event=listener)
    assert client._client.post("http://here/v1/chat/completions", json=HI).json() == []


def test_a_prompt_too_long_is_tried_once_smaller_then_it_is_the_provider_s_word() -> None:
    sent: list[int] = []
    text = "This model's maximum context length is 1000 tokens. However, your messages resulted in 2000 tokens."

    def answering(request: httpx2.Request) -> httpx2.Response:
        sent.append(len(request.read()))
        error = {"message": text, "type": "invalid_request_error", "code": "context_length_exceeded"}
        return httpx2.Response(400, json={"error": error})

    client: Any = wrap(over(answering))
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for number in range(12):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        messages.append({"role": "assistant", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": f"{number} " * 400})
    with pytest.raises(BadRequestError, match="maximum context length"):
        client.chat.completions.create(model="gpt-4o", messages=messages)
    assert len(sent) == 2
    assert sent[1] < sent[0] * 0.7


@pytest.mark.parametrize("kind", ["text/event-stream", "Text/Event-Stream; charset=UTF-8", "text/plain", ""])
def test_a_stream_reaches_its_caller_as_it_comes_whatever_its_type(kind: str) -> None:
    body = Streamed(chunks("a", done=False), chunks("b", done=False), error=httpx2.ReadError("cut"))
    headers = {"content-type": kind} if kind else {}
    seen: list[tuple[list[str | None], type[Exception]]] = []
    for wraps in (False, True):
        client = over(lambda _: httpx2.Response(200, headers=headers, stream=body))
        received: list[str | None] = []
        stream = (wrap(client) if wraps else client).chat.completions.create(**HI, stream=True)
        with pytest.raises((APIConnectionError, httpx2.ReadError)) as raised:
            received.extend(piece.choices[0].delta.content for piece in stream)
        seen.append((received, raised.type))
    assert seen[0] == seen[1]
    assert seen[0][0] == ["a", "b"]
