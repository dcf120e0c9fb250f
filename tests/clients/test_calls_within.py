"""A function of the caller that a request waits for may call the same client: that call goes out as it was made."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any

import httpx2
import pytest
from openai import APIConnectionError, AsyncOpenAI, DefaultAsyncHttpxClient

from lading import ContextProvider, SessionOptions, Summarizer, wrap
from lading.compaction.transforming import transforming
from lading.events import ContextLeftOut, Event, Unpacked
from lading.memory import open_memory
from lading.messages import Message
from lading.session.loop_detection import LoopDetection
from lading.testing import StrictProvider
from tests.clients.agents import CLIENTS
from tests.clients.mocks import chunks, over
from tests.clients.summed import WINDOW, Worker, work
from tests.replies import chat_reply
from tests.waiting import happened, until

FUNCTION = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}
ASIDE: dict[str, Any] = {
    "model": "gpt-4o-mini",
    "messages": [{"role": "user", "content": "aside"}],
    "tools": [FUNCTION],
}
WHAT = "a call by a function that a request waits for"
_MOST = 20
"""Calls of a function, after which it asks nothing more: a test of endless ones ends."""


class Provider:
    """Answers each request; knows the texts of their first messages, and those that were packed."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.packed: list[str] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.read())
        text = body["messages"][0]["content"]
        self.asked.append(text)
        self.packed += [text] if "restore" in str(body["tools"]) else []
        return httpx2.Response(200, json=chat_reply("Yes."))


class Asking:
    """A function of the caller that asks the client's model."""

    def __init__(self, client: Callable[[], Any], ask: dict[str, Any] = ASIDE) -> None:
        self._client, self._ask, self.calls = client, ask, 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls > _MOST:
            return ""
        return str(self._client().chat.completions.create(**self._ask).choices[0].message.content)

    async def later(self) -> str:
        """The same with an async client."""
        self.calls += 1
        if self.calls > _MOST:
            return ""
        return str((await self._client().chat.completions.create(**self._ask)).choices[0].message.content)


class Embedder:
    """Makes vectors after asking a model."""

    name, size = "asking", 2

    def __init__(self, ask: Asking) -> None:
        self._ask = ask

    def embed(self, texts: Sequence[str], *, purpose: str) -> list[list[float]]:
        self._ask()
        return [[1.0, float(len(text) + len(purpose))] for text in texts]


def repeated(ask: Asking) -> SessionOptions:
    def decide(_: object) -> Any:
        ask()
        return "continue"

    return SessionOptions(loop_detection=LoopDetection(max_repetitions=2, on_loop_detected=decide))


def transform(ask: Asking) -> Any:
    def change(messages: Sequence[Message]) -> Sequence[Message]:
        ask()
        return messages

    return transforming(change)


FUNCTIONS: dict[str, Callable[[Asking], dict[str, Any]]] = {
    "volatile": lambda ask: {"providers": [ask]},
    "stable": lambda ask: {"providers": [ContextProvider(ask, "stable", name="rules")]},
    "transform": lambda ask: {"strategy": transform(ask)},
    "loop": lambda ask: {"options": repeated(ask)},
    "on_event": lambda ask: {"on_event": lambda event: None if isinstance(event, Unpacked) else ask()},
    "embedder": lambda ask: {"memory": open_memory(user="ada", embedder=Embedder(ask))},
}
"""Options of a wrapped client that have a function which asks."""


def history(turns: int) -> list[dict[str, Any]]:
    """Turns of an agent that repeats itself."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Go."}]
    for turn in range(1, turns):
        call = {"id": f"c{turn}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": "nothing"})
    return messages


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_what_a_function_asks_the_client_goes_out_once_and_as_it_was_made(kind: str) -> None:
    provider, made = Provider(), list[Any]()
    ask = Asking(lambda: made[0])
    client: Any = wrap(over(provider), **FUNCTIONS[kind](ask))
    made.append(client)
    for turns in range(1, 4):
        client.chat.completions.create(model="gpt-4o", messages=history(turns), tools=[FUNCTION])
    assert 0 < ask.calls < _MOST
    assert provider.asked.count("aside") == ask.calls
    assert provider.packed.count("Go.") == provider.asked.count("Go.") == 3
    assert "aside" not in provider.packed
    assert len(client.lading.sessions) == 1


def test_it_is_told_of_once_and_the_next_call_of_the_program_is_packed() -> None:
    provider, events, made = Provider(), list[Event](), list[Any]()
    ask = Asking(lambda: made[0].lading.session("other"))
    client: Any = wrap(over(provider), providers=[ask], on_event=events.append, fail_open=False)
    made.append(client)
    for turns in range(1, 4):
        client.chat.completions.create(model="gpt-4o", messages=history(turns), tools=[FUNCTION])
    assert provider.asked == ["aside", "Go."] * 3
    assert [event.what for event in events if isinstance(event, Unpacked)] == [WHAT]
    assert ask.calls == 3
    client.chat.completions.create(**ASIDE)
    assert provider.packed[-1] == "aside"


@pytest.mark.parametrize("is_sync", [False, True], ids=["async", "sync in a task"])
def test_an_async_provider_and_the_tasks_and_threads_that_it_starts(is_sync: bool) -> None:
    provider, made = Provider(), list[Any]()
    ask = Asking(lambda: made[int(is_sync)])

    async def provide() -> str:
        if is_sync:
            return await asyncio.to_thread(ask)
        first, second = await asyncio.gather(ask.later(), asyncio.create_task(ask.later()))
        return first + second

    async def run() -> None:
        transport = httpx2.MockTransport(provider)
        plain = AsyncOpenAI(
            base_url="http://here/v1", api_key="k", http_client=DefaultAsyncHttpxClient(transport=transport)
        )
        made.extend([wrap(plain, providers=[provide]), wrap(over(provider), providers=[provide])])
        for turns in range(1, 3):
            fields = {"model": "gpt-4o", "messages": history(turns), "tools": [FUNCTION]}
            create = partial(made[int(is_sync)].chat.completions.create, **fields)
            await (asyncio.to_thread(create) if is_sync else create())

    asyncio.run(run())
    each = 1 if is_sync else 2
    assert provider.asked == [*["aside"] * each, "Go."] * 2
    assert provider.packed == ["Go."] * 2


def test_a_provider_that_is_late_asks_nobody_either() -> None:
    provider, made, events = Provider(), list[Any](), list[Event]()
    released, ask = threading.Event(), Asking(lambda: made[0])

    def provide() -> str:
        happened(released, "the end of the request")
        return ask()

    client: Any = wrap(over(provider), providers=[ContextProvider(provide, timeout_s=0.02)], on_event=events.append)
    made.append(client)
    client.chat.completions.create(model="gpt-4o", messages=history(1), tools=[FUNCTION])
    released.set()
    until("the late question", lambda: len(provider.asked) == 2)
    until("the end of the provider", lambda: not [one for one in threading.enumerate() if "context" in one.name])
    assert provider.asked == ["Go.", "aside"]
    assert [event.why for event in events if isinstance(event, ContextLeftOut)] == ["no answer within 0.02 s"]


def test_another_wrapped_client_packs_and_may_ask_the_first_one() -> None:
    first, second, made = Provider(), Provider(), list[Any]()
    inner = Asking(lambda: made[0])
    outer = Asking(lambda: made[1], ASIDE | {"messages": [{"role": "user", "content": "subagent"}]})
    made += [wrap(over(first), providers=[outer]), wrap(over(second), providers=[inner])]
    made[0].chat.completions.create(model="gpt-4o", messages=history(1), tools=[FUNCTION])
    assert (first.asked, first.packed) == (["aside", "Go."], ["Go."])
    assert (second.asked, second.packed) == (["subagent"], ["subagent"])


@pytest.mark.parametrize("background", [False, True], ids=["", "background"])
def test_a_summarizer_that_asks_the_wrapped_client(background: bool) -> None:
    make, wire = CLIENTS["OpenAI"]
    made, calls, ended = list[Any](), list[int](), list[int]()

    def summarize(messages: list[dict[str, Any]]) -> str:
        calls.append(len(messages))
        asked = [{"role": "user", "content": "Summarize. It is long."}]
        made[0].chat.completions.create(model="gpt-4o-mini", messages=asked)
        ended.append(len(messages))
        return "Summary: all is well."

    with StrictProvider(Worker(), window_tokens=WINDOW) as provider:
        whom = Summarizer(summarize, background=background)
        made.append(wrap(make(provider), window=WINDOW, summarizer=whom, when="full"))
        asyncio.run(work(made[0], wire))
        until("the last answer", lambda: len(ended) == len(calls))
        own = [request for request in provider.requests if "Summarize. " in str(request.body["messages"][0])]
    assert len(own) == len(calls) > 0
    assert len(made[0].lading.sessions) == 1


def test_tasks_that_share_a_context_wait_for_no_request_of_each_other() -> None:
    provider = Provider()
    all_wait = asyncio.Event()

    async def answer(request: httpx2.Request) -> httpx2.Response:
        answered = provider(request)
        if len(provider.asked) == 6:
            all_wait.set()
        await all_wait.wait()
        return answered

    async def ask() -> None:
        http = DefaultAsyncHttpxClient(transport=httpx2.MockTransport(answer))
        client = wrap(AsyncOpenAI(api_key="k", base_url="http://here/v1", http_client=http))
        context, loop = copy_context(), asyncio.get_running_loop()
        asked = [
            client.chat.completions.create(
                model="gpt-4o-mini",
                messages=[{"role": "user", "content": f"question {number}"}],
                tools=[FUNCTION],  # type: ignore[list-item]
            )
            for number in range(6)
        ]
        await asyncio.gather(*(loop.create_task(one, context=context) for one in asked))

    asyncio.run(ask())
    assert sorted(provider.packed) == sorted(provider.asked) == [f"question {number}" for number in range(6)]


def test_a_call_that_is_made_while_a_cut_stream_is_reported_goes_out_as_it_was_made() -> None:
    """Packed, it would be reported when it is cut too, and so on without end."""
    provider = Provider()

    class Cut(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield chunks("a")[:40]
            raise httpx2.ReadError("cut")

    def answer(request: httpx2.Request) -> httpx2.Response:
        provider(request)
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Cut())

    def ask(text: str) -> None:
        if len(provider.asked) < _MOST:
            for _ in client.chat.completions.create(
                model="gpt-4o-mini", messages=[{"role": "user", "content": text}], tools=[FUNCTION], stream=True
            ):
                pass

    def explain(event: Event) -> None:
        with suppress(APIConnectionError):
            ask(f"explain {type(event).__name__}")

    client: Any = wrap(over(answer), on_event=explain)
    with pytest.raises(APIConnectionError):
        ask("hello")
    assert provider.packed == ["hello"]
    assert "explain ReplyLost" in provider.asked
    assert len(provider.asked) < 6
