"""Callers that send only what is new, with the id of the response before it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from openai import NOT_GIVEN, AsyncOpenAI, BadRequestError, OpenAI

from lading import SessionOptions
from lading.addresses import RESTORE
from lading.clients import wrap
from lading.events import CompactionApplied, Event, Restored, Unpacked
from lading.testing import FakeModel, NeedleTask, Say, StrictProvider, Use
from tests.clients.agents import MODELS, Entered, awaited, each, openai_client

MODEL = MODELS["openai_responses"]


def user(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


async def run(client: Any, task: NeedleTask, *, stream: bool) -> str:
    """An agent that leaves its history to the provider."""
    fields: dict[str, Any] = {"model": MODEL, "instructions": task.system, "reasoning": {"effort": "low"}}
    fields["tools"] = task.tools("openai_responses")
    new: Any = task.prompt
    while True:
        if stream:
            async with Entered(client.responses.stream(input=new, **fields)) as events:
                async for _ in each(events):
                    pass
                said = await awaited(events.get_final_response())
        else:
            said = await awaited(client.responses.create(input=new, **fields))
        calls = [item for item in said.output if item.type == "function_call"]
        if not calls:
            return str(said.output_text)
        fields["previous_response_id"] = said.id
        new = [
            {
                "type": "function_call_output",
                "call_id": call.call_id,
                "output": task.run_tool(call.name, call.arguments),
            }
            for call in calls
        ]


@pytest.mark.parametrize(("kind", "stream"), [(OpenAI, False), (AsyncOpenAI, True)], ids=["whole", "streamed"])
def test_a_loop_by_the_ids_of_responses_is_packed(kind: Any, stream: bool) -> None:
    task = NeedleTask(rounds=30)
    events: list[Event] = []
    with StrictProvider(task.script, window_tokens=16_000) as provider:
        client: Any = wrap(
            openai_client(provider, kind), window=16_000, output_reserve=1_000, on_event=events.append
        )
        assert asyncio.run(run(client, task, stream=stream)).endswith(task.report())
        assert provider.violations == []
        assert not any("previous_response_id" in request.body for request in provider.requests)
        assert any(isinstance(event, CompactionApplied) for event in events)
        assert any(isinstance(event, Restored) for event in events)
        assert not any(isinstance(event, Unpacked) for event in events)
        (session,) = client.lading.sessions
        assert sum(bool(entry.known_as) for entry in session.entries) > 60
        client.lading.conversations.close()


def test_a_response_in_the_middle_is_continued_as_another_conversation() -> None:
    with StrictProvider(FakeModel([Say("one"), Say("two"), Say("other")])) as provider:
        client: Any = wrap(openai_client(provider))
        first = client.responses.create(model=MODEL, input="a")
        client.responses.create(model=MODEL, input=user("b"), previous_response_id=first.id)
        client.responses.create(model=MODEL, input="c", previous_response_id=first.id)
        sent = [[item["content"] for item in request.body["input"]] for request in provider.requests]
        assert [texts[-1] for texts in sent] == ["a", "b", "c"]
        assert [len(texts) for texts in sent] == [1, 3, 3]
        assert sent[1][:2] == sent[2][:2]
        assert provider.violations == []
        client.close()


def _damage(store: Path) -> None:
    with closing(sqlite3.connect(store / "lading.db")) as connection:
        connection.execute("UPDATE reply SET idx = 0")
        connection.commit()


def _delete(store: Path) -> None:
    with closing(sqlite3.connect(store / "lading.db")) as connection:
        connection.execute("DROP TABLE reply")
        connection.commit()


@pytest.mark.parametrize(("act", "is_whole"), [(None, True), (_damage, False), (_delete, False)])
def test_a_response_is_continued_by_another_process(
    tmp_path: Path, act: Callable[[Path], None] | None, is_whole: bool
) -> None:
    with StrictProvider(FakeModel([Say("one"), Say("two"), Say("three")])) as provider:
        previous: Any = NOT_GIVEN
        for question in ("a", "b", "c"):
            client: Any = wrap(openai_client(provider), store=tmp_path / "store")
            said = client.responses.create(model=MODEL, input=question, previous_response_id=previous)
            previous = said.id
            client.close()
            if act and question == "b":
                act(tmp_path / "store")
        last = provider.requests[-1].body
        assert ("previous_response_id" not in last, len(last["input"]) == 5) == (is_whole, is_whole)
        assert provider.violations == []


def test_a_response_of_another_tenant_is_left_to_the_provider(tmp_path: Path) -> None:
    with StrictProvider(FakeModel([Say("one"), Say("two")])) as provider:
        first, second = (
            wrap(openai_client(provider), store=tmp_path / "store", options=SessionOptions(tenant=tenant))
            for tenant in ("acme", "other")
        )
        said = first.responses.create(model=MODEL, input="a")
        second.responses.create(model=MODEL, input="b", previous_response_id=said.id)
        assert provider.requests[1].body["previous_response_id"] == said.id
        for client in (first, second):
            client.close()


def test_instructions_are_those_of_the_request() -> None:
    with StrictProvider(FakeModel([Say("one"), Say("two")])) as provider:
        client: Any = wrap(openai_client(provider))
        first = client.responses.create(model=MODEL, input="a", instructions="Be brief.")
        client.responses.create(model=MODEL, input="b", instructions="Be long.", previous_response_id=first.id)
        assert [request.body["instructions"] for request in provider.requests] == ["Be brief.", "Be long."]
        assert len(provider.requests[1].body["input"]) == 3
        assert len(client.lading.sessions) == 1
        client.close()


def test_a_response_that_no_log_has_is_left_to_the_provider() -> None:
    events: list[Event] = []
    with StrictProvider(FakeModel([Say("one"), Say("two")])) as provider:
        plain: Any = openai_client(provider)
        first = plain.responses.create(model=MODEL, input="a")
        client: Any = wrap(plain, on_event=events.append)
        said = client.responses.create(model=MODEL, input="b", previous_response_id=first.id)
        assert said.output_text == "two"
        assert provider.requests[1].body["previous_response_id"] == first.id
        assert [event.what for event in events if isinstance(event, Unpacked)] == ["the field previous_response_id"]
        assert client.lading.sessions == ()
        client.close()


@pytest.mark.parametrize("field", ["conversation", "prompt", "background"])
def test_other_state_of_the_provider_is_left_to_it(field: str) -> None:
    events: list[Event] = []
    given: Any = {"conversation": "conv_1", "prompt": {"id": "pmpt_1"}, "background": True}[field]
    with StrictProvider(FakeModel([Say("one")])) as provider:
        client: Any = wrap(openai_client(provider), on_event=events.append)
        client.responses.create(model=MODEL, input="a", **{field: given})
        assert provider.requests[0].body[field] == given
        assert [event.what for event in events if isinstance(event, Unpacked)] == [f"the field {field}"]
        client.close()


READ = {"type": "function", "name": "read", "parameters": {"type": "object"}}
BOTH = Say(calls=(Use(RESTORE, {"address": "#1"}), Use("read", {"path": "a"})))


@pytest.mark.parametrize("kind", [OpenAI, AsyncOpenAI])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("knows", [False, True], ids=["restarted", "background"])
def test_a_call_of_restore_that_only_the_provider_has_is_answered(kind: Any, stream: bool, knows: bool) -> None:
    """Without an output for it the provider would refuse whatever continues the response."""

    async def talk() -> None:
        client: Any = wrap(openai_client(provider, kind))
        said = await awaited(client.responses.create(model=MODEL, input="Read it.", tools=[READ]))
        (call,) = [item for item in said.output if item.type == "function_call"]
        if not knows:
            client.lading.conversations.close()
            client = wrap(openai_client(provider, kind))
        fields: dict[str, Any] = {"background": True} if knows else {}
        output = {"type": "function_call_output", "call_id": call.call_id, "output": "plum"}
        answer = await awaited(
            client.responses.create(
                model=MODEL, input=[output], tools=[READ], previous_response_id=said.id, stream=stream, **fields
            )
        )
        if stream:
            text = "".join([event.delta async for event in each(answer) if "text.delta" in event.type])
        else:
            text = answer.output_text
        assert text == "It is plum."
        client.lading.conversations.close()

    with StrictProvider(FakeModel([BOTH, Say("It is plum.")])) as provider:
        asyncio.run(talk())
        *_, found, last = provider.requests
        assert (found.method, last.body["previous_response_id"]) == ("GET", found.path.rpartition("/")[2])
        restored, given = last.body["input"]
        assert ("not available" in restored["output"]) != knows
        assert given["output"] == "plum"


def test_a_refusal_for_another_reason_is_the_callers() -> None:
    """Here an output of the caller is missing, and the response has no call of an own tool."""
    asked = Say(calls=(Use("read", {"path": "a"}),))
    with StrictProvider(FakeModel([asked, Say("Done.")])) as provider:
        client: Any = wrap(openai_client(provider))
        said = client.responses.create(model=MODEL, input="Read it.", tools=[READ])
        client.lading.conversations.close()
        client = wrap(openai_client(provider))
        with pytest.raises(BadRequestError, match="call"):
            client.responses.create(model=MODEL, input="And now?", tools=[READ], previous_response_id=said.id)
        assert [request.method for request in provider.requests] == ["POST", "POST", "GET"]
        with pytest.raises(BadRequestError, match="not found"):
            client.responses.create(model=MODEL, input="And now?", previous_response_id="resp_unknown")
        client.close()


def test_a_tool_of_the_caller_with_the_name_of_an_own_one_is_answered_by_the_caller() -> None:
    restore = {"type": "function", "name": RESTORE, "parameters": {"type": "object"}}
    asked = Say(calls=(Use(RESTORE, {"backup": "monday"}), Use("read", {"path": "a"})))
    with StrictProvider(FakeModel([asked, Say("Done.")])) as provider:
        client: Any = wrap(openai_client(provider))
        said = client.responses.create(model=MODEL, input="Go.", tools=[READ, restore])
        client.lading.conversations.close()
        client = wrap(openai_client(provider))
        read = next(item for item in said.output if item.name == "read")
        output = {"type": "function_call_output", "call_id": read.call_id, "output": "plum"}
        with pytest.raises(BadRequestError, match="call"):
            client.responses.create(
                model=MODEL, input=[output], tools=[READ, restore], previous_response_id=said.id
            )
        assert [request.method for request in provider.requests] == ["POST", "POST", "GET"]
        client.close()
