"""The forms of the argument ``summarizer``: models of clients, functions, and what is refused."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic
from google import genai
from openai import AsyncOpenAI, OpenAI

from lading import InputError, Session, SessionOptions, Summarizer, wrap
from lading.events import SummaryRejected
from lading.request.summary_calls import CALLER
from lading.testing import StrictProvider
from tests.clients.agents import CLIENTS, anthropic_client, openai_client
from tests.clients.summed import WINDOW, Worker, split, work
from tests.histories import tool_loop


def local(kind: type[Any]) -> Any:
    return kind(api_key="none")


@pytest.mark.parametrize(
    ("given", "client"),
    [
        ("self", None),
        ("openai:gpt-5-nano", None),
        ("anthropic:claude-haiku-4-5", OpenAI),
        ("openai:gpt-5-nano", Anthropic),
        ("deepseek:chat", OpenAI),
        (Summarizer("anthropic:claude-haiku-4-5", client=local(OpenAI)), None),
        (Summarizer("openai:gpt-5-nano", client=local(AsyncAnthropic)), None),
        (Summarizer("openai:gpt-5-nano", client=wrap(local(OpenAI))), None),
        (Summarizer("openai:gpt-5-nano", client=object()), None),
        ("self", genai.Client),
        ("gemini:gemini-3-flash", genai.Client),
        (Summarizer("self", client=genai.Client(api_key="none")), None),
        ("gpt-5-nano", OpenAI),
        ("openai:", OpenAI),
        (17, OpenAI),
    ],
)
def test_what_cannot_be_asked_is_refused_with_what_to_give(given: Any, client: type[Any] | None) -> None:
    opens: Any = partial(wrap, local(client)) if client else partial(Session, "gpt-4o")
    advice = r"a function, or lading\.Summarizer\(\"openai:gpt-5-nano\", client=OpenAI"
    with pytest.raises(InputError, match=advice):
        opens(summarizer=given)


def test_options_take_it_too_and_the_argument_wins() -> None:
    options = SessionOptions(summarizer=Summarizer(str, timeout_s=3))
    with Session("gpt-4o", options=options) as session:
        assert session.settings.summarizer == Summarizer(str, timeout_s=3)
    with Session("gpt-4o", options=options, summarizer=repr) as session:
        assert session.settings.summarizer == Summarizer(repr)
    with pytest.raises(InputError, match="wrapped client"):
        Session("gpt-4o", options=SessionOptions(summarizer=Summarizer("self")))


@pytest.mark.parametrize("kind", CLIENTS)
def test_another_model_of_the_wrapped_client_reads_the_prompt_alone(kind: str) -> None:
    make, wire = CLIENTS[kind]
    model = {"openai_chat": "openai:gpt-4o-mini", "anthropic": "anthropic:claude-haiku-4-5"}[wire]
    with StrictProvider(Worker(), window_tokens=WINDOW) as provider:
        client: Any = wrap(make(provider), window=WINDOW, summarizer=model, when="full")
        received = asyncio.run(work(client, wire))
    own, agents = split(provider)
    assert not provider.violations
    assert received == [answer.raw for _, answer in agents]
    assert own
    assert {(request.body["model"], len(request.body["messages"])) for request, _ in own} == {
        (model.partition(":")[2], 1)
    }


@pytest.mark.parametrize(
    ("kind", "other"), [("AsyncAnthropic", OpenAI), ("AsyncAnthropic", AsyncOpenAI), ("Anthropic", OpenAI)]
)
def test_a_client_of_another_sdk(kind: str, other: type[Any]) -> None:
    make, wire = CLIENTS[kind]
    with StrictProvider(Worker(), window_tokens=WINDOW) as provider, StrictProvider(Worker()) as cheap:
        whom = Summarizer("openai:gpt-4o-mini", client=openai_client(cheap, other))
        client: Any = wrap(make(provider), window=WINDOW, summarizer=whom, when="full")
        received = asyncio.run(work(client, wire))
    assert {answer.status for answer in cheap.answers} == {200}
    assert len(received) == len(provider.requests) == 61
    assert not provider.violations


def test_a_closed_client_is_not_waited_for() -> None:
    make, wire = CLIENTS["OpenAI"]
    events: list[Any] = []
    with StrictProvider(Worker(), window_tokens=WINDOW) as provider, StrictProvider(Worker()) as cheap:
        other = openai_client(cheap, OpenAI)
        other.close()
        whom = Summarizer("openai:gpt-4o-mini", client=other)
        client: Any = wrap(make(provider), window=WINDOW, summarizer=whom, on_event=events.append)
        received = asyncio.run(work(client, wire))
    assert len(received) == 61
    assert [event for event in events if isinstance(event, SummaryRejected)]
    assert CALLER.get() is None


def test_two_wrapped_clients_ask_each_at_its_own_provider() -> None:
    with (
        StrictProvider(Worker(), window_tokens=WINDOW) as chat,
        StrictProvider(Worker(), window_tokens=WINDOW) as other,
    ):
        clients = [
            (wrap(openai_client(chat, AsyncOpenAI), window=WINDOW, summarizer="self"), "openai_chat"),
            (wrap(anthropic_client(other, AsyncAnthropic), window=WINDOW, summarizer="self"), "anthropic"),
        ]

        async def both() -> None:
            await asyncio.gather(*(work(client, wire, stream=True) for client, wire in clients))

        asyncio.run(both())
    for provider, path in ((chat, "/v1/chat/completions"), (other, "/v1/messages")):
        own, _ = split(provider)
        assert {request.path for request, _ in own} == {path}
        assert all(answer.status == 200 for answer in provider.answers)


@pytest.mark.parametrize(("wire", "path"), [("openai_responses", "/v1/responses"), ("gemini", None)])
def test_without_a_wrapped_client_the_format_of_the_session_says_where_to_ask(wire: str, path: str | None) -> None:
    events: list[Any] = []
    with StrictProvider(Worker()) as provider:
        whom = Summarizer("self", client=openai_client(provider))
        with Session("gpt-5", window=6_000, output_reserve=500, wire=wire, when="full", summarizer=whom) as session:
            session.add("Which test is slow?").add(tool_loop(90, result_words=90)[1:])
            events += session.pack().events
    assert {request.path for request in provider.requests} == ({path} if path else set())
    reasons = [event.reason for event in events if isinstance(event, SummaryRejected)]
    assert bool(reasons) != bool(path)
    assert all("No SDK's client asks a model in the provider format gemini" in reason for reason in reasons)
