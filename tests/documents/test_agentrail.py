"""The code of Agentrail's document about context and compaction, in Python, with its names, options and values."""

from __future__ import annotations

import asyncio
import datetime
import json
import re
import sys
from collections.abc import Mapping
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest

import lading
from lading.compaction import Strategy
from lading.effects import RequestContext
from lading.events import Compacted, CompactionEnded, CompactionStarted, ContextUsage, SummaryRejected
from lading.presets import agentrail
from lading.presets.agentrail import (
    ContextProvider,
    configured,
    create_default_capability_context_providers,
    create_default_capability_transform_context,
    create_transform_context,
    load_messages_with_budget,
    memory_context,
    transforming,
)
from lading.wire import WIRES
from tests.documents.blocks import Block, check_absent, check_blocks, check_tests, text_of, to_come

BLOCKS = (
    Block("Context Providers", 1, "import type { ContextProvider }", "];\n};"),
    Block("Context Pipeline", 1, "import { createTransformContext }", "]);"),
    Block("Defaults Layer", 1, "import {\n  createDefaultCapability", "TransformContext(options);"),
    Block("Configuration", 1, "import type { Message }", "\n});", "runtime", ("create_agent_app", "create_app")),
    Block("The Summarize Function", 1, "const summarize = async (", "return response.text;\n};"),
)
COMPACTION: dict[str, Any] = {
    "triggerTokens": 80_000,
    "minMessages": 20,
    "reactive": {
        "microTriggerPct": 85,
        "fullTriggerPct": 92,
        "preserveRecentApiRounds": 2,
        "microBatchGroups": 2,
        "maxReactiveCompactionsPerRequest": 3,
    },
}
OPTIONS = lading.SessionOptions(tenant="acme", user="ada")
SECONDS = count(1_795_435_200)
"""A clock: a second later each time."""
REPLY = {"choices": [{"message": {"role": "assistant", "content": "No."}, "finish_reason": "stop"}]}


def test_every_code_block_of_the_document_is_listed(shared: Path) -> None:
    check_blocks(BLOCKS, text_of(shared, "003"))


def test_every_block_has_its_test() -> None:
    check_tests(BLOCKS, sys.modules[__name__])


@to_come(BLOCKS)
def test_what_a_part_brings_is_not_there_yet(block: Block) -> None:
    check_absent(block)


async def identity_provider(context: RequestContext) -> list[dict[str, Any]]:
    now_s = next(SECONDS)
    date = datetime.datetime.fromtimestamp(now_s, datetime.UTC).isoformat()
    return [
        {
            "role": "user",
            "content": f"Tenant: {context.tenant_id}\nUser: {context.user_id}\nDate: {date}",
            "timestamp": now_s * 1_000,
        }
    ]


def test_a_provider_is_computed_for_each_request_and_not_persisted() -> None:
    """ "Context Providers", block 1."""
    provider: ContextProvider = identity_provider
    with lading.Session("gpt-4o", providers=[provider], options=OPTIONS) as session:
        session.add("What is open?")
        first = session.pack().body.decode()
        session.reply(REPLY)
        session.add("Which is older?")
        second = session.pack().body.decode()
        assert len(session.entries) == 3
    assert ["Tenant: acme\\nUser: ada\\nDate: 20" in body for body in (first, second)] == [True, True]
    assert second.count("Tenant: acme") == 1
    assert re.findall(r"Date: (\S+)", first) != re.findall(r"Date: (\S+)", second)


def test_as_in_the_document_its_text_can_be_before_the_history() -> None:
    """ "Context Providers", block 1."""
    provider = lading.ContextProvider(identity_provider, place="front")
    with lading.Session("gpt-4o", providers=[provider], options=OPTIONS) as session:
        session.add("What is open?")
        messages = session.pack().request["messages"]
    assert "Tenant: acme" in str(messages[0])
    assert messages[-1]["content"].endswith("What is open?")


def test_the_pipeline_asks_its_providers_in_order() -> None:
    """ "Context Pipeline", block 1."""
    asked: list[str] = []

    def provider(name: str) -> ContextProvider:
        async def provide() -> str:
            asked.append(name)
            return f"[{name}]"

        return provide

    memory_provider, knowledge_provider, workspace_provider = map(provider, ("memory", "knowledge", "workspace"))
    transform_context = create_transform_context(
        [
            identity_provider,
            memory_provider,
            knowledge_provider,
            workspace_provider,
        ]
    )
    with lading.Session("gpt-4o", providers=transform_context, options=OPTIONS) as session:
        session.add("What is open?")
        text = session.pack().request["messages"][-1]["content"]
    assert asked == ["memory", "knowledge", "workspace"]
    places = [text.index(part) for part in ("Tenant: acme", "[memory]", "[knowledge]", "[workspace]")]
    assert places == sorted(places)


def test_without_a_session_the_pipeline_returns_the_messages_of_providers_and_then_the_rewritten_ones() -> None:
    """ "Context Pipeline", block 1."""

    def memory_provider(_: RequestContext, messages: list[lading.Message]) -> list[dict[str, str]]:
        return [{"role": "user", "content": f"{len(messages)} messages"}]

    def newest(messages: Any) -> Any:
        return messages[-1:]

    transform = create_transform_context([memory_provider], base_transform=newest)
    shown = transform([lading.user_text("one"), lading.user_text("two")])
    assert [message.text for message in shown] == ["1 messages", "two"]


def test_without_a_session_the_document_s_async_provider_is_awaited() -> None:
    """ "Context Pipeline", block 1."""
    transform_context = create_transform_context([identity_provider], RequestContext("acme", "ada"))
    shown = asyncio.run(awaited(transform_context([lading.user_text("What is open?")])))
    assert [message.text.partition("\n")[0] for message in shown] == ["Tenant: acme", "What is open?"]


async def awaited(answer: Any) -> Any:
    return await answer


def test_the_default_stack_and_its_companion_transform(tmp_path: Path) -> None:
    """ "Defaults Layer", block 1."""
    (tmp_path / "skills" / "review").mkdir(parents=True)
    (tmp_path / "skills" / "review" / "SKILL.md").write_text("description: Reviews a change.")
    options = {"dataDir": tmp_path}
    providers = create_default_capability_context_providers(options)
    transform = create_default_capability_transform_context(options)
    assert [provider.name for provider in providers] == [
        "identity",
        "date",
        "memory",
        "knowledge",
        "skills",
        "workspace",
    ]
    assert memory_context(options).base_transform is not None
    large = "line of a large result\n" * 400
    with lading.Session(
        "gpt-4o", strategy=transforming(transform), providers=providers, options=OPTIONS
    ) as session:
        session.add("Read.")
        for number in range(4):
            session.add(lading.Message("assistant", (lading.ToolCall(f"c{number}", "read", "{}"),)))
            session.add(lading.tool_result(f"c{number}", f"{number}: {large}"))
            body = session.pack().body.decode()
        assert session.entries[2].message.results[0].text == f"0: {large}"
    assert "- review: Reviews a change." in body
    assert "User: ada" in body
    assert [body.count(f"{number}: line of a large result\\nline") for number in range(4)] == [1] * 4
    assert body.count("Compacted result") == 2


def turns(session: lading.Session, start: int, end: int) -> None:
    """Add finished turns, each of a question and an answer, of some 1,200 tokens."""
    for number in range(start, end):
        question = f"tests/test_{number}.py took {number} ms. " * 60
        answer = f"test_{number} took {number} ms. " * 60
        session.add(f"Question {number}: which of these is slow? {question}")
        session.add({"role": "assistant", "content": f"Answer {number}. {answer}"})


class Asked:
    """The document's functions, and what they were asked."""

    def __init__(self) -> None:
        self.messages: list[list[dict[str, Any]]] = []
        self.reasons: list[str] = []

    async def join(self, messages: list[dict[str, Any]]) -> str:
        """The function of the configuration, which is no summary."""
        self.messages.append(messages)
        return "\n".join(f"{m['role']}: {json.dumps(m['content'])}" for m in messages)

    async def summarize(self, messages: list[dict[str, Any]], ctx: Mapping[str, str] | None = None) -> str:
        """The function with a reason; a model's answer in place of the model."""
        self.messages.append(messages)
        self.reasons.append((ctx or {}).get("reason", "session_compaction"))
        return f"The user asked {len(messages) // 2} times which test is slow; each took a few ms."


async def ask(session: lading.AsyncSession, text: str) -> lading.Pack:
    await session.add(text)
    pack = await session.pack()
    await session.reply(REPLY)
    return pack


def test_its_options_are_taken_and_a_text_that_summarizes_nothing_is_refused() -> None:
    """ "Configuration", block 1."""
    asked = Asked()

    async def main() -> list[lading.Pack]:
        inner = lading.Session("gpt-4o", strategy=configured(COMPACTION), summarizer=asked.join)
        async with lading.AsyncSession(inner) as session:
            turns(inner, 0, 75)
            return [await ask(session, "Which?"), await ask(session, "Sure?")]

    first, second = asyncio.run(main())
    assert len(asked.messages) == 1
    assert [type(event) for event in first.events if isinstance(event, SummaryRejected)] == [SummaryRejected]
    assert len(first.request["messages"]) < 105
    assert second.request["messages"][: len(first.request["messages"])] == first.request["messages"]


def test_the_function_is_asked_used_and_reused_and_the_replaced_messages_are_read_again() -> None:
    """ "The Summarize Function", block 1."""
    asked, events = Asked(), list[object]()

    async def main() -> tuple[list[lading.Pack], list[lading.Message]]:
        inner = lading.Session("gpt-4o", strategy=configured(COMPACTION), summarizer=asked.summarize)
        async with lading.AsyncSession(inner) as session:
            for name in ("context_compaction_start", "context_compaction_end", "compaction"):
                session.subscribe(name, events.append)
            turns(inner, 0, 30)
            packs = [await ask(session, "Which?")]
            assert asked.messages == []
            turns(inner, 30, 75)
            packs += [await ask(session, "Which?"), await ask(session, "Sure?"), await ask(session, "Really?")]
            (edit,) = packs[1].manifest.decisions
            owner = inner.settings.owner
            found = [entry for uri in edit.pointers for entry in lading.resolve(inner.store, uri, within=owner)]
            return packs, [entry.message for entry in found]

    (before, *packs), archived = asyncio.run(main())
    assert asked.reasons == ["session_compaction"]
    assert len(before.request["messages"]) == 61
    summary = "The user asked "
    assert [pack.body.decode().count(summary) for pack in packs] == [1, 1, 1]
    for earlier, later in pairwise(packs):
        shown = earlier.request["messages"]
        assert later.request["messages"][: len(shown)] == shown
    given = [message["content"] for message in asked.messages[0]]
    assert [message.text for message in archived] == given
    started, ended, compacted = events
    assert (type(started), type(ended)) == (CompactionStarted, CompactionEnded)
    assert isinstance(compacted, Compacted)
    assert compacted.messages_before > compacted.messages_after == len(packs[0].request["messages"])


@pytest.mark.parametrize("wire", WIRES)
def test_in_every_format_the_old_messages_have_a_role_and_content(wire: str) -> None:
    """ "The Summarize Function", block 1."""
    asked: list[list[dict[str, Any]]] = []

    def summarize(messages: list[dict[str, Any]]) -> str:
        asked.append(messages)
        said = "\n".join(f"{m['role']}: {json.dumps(m['content'])}" for m in messages)
        return "The user looks for the slow test." if "took 37 ms" in said else ""

    strategy = configured({"triggerTokens": 3_000})
    with lading.Session("gpt-4o", wire=wire, strategy=strategy, summarizer=summarize) as session:
        session.add("Which test is slow?")
        for number in range(30):
            session.add(lading.Message("assistant", (lading.ToolCall(f"c{number}", "read", "{}"),)))
            session.add(lading.tool_result(f"c{number}", f"tests/test_{number}.py took {number * 37} ms\n" * 20))
        session.add([{"role": "assistant", "content": "None."}, {"role": "user", "content": "Sure?"}])
        body = session.pack().body.decode()
    assert {message["role"] for message in asked[0]} <= {"user", "assistant", "tool"}
    assert "The user looks for the slow test." in body


def test_history_is_loaded_within_a_budget_and_the_usage_is_of_the_whole_window() -> None:
    usage: list[ContextUsage] = []
    with lading.Session("gpt-4o", window=200_000) as session:
        turns(session, 0, 30)
        session.add("Which?")
        session.subscribe("context_usage", usage.append)
        session.pack()
        used = {"prompt_tokens": 50_000, "completion_tokens": 5, "total_tokens": 50_005}
        session.reply(REPLY | {"usage": used})
        assert len(load_messages_with_budget(session, 200_000)) == 62
        loaded = load_messages_with_budget(session)
        assert sum(entry.tokens for entry in session.entries[-len(loaded) :]) <= 40_000
    assert usage[-1].budget_used_pct == agentrail.budget_used_pct(50_000) == 25


@pytest.mark.parametrize("given", [COMPACTION, {"trigger_tokens": 80_000, "min_messages": 20}])
def test_the_configuration_is_taken_in_either_spelling(given: dict[str, Any]) -> None:
    assert isinstance(configured(given), Strategy)
