"""What other systems' options do in wrapped clients: a tool's own limit, and an async ``compress``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from lading import Message, wrap
from lading.events import Event, PackingFailed, StrategyOverruled
from lading.presets.open_multi_agent import AgentConfig, Custom, agent_config, strategy_for
from lading.testing import Say, StrictProvider, Use
from tests.clients.agents import MODELS, anthropic_client, openai_client
from tests.clients.summed import ROUNDS, Worker, work

SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}
LONG = "x" * 5_000


@pytest.mark.parametrize("name", ["maxOutputChars", "max_output_chars"])
@pytest.mark.parametrize("place", ["tool", "function"])
def test_a_limit_given_on_a_tool_is_applied_and_not_sent(name: str, place: str) -> None:
    function = {"name": "run_shell", "description": "Run.", "parameters": SCHEMA}
    limit = {name: 300}
    tool: dict[str, Any] = {"type": "function", "function": function | (limit if place == "function" else {})}
    tool |= limit if place == "tool" else {}
    messages: list[Any] = [{"role": "user", "content": "Run it."}]
    events: list[Event] = []
    says = iter([Say("", (Use("run_shell", {}),)), Say("Done.")])
    with StrictProvider(lambda _: next(says)) as provider:
        strategy = strategy_for(agent_config({"maxToolOutputChars": 1_000}))
        client: Any = wrap(openai_client(provider), strategy=strategy, on_event=events.append)
        answer = client.chat.completions.create(model="gpt-4o", messages=messages, tools=[tool])
        said = answer.choices[0].message
        result = {"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": LONG}
        client.chat.completions.create(model="gpt-4o", messages=[*messages, said, result], tools=[tool])
        body = provider.requests[-1].body
    assert name not in str(body["tools"])
    assert body["tools"][0]["function"] == function
    assert "[...truncated 4737 characters...]" in str(body["messages"])
    assert not [event for event in events if isinstance(event, PackingFailed)]


def test_anthropic_s_declarations_may_have_the_limit_too() -> None:
    tool = {"name": "run_shell", "description": "Run.", "input_schema": SCHEMA, "maxOutputChars": 300}
    with StrictProvider(lambda _: Say("Done.")) as provider:
        client: Any = wrap(anthropic_client(provider))
        said = [{"role": "user", "content": "Run it."}]
        for tools in ([tool], [tool | {"maxOutputChars": 200}]):
            client.messages.create(model=MODELS["anthropic"], max_tokens=100, messages=said, tools=tools)
        sent = [request.body["tools"] for request in provider.requests]
    assert ["maxOutputChars" in str(tools) for tools in sent] == [False, False]


@pytest.mark.parametrize("kind", [AsyncOpenAI, AsyncAnthropic])
def test_an_async_compress_is_awaited_in_a_wrapped_async_client(kind: type[Any]) -> None:
    asked: list[int] = []
    events: list[Event] = []

    async def compress(messages: Sequence[Message], estimated_tokens: int) -> Sequence[Message]:
        await asyncio.sleep(0)
        asked.append(estimated_tokens)
        return [messages[0], *messages[-6:]] if len(messages) > 12 else messages

    make, wire = (openai_client, "openai_chat") if kind is AsyncOpenAI else (anthropic_client, "anthropic")
    with StrictProvider(Worker(), window_tokens=16_000) as provider:
        strategy = strategy_for(AgentConfig(context_strategy=Custom(compress)))
        client: Any = wrap(make(provider, kind), window=16_000, strategy=strategy, on_event=events.append)
        received = asyncio.run(work(client, wire))
        sent = [len(request.body["messages"]) for request in provider.requests]
    assert len(received) == ROUNDS + 1
    assert len(asked) >= ROUNDS
    assert max(sent) <= 14
    assert not [event for event in events if isinstance(event, StrategyOverruled | PackingFailed)]
