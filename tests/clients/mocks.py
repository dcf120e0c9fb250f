"""Clients of OpenAI over answers made by hand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx2
from openai import (
    DefaultHttpxClient,
    OpenAI,
)

from lading.testing import FakeModel, Say

HI: dict[str, Any] = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
MODEL = FakeModel([Say("Hello there, this is what I have to say.")])

Answering = Callable[[httpx2.Request], httpx2.Response]


def over(answering: Answering, **settings: Any) -> OpenAI:
    http = DefaultHttpxClient(transport=httpx2.MockTransport(answering))
    return OpenAI(base_url="http://here/v1", api_key="test", http_client=http, **{"max_retries": 0, **settings})


def chunks(*texts: str, done: bool = True) -> bytes:
    deltas: list[dict[str, Any]] = [{"delta": {"content": text}, "index": 0} for text in texts]
    if done:
        deltas.append({"delta": {}, "index": 0, "finish_reason": "stop"})
    events = [f"data: {json.dumps({'id': 'x', 'choices': [delta]})}\n\n" for delta in deltas]
    return "".join([*events, "data: [DONE]\n\n"] if done else events).encode()


class Streamed(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """A body in pieces, with an error after them where one is given; knows whether it was closed."""

    def __init__(self, *pieces: bytes, error: Exception | None = None) -> None:
        self.pieces, self.error, self.is_closed = pieces, error, False

    def __iter__(self) -> Iterator[bytes]:
        yield from self.pieces
        if self.error:
            raise self.error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self:
            yield piece

    def close(self) -> None:
        self.is_closed = True

    async def aclose(self) -> None:
        self.is_closed = True


def events_of(stream: httpx2.SyncByteStream) -> httpx2.Response:
    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=stream)
