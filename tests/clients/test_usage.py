"""What a call took, as its caller is told: one figure for all requests that were made for it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest

from lading import Session
from lading.addresses import RESTORE
from lading.clients import wrap
from lading.events import Event, UsageMissing
from lading.stores.memory import MemoryStore
from lading.testing import FakeModel, Say, StrictProvider, Use
from tests.clients.agents import CLIENTS, Entered, awaited, each
from tests.clients.mocks import HI, chunks, over
from tests.clients.test_call import ALL, BOTH, FIRST, fields
from tests.replies import chat_reply

LOOK = Use("look", {})


async def usage_told(client: Any, wire: str, asked: dict[str, Any], *, stream: bool) -> Any:
    """The usage that the caller of a call reads."""
    calls = client.chat.completions if wire == "openai_chat" else client.messages
    if not stream:
        return (await awaited(calls.create(**asked))).usage.to_dict()
    async with Entered(calls.stream(**asked)) as events:
        async for _ in each(events):
            pass
        final = getattr(events, "get_final_completion", None) or events.get_final_message
        return (await awaited(final())).usage.to_dict()


@BOTH
@ALL
@pytest.mark.parametrize("last", [Say("Plum."), Say("Plum.", (LOOK,)), Say("Plum.", (FIRST, LOOK))])
def test_the_caller_is_told_what_all_requests_took(name: str, stream: bool, last: Say) -> None:
    make, wire = CLIENTS[name]
    says = [Say("Let me see.", (FIRST,)), Say(calls=(FIRST, FIRST)), last]
    with StrictProvider(FakeModel(says)) as provider:
        client = wrap(make(provider)).lading.session("work")
        asked = fields(wire)
        if wire == "openai_chat" and stream:
            asked["stream_options"] = {"include_usage": True}
        told = asyncio.run(usage_told(client, wire, asked, stream=stream))
        (session,) = client.lading.sessions
        names = (
            ("prompt_tokens", "completion_tokens") if wire == "openai_chat" else ("input_tokens", "output_tokens")
        )
        issues = [answer.issue for answer in provider.answers]
        assert len(issues) == 3
        inputs = [
            issue.usage.tokens if wire == "openai_chat" else issue.usage.fresh_tokens for issue in issues if issue
        ]
        outputs = [issue.output_tokens for issue in issues if issue]
        assert [told[key] for key in names] == [sum(inputs), sum(outputs)]
        # What one request took is what its reply teaches.
        reported = [entry.usage.input_tokens for entry in session.entries if entry.usage is not None]
        assert reported == [answer.prompt_tokens for answer in provider.answers]


def test_figures_of_any_depth_are_added_and_what_is_no_figure_is_the_last() -> None:
    answers = [
        chat_reply(None, ("r", RESTORE, {"address": "artifact://default/work/log/0"}))
        | {
            "usage": {
                "prompt_tokens": 5,
                "cost": 0.5,
                "tier": "a",
                "details": {"cached": 2, "x": None},
                "odd": True,
            }
        },
        chat_reply("Plum.")
        | {"usage": {"prompt_tokens": 7, "cost": 0.25, "tier": "b", "details": {"cached": 3}, "odd": None}},
    ]
    client: Any = wrap(over(lambda _: httpx2.Response(200, json=answers.pop(0))))
    asked = fields("openai_chat")
    raw = client.lading.session("work").chat.completions.with_raw_response.create(**asked)
    usage = json.loads(raw.text)["usage"]
    expected = {"prompt_tokens": 12, "cost": 0.75, "tier": "b", "details": {"cached": 5, "x": None}, "odd": True}
    assert usage == expected


def test_one_request_s_answer_keeps_its_bytes() -> None:
    body = json.dumps(chat_reply("Hello.", input_tokens=9), indent=3).encode()
    client: Any = wrap(over(lambda _: httpx2.Response(200, content=body)))
    assert client.chat.completions.with_raw_response.create(**HI).content == body


def test_streams_that_tell_no_usage_are_told_of_once_for_each_session() -> None:
    events: list[Event] = []
    kind = {"content-type": "text/event-stream"}
    client: Any = wrap(
        over(lambda _: httpx2.Response(200, headers=kind, content=chunks("Hello"))), on_event=events.append
    )
    for name in ("one", "two"):
        history: list[Any] = []
        for _ in range(3):
            history = [*history, *HI["messages"]]
            list(client.lading.session(name).chat.completions.create(model="gpt-4o", messages=history, stream=True))
            history.append({"role": "assistant", "content": "Hello"})
    assert [event.session for event in events if isinstance(event, UsageMissing)] == ["one", "two"]
    assert all("include_usage" in event.advice for event in events if isinstance(event, UsageMissing))
    assert len(events) == 2


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": 0, "completion_tokens": 0}])
def test_responses_that_tell_no_usage_are_told_of_once_for_each_session(usage: Any) -> None:
    events: list[Event] = []
    answer = chat_reply("Hello", input_tokens=20) | {"usage": usage}
    client: Any = wrap(over(lambda _: httpx2.Response(200, json=answer)), on_event=events.append)
    for name in ("one", "two"):
        history: list[Any] = []
        for _ in range(3):
            history = [*history, *HI["messages"]]
            client.lading.session(name).chat.completions.create(model="gpt-4o", messages=history)
            history.append({"role": "assistant", "content": "Hello"})
    assert [event.session for event in events if isinstance(event, UsageMissing)] == ["one", "two"]
    assert len(events) == 2


def test_a_server_that_was_asked_and_tells_nothing_is_told_of_otherwise() -> None:
    events: list[Event] = []
    kind = {"content-type": "text/event-stream"}
    client: Any = wrap(
        over(lambda _: httpx2.Response(200, headers=kind, content=chunks("Hello"))), on_event=events.append
    )
    list(client.chat.completions.create(**HI, stream=True, stream_options={"include_usage": True}))
    (event,) = events
    assert isinstance(event, UsageMissing)
    assert "The server reports no usage" in event.advice


def test_usage_that_is_told_is_no_event() -> None:
    events: list[Event] = []
    with StrictProvider(FakeModel([Say("Hello.")])) as provider:
        for name, (make, wire) in CLIENTS.items():
            if name.startswith("Async"):
                continue
            client: Any = wrap(make(provider), on_event=events.append)
            asked = fields(wire)
            if wire == "openai_chat":
                asked["stream_options"] = {"include_usage": True}
            asyncio.run(usage_told(client, wire, asked, stream=True))
    assert events == []


def test_a_session_that_is_handed_a_stream_without_usage_says_so_too() -> None:
    stream = [
        {"id": "x", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hello"}}]},
        {"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    with Session("gpt-4o", store=MemoryStore()) as session:
        for number in range(2):
            session.add(f"Say hello {number}.")
            session.pack()
            session.reply(stream if number else chat_reply("Hello.", input_tokens=20))
            assert len(session.events) == number
        (event,) = session.events
        assert isinstance(event, UsageMissing)
