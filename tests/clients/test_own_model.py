"""``summarizer="self"``: the model of the wrapped client summarizes what its prompt cache holds already."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from threading import Event
from typing import Any

import httpx2
import pytest

from lading import Summarizer, jsonbytes, wrap
from lading.audit.replay import verify
from lading.events import SummaryRejected
from lading.request.manifest import unseal
from lading.stores.memory import MemoryStore
from lading.testing import Say, StrictProvider, Use
from tests.clients.agents import CLIENTS, RESPONSES
from tests.clients.summed import WINDOW, Worker, find_instruction, items_of, split, work
from tests.examples import quick_first
from tests.waiting import happened

FAULTS: dict[str, Callable[[httpx2.Request], httpx2.Response]] = {}


def fault(make: Callable[[httpx2.Request], httpx2.Response]) -> Callable[[httpx2.Request], httpx2.Response]:
    """Register what becomes of each request for a summary."""
    FAULTS[make.__name__] = make
    return make


@fault
def rate_limit(_: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(429, json={"error": {"message": "Slow down."}})


@fault
def too_long(_: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(400, json={"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}})


@fault
def overload(_: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(529, text="<p>overloaded")


@fault
def no_json(_: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, text="<p>a proxy's page")


@fault
def no_reply(_: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, json={"error": None})


@fault
def disconnection(request: httpx2.Request) -> httpx2.Response:
    raise httpx2.ConnectError("no route", request=request)


@fault
def timeout(request: httpx2.Request) -> httpx2.Response:
    raise httpx2.ReadTimeout("no answer", request=request)


def asks_summary(request: httpx2.Request) -> bool:
    last = str(items_of(jsonbytes.load(request.content))[-1])
    return re.search("summari[sz]e", last, re.IGNORECASE) is not None


class Faulty(httpx2.HTTPTransport):
    """A connection on which requests for summaries meet a fault."""

    def __init__(self, make: Callable[[httpx2.Request], httpx2.Response]) -> None:
        super().__init__()
        self.make = make

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return self.make(request) if asks_summary(request) else super().handle_request(request)


class AsyncFaulty(httpx2.AsyncHTTPTransport):
    """The same for an asynchronous client."""

    def __init__(self, make: Callable[[httpx2.Request], httpx2.Response]) -> None:
        super().__init__()
        self.make = make

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return self.make(request) if asks_summary(request) else await super().handle_async_request(request)


def faulty(client: Any, make: Callable[[httpx2.Request], httpx2.Response]) -> Any:
    """Return the client over such a connection."""
    if type(client).__name__.startswith("Async"):
        return client.copy(http_client=httpx2.AsyncClient(transport=AsyncFaulty(make)))
    return client.copy(http_client=httpx2.Client(transport=Faulty(make)))


EVERY = {"Responses": RESPONSES["Responses"], **CLIENTS, "AsyncResponses": RESPONSES["AsyncResponses"]}


FAULTY = [
    ("Responses", "rate_limit"),
    *((kind, what) for what in FAULTS for kind in CLIENTS),
    ("AsyncResponses", "disconnection"),
]


def own_calls(store: MemoryStore) -> list[Any]:
    ((tenant, name),) = store.sessions()
    found = [unseal(data).sent.own for data in store.manifests(tenant, name)]
    return [one for one in found if one is not None]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", quick_first([*EVERY], 2))
def test_it_reads_the_cached_prompt_and_reaches_nothing_of_the_callers(kind: str, stream: bool) -> None:
    make, wire = EVERY[kind]
    events: list[Any] = []
    store = MemoryStore()
    with StrictProvider(Worker(), window_tokens=WINDOW) as provider:
        client: Any = wrap(make(provider), store=store, window=WINDOW, summarizer="self", on_event=events.append)
        received = asyncio.run(work(client, wire, stream=stream))
    own, agents = split(provider)
    assert not provider.violations
    assert all(answer.status == 200 for answer in provider.answers)
    assert received == [answer.raw for _, answer in agents]
    assert not [event for event in events if isinstance(event, SummaryRejected)]
    bills = [answer.issue for _, answer in own if answer.issue]
    assert bills
    for (request, _), bill in zip(own, bills, strict=True):
        # All but the instruction is read from the cache; tools and fields stay as they were.
        assert bill.usage.read_tokens > 10 * (bill.usage.written_tokens + bill.usage.fresh_tokens)
        assert request.body["tools"] == agents[0][0].body["tools"]
        assert "stream" not in request.body
    charged = own_calls(store)
    assert [one.read_tokens for one in charged] == [bill.usage.read_tokens for bill in bills]
    assert [one.input_tokens for one in charged] == [bill.usage.tokens for bill in bills]
    assert all(one.cost < one.input_tokens for one in charged)
    # Nothing of it becomes part of the conversation, and each request can be built again.
    assert not any("Answer this message with text alone" in str(request.body) for request, _ in agents)
    ((tenant, name),) = store.sessions()
    assert not any(outcome.problem for outcome in verify(store, tenant=tenant, session=name))


@pytest.mark.parametrize(("kind", "what"), quick_first(FAULTY, 4))
def test_a_fault_at_each_call_leaves_the_rules_record(kind: str, what: str) -> None:
    make, wire = EVERY[kind]
    events: list[Any] = []
    with StrictProvider(Worker(), window_tokens=WINDOW) as provider:
        client = faulty(make(provider), FAULTS[what])
        wrapped: Any = wrap(client, window=WINDOW, summarizer="self", on_event=events.append)
        received = asyncio.run(work(wrapped, wire, stream=True))
    own, agents = split(provider)
    assert not own
    assert not provider.violations
    assert received == [answer.raw for _, answer in agents]
    assert len(received) == 61
    assert [event for event in events if isinstance(event, SummaryRejected)]


@pytest.mark.parametrize(
    "said",
    [Say("", (Use("read", {"part": 1}),)), Say("I cannot help with that."), Say("")],
    ids=["a call", "a refusal", "nothing"],
)
@pytest.mark.parametrize("kind", ["OpenAI", "AsyncAnthropic"])
def test_an_answer_without_a_summary_is_charged_and_not_used(kind: str, said: Say) -> None:
    make, wire = CLIENTS[kind]
    events: list[Any] = []
    worker, store = Worker(), MemoryStore()
    script = lambda seen: worker(seen) if find_instruction(seen) is None else said  # noqa: E731 - one line
    with StrictProvider(script, window_tokens=WINDOW) as provider:
        client: Any = wrap(make(provider), store=store, window=WINDOW, summarizer="self", on_event=events.append)
        received = asyncio.run(work(client, wire))
    own, agents = split(provider)
    assert received == [answer.raw for _, answer in agents]
    assert [event for event in events if isinstance(event, SummaryRejected)]
    assert [one.input_tokens for one in own_calls(store)] == [a.issue.usage.tokens for _, a in own if a.issue]


@pytest.mark.parametrize("kind", ["OpenAI", "Anthropic"])
def test_one_that_hangs_is_left_after_the_timeout(kind: str) -> None:
    make, wire = CLIENTS[kind]
    done, events = Event(), list[Any]()

    def hang(request: httpx2.Request) -> httpx2.Response:
        happened(done, "the end of the agent")
        raise httpx2.ReadTimeout("late", request=request)

    with StrictProvider(Worker(), window_tokens=WINDOW) as provider:
        whom = Summarizer("self", timeout_s=0.05)
        client: Any = wrap(faulty(make(provider), hang), window=WINDOW, summarizer=whom, on_event=events.append)
        asyncio.run(work(client, wire))
        done.set()
    reasons = [event.reason for event in events if isinstance(event, SummaryRejected)]
    assert reasons[0] == "no answer within 0.05 s"
    assert set(reasons[1:]) <= {"the previous call has not returned yet"}


def test_a_caller_who_is_cancelled_cancels_it_and_the_conversation_goes_on() -> None:
    make, wire = CLIENTS["AsyncOpenAI"]
    left: list[str] = []

    async def cancelled() -> None:
        begun = asyncio.Event()

        class Hanging(httpx2.AsyncHTTPTransport):
            async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
                if not asks_summary(request) or begun.is_set():
                    return await super().handle_async_request(request)
                begun.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    left.append("cancelled")
                raise AssertionError("nobody sets it")

        client = make(provider).copy(http_client=httpx2.AsyncClient(transport=Hanging()))
        wrapped: Any = wrap(client, window=WINDOW, summarizer="self")
        agent = asyncio.ensure_future(work(wrapped, wire))
        await begun.wait()
        agent.cancel()
        with pytest.raises(asyncio.CancelledError):
            await agent
        worker.round = 0
        assert len(await work(wrapped, wire)) == 61
        await wrapped.close()

    worker = Worker()
    with StrictProvider(worker, window_tokens=WINDOW) as provider:
        asyncio.run(cancelled())
    assert left == ["cancelled"]
    assert not provider.violations


def test_a_reopened_session_asks_over_the_prompt_of_the_one_before() -> None:
    make, wire = CLIENTS["OpenAI"]
    store = MemoryStore()
    with StrictProvider(Worker(), window_tokens=WINDOW) as provider:
        asyncio.run(work(wrap(make(provider), window=WINDOW, summarizer="self"), wire))
    own, agents = split(provider)
    rounds = sum(request.call < own[0][0].call for request, _ in agents)
    with StrictProvider(Worker(), window_tokens=WINDOW) as provider:
        first, again = (wrap(make(provider), store=store, window=WINDOW, summarizer="self") for _ in range(2))
        asyncio.run(work(first, wire, later=(rounds, again)))
    own, agents = split(provider)
    (request, answer), before = own[0], agents[rounds - 1][0]
    assert request.call == before.call + 1
    assert request.body["messages"][:-1] == before.body["messages"]
    assert answer.issue is not None
    assert answer.issue.usage.read_tokens > 0.9 * answer.issue.usage.tokens


@pytest.mark.parametrize("kind", ["OpenAI", "AsyncAnthropic"])
def test_a_prompt_that_was_too_long_is_not_sent_with_more(kind: str) -> None:
    make, wire = CLIENTS[kind]
    with StrictProvider(Worker(), window_tokens=WINDOW) as provider:
        client: Any = wrap(make(provider), window=2 * WINDOW, when="full", summarizer="self")
        received = asyncio.run(work(client, wire, stream=True))
    own, _ = split(provider)
    assert len(received) == 61
    assert own
    assert all(answer.status == 200 for _, answer in own)
    assert not provider.violations
