"""A reply comes back with the next request, in all the ways in which callers keep it."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from lading.clients import wrap
from lading.testing import Say, Seen, StrictProvider, Use
from tests.clients.agents import anthropic_client, openai_client
from tests.clients.talks import Talk, stepping

NATIVE_TOOLS: list[dict[str, Any]] = [{"name": "read", "input_schema": {"type": "object"}}]


def hand_made(said: Any) -> dict[str, Any]:
    calls = [
        {
            "type": "function",
            "id": call.id,
            "function": {
                "arguments": json.dumps(json.loads(call.function.arguments), indent=1),
                "name": call.function.name,
            },
        }
        for call in said.tool_calls
    ]
    return {"tool_calls": calls, "content": said.content, "role": "assistant"}


ECHOES: dict[str, Callable[[Any], Any]] = {
    "object": lambda said: said,
    "to_dict": lambda said: said.to_dict(),
    "model_dump": lambda said: said.model_dump(),
    "without nulls": lambda said: said.model_dump(exclude_none=True),
    "hand-made": hand_made,
    "content parts": lambda said: hand_made(said) | {"content": [{"type": "text", "text": said.content}]},
    "extra fields": lambda said: hand_made(said) | {"name": None, "audio": None, "refusal": None},
    "more whitespace": lambda said: hand_made(said) | {"content": f"  {said.content}\n"},
}
REWRITTEN: dict[str, Callable[[Any], Any]] = {
    "in other words": lambda said: hand_made(said) | {"content": "Said in other words."},
    "without its text": lambda said: hand_made(said) | {"content": None},
    "with a name": lambda said: hand_made(said) | {"name": "helper"},
}


@pytest.mark.parametrize("echo", [*ECHOES, *REWRITTEN])
def test_a_reply_may_be_told_again_in_any_way(echo: str) -> None:
    with StrictProvider(stepping, foreign=True) as provider:
        client = wrap(openai_client(provider))
        talk = Talk(client, "anna", "Be brief.")
        for _ in range(6):
            talk.step(told=(ECHOES | REWRITTEN)[echo])
        (session,) = client.lading.sessions
        assert provider.violations == []
        bodies = [request.raw.removesuffix(b"]}") for request in provider.requests]
        assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(bodies))
        extra = 0 if echo in ECHOES else 5
        assert len(session.entries) == 2 + 6 + 5 + extra
        client.close()


NATIVE_ECHOES: dict[str, Callable[[Any], Any]] = {
    "blocks": lambda said: said.content,
    "dumps": lambda said: [block.model_dump() for block in said.content],
    "without nulls": lambda said: [block.model_dump(exclude_none=True) for block in said.content],
}


@pytest.mark.parametrize("echo", NATIVE_ECHOES)
def test_a_native_reply_may_be_told_again_in_any_way(echo: str) -> None:
    numbers = itertools.count()

    def script(_: Seen) -> Say:
        return Say("I look.", (Use("read", {"path": str(next(numbers))}),), thinking="Hm.")

    with StrictProvider(script) as provider:
        client = wrap(anthropic_client(provider))
        messages: list[Any] = [{"role": "user", "content": "go"}]
        for _ in range(6):
            said = client.messages.create(
                model="claude-sonnet-5",
                max_tokens=3_000,
                thinking={"type": "adaptive"},
                messages=messages,
                tools=NATIVE_TOOLS,
            )
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": "found"}
                for block in said.content
                if block.type == "tool_use"
            ]
            messages += [{"role": "assistant", "content": NATIVE_ECHOES[echo](said)}]
            messages += [{"role": "user", "content": results}]
        (session,) = client.lading.sessions
        assert len(session.entries) == 12
        assert provider.violations == []
        client.close()


def marked_talk(provider: StrictProvider, client: Any) -> tuple[int, list[bytes]]:
    """Twelve calls whose caller marks its tools, its system and the newest message; the tokens read from the
    cache, and what was sent."""
    mark = {"cache_control": {"type": "ephemeral"}}
    messages: list[Any] = [{"role": "user", "content": "go " * 600}]
    for number in range(12):
        told = copy.deepcopy(messages)
        last = told[-1]
        if isinstance(last["content"], str):
            last["content"] = [{"type": "text", "text": last["content"]}]
        last["content"][-1] |= mark
        said = client.messages.create(
            model="claude-sonnet-5",
            max_tokens=500,
            system=[{"type": "text", "text": "Be brief. " * 300, **mark}],
            tools=[NATIVE_TOOLS[0] | mark],
            messages=told,
        )
        uses = [block for block in said.content if block.type == "tool_use"]
        messages += [{"role": "assistant", "content": [block.to_dict() for block in said.content]}]
        result = {"type": "tool_result", "content": f"{number} " * 400}
        messages += [{"role": "user", "content": [result | {"tool_use_id": use.id} for use in uses]}]
    return sum(issue.usage.read_tokens for issue in provider.issues), [item.raw for item in provider.requests]


def test_moving_cache_marks_are_as_good_as_unwrapped() -> None:
    reads = []
    for wraps in (False, True):
        with StrictProvider(stepping) as provider:
            client = anthropic_client(provider)
            read, bodies = marked_talk(provider, wrap(client) if wraps else client)
            reads.append(read)
            assert provider.violations == []
            assert all(body.count(b"cache_control") == 3 for body in bodies)
            client.close()
    assert reads[1] >= reads[0] > 0
