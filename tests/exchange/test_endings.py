"""Answers that callers drop are collected at any moment, also while a lock of ours is held."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from lading.clients.transport import AsyncTransport, Transport
from lading.compaction import DEFAULT
from lading.errors import StoreError
from lading.events import Event, ReplyLost
from lading.exchange.conversations import Conversations
from lading.exchange.wrapping import WrapOptions
from lading.session.options import SessionOptions
from lading.stores import SessionStore
from lading.stores.memory import MemoryStore
from lading.stores.sqlite import open_sqlite
from lading.stores.sqlite_connection import StoreConnection
from tests.clients.mocks import Streamed
from tests.exchange.scripts import request_body, streamed
from tests.waiting import until

REPLIED = [
    {"role": "user", "content": "the secret is plum"},
    {"role": "assistant", "content": "plum"},
    {"role": "user", "content": "again"},
]
OPENERS: dict[str, Callable[[Path], SessionStore]] = {"memory": lambda _: MemoryStore(), "sqlite": open_sqlite}


class Side:
    """A provider that streams, and the conversations of a client."""

    def __init__(self, store: SessionStore, *, fail_open: bool = True) -> None:
        self.events: list[Event] = []
        wrapping = WrapOptions(None, DEFAULT, None, SessionOptions(), fail_open)
        self.conversations = Conversations(store, wrapping, clock=lambda: 0.0, on_event=self.events.append)
        self.transport = Transport(
            httpx2.Client(transport=httpx2.MockTransport(self.answer)), httpx2, self.conversations
        )

    def answer(self, _: httpx2.Request) -> httpx2.Response:
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, stream=Streamed(*streamed("pl", "um").pieces))

    def call(self, name: str, messages: Sequence[dict[str, Any]] = ()) -> httpx2.Response:
        request = httpx2.Request(
            "POST",
            "http://here/v1/chat/completions",
            content=request_body(stream=True, messages=messages),
            headers={"x-lading-session": name},
        )
        response: httpx2.Response = self.transport.handle_request(request)
        return response

    def read_whole(self, name: str, messages: Sequence[dict[str, Any]] = ()) -> Any:
        """Read an answer up to its mark of the end, and return what keeps it open."""
        pieces = self.call(name, messages).iter_bytes()
        for piece in pieces:
            if b'"stop"' in piece:
                break
        return pieces

    def drop(self, name: str) -> None:
        """Leave an answer, whole but open, to the garbage collector."""
        cycle = [self.read_whole(name)]
        cycle.append(cycle)

    def roles(self, name: str) -> list[str]:
        (found,) = (session for session in self.conversations.sessions if session.name == name)
        return [entry.message.role for entry in found.entries]


@contextmanager
def collecting(kind: type[Any], method: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Collect garbage in each call of this method, and count what was found."""
    original, found = getattr(kind, method), list[int]()

    def collect(*given: Any, **named: Any) -> Any:
        found.append(gc.collect())
        return original(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(kind, method, collect)
        yield found


def test_nothing_is_stored_where_an_answer_is_dropped() -> None:
    class Watched(MemoryStore):
        def append(self, *given: Any, **named: Any) -> None:
            threads.append(threading.get_ident())
            super().append(*given, **named)

    threads: list[int] = []
    side = Side(Watched())
    pieces = side.read_whole("dropped")
    assert threads == [threading.get_ident()]
    del pieces
    until("the reply in the store", lambda: len(threads) == 2)
    assert threads[1] != threads[0]


@pytest.mark.parametrize(
    ("store", "kind", "method"),
    [
        ("memory", MemoryStore, "_check_open"),  # With the store's lock.
        ("sqlite", StoreConnection, "_check_place"),
        ("sqlite", Conversations, "_close_oldest"),  # With the lock of the conversations.
    ],
)
def test_an_answer_is_collected_while_a_lock_is_held(
    store: str, kind: type[Any], method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gc.disable()
    try:
        side = Side(OPENERS[store](tmp_path))
        side.drop("dropped")
        with collecting(kind, method, monkeypatch) as found:
            # A thread of its own: if it waits for itself, the test does not.
            calling = threading.Thread(target=side.read_whole, args=("other",), daemon=True)
            calling.start()
            until("the end of the other call", lambda: not calling.is_alive())
        assert sum(found)
    finally:
        gc.enable()
    assert side.roles("dropped") == ["user", "assistant"]
    assert not [event for event in side.events if isinstance(event, ReplyLost)]


def test_an_answer_is_collected_while_its_conversation_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.disable()
    try:
        side = Side(MemoryStore())
        side.drop("dropped")
        with collecting(Conversations, "_find_open", monkeypatch) as found:
            side.read_whole("dropped", REPLIED)
        assert sum(found)
    finally:
        gc.enable()
    assert [session.name for session in side.conversations.sessions] == ["dropped"]
    assert side.roles("dropped") == ["user", "assistant", "user", "assistant"]


def test_what_was_dropped_is_recorded_without_another_call() -> None:
    side = Side(MemoryStore())
    side.drop("dropped")
    gc.collect()
    store = side.conversations._store
    until("the reply in the store", lambda: store.counts("default", "dropped")[0] == 2)


def test_the_next_call_continues_an_answer_that_was_dropped_just_before() -> None:
    side = Side(MemoryStore())
    for _ in range(3):
        side.drop("dropped")
        gc.collect()
    assert [session.name for session in side.conversations.sessions] == ["dropped"]


def test_an_error_of_an_ending_is_reported_to_the_listener_also_if_calls_raise() -> None:
    class Full(MemoryStore):
        is_full = False

        def append(self, *given: Any, **named: Any) -> None:
            if self.is_full:
                raise StoreError("full")
            super().append(*given, **named)

    store = Full()
    side = Side(store, fail_open=False)
    pieces = side.read_whole("dropped")
    store.is_full = True
    del pieces
    assert side.conversations.sessions
    assert [event for event in side.events if isinstance(event, ReplyLost)] == [
        ReplyLost("dropped", "StoreError: full")
    ]


async def _drop_async(side: Side) -> None:
    async def answer(request: httpx2.Request) -> httpx2.Response:
        return side.answer(request)

    inner = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    transport = AsyncTransport(inner, httpx2, side.conversations)
    headers = {"x-lading-session": "dropped"}
    request = httpx2.Request(
        "POST", "http://here/v1/chat/completions", content=request_body(stream=True), headers=headers
    )
    response = await transport.handle_async_request(request)
    async for piece in response.aiter_bytes():
        if b'"stop"' in piece:
            break


def test_an_async_answer_is_recorded_after_its_loop_ended() -> None:
    side = Side(MemoryStore())
    asyncio.run(_drop_async(side))
    gc.collect()
    assert side.roles("dropped") == ["user", "assistant"]
