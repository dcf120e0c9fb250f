"""A message that is a dict, of either provider format, is taken wherever a ``Message`` is, or an error says what to
give."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from lading import InputError, Message, Session, find_card
from lading.compaction.transforming import transforming
from lading.engine import Engine
from lading.events import StrategyOverruled
from lading.presets import (
    RequestContext,
    compact_tool_results,
    compose_transform_contexts,
    create_transform_context,
)
from lading.presets.open_multi_agent import AgentConfig, Custom, strategy_for
from lading.presets.reactive_agents import SynthesisConfig, build_context, steering_message, steps_of
from lading.presets.reactive_agents.synthesis import synthesis
from lading.settings import settings_for
from lading.wire import WIRES, find_wire
from lading.wire.coercion import messages_from
from tests.test_exports import documented

CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "Find the slow test."},
    {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "file-read", "arguments": '{"path": "a.py"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "def test_slow(): ..."},
    {"role": "assistant", "content": "It is test_slow."},
    {"role": "user", "content": "And the next?"},
]
ANTHROPIC: list[dict[str, Any]] = [
    {"role": "user", "content": "Find the slow test."},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "c1", "name": "file-read", "input": {"path": "a.py"}},
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "def test_slow(): ..."}]},
    {"role": "assistant", "content": "It is test_slow."},
    {"role": "user", "content": "And the next?"},
]
RESPONSES: list[dict[str, Any]] = [
    {"role": "user", "content": "Find the slow test."},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
    {"type": "function_call", "call_id": "c1", "name": "file-read", "arguments": '{"path": "a.py"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "def test_slow(): ..."},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is test_slow."}]},
    {"role": "user", "content": "And the next?"},
]
GEMINI: list[dict[str, Any]] = [
    {"role": "user", "parts": [{"text": "Find the slow test."}]},
    {
        "role": "model",
        "parts": [
            {"text": "I look."},
            {"functionCall": {"id": "c1", "name": "file-read", "args": {"path": "a.py"}}},
        ],
    },
    {
        "role": "user",
        "parts": [
            {"functionResponse": {"id": "c1", "name": "file-read", "response": {"output": "def test_slow()"}}}
        ],
    },
    {"role": "model", "parts": [{"text": "It is test_slow."}]},
    {"role": "user", "parts": [{"text": "And the next?"}]},
]
GIVEN = {"openai_chat": CHAT, "openai_responses": RESPONSES, "anthropic": ANTHROPIC, "gemini": GEMINI}
FORMATS = pytest.mark.parametrize("given", [GIVEN[wire] for wire in WIRES], ids=[*WIRES])
TAKES_MESSAGES = {
    "Session.add", "Session.extend", "Session.fork", "Session.handle", "Session.instruct", "Session.update",
    "AsyncSession.add", "AsyncSession.fork", "AsyncSession.handle", "AsyncSession.instruct", "Catalogue.handle",
    "Engine.append", "Engine.restate", "encode", "steering_message",
    "compact_tool_results", "steps_of", "View.with_message",
    "Wire.find_unsuited",
    "Wire.write",
}  # fmt: skip


def read(given: Sequence[Any]) -> list[Message]:
    """The messages as a session reads them."""
    return messages_from(given, wire=find_wire("openai_chat"))


def test_every_public_function_that_takes_messages_is_known() -> None:
    found: set[str] = set()
    for home, name in documented():
        value = getattr(importlib.import_module(home), name)
        members: list[tuple[str, Any]] = [(name, value)]
        if inspect.isclass(value):
            own = [(f"{name}.{member}", function) for member, function in vars(value).items()]
            members = [(member, function) for member, function in own if not member.split(".")[1].startswith("_")]
        for member, function in members:
            if inspect.isfunction(function) and takes_messages(function):
                found.add(member)
    assert found - TAKES_MESSAGES == set()
    assert "steps_of" in found


def takes_messages(function: Callable[..., Any]) -> bool:
    """Whether a parameter is a message or several, by its name and annotation."""
    return any(
        name in ("messages", "message", "conversation") or "Message" in str(parameter.annotation)
        for name, parameter in inspect.signature(function).parameters.items()
        if "Callable" not in str(parameter.annotation)
    )


@FORMATS
def test_steps_and_steering_are_those_of_the_messages(given: list[dict[str, Any]]) -> None:
    assert steps_of(given) == steps_of(read(given))
    assert [step.kind for step in steps_of(given)] == [
        "user",
        "thought",
        "action",
        "observation",
        "thought",
        "user",
    ]
    assert steering_message(given) == steering_message(read(given))


@FORMATS
def test_a_prompt_is_built_from_messages(given: list[dict[str, Any]]) -> None:
    built = build_context(task="Find the slow test.", profile="mid", steps=given)
    assert "file-read" in built.text
    assert built == build_context(task="Find the slow test.", profile="mid", steps=steps_of(read(given)))


@FORMATS
def test_a_function_that_compresses_may_return_dicts(given: list[dict[str, Any]]) -> None:
    shorter = [given[0], *given[-2:]]
    config = AgentConfig(context_strategy=Custom(lambda _messages, _tokens: shorter))
    with Session("gpt-4o", strategy=strategy_for(config)) as session:
        pack = session.add(given).pack()
    assert [event for event in pack.events if isinstance(event, StrategyOverruled)] == []
    assert "def test_slow" not in str(pack.request)
    assert "It is test_slow." in str(pack.request)


@FORMATS
def test_transforms_may_return_dicts_and_each_is_given_messages(given: list[dict[str, Any]]) -> None:
    def shorten(messages: Sequence[Message]) -> Sequence[Any]:
        assert all(isinstance(message, Message) for message in messages)
        return [given[0], *given[-2:]] if len(messages) > 3 else messages

    def count(messages: Sequence[Message]) -> Sequence[Message]:
        assert all(isinstance(message, Message) for message in messages)
        return messages

    composed: Any = compose_transform_contexts([shorten, count])
    assert [message.text for message in composed(given)] == [
        "Find the slow test.",
        "It is test_slow.",
        "And the next?",
    ]
    with Session("gpt-4o", strategy=transforming(composed)) as session:
        pack = session.add(given).pack()
    assert [event for event in pack.events if isinstance(event, StrategyOverruled)] == []
    assert "def test_slow" not in str(pack.request)


@FORMATS
def test_a_function_that_synthesizes_may_return_dicts(given: list[dict[str, Any]]) -> None:
    config = SynthesisConfig("custom", synthesis_strategy=lambda _asked: [given[0], *given[-2:]])
    with Session("gpt-4o", strategy=synthesis(config)) as session:
        pack = session.add(given).pack()
    assert "def test_slow" not in str(pack.request)
    assert [event for event in pack.events if isinstance(event, StrategyOverruled)] == []


@FORMATS
def test_a_session_answers_the_calls_of_a_dict(given: list[dict[str, Any]]) -> None:
    with Session("gpt-4o") as session:
        assert session.add(given[0]).handle(given[1]) == []


def test_what_is_no_message_is_refused_with_what_to_give() -> None:
    with Session("gpt-4o") as session:
        wrong: list[Callable[[], object]] = [
            lambda: steps_of(["a text"]),  # type: ignore[list-item]
            lambda: steering_message([3]),  # type: ignore[list-item]
            lambda: build_context(task="t", profile="mid", steps=[3]),  # type: ignore[list-item]
            lambda: Engine(settings_for(find_card("gpt-4o")[0])).append([CHAT[0]]),  # type: ignore[list-item]
            lambda: session.handle(3),  # type: ignore[arg-type]
            lambda: session.extend([3], known_as=[""]),  # type: ignore[list-item]
            lambda: session.update([CHAT[0]], start=0, end=0),  # type: ignore[list-item]
        ]
        for call in wrong:
            with pytest.raises(InputError, match=r"[Gg]ive |Decode a provider"):
                call()


@FORMATS
def test_results_are_compacted_and_providers_asked_with_messages_of_dicts(given: list[dict[str, Any]]) -> None:
    assert compact_tool_results(given) == compact_tool_results(read(given))
    seen: list[Sequence[Message]] = []

    def provide(_context: RequestContext, messages: Sequence[Message]) -> list[dict[str, Any]]:
        seen.append(messages)
        return [given[0]]

    built = create_transform_context([provide])(given)
    assert seen == [read(given)]
    assert built == [*read(given[:1]), *read(given)]
