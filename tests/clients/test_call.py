"""What the model asks to see again is answered inside the call."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anthropic import AnthropicError
from openai import OpenAIError

from lading.addresses import RESTORE
from lading.clients import wrap
from lading.events import Event, ReplyLost, Restored, UsageMissing
from lading.exchange.call import MOST_UNSEEN
from lading.request.manifest import unseal
from lading.stores import open_store
from lading.stores.memory import MemoryStore
from lading.testing import FakeModel, Fault, Say, StrictProvider, Use, anthropic, openai_chat
from tests.clients.agents import CLIENTS, MODELS, Entered, anthropic_client, awaited, each, openai_client

LOOK: dict[str, Any] = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
NATIVE_LOOK: dict[str, Any] = {"name": "look", "input_schema": {"type": "object"}}
FIRST = Use(RESTORE, {"address": "artifact://default/work/log/0"})
OTHERS = Use(RESTORE, {"address": "artifact://default/other/log/0"})
NOWHERE = Use(RESTORE, {"address": "artifact://default/work/log/99"})


def fields(wire: str, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"model": MODELS[wire], "messages": [{"role": "user", "content": "the secret is plum"}]}
    if wire == "anthropic":
        found |= {"max_tokens": 300, "tools": [NATIVE_LOOK]}
    else:
        found["tools"] = [LOOK]
    return found | more


async def answered(client: Any, wire: str, asked: dict[str, Any], *, stream: bool) -> tuple[str, list[str]]:
    """The text and the names of the calls of the answer that the caller gets."""
    if wire == "openai_chat":
        if stream:
            async with Entered(client.chat.completions.stream(**asked)) as events:
                async for _ in each(events):
                    pass
                said = (await awaited(events.get_final_completion())).choices[0].message
        else:
            said = (await awaited(client.chat.completions.create(**asked))).choices[0].message
        return said.content or "", [call.function.name for call in said.tool_calls or ()]
    if stream:
        async with Entered(client.messages.stream(**asked)) as events:
            async for _ in each(events):
                pass
            said = await awaited(events.get_final_message())
    else:
        said = await awaited(client.messages.create(**asked))
    texts = [block.text for block in said.content if block.type == "text"]
    return "".join(texts), [block.name for block in said.content if block.type == "tool_use"]


def causes(store: Any, session: str) -> list[str]:
    return [unseal(data).place.cause for data in store.manifests("default", session)]


def asked(
    name: str, says: Sequence[Say], *, stream: bool, faults: dict[int, Fault] | None = None
) -> tuple[tuple[str, list[str]], Any, Any, list[Event], list[str]]:
    """One call of a client to a model that says these things: the answer, the provider, the session, the events
    and the causes of the requests."""
    make, wire = CLIENTS[name]
    events: list[Event] = []
    store = MemoryStore()
    with StrictProvider(FakeModel(says), faults=faults) as provider:
        client = wrap(make(provider), store=store, on_event=events.append)
        got = asyncio.run(answered(client.lading.session("work"), wire, fields(wire), stream=stream))
        (session,) = client.lading.sessions
        assert provider.violations == []
        return got, provider, session, events, causes(store, session.name)


BOTH = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
ALL = pytest.mark.parametrize("name", CLIENTS)


@BOTH
@ALL
def test_a_reply_that_only_asks_for_something_is_answered_and_asked_again(name: str, stream: bool) -> None:
    says = [Say(calls=(FIRST,)), Say(calls=(FIRST, NOWHERE)), Say("It is plum.")]
    got, provider, session, events, reasons = asked(name, says, stream=stream)
    assert got == ("It is plum.", [])
    assert reasons == ["", "restore", "restore"]
    assert [event.is_error for event in events if isinstance(event, Restored)] == [False, False, True]
    assert b"the secret is plum" in provider.requests[1].raw.replace(provider.requests[0].raw, b"")
    assert all(b.raw.startswith(a.raw[:-2]) for a, b in zip(provider.requests, provider.requests[1:], strict=False))
    assert [entry.usage is not None for entry in session.entries if entry.message.role == "assistant"] == [
        name in ("Anthropic", "AsyncAnthropic") or not stream
    ] * 3


@BOTH
@ALL
def test_a_mixed_reply_goes_on_without_the_call_whose_answer_joins_the_caller_s(name: str, stream: bool) -> None:
    make, wire = CLIENTS[name]
    says = [Say("I look.", (Use("look", {"at": "a"}), FIRST, Use("look", {"at": "b"}))), Say("Done.")]
    with StrictProvider(FakeModel(says)) as provider:
        client = wrap(make(provider))
        own = client.lading.session("work")

        async def talk() -> None:
            told = fields(wire)
            text, calls = await answered(own, wire, told, stream=stream)
            assert (text, calls) == ("I look.", ["look", "look"])
            uses = [call for call in provider.issues[0].say.calls if call.name == "look"]
            ids = _ids(provider, wire)
            if wire == "anthropic":
                blocks = [
                    {"type": "tool_use", "id": id_, "name": "look", "input": use.arguments}
                    for id_, use in zip(ids, uses, strict=True)
                ]
                said: dict[str, Any] = {"content": [{"type": "text", "text": "I look."}, *blocks]}
                result = {"type": "tool_result", "content": "seen"}
                results: list[Any] = [{"role": "user", "content": [result | {"tool_use_id": id_} for id_ in ids]}]
            else:
                functions = [
                    {"id": id_, "type": "function", "function": {"name": "look", "arguments": use.written}}
                    for id_, use in zip(ids, uses, strict=True)
                ]
                said = {"content": "I look.", "tool_calls": functions}
                results = [{"role": "tool", "tool_call_id": id_, "content": "seen"} for id_ in ids]
            told["messages"] = [*told["messages"], {"role": "assistant", **said}, *results]
            assert await answered(own, wire, told, stream=stream) == ("Done.", [])

        asyncio.run(talk())
        assert provider.violations == []
        assert len(provider.requests) == 2
        assert provider.requests[1].raw.count(b"the secret is plum") == 2
        (session,) = client.lading.sessions
        assert not session._engine.history.edits


def _ids(provider: StrictProvider, wire: str) -> list[str]:
    """The ids of the calls of ``look`` in the first reply."""
    form = provider.answers[0].issue
    assert form is not None
    made = (anthropic if wire == "anthropic" else openai_chat).FORMAT.make_call_id
    return [made(form, at) for at, use in enumerate(form.say.calls) if use.name == "look"]


@BOTH
@ALL
def test_a_model_that_never_stops_asking_comes_to_an_end(name: str, stream: bool) -> None:
    got, provider, _, events, reasons = asked(name, [Say("Once more.", (FIRST,))], stream=stream)
    assert got[1] == []
    assert len(provider.requests) == MOST_UNSEEN + 2
    assert reasons == ["", *["restore"] * (MOST_UNSEEN + 1)]
    assert len([event for event in events if isinstance(event, Restored)]) == MOST_UNSEEN + 2


@BOTH
def test_no_address_leads_into_another_session(stream: bool) -> None:
    store = MemoryStore()
    with StrictProvider(FakeModel([Say("Kept."), Say(calls=(OTHERS,)), Say("I cannot.")])) as provider:
        client = wrap(openai_client(provider), store=store)
        secret = fields("openai_chat", messages=[{"role": "user", "content": "the secret of others is fig"}])
        client.lading.session("other").chat.completions.create(**secret)
        asyncio.run(answered(client.lading.session("work"), "openai_chat", fields("openai_chat"), stream=stream))
        assert b"fig" in provider.requests[0].raw
        assert b"fig" not in provider.requests[2].raw
        assert b"belongs to another conversation" in provider.requests[2].raw


@pytest.mark.parametrize(
    ("wire", "more", "offered"),
    [
        ("openai_chat", {}, True),
        ("openai_chat", {"tool_choice": "auto"}, True),
        ("openai_chat", {"tool_choice": "none"}, True),
        ("openai_chat", {"tool_choice": "required"}, True),
        ("openai_chat", {"tool_choice": {"type": "function", "function": {"name": "look"}}}, True),
        ("openai_chat", {"n": 2}, True),
        ("openai_chat", {"tools": []}, False),
        ("anthropic", {}, True),
        ("anthropic", {"tool_choice": {"type": "auto"}}, True),
        ("anthropic", {"tool_choice": {"type": "none"}}, True),
        ("anthropic", {"tool_choice": {"type": "any"}}, True),
        ("anthropic", {"tool_choice": {"type": "tool", "name": "look"}}, True),
        ("anthropic", {"tools": []}, False),
        ("anthropic", {"tools": [{"name": RESTORE, "input_schema": {"type": "object"}}]}, False),
    ],
)
def test_restore_is_offered_beside_tools_whatever_choice_is_forced(
    wire: str, more: dict[str, Any], offered: bool
) -> None:
    make = anthropic_client if wire == "anthropic" else openai_client
    with StrictProvider(FakeModel([Say("Done.")])) as provider:
        client = make(provider)
        wrapped = wrap(client)
        request = fields(wire, **more)
        if not request["tools"]:
            del request["tools"]
        for one in (client, wrapped):
            (one.messages if wire == "anthropic" else one.chat.completions).create(**request)
        plain, packed = (item.body for item in provider.requests)
        added = [tool for tool in packed.get("tools", []) if tool not in plain.get("tools", [])]
        assert len(added) == offered
        assert plain == (packed | {"tools": plain["tools"]} if offered else packed)


@BOTH
def test_a_caller_s_own_tool_of_that_name_is_the_caller_s(stream: bool) -> None:
    own = {"type": "function", "function": {"name": RESTORE, "parameters": {"type": "object"}}}
    with StrictProvider(FakeModel([Say("Mine.", (FIRST,))])) as provider:
        client = wrap(openai_client(provider)).lading.session("work")
        got = asyncio.run(answered(client, "openai_chat", fields("openai_chat", tools=[own]), stream=stream))
        assert got == ("Mine.", [RESTORE])
        assert len(provider.requests) == 1


@pytest.mark.parametrize("name", ["OpenAI", "Anthropic"])
def test_an_error_in_the_middle_is_the_caller_s_and_the_next_try_goes_on_from_there(name: str) -> None:
    make, wire = CLIENTS[name]
    with StrictProvider(FakeModel([Say(calls=(FIRST,)), Say("Plum.")]), faults={2: Fault(status=429)}) as provider:
        client = wrap(make(provider).with_options(max_retries=1)).lading.session("work")
        assert asyncio.run(answered(client, wire, fields(wire), stream=False)) == ("Plum.", [])
        assert [answer.status for answer in provider.answers] == [200, 429, 200]
        assert provider.requests[1].raw == provider.requests[2].raw
        assert len(client.lading.sessions) == 1


@pytest.mark.parametrize("name", ["OpenAI", "Anthropic"])
def test_an_error_in_the_middle_of_a_stream_is_the_caller_s(name: str) -> None:
    make, wire = CLIENTS[name]
    faults = {call: Fault(status=500) for call in (2, 3, 4)}
    with StrictProvider(FakeModel([Say("Wait.", (FIRST,)), Say("Plum.")]), faults=faults) as provider:
        client = wrap(make(provider)).lading.session("work")
        with pytest.raises(Exception, match="Try again later"):
            asyncio.run(answered(client, wire, fields(wire), stream=True))
        assert asyncio.run(answered(client, wire, fields(wire), stream=True)) == ("Plum.", [])
        assert len(client.lading.sessions) == 1


@pytest.mark.parametrize("name", [*CLIENTS])
def test_a_passing_error_in_the_middle_of_a_stream_is_not_the_caller_s(name: str) -> None:
    make, wire = CLIENTS[name]
    faults = {2: Fault(status=529), 3: Fault(status=429)}
    with StrictProvider(FakeModel([Say("Wait.", (FIRST,)), Say("Plum.")]), faults=faults) as provider:
        client = wrap(make(provider)).lading.session("work")
        assert asyncio.run(answered(client, wire, fields(wire), stream=True)) == ("Wait.Plum.", [])
        assert [answer.status for answer in provider.answers] == [200, 529, 429, 200]


@pytest.mark.parametrize("name", ["OpenAI", "Anthropic"])
def test_a_stream_that_is_cut_within_such_a_call_is_not_recorded(name: str) -> None:
    make, wire = CLIENTS[name]
    events: list[Event] = []
    for cut in range(1, 8):
        faults = {1: Fault(cut_after=cut)}
        with StrictProvider(FakeModel([Say(calls=(FIRST,)), Say("Plum.")]), faults=faults) as provider:
            client = wrap(make(provider), on_event=events.append).lading.session("work")
            with suppress(OpenAIError, httpx2.RemoteProtocolError, AnthropicError):
                assert asyncio.run(answered(client, wire, fields(wire), stream=True))[1] == []
            assert asyncio.run(answered(client, wire, fields(wire), stream=True)) == ("Plum.", [])
            assert provider.violations == []
    assert {type(event) for event in events} <= {ReplyLost, Restored, UsageMissing}


@BOTH
def test_a_store_that_fails_in_the_middle_shows_the_caller_no_such_call(stream: bool, tmp_path: Path) -> None:
    store = open_store("sqlite", str(tmp_path))
    events: list[Event] = []

    def listener(event: Event) -> None:
        events.append(event)

    def script(_: Any) -> Say:
        store.close()
        return Say("Wait.", (FIRST, Use("look", {})))

    with StrictProvider(script) as provider:
        client = wrap(openai_client(provider), store=store, on_event=listener).lading.session("work")
        got = asyncio.run(answered(client, "openai_chat", fields("openai_chat"), stream=stream))
        assert got == ("Wait.", ["look"])
        assert [type(event) for event in events if not isinstance(event, UsageMissing)] == [ReplyLost]
