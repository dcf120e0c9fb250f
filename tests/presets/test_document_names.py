"""Each name that a user of a document imports: in the one namespace, called as the document shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lading import AsyncSession, InputError, Message, Session, presets, tool_result, user_text
from lading.messages import ToolCall
from lading.presets import CONTEXT_PROFILES
from lading.presets.agentrail import configured

NAMES = (
    "context_profile",
    "CONTEXT_PROFILES",
    "build_context",
    "allocate_budget",
    "estimate_tokens",
    "categorize_tool_name",
    "derive_result_kind",
    "AgentConfig",
    "create_transform_context",
    "compose_transform_contexts",
    "create_default_capability_context_providers",
    "create_default_capability_transform_context",
    "memory_context",
    "load_messages_with_budget",
    "compact_if_needed",
    "resolve_synthesis_config_for_strategy",
)
SECRET = "sk-4711"
MID = CONTEXT_PROFILES["mid"]
PROMPT = {"task": "Count.", "iteration": 4, "maxIterations": 10, "steps": [], "profile": MID}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_a_document_is_in_the_one_namespace(name: str) -> None:
    assert name in presets.__all__
    assert getattr(presets, name) is not None


def texts(messages: list[Message]) -> list[str]:
    return [message.text for message in messages]


CALLS: dict[str, tuple[Callable[[], object], object]] = {
    "context_profile": (
        lambda: presets.context_profile("gpt-4o", {"tier": "local"}) == CONTEXT_PROFILES["local"],
        True,
    ),
    "CONTEXT_PROFILES": (lambda: CONTEXT_PROFILES["mid"].compact_after_steps, 6),
    "build_context": (lambda: "[Iteration 5/10]" in str(presets.build_context(**PROMPT)), True),  # type: ignore[arg-type]
    "allocate_budget": (lambda: presets.allocate_budget(128_000, MID, 3, 10).allocated.step_history, 41_779),
    "estimate_tokens": (lambda: presets.estimate_tokens("five!"), 2),
    "categorize_tool_name": (lambda: presets.categorize_tool_name("web-search"), "web-search"),
    "derive_result_kind": (lambda: presets.derive_result_kind("file-write", True), "side-effect"),
    "AgentConfig": (
        lambda: (
            presets.AgentConfig(name="long-runner", model="gpt-4o", compress_tool_results=True).compressed_chars
        ),
        500,
    ),
    "create_transform_context": (
        lambda: texts(
            presets.create_transform_context(
                [lambda _: [user_text("note")]], presets.RequestContext("acme", "ada")
            )([user_text("ask")])
        ),
        ["note", "ask"],
    ),
    "compose_transform_contexts": (
        lambda: texts(
            presets.compose_transform_contexts(
                [lambda given: given[1:], lambda given: [*given, user_text("three")]]
            )([user_text("one"), user_text("two")])
        ),
        ["two", "three"],
    ),
    "create_default_capability_context_providers": (
        lambda: [one.name for one in presets.create_default_capability_context_providers({"dataDir": "none"})],
        ["identity", "date", "memory", "knowledge", "skills", "workspace"],
    ),
    "create_default_capability_transform_context": (
        lambda: texts(presets.create_default_capability_transform_context({"dataDir": "none"})([user_text("ask")])),
        ["ask"],
    ),
    "memory_context": (lambda: len(presets.memory_context({"dataDir": "none"}).providers), 6),
    "load_messages_with_budget": (
        lambda: texts(presets.load_messages_with_budget(spoken(), 1_000)),
        ["Go.", "On."],
    ),
    "compact_if_needed": (lambda: presets.compact_if_needed(spoken()), None),
    "resolve_synthesis_config_for_strategy": (
        lambda: presets.resolve_synthesis_config_for_strategy({"synthesis": "fast"}, "reactive").mode,
        "fast",
    ),
}


def spoken() -> Session:
    return Session("gpt-4o", strategy="agentrail/layers").add([user_text("Go."), user_text("On.")])


@pytest.mark.parametrize("name", NAMES)
def test_a_call_is_positional_as_its_document_shows_it(name: str) -> None:
    call, value = CALLS[name]
    assert call() == value


@pytest.mark.parametrize("function", [presets.load_messages_with_budget, presets.compact_if_needed])
@pytest.mark.parametrize("given", [[user_text("Go.")], [{"role": "user", "content": "Go."}], "Go.", None])
def test_what_is_no_session_is_refused_with_what_to_give(function: Callable[[Any], object], given: Any) -> None:
    with pytest.raises(InputError, match=rf"{function.__name__}\(session"):
        function(given)


def test_the_log_of_an_async_session_is_loaded_too() -> None:
    async def main() -> list[Message]:
        async with AsyncSession(spoken()) as session:
            return presets.load_messages_with_budget(session, 1_000)

    assert texts(asyncio.run(main())) == ["Go.", "On."]


def test_the_documents_compose_transforms_results_boundary_and_reactive_compaction_then_providers(
    tmp_path: Path,
) -> None:
    """In this order: a preview is of what the transform wrote, and a provider sees it rewritten."""

    def redact(messages: Sequence[Message]) -> list[Message]:
        return [hide(message) if SECRET in str(message.results) else message for message in messages]

    def hide(message: Message) -> Message:
        return tool_result(message.results[0].call_id, message.results[0].text.replace(SECRET, "[redacted]"))

    def review(_context: presets.RequestContext, messages: Sequence[Message]) -> str:
        return f"Secrets seen: {str(messages).count(SECRET)}."

    stack = presets.create_default_capability_context_providers({"dataDir": tmp_path})
    pipeline = presets.create_transform_context([*stack, review], base_transform=redact)
    strategy = configured({"triggerTokens": 3_000, "minMessages": 20}, transforms=[redact])
    with Session("gpt-4o", strategy=strategy, providers=pipeline) as session:
        session.add("Which test is slow?")
        for number in range(12):
            call = ToolCall(f"c{number}", "read", f'{{"path": "{number}.py"}}')
            found = f"{SECRET} is used.\n" * 1_000 if number == 8 else f"{number}.py is fast. " * 80
            session.add([Message("assistant", (call,)), tool_result(call.id, found)])
        session.add([{"role": "assistant", "content": "None."}, {"role": "user", "content": "Sure?"}])
        pack = session.pack()
        smaller = session.retry("prompt is too long: 210345 tokens > 200000 maximum")
    body = pack.body.decode()
    assert [decision.reason.partition(":")[0] for decision in pack.manifest.decisions] == [
        "compact_tool_results",
        "session_compaction",
    ]
    assert SECRET not in body
    assert body.index("[redacted] is used.") < body.index("Sure?")
    assert body.index("Sure?") < body.index("Today is") < body.index("Secrets seen: 0.")
    assert [decision.reason.partition(":")[0] for decision in smaller.manifest.decisions] == ["reactive_full"]
