"""Every form of a call gives what it gives unwrapped, and its reply is recorded."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from typing import Any

import pytest
from openai import DefaultHttpxClient, OpenAI
from pydantic import BaseModel

from lading.clients import wrap
from lading.errors import AddressError, InputError
from lading.events import Event, UsageMissing
from lading.testing import FakeModel, Request, Say, StrictProvider, Use
from tests.clients.agents import CLIENTS, MODELS, RESPONSES, Entered, awaited, each

EVERY_CLIENT = CLIENTS | RESPONSES
USER = [{"role": "user", "content": "Where is it?"}]
SAID = Say('{"place": "here"}', thinking="Let me see.")
CALLED = Say("I look.", (Use("look", {"at": "1.0"}), Use("look", {"at": "b"})))


class Found(BaseModel):
    """What ``parse`` reads the answer as."""

    place: str


Form = Callable[[Any], Any]


def plain(value: Any) -> Any:
    """An answer as the SDK read it, but for what it is parsed into."""
    return value.model_dump(mode="json", warnings=False) if hasattr(value, "model_dump") else value


async def every(events: Any) -> list[Any]:
    return [plain(event) async for event in each(events)]


async def created(calls: Any, fields: dict[str, Any]) -> Any:
    return plain(await awaited(calls.create(**fields)))


async def streamed(calls: Any, fields: dict[str, Any]) -> Any:
    return await every(await awaited(calls.create(stream=True, **fields)))


async def helped(calls: Any, fields: dict[str, Any]) -> Any:
    async with Entered(calls.stream(**fields)) as events:
        seen = [event["type"] for event in await every(events)]
        names = ("get_final_completion", "get_final_message", "get_final_response")
        final = next(getattr(events, name) for name in names if hasattr(events, name))
        return seen, plain(await awaited(final()))


async def parsed(calls: Any, fields: dict[str, Any]) -> Any:
    if "input" in fields:
        response = await awaited(calls.parse(text_format=Found, **fields))
        assert response.output_parsed == Found(place="here")
        return plain(response)
    if "max_tokens" in fields:
        return plain(await awaited(calls.parse(output_format=Found, **fields)))
    answer = await awaited(calls.parse(response_format=Found, **fields))
    assert answer.choices[0].message.parsed == Found(place="here")
    return plain(answer)


async def raw(calls: Any, fields: dict[str, Any]) -> Any:
    response = await awaited(calls.with_raw_response.create(**fields))
    seen = {name: response.headers.get(name) for name in ("request-id", "content-type")}
    http = response.http_response
    answer = plain(await awaited(response.parse()))
    return response.status_code, http.reason_phrase, http.http_version, seen, answer


async def raw_streamed(calls: Any, fields: dict[str, Any]) -> Any:
    async with Entered(calls.with_streaming_response.create(stream=True, **fields)) as response:
        lines = response.iter_lines()
        return response.headers["content-type"], await every(lines)


FORMS = {form.__name__: form for form in (created, streamed, helped, parsed, raw, raw_streamed)}


def of(client: Any, wire: str) -> Any:
    if wire == "openai_responses":
        return client.responses
    return client.chat.completions if wire == "openai_chat" else client.messages


def fields(wire: str) -> dict[str, Any]:
    if wire == "openai_responses":
        return {"model": MODELS[wire], "input": USER, "reasoning": {"effort": "low"}}
    found: dict[str, Any] = {"model": MODELS[wire], "messages": USER}
    return found if wire == "openai_chat" else found | {"max_tokens": 300}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", EVERY_CLIENT)
def test_a_call_gives_what_it_gives_unwrapped(name: str, form: str) -> None:
    make, wire = EVERY_CLIENT[name]
    answers, bodies, events = [], [], list[Event]()
    for wraps in (False, True):
        with StrictProvider(FakeModel([SAID])) as provider:
            client = make(provider)
            if wraps:
                client = wrap(client, on_event=events.append)

            async def call(client: Any = client) -> Any:
                answer = await FORMS[form](of(client, wire), fields(wire))
                await awaited(client.close())
                return answer

            answers.append(asyncio.run(call()))
            bodies.append(provider.requests[-1].body)
            assert provider.violations == []
            if wraps:
                assert all(isinstance(event, UsageMissing) for event in events)
    assert answers[0] == answers[1]
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize("form", ["created", "streamed", "helped", "raw_streamed"])
@pytest.mark.parametrize("name", EVERY_CLIENT)
def test_the_reply_is_recorded_with_its_usage(name: str, form: str) -> None:
    make, wire = EVERY_CLIENT[name]
    with StrictProvider(FakeModel([SAID])) as provider:
        client = wrap(make(provider))
        asked = fields(wire)
        if wire == "openai_chat" and form != "created":
            asked["stream_options"] = {"include_usage": True}

        async def call() -> None:
            await FORMS[form](of(client, wire), asked)

        asyncio.run(call())
        (session,) = client.lading.sessions
        reply = session.entries[-1]
        assert (len(session.entries), reply.message.text) == (2, SAID.text)
        assert reply.usage is not None
        assert reply.usage.input_tokens == provider.answers[0].prompt_tokens


def test_a_text_as_input_is_packed_as_one_message() -> None:
    with StrictProvider(FakeModel([SAID, CALLED, SAID])) as provider:
        client = wrap(RESPONSES["Responses"][0](provider))
        asked: list[Any] = [{"role": "user", "content": "Where is it?"}]
        said = client.responses.create(model=MODELS["openai_responses"], input=asked[0]["content"])
        client.responses.create(model=MODELS["openai_responses"], input=[*asked, *said.output, *asked])
        (session,) = client.lading.sessions
        assert [entry.message.role for entry in session.entries] == ["user", "assistant", "user", "assistant"]
        assert provider.violations == []
        client.close()


def test_beta_messages_are_packed_too() -> None:
    with StrictProvider(FakeModel([SAID])) as provider:
        client = wrap(CLIENTS["Anthropic"][0](provider))
        client.beta.messages.create(**fields("anthropic"))
        assert len(client.lading.sessions[0].entries) == 2
        client.close()


def test_the_client_that_was_wrapped_stays_as_it_is() -> None:
    with StrictProvider(FakeModel([SAID])) as provider:
        client = CLIENTS["OpenAI"][0](provider)
        wrapped = wrap(client)
        client.chat.completions.create(**fields("openai_chat"))
        assert wrapped.lading.sessions == ()
        assert not hasattr(client, "lading")
        assert isinstance(wrapped, type(client))
        wrapped.close()


def test_copies_of_a_wrapped_client_are_wrapped() -> None:
    with StrictProvider(FakeModel([SAID])) as provider:
        client = wrap(CLIENTS["OpenAI"][0](provider))
        for copied in (client.copy(), client.with_options(max_retries=1), client.lading.session("mine")):
            copied.chat.completions.create(**fields("openai_chat"))
            assert copied.lading.conversations is client.lading.conversations
        names = [session.name for session in client.lading.sessions]
        assert len(names) == 3
        assert names[-1] == "mine"
        assert not any("x-lading-session" in request.headers for request in provider.requests)
        client.close()


@pytest.mark.parametrize("name", ["OpenAI", "AsyncOpenAI", "Anthropic", "AsyncAnthropic"])
def test_copies_with_another_http_client_or_headers_stay_wrapped_and_named(name: str) -> None:
    make, wire = CLIENTS[name]
    package = importlib.import_module(wire.partition("_")[0])
    http_client: Any = package.DefaultAsyncHttpxClient if name.startswith("Async") else package.DefaultHttpxClient
    with StrictProvider(FakeModel([SAID])) as provider:
        client = wrap(make(provider)).lading.session("mine")
        sent: list[Any] = []

        def keep(request: Any) -> Any:
            sent.append(request)
            return asyncio.sleep(0) if name.startswith("Async") else None

        other = http_client(event_hooks={"request": [keep]})
        for copied in (
            client.with_options(http_client=other),
            client.copy(http_client=client._client),
            client.with_options(set_default_headers={"x-team": "one"}),
        ):
            calls = copied.chat.completions if wire == "openai_chat" else copied.messages
            asyncio.run(awaited(calls.create(**fields(wire))))
        assert [session.name for session in client.lading.sessions] == ["mine"]
        assert len(sent) == 1
        # Closing a copy's HTTP client leaves the client that it was made from as it is.
        asyncio.run(awaited(client.with_options(http_client=other).close()))
        calls = client.chat.completions if wire == "openai_chat" else client.messages
        asyncio.run(awaited(calls.create(**fields(wire))))
        assert [session.name for session in client.lading.sessions] == ["mine"]
        assert provider.requests[-2].headers["x-team"] == "one"
        assert not any("x-lading-session" in request.headers for request in provider.requests)


def test_what_cannot_be_wrapped_or_named_says_so() -> None:
    with StrictProvider(FakeModel([SAID])) as provider:
        client = wrap(CLIENTS["OpenAI"][0](provider))
        with pytest.raises(InputError, match="already"):
            wrap(client)
        with pytest.raises(InputError, match="cannot be wrapped"):
            wrap(object())
        with pytest.raises(AddressError):
            client.lading.session("no/name")
        client.close()


def test_a_client_s_own_headers_cookies_and_parameters_are_sent_once() -> None:
    seen: list[Request] = []
    for wraps in (False, True):
        with StrictProvider(FakeModel([SAID])) as provider:
            http = DefaultHttpxClient(headers={"x-own": "1"}, cookies={"crumb": "2"}, params={"q": "3"})
            client = OpenAI(base_url=f"{provider.url}/v1", api_key="test", http_client=http)
            client = wrap(client) if wraps else client
            client.chat.completions.create(**fields("openai_chat"))
            client.close()
            seen += provider.requests
    unwrapped, wrapped = ((request.path, request.headers | {"host": ""}) for request in seen)
    assert wrapped == unwrapped
    assert wrapped[1]["x-own"] == "1"
