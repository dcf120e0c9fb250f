"""Whatever choice of a tool a caller forces, its requests have the same tools, so that they share a cache."""

from __future__ import annotations

import random
from typing import Any

import pytest

from lading.addresses import RESTORE
from lading.clients import wrap
from lading.testing import FakeModel, Say, StrictProvider, Use
from tests.clients.agents import anthropic_client, openai_client

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


@pytest.mark.parametrize("wire", CHOICES)
def test_a_forced_model_that_restores_is_asked_again_with_the_same_choice(wire: str) -> None:
    restores = Say(calls=(Use(RESTORE, {"address": "#1"}),))
    choice = CHOICES[wire][3]
    with StrictProvider(FakeModel([restores, Say("Read.")])) as provider:
        client = wrap((anthropic_client if wire == "anthropic" else openai_client)(provider))
        assert ask(client, wire, choice, question="What did I say?") == "Read."
        assert [request.body["tool_choice"] for request in provider.requests] == [choice] * 2
