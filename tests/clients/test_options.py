"""What a wrapped client is set to, in the sync and async forms of both SDKs: loops, strategies, summarizers."""

from __future__ import annotations

import asyncio
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from lading import LoopDetection, SessionOptions, Summarizer, SummaryRequest, verify
from lading.clients import wrap
from lading.compaction import Strategy
from lading.effects import ContextProvider, RequestContext
from lading.errors import LoopStopped
from lading.events import CompactionApplied, ContextLeftOut, Event, LoopDetected, PackingFailed, SummaryRejected
from lading.presets.open_multi_agent import AgentConfig, SlidingWindow, strategy_for
from lading.stores.memory import MemoryStore
from lading.testing import Say, Seen, StrictProvider, Use
from tests.clients.agents import CLIENTS, MODELS, awaited, openai_client
from tests.waiting import PATIENCE_S

EVERY_CLIENT = pytest.mark.parametrize("kind", CLIENTS)
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


class Agent:
    """An agent that hands the whole history in at each call; what a tool says is ``told``."""

    def __init__(self, client: Any, wire: str, told: Callable[[int], str]) -> None:
        self.client, self.wire, self.told = client, wire, told
        self.messages: list[Any] = [{"role": "user", "content": "Repair the dates in src/dates.py."}]
        self.numbers = itertools.count()

    async def step(self) -> None:
        """One call, and the results of its tools."""
        fields = {"model": MODELS[self.wire], "messages": self.messages}
        if self.wire == "openai_chat":
            tools = [{"type": "function", "function": {"name": "read", "parameters": SCHEMA}}]
            made = await awaited(self.client.chat.completions.create(**fields, tools=tools))
            said = made.choices[0].message
            self.messages.append(said.to_dict())
            for call in said.tool_calls:
                self.messages.append({"role": "tool", "tool_call_id": call.id, "content": self._result()})
            return
        tools = [{"name": "read", "input_schema": SCHEMA}]
        made = await awaited(self.client.messages.create(**fields, tools=tools, max_tokens=200))
        uses = [block.id for block in made.content if block.type == "tool_use"]
        self.messages.append({"role": "assistant", "content": made.content})
        results = [{"type": "tool_result", "tool_use_id": use, "content": self._result()} for use in uses]
        self.messages.append({"role": "user", "content": results})

    def _result(self) -> str:
        return self.told(next(self.numbers))


def circling(_seen: Seen) -> Say:
    return Say("I read it again.", (Use("read", {"path": "a"}),))


def working() -> Callable[[Seen], Say]:
    numbers = itertools.count()
    return lambda _seen: Say("I go on.", (Use("read", {"path": f"src/mod_{next(numbers)}.py"}),))


def told(number: int) -> str:
    return f"value_{number} stands in src/mod_{number}.py\n" * 25


@EVERY_CLIENT
def test_a_model_that_circles_is_warned_and_the_caller_is_told_to_stop(kind: str) -> None:
    """Whatever the SDK does with errors of its transport, it is LoopStopped that reaches the caller, at once."""
    make, wire = CLIENTS[kind]
    events: list[Event] = []

    async def main(provider: StrictProvider) -> None:
        base = make(provider).copy(max_retries=2)
        options = SessionOptions(loop_detection=LoopDetection())
        agent = Agent(wrap(base, options=options, on_event=events.append), wire, lambda _: "the same")
        for _ in range(4):
            await agent.step()
        with pytest.raises(LoopStopped, match="4 times in a row") as stopped:
            await agent.step()
        again = pickle.loads(pickle.dumps(stopped.value))
        assert (type(again), str(again), again.times) == (LoopStopped, str(stopped.value), 4)
        agent.messages.append({"role": "user", "content": "Look elsewhere."})
        await agent.step()

    with StrictProvider(circling) as provider:
        asyncio.run(main(provider))
        bodies = [request.body for request in provider.requests]
    loops = [(event.action, event.times) for event in events if isinstance(event, LoopDetected)]
    assert loops == [("inject", 3), ("terminate", 4)]
    assert len(bodies) == 5
    assert "[Lading: you made the same" not in str(bodies[2])
    assert "[Lading: you made the same" in str(bodies[3]["messages"][-1])
    assert not any(isinstance(event, PackingFailed) for event in events)


def test_without_it_a_model_may_circle() -> None:
    async def main(provider: StrictProvider) -> None:
        agent = Agent(wrap(CLIENTS["OpenAI"][0](provider)), "openai_chat", lambda _: "the same")
        for _ in range(6):
            await agent.step()

    with StrictProvider(circling) as provider:
        asyncio.run(main(provider))
        assert "[Lading:" not in str(provider.requests[-1].body)


@EVERY_CLIENT
def test_a_strategy_goes_in_as_a_value(kind: str) -> None:
    make, wire = CLIENTS[kind]
    store, events = MemoryStore(), list[Event]()
    strategy: Strategy = strategy_for(AgentConfig(context_strategy=SlidingWindow(2)))

    async def main(provider: StrictProvider) -> None:
        client = wrap(make(provider), store=store, strategy=strategy, on_event=events.append)
        agent = Agent(client, wire, told)
        for _ in range(8):
            await agent.step()

    with StrictProvider(working()) as provider:
        asyncio.run(main(provider))
        last = str(provider.requests[-1].body)
    assert "Repair the dates" in last
    assert "value_0 stands" not in last
    assert any(isinstance(event, CompactionApplied) for event in events)
    assert not any(isinstance(event, PackingFailed) for event in events)
    ((tenant, session),) = store.sessions()
    assert [outcome.problem for outcome in verify(store, tenant=tenant, session=session)] == [""] * 8


def summary(request: SummaryRequest) -> str:
    return f"Goal: repair the dates\nDone: read {' '.join(request.keep.splitlines()[1:-1])}"


async def awaited_summary(request: SummaryRequest) -> str:
    await asyncio.sleep(0)
    return summary(request)


@EVERY_CLIENT
@pytest.mark.parametrize("is_async", [False, True])
def test_a_summarizer_is_asked_and_an_async_one_awaited_by_async_clients(kind: str, is_async: bool) -> None:
    make, wire = CLIENTS[kind]
    events: list[Event] = []
    summarizer = Summarizer(awaited_summary if is_async else summary, timeout_s=PATIENCE_S)

    async def main(provider: StrictProvider) -> None:
        options = SessionOptions(summarizer=summarizer)
        client = wrap(make(provider), window=4_000, output_reserve=200, options=options, on_event=events.append)
        agent = Agent(client, wire, told)
        for _ in range(30):
            await agent.step()

    with StrictProvider(working()) as provider:
        asyncio.run(main(provider))
        last = str(provider.requests[-1].body)
    rejected = [event.reason for event in events if isinstance(event, SummaryRejected)]
    if is_async and "Async" not in kind:
        assert "it is an async function" in rejected[0]
    else:
        assert rejected == []
        assert "Goal: repair the dates" in last
    assert not any(isinstance(event, PackingFailed) for event in events)


def test_sessions_of_another_tenant_are_not_this_client_s() -> None:
    store = MemoryStore()

    async def main(provider: StrictProvider) -> None:
        for tenant in ("acme", "other"):
            client: Any = wrap(CLIENTS["OpenAI"][0](provider), store=store, options=SessionOptions(tenant=tenant))
            agent = Agent(client.lading.session("talk"), "openai_chat", told)
            await agent.step()

    with StrictProvider(working()) as provider:
        asyncio.run(main(provider))
    assert sorted(store.sessions()) == [("acme", "talk"), ("other", "talk")]


@EVERY_CLIENT
@pytest.mark.parametrize("is_async", [False, True])
def test_providers_are_asked_for_each_request_and_what_they_say_is_sent_once(kind: str, is_async: bool) -> None:
    make, wire = CLIENTS[kind]
    store, asked, events = MemoryStore(), itertools.count(1), list[Event]()

    def clock(context: RequestContext) -> str:
        return f"It is {next(asked)} o'clock for {context.user_id}."

    async def later(context: RequestContext) -> str:
        await asyncio.sleep(0)
        return clock(context)

    providers = [later if is_async else clock, ContextProvider(lambda: "Be brief.", "stable", name="rules")]

    async def main(provider: StrictProvider) -> None:
        options = SessionOptions(user="ada")
        client = wrap(make(provider), store=store, providers=providers, options=options, on_event=events.append)
        agent = Agent(client, wire, told)
        for _ in range(6):
            await agent.step()

    with StrictProvider(working()) as provider:
        asyncio.run(main(provider))
        bodies = [request.body for request in provider.requests]
    for number, body in enumerate(bodies, start=1):
        assert str(body).count("o'clock for ada") == str(body).count("Be brief.") == 1
        assert f"It is {number} o'clock" in str(body["messages"][-1])
    assert not any(isinstance(event, PackingFailed | ContextLeftOut) for event in events)
    ((tenant, session),) = store.sessions()
    assert [outcome.problem for outcome in verify(store, tenant=tenant, session=session)] == [""] * 6


def test_a_step_of_a_task_begins_on_the_session_of_a_client() -> None:
    task = {
        "id": "42",
        "goal": "Repair it.",
        "plan": [{"id": "s1", "text": "Read it.", "checklist": ["It is read."]}],
    }
    with StrictProvider(working()) as provider:
        agent = Agent(wrap(openai_client(provider)), "openai_chat", told)
        asyncio.run(agent.step())
        agent.client.lading.sessions[-1].begin("s1", task=task)
        asyncio.run(agent.step())
    first, second = (str(request.body["messages"]) for request in provider.requests)
    assert "CONTEXT PACK" not in first
    assert "CONTEXT PACK" in second
    assert "It is read." in second
