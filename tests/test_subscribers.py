"""Functions of the caller are given events as they happen, by the type or a name, and never stop a request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

import lading
from lading.engine import Engine
from lading.errors import InputError, UnknownName
from lading.events import NAMES, Compacted, CompactionEnded, CompactionStarted, ContextUsage, Event, Repaired
from lading.messages import user_text
from lading.models.catalog import find_card
from lading.presets.agentrail import configured
from lading.settings import settings_for
from lading.subscribers import PublishedEvents, Subscribers

SMALL = configured({"triggerTokens": 3_000, "minMessages": 20})
REPAIRED = Repaired("a rule", 1, "")


def fill(session: lading.Session, rounds: int = 60) -> None:
    """Add a conversation that is due for a compaction at its next request."""
    session.add("Which test is slow?")
    for number in range(rounds):
        session.add(lading.Message("assistant", (lading.ToolCall(f"c{number}", "read", "{}"),)))
        session.add(lading.tool_result(f"c{number}", f"tests/test_{number}.py took {number * 37} ms\n" * 8))
    session.add([{"role": "assistant", "content": "None of them."}, {"role": "user", "content": "Sure?"}])


def answer(tokens: int, written: int = 7) -> dict[str, Any]:
    usage = {"prompt_tokens": tokens, "completion_tokens": written, "total_tokens": tokens + written}
    message = {"role": "assistant", "content": "Yes."}
    return {"id": "1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}


@pytest.mark.parametrize("of", ["Compacted", "compaction", Compacted])
def test_an_event_has_its_own_name_that_of_the_document_and_its_type(of: str | type[Compacted]) -> None:
    got: list[Compacted] = []
    with lading.Session("gpt-4o", strategy=SMALL) as session:
        session.subscribe(of, got.append)
        fill(session)
        pack = session.pack()
    assert got == [event for event in pack.events if isinstance(event, Compacted)] != []


def test_names_are_those_of_the_events_and_of_the_documents() -> None:
    documents = {"ContextSynthesized", "compaction", "context_compaction_start", "context_compaction_end"}
    assert documents | {"context_usage", "LoopDetected"} <= set(NAMES)
    with pytest.raises(UnknownName, match="Did you mean 'compaction'"):
        Subscribers().subscribe("compactoin", print)
    with pytest.raises(UnknownName, match="int"):
        Subscribers().subscribe(int, print)
    with pytest.raises(InputError, match="subscribe"):
        Subscribers().subscribe("*", "print")  # type: ignore[arg-type]


def test_a_subscription_ends_also_while_an_event_is_given() -> None:
    subscribers, got = Subscribers(), list[str]()
    leave: list[Callable[[], None]] = []

    def once(_: Event) -> None:
        got.append("once")
        leave[0]()

    leave.append(subscribers.subscribe("*", once))
    subscribers.subscribe("*", lambda _: got.append("always"))
    for _ in range(2):
        subscribers.publish(REPAIRED)
    leave[0]()
    assert got == ["once", "always", "always"]


def test_a_function_that_raises_stops_nothing_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    subscribers, got = Subscribers(), list[Event]()

    def fail(_: Event) -> None:
        raise ValueError("no screen")

    subscribers.subscribe("*", fail)
    subscribers.subscribe("*", got.append)
    with caplog.at_level(logging.ERROR, logger="lading"):
        subscribers.publish(REPAIRED, REPAIRED)
    assert [record.getMessage() for record in caplog.records] == ["A subscriber failed: ValueError: no screen"]
    assert got == [REPAIRED, REPAIRED]


def test_what_is_joined_is_given_every_event_too() -> None:
    own, others, got = Subscribers(), Subscribers(), list[Event]()
    assert not any(own.groups)
    own.join(others)
    others.subscribe("Repaired", got.append)
    events = PublishedEvents([], own.publish)
    events.append(REPAIRED)
    assert got == [*events] == [REPAIRED]


def test_the_end_and_the_start_of_a_summary_enclose_its_call() -> None:
    order: list[object] = []

    def summarize(messages: list[dict[str, Any]], context: dict[str, str]) -> str:
        order.append(context["reason"])
        return f"The user looks for the slow test; none of {len(messages) // 2} is slow."

    with lading.Session("gpt-4o", strategy=SMALL, summarizer=summarize) as session:
        session.subscribe("context_compaction_start", order.append)
        session.subscribe("context_compaction_end", order.append)
        fill(session)
        pack = session.pack()
        session.pack()
    started, reason, ended = order
    assert isinstance(started, CompactionStarted)
    assert isinstance(ended, CompactionEnded)
    assert (started.reason, reason, ended.reason) == ("session_compaction",) * 3
    assert (started.call, started.messages) == (ended.call, ended.messages)
    assert started.messages > 1
    assert ended.failed == ""
    assert not {CompactionStarted, CompactionEnded} & {*map(type, pack.events)}


def test_a_summary_that_fails_ends_too() -> None:
    got: list[CompactionEnded] = []

    def summarize(messages: list[dict[str, Any]]) -> str:
        raise OSError(f"no network for {len(messages) and 'these'}")

    with lading.Session("gpt-4o", strategy=SMALL, summarizer=summarize) as session:
        session.subscribe(CompactionEnded, got.append)
        fill(session)
        session.pack()
    assert [event.failed for event in got] == ["OSError: no network for these"]


def test_context_usage_is_of_the_request_counted_first_and_then_as_reported() -> None:
    got: list[ContextUsage] = []
    with lading.Session("gpt-4o", window=10_000) as session:
        session.add("Hello")
        session.subscribe("context_usage", got.append)
        pack = session.pack()
        session.reply(answer(5_050))
    assert got == [
        ContextUsage(1, pack.tokens, 0, 0, is_reported=False),
        ContextUsage(1, 5_050, 7, 51, is_reported=True),
    ]


@pytest.mark.parametrize("of", ["ContextUsage", "context_usage", ContextUsage])
def test_an_engine_has_subscribe_too_with_a_name_or_type(of: str | type[ContextUsage]) -> None:
    got: list[ContextUsage] = []
    engine = Engine(settings_for(find_card("gpt-4o")[0]))
    stop = engine.subscribe(of, got.append)
    engine.append([user_text("Hello")])
    assert engine.pack().tokens == got[0].input_tokens
    stop()
    engine.pack()
    assert len(got) == 1


def test_events_outside_of_a_request_and_of_forks_are_given() -> None:
    got: list[str] = []
    with lading.Session("gpt-4o") as session:
        session.subscribe("*", lambda event: got.append(type(event).__name__))
        given = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
        session.add([*given, {"role": "user", "content": "Now"}])
        other = session.add([*given, {"role": "user", "content": "Later"}], changed="fork")
        other.pack()
        other.close()
    assert got == ["Forked", "ContextUsage"]


@pytest.mark.parametrize("name", ["context_compaction_start", "context_usage"])
@pytest.mark.parametrize("use", [lambda it: it.pack(), lambda it: it.add("Go on"), lambda it: it.withdraw(1)])
def test_a_subscriber_cannot_use_its_session(
    name: str, use: Callable[[lading.Session], object], caplog: pytest.LogCaptureFixture
) -> None:
    with lading.Session("gpt-4o", strategy=SMALL, summarizer=lambda messages: f"{len(messages)} fast.") as session:
        fill(session)
        session.subscribe(name, lambda _: use(session))
        entries = len(session.entries)
        pack = session.pack()
        assert len(session.entries) == entries
        assert session.store.counts("default", "session")[2] == 1
        assert session.pack().body == pack.body
    assert "cannot add to its session" in caplog.text


def test_an_async_session_awaits_async_subscribers(caplog: pytest.LogCaptureFixture) -> None:
    got: list[ContextUsage] = []

    async def show(event: ContextUsage) -> None:
        await asyncio.sleep(0)
        got.append(event)

    async def main() -> None:
        async with lading.AsyncSession(lading.Session("gpt-4o")) as session:
            stop = session.subscribe("context_usage", show)
            await session.add("Hello")
            await session.pack()
            await session.reply(answer(20))
            stop()
            await session.add("Go on")
            await session.pack()

    asyncio.run(main())
    assert [event.is_reported for event in got] == [False, True]
    with lading.Session("gpt-4o") as session:
        session.subscribe("context_usage", show)
        session.add("Hello")
        session.pack()
    assert "use AsyncSession" in caplog.text
