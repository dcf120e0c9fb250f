"""The sync and the async transport give the same bytes, the same log and the same events."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.addresses import RESTORE
from lading.clients.transport import AsyncTransport, Transport
from lading.compaction import DEFAULT
from lading.errors import LadingError
from lading.events import Event
from lading.exchange.conversations import Conversations
from lading.exchange.wrapping import WrapOptions
from lading.session.options import SessionOptions
from tests.clients.mocks import Streamed
from tests.exchange.scripts import Answer, long_history, refused, request_body, streamed, whole

CALLS = st.lists(st.sampled_from([RESTORE, "read"]), max_size=2)
WORDS = st.lists(st.sampled_from(["plum", "Wait. ", "é\n\n", ""]), max_size=3)
ODD = [
    Answer(200, ()),
    Answer(200, (b"{",), is_stream=True),
    Answer(200, (b"{",), is_cut=True),
    Answer(200, (b"[]",)),
    Answer(302, (b"<p>",)),
    Answer(500, (b"<p>",), is_stream=True),
]
ANSWERS = st.one_of(
    st.builds(lambda texts, calls: whole(*texts, calls=calls), WORDS, CALLS),
    st.builds(
        lambda texts, calls, size, is_cut: streamed(*texts, calls=calls, size=size, is_cut=is_cut),
        WORDS,
        CALLS,
        st.sampled_from([0, 1, 50]),
        st.booleans(),
    ),
    st.builds(refused, st.sampled_from([400, 429, 500])),
    st.sampled_from(ODD),
)


class Script(NamedTuple):
    """Two calls of a caller, and what it is answered."""

    answers: Sequence[Answer]
    is_long: bool
    """Whether the history is so long that a request can be made smaller."""
    fail_open: bool
    most_pieces: int | None
    """After how many pieces the caller leaves the first answer."""

    @property
    def history(self) -> list[dict[str, Any]]:
        return long_history() if self.is_long else []


class Outcome(NamedTuple):
    """What the provider was sent, what the caller got, and what was kept and reported of it."""

    sent: list[bytes]
    got: list[Any]
    log: list[Any]
    events: list[str]
    are_closed: list[bool]
    """Whether each stream of the provider was closed."""


class Side:
    """A provider that plays a script, and what happens on this side of it."""

    def __init__(self, script: Script) -> None:
        self._answers = iter(script.answers)
        self.sent: list[bytes] = []
        self.got: list[Any] = []
        self.events: list[Event] = []
        self.streams: list[Streamed] = []
        wrapping = WrapOptions(None, DEFAULT, None, SessionOptions(), script.fail_open)
        self.conversations = Conversations(None, wrapping, clock=lambda: 0.0, on_event=self.events.append)

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(request.content)
        answer = next(self._answers, refused(500))
        kind = {"content-type": "text/event-stream" if answer.is_stream else "application/json"}
        error = httpx2.ReadError("cut") if answer.is_cut else None
        self.streams.append(Streamed(*answer.pieces, error=error))
        return httpx2.Response(answer.status, headers=kind, stream=self.streams[-1])

    async def answer_async(self, request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(0)
        return self.answer(request)

    def outcome(self) -> Outcome:
        log = [entry.message for session in self.conversations.sessions for entry in session.entries]
        assert not any(one.busy for one in self.conversations._open.values())
        closed = [stream.is_closed for stream in self.streams]
        return Outcome(self.sent, self.got, log, list(map(repr, self.events)), closed)


def request(script: Script) -> httpx2.Request:
    content = request_body(stream=True, messages=script.history)
    headers = {"x-lading-session": "work"}
    return httpx2.Request("POST", "http://here/v1/chat/completions", content=content, headers=headers)


def in_sync(script: Script) -> Outcome:
    side = Side(script)
    inner = httpx2.Client(transport=httpx2.MockTransport(side.answer))
    with Transport(inner, httpx2, side.conversations) as transport:
        for most in (script.most_pieces, None):
            try:
                response = transport.handle_request(request(script))
                side.got.append((response.status_code, response.headers.get("content-type")))
                for at, piece in enumerate(response.iter_bytes()):
                    side.got.append(piece)
                    if at + 1 == most:
                        break
                response.close()
            except (httpx2.ReadError, LadingError) as error:
                side.got.append(repr(error))
        return side.outcome()


async def in_async(script: Script) -> Outcome:
    side = Side(script)
    inner = httpx2.AsyncClient(transport=httpx2.MockTransport(side.answer_async))
    async with AsyncTransport(inner, httpx2, side.conversations) as transport:
        for most in (script.most_pieces, None):
            try:
                response = await transport.handle_async_request(request(script))
                side.got.append((response.status_code, response.headers.get("content-type")))
                at = 0
                async for piece in response.aiter_bytes():
                    side.got.append(piece)
                    at += 1
                    if at == most:
                        break
                await response.aclose()
            except (httpx2.ReadError, LadingError) as error:
                side.got.append(repr(error))
        return side.outcome()


SCRIPTS = st.builds(
    Script,
    st.lists(ANSWERS, min_size=1, max_size=5),
    st.booleans(),
    st.booleans(),
    st.one_of(st.none(), st.integers(1, 4)),
)


@pytest.mark.fuzz
@given(SCRIPTS)
def test_both_give_the_same(script: Script) -> None:
    assert in_sync(script) == asyncio.run(in_async(script))
