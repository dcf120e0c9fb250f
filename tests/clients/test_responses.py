"""The response objects that a caller gets: as those of its own client, but for the decoding of the body."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import httpx2
import pytest
from openai import (
    APIConnectionError,
    APIStatusError,
    AsyncOpenAI,
    DefaultAsyncHttpxClient,
    DefaultHttpxClient,
    OpenAI,
)

from lading.clients import wrap
from lading.events import Event
from tests.clients.mocks import HI, Answering, Streamed, chunks
from tests.replies import chat_reply

REPLY = json.dumps(chat_reply("yes", input_tokens=20)).encode()
REFUSAL = b'{"error": {"message": "no"}}'
HTTP2: dict[str, Any] = {"http_version": b"HTTP/2", "reason_phrase": b"Fine"}


def responding(status: int, *pieces: bytes, kind: str = "application/json", **headers: str) -> httpx2.Response:
    named = {"content-type": kind} | {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(status, headers=named, stream=Streamed(*pieces), extensions=HTTP2)


def redirecting(request: httpx2.Request) -> httpx2.Response:
    if "/v2/" in request.url.path:
        return responding(200, REPLY)
    return responding(307, location=str(request.url).replace("/v1/", "/v2/"))


def redirecting_for_ever(request: httpx2.Request) -> httpx2.Response:
    return responding(307, location=str(request.url))


ANSWERINGS: dict[str, Answering] = {
    "whole": lambda _: responding(200, REPLY, content_length=str(len(REPLY))),
    "in pieces": lambda _: responding(200, REPLY[:9], REPLY[9:]),
    "in another charset": lambda _: responding(200, REPLY, kind="application/json; charset=latin-1"),
    "compressed": lambda _: responding(200, gzip.compress(REPLY), content_encoding="gzip"),
    "an error": lambda _: responding(429, REFUSAL),
    "a redirect": redirecting,
    "redirects for ever": redirecting_for_ever,
}


def attributes(response: httpx2.Response) -> dict[str, Any]:
    """What httpx sets on a response that is read."""
    assert response.elapsed.total_seconds() >= 0
    following = response.next_request
    return {
        "status": (response.status_code, response.reason_phrase, response.http_version),
        "text": (response.text, response.encoding, response.charset_encoding, response.default_encoding),
        "url": (str(response.url), str(following.url) if following else None),
        "history": [(one.status_code, str(one.url), one.is_closed) for one in response.history],
        "state": (response.is_closed, response.is_stream_consumed, response.has_redirect_location),
        "extensions": (dict(response.extensions), sorted(response.request.extensions)),
        "bytes": response.num_bytes_downloaded,
    }


async def ask(answering: Answering, *, wraps: bool, is_async: bool, follows: bool) -> dict[str, Any] | str:
    settings: dict[str, Any] = {
        "transport": httpx2.MockTransport(answering),
        "follow_redirects": follows,
        "max_redirects": 3,
        "default_encoding": "cp1252",
    }
    http = DefaultAsyncHttpxClient(**settings) if is_async else DefaultHttpxClient(**settings)
    kind: Any = AsyncOpenAI if is_async else OpenAI
    client = kind(base_url="http://here/v1", api_key="test", http_client=http, max_retries=0)
    client = wrap(client) if wraps else client
    try:
        made = client.chat.completions.with_raw_response.create(**HI)
        return attributes((await made if is_async else made).http_response)
    except APIStatusError as error:
        return attributes(error.response)
    except APIConnectionError as error:
        return f"{error!r} for {error.__cause__!r}"


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("follows", [True, False])
@pytest.mark.parametrize("name", ANSWERINGS)
def test_a_response_is_as_with_the_callers_own_client(name: str, follows: bool, is_async: bool) -> None:
    own, ours = (
        asyncio.run(ask(ANSWERINGS[name], wraps=wraps, is_async=is_async, follows=follows))
        for wraps in (False, True)
    )
    if name == "compressed":
        # The body is handed on decoded, so that many bytes are what is counted.
        assert isinstance(ours, dict)
        assert ours.pop("bytes") == len(REPLY)
        assert isinstance(own, dict)
        del own["bytes"]
    assert ours == own


def test_a_stream_ends_the_timer() -> None:
    http = DefaultHttpxClient(
        transport=httpx2.MockTransport(lambda _: responding(200, chunks("a", "b"), kind="text/event-stream"))
    )
    client: Any = wrap(OpenAI(base_url="http://here/v1", api_key="test", http_client=http))
    stream = client.chat.completions.create(stream=True, **HI)
    assert len(list(stream)) == 3
    assert stream.response.elapsed.total_seconds() >= 0


def test_a_redirected_call_stays_in_its_session() -> None:
    events: list[Event] = []
    http = DefaultHttpxClient(transport=httpx2.MockTransport(redirecting))
    client: Any = wrap(OpenAI(base_url="http://here/v1", api_key="test", http_client=http), on_event=events.append)
    client.chat.completions.create(**HI, extra_headers={"x-lading-session": "work"})
    (session,) = client.lading.sessions
    assert session.name == "work"
    assert [entry.message.role for entry in session.entries] == ["user", "assistant"]
    assert events == []
