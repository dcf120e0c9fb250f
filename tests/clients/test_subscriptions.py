"""Subscriptions to the events of a wrapped client: of all its sessions, also of those that are opened later."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lading import wrap
from lading.events import ContextUsage, Event
from lading.testing import Say, StrictProvider
from tests.clients.agents import CLIENTS, MODELS
from tests.clients.agents import awaited as finished

EVERY_CLIENT = pytest.mark.parametrize("kind", sorted(CLIENTS))


async def say(client: Any, wire: str, text: str) -> None:
    messages = [{"role": "user", "content": text}]
    if wire == "anthropic":
        await finished(client.messages.create(model=MODELS[wire], max_tokens=100, messages=messages))
    else:
        await finished(client.chat.completions.create(model=MODELS[wire], messages=messages))


@EVERY_CLIENT
def test_usage_is_given_for_every_session_until_the_subscription_ends(kind: str) -> None:
    make, wire = CLIENTS[kind]
    events: list[Event] = []
    got: list[ContextUsage] = []

    async def main(provider: StrictProvider) -> None:
        client = wrap(make(provider), on_event=events.append)
        await say(client, wire, "Before.")
        stop = client.lading.subscribe("context_usage", got.append)
        await say(client.lading.session("one"), wire, "Hello.")
        await say(client.lading.session("two"), wire, "Good day.")
        stop()
        await say(client, wire, "After.")
        await finished(client.close())

    with StrictProvider(lambda _: Say("Hello.")) as provider:
        asyncio.run(main(provider))
    assert [event.is_reported for event in got] == [False, True] * 2
    assert all(event.input_tokens > 0 for event in got)
    assert not [event for event in events if isinstance(event, ContextUsage)]


@pytest.mark.parametrize("kind", ["AsyncOpenAI", "AsyncAnthropic"])
def test_an_async_subscriber_is_awaited_and_one_that_raises_stops_no_call(kind: str) -> None:
    make, wire = CLIENTS[kind]
    got: list[ContextUsage] = []

    async def show(event: ContextUsage) -> None:
        await asyncio.sleep(0)
        got.append(event)
        raise ValueError("no screen")

    async def main(provider: StrictProvider) -> None:
        client = wrap(make(provider), fail_open=False)
        client.lading.subscribe(ContextUsage, show)
        await say(client, wire, "Hello.")
        await finished(client.close())

    with StrictProvider(lambda _: Say("Hello.")) as provider:
        asyncio.run(main(provider))
    assert [event.is_reported for event in got] == [False, True]
