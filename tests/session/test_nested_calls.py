"""A function that a session waits for and that calls the session: refused at once, with a reason, and harmless."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from lading import AsyncSession, ContextProvider, Session, Summarizer, TaskStep, verify
from lading.events import ContextLeftOut, SummaryRejected
from lading.session.lock import WHILE_ASKED
from tests.replies import chat_reply

METHODS: Mapping[str, Callable[[Any], Any]] = {
    "pack": lambda session: session.pack(),
    "add": lambda session: session.add("More."),
    "reply": lambda session: session.reply(chat_reply("Yes.")),
    "retry": lambda session: session.retry("prompt is too long: 210000 tokens > 200000 maximum"),
    "handle": lambda session: session.handle(session.session.entries[-1].message),
    "why": lambda session: session.why("Go."),
    "begin": lambda session: session.begin(TaskStep(id="s", text=("Do it.",))),
    "check_acceptance": lambda session: session.check_acceptance("Done."),
}
"""Methods that both kinds of sessions have."""
OWN: Mapping[str, Callable[[Session], Any]] = {
    "withdraw": lambda session: session.withdraw(0),
    "instruct": lambda session: session.instruct("Be brief."),
    "fork": lambda session: session.fork("Other."),
    "extend": lambda session: session.extend([], known_as=[]),
}
NESTED: Mapping[str, Callable[[Any], Any]] = {
    **METHODS,
    **OWN,
    "handle": lambda session: session.handle(session.entries[-1].message),
}


@pytest.mark.parametrize("method", NESTED)
def test_a_provider_that_calls_its_session_is_refused_at_once(method: str) -> None:
    used: list[Session] = []
    nested = ContextProvider(lambda: NESTED[method](used[0]), name="nested")
    with Session("gpt-4o", providers=[nested]) as session:
        used.append(session)
        session.add("Go.")
        pack = session.pack()
        assert [event for event in pack.events if isinstance(event, ContextLeftOut)] == [
            ContextLeftOut(1, "nested", WHILE_ASKED)
        ]
        assert len(session.entries) == 1
        assert [found.problem for found in verify(session.store, tenant="default", session="session")] == [""]


@pytest.mark.parametrize("method", METHODS)
def test_an_async_provider_that_calls_its_session_is_refused_at_once(method: str) -> None:
    async def run() -> None:
        used: list[AsyncSession] = []

        async def nested() -> None:
            await METHODS[method](used[0])

        async with AsyncSession(Session("gpt-4o", providers=[nested])) as session:
            used.append(session)
            await session.add("Go.")
            pack = await session.pack()
            assert [event.why for event in pack.events if isinstance(event, ContextLeftOut)] == [WHILE_ASKED]
            assert len(session.session.entries) == 1

    asyncio.run(run())


def test_a_summarizer_that_calls_its_session_is_refused_at_once() -> None:
    used: list[Session] = []
    asked = Summarizer(lambda _request: str(used[0].pack().tokens))
    reasons = []
    with Session("gpt-4o", window=3_000, output_reserve=300, when="full", summarizer=asked) as session:
        used.append(session)
        for number in range(8):
            session.add("More of it. " * 100)
            events = session.pack().events
            reasons += [event.reason for event in events if isinstance(event, SummaryRejected)]
            session.reply(chat_reply("Word. " * 100, number=number))
    assert reasons
    assert all(WHILE_ASKED[:40] in reason for reason in reasons)


def test_another_session_may_be_used_and_its_own_after_the_request() -> None:
    with Session("gpt-4o", name="inner") as inner:
        inner.add("Count.")
        late: list[Callable[[], Any]] = []

        def provide() -> str:
            late.append(lambda: outer.add("Later."))
            return f"{inner.pack().tokens} tokens"

        with Session("gpt-4o", name="outer", providers=[provide]) as outer:
            outer.add("Go.")
            assert " tokens" in outer.pack().body.decode()
            late[0]()
            assert len(outer.entries) == 2
