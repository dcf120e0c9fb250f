"""Whatever choice of a tool a caller forces, its requests have the same tools, so that they share a cache."""

from __future__ import annotations

import json
import random
from typing import Any

import httpx2
import pytest

from lading.addresses import RESTORE
from lading.clients import wrap
from lading.exchange.call import MOST_UNSEEN
from lading.testing import FakeModel, Say, StrictProvider, Use
from tests.clients.agents import anthropic_client, openai_client
from tests.clients.mocks import Streamed, chunks, events_of, over

LOOK: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}}
CHOICES: dict[str, list[Any]] = {
    "openai_chat": [None, "auto", "none", "required", {"type": "function", "function": {"name": "look"}}],
    "openai_responses": [None, "auto", "none", "required", {"type": "function", "name": "look"}],
    "anthropic": [None, *({"type": kind} for kind in ("auto", "none", "any")), {"type": "tool", "name": "look"}],
}


def ask(client: Any, wire: str, choice: Any, *, question: str) -> str:
    """Ask with this choice, and return the text of the answer."""
    said = [{"role": "user", "content": question}]
    chosen = {} if choice is None else {"tool_choice": choice}
    if wire == "anthropic":
        tools: list[Any] = [{"name": "look", "input_schema": LOOK}]
        reply = client.messages.create(
            model="claude-sonnet-5", max_tokens=200, messages=said, tools=tools, **chosen
        )
        return "".join(block.text for block in reply.content)
    if wire == "openai_responses":
        tools = [{"type": "function", "name": "look", "parameters": LOOK}]
        return str(client.responses.create(model="gpt-5", input=said, tools=tools, **chosen).output_text)
    tools = [{"type": "function", "function": {"name": "look", "parameters": LOOK}}]
    completion = client.chat.completions.create(model="gpt-4o", messages=said, tools=tools, **chosen)
    return str(completion.choices[0].message.content)


@pytest.mark.parametrize("wire", CHOICES)
@pytest.mark.parametrize("named", ["", "work"], ids=["conversations", "one conversation"])
def test_every_request_has_the_same_tools(wire: str, named: str) -> None:
    choices = random.Random(7).sample(CHOICES[wire] * 2, 10)
    with StrictProvider(FakeModel([Say("Seen.")])) as provider:
        client: Any = wrap((anthropic_client if wire == "anthropic" else openai_client)(provider))
        client = client.lading.session(named) if named else client
        for at, choice in enumerate(choices):
            assert ask(client, wire, choice, question=f"What is in {at}?") == "Seen."
        bodies = [request.body for request in provider.requests]
        assert [body.get("tool_choice") for body in bodies] == choices
        assert all(body["tools"] == bodies[0]["tools"] and len(body["tools"]) == 2 for body in bodies)


def choose(*texts: str) -> dict[str, Any]:
    """A response with one choice for each text; an empty one asks for ``restore`` alone."""
    asked = {"name": RESTORE, "arguments": '{"address": "#1"}'}
    call = {"id": "call_1", "type": "function", "function": asked}
    messages = [
        {"role": "assistant", "content": text or None} | ({} if text else {"tool_calls": [call]}) for text in texts
    ]
    choices = [
        {"index": at, "message": message, "finish_reason": "stop" if message["content"] else "tool_calls"}
        for at, message in enumerate(messages)
    ]
    usage = {"prompt_tokens": 50, "completion_tokens": 7, "total_tokens": 57}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o",
        "choices": choices,
        "usage": usage,
    }


def answer_in_turn(*responses: dict[str, Any]) -> tuple[Any, list[dict[str, Any]]]:
    """A wrapped client whose provider gives these responses, and the bodies that reach it."""
    bodies: list[dict[str, Any]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(request.read()))
        return httpx2.Response(200, json=responses[len(bodies) - 1])

    return wrap(over(answer), fail_open=False), bodies


FUNCTIONS: Any = [{"type": "function", "function": {"name": "look", "parameters": LOOK}}]


def test_several_answers_are_asked_for_with_the_same_tools() -> None:
    client, bodies = answer_in_turn(*[choose("Seen.", "Read.")] * 3)
    said: list[Any] = [{"role": "user", "content": "What is here?"}]
    for n in (1, 2, 1):
        made = client.chat.completions.create(model="gpt-4o", messages=said, tools=FUNCTIONS, n=n)
        said += [made.choices[0].message, {"role": "user", "content": "And here?"}]
    assert [len(body["tools"]) for body in bodies] == [2, 2, 2]
    assert [message["content"] for message in bodies[-1]["messages"]] == [
        "What is here?", "Seen.", "And here?", "Seen.", "And here?"
    ]  # fmt: skip


def test_a_stream_of_several_answers_is_asked_for_without_restore() -> None:
    bodies: list[dict[str, Any]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(request.read()))
        return events_of(Streamed(chunks("Seen.")))

    client = wrap(over(answer))
    said: Any = [{"role": "user", "content": "What is here?"}]
    list(client.chat.completions.create(model="gpt-4o", messages=said, tools=FUNCTIONS, n=2, stream=True))
    assert [len(body["tools"]) for body in bodies] == [1]


def test_several_answers_are_made_anew_if_one_only_restores() -> None:
    client, bodies = answer_in_turn(choose("Seen.", ""), choose("One.", "Two."), choose("Last."))
    said: list[Any] = [{"role": "user", "content": "What is here?"}]
    made = client.chat.completions.create(model="gpt-4o", messages=said, tools=FUNCTIONS, n=2)
    assert [choice.message.content for choice in made.choices] == ["One.", "Two."]
    assert made.usage.prompt_tokens == 100
    assert [message["role"] for message in bodies[1]["messages"]] == ["user", "assistant", "tool"]
    assert [body["n"] for body in bodies] == [2, 2]
    said += [made.choices[1].message, {"role": "user", "content": "And here?"}]
    assert client.chat.completions.create(model="gpt-4o", messages=said, tools=FUNCTIONS)
    assert bodies[2]["messages"][:3] == bodies[1]["messages"]
    assert [message["content"] for message in bodies[2]["messages"][3:]] == ["Two.", "And here?"]
    assert len(client.lading.sessions) == 1


def test_answers_that_restore_too_often_are_passed_on_without() -> None:
    client, bodies = answer_in_turn(*[choose("Seen.", "")] * (MOST_UNSEEN + 2))
    said: Any = [{"role": "user", "content": "What is here?"}]
    made = client.chat.completions.create(model="gpt-4o", messages=said, tools=FUNCTIONS, n=2)
    assert [(choice.message.content, choice.message.tool_calls) for choice in made.choices] == [
        ("Seen.", None),
        ("", None),
    ]
    assert len(bodies) == MOST_UNSEEN + 2


@pytest.mark.parametrize("wire", CHOICES)
def test_a_forced_model_that_restores_is_asked_again_with_the_same_choice(wire: str) -> None:
    restores = Say(calls=(Use(RESTORE, {"address": "#1"}),))
    choice = CHOICES[wire][3]
    with StrictProvider(FakeModel([restores, Say("Read.")])) as provider:
        client = wrap((anthropic_client if wire == "anthropic" else openai_client)(provider))
        assert ask(client, wire, choice, question="What did I say?") == "Read."
        assert [request.body["tool_choice"] for request in provider.requests] == [choice] * 2
