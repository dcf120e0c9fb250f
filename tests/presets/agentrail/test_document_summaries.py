"""The document's ``summarize``, as it writes it and under its names: called, used, reused, and read again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from openai import AsyncOpenAI

from lading import AsyncSession, Message, Pack, Session, ToolCall, resolve, tool_result, user_text, verify, wrap
from lading.compaction.composing import compose
from lading.effects import Summarize
from lading.events import SummaryRejected
from lading.presets.agentrail import configured
from lading.presets.open_multi_agent import agent_config, strategy_for
from lading.stores.memory import MemoryStore
from lading.testing import StrictProvider
from tests.clients.agents import openai_client
from tests.clients.summed import ROUNDS, Worker, split, work
from tests.compaction.test_composing import redacting_slowly

PROSE = (
    "The user is looking for the slow test module. The assistant read the modules one by one; tests/test_7.py took "
    "259 ms. It then edited src/slow.py, and the run of pytest still fails with a KeyError in src/slow.py."
)
COMPACTION = {
    "triggerTokens": 3_000,
    "minMessages": 20,
    "reactive": {
        "microTriggerPct": 85,
        "fullTriggerPct": 92,
        "preserveRecentApiRounds": 2,
        "microBatchGroups": 20,
        "maxReactiveCompactionsPerRequest": 3,
    },
}
REASONS = ("session_compaction", "reactive_micro", "reactive_full")


class Llm:
    """The ``llm`` of the document's example."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Sequence[Any]]] = []

    def complete(self, *, system: str, messages: Sequence[Any]) -> str:
        """Answer with a summary in prose."""
        self.asked.append((system, messages))
        return PROSE


def document_s(llm: Llm, *, is_async: bool = True) -> Summarize:
    """The document's second example."""

    def summarize(messages: list[dict[str, Any]], ctx: Mapping[str, str] | None = None) -> str:
        return llm.complete(
            system="Summarize the following conversation history concisely. "
            f"Reason: {ctx['reason'] if ctx else 'session_compaction'}",
            messages=messages,
        )

    async def summarize_later(messages: list[dict[str, Any]], ctx: Mapping[str, str] | None = None) -> str:
        await asyncio.sleep(0)
        return summarize(messages, ctx)

    return summarize_later if is_async else summarize


def loop(start: int, end: int) -> list[Message]:
    """Rounds of an agent that reads, edits once, and tests once."""
    made: list[Message] = []
    for number in range(start, end):
        steps = [(f"c{number}", "read", f'{{"path": "tests/test_{number}.py"}}', f"took {number * 37} ms\n" * 12)]
        if number == 8:
            steps += [
                ("e", "edit_file", '{"path": "src/slow.py", "old": "a", "new": "b"}', "ok"),
                ("t", "bash", '{"command": "pytest -q"}', "KeyError: 'x' in src/slow.py\n1 failed, exit code 1"),
            ]
        for call_id, tool, arguments, found in steps:
            made += [Message("assistant", (ToolCall(call_id, tool, arguments),)), tool_result(call_id, found)]
    return made


async def run(session: Session) -> list[Pack]:
    """Two requests of the user, the second of which opens with a full history."""
    packs: list[Pack] = []
    async with AsyncSession(session) as awaiting:
        await awaiting.add("Which test is slow? Never touch conftest.py.")
        await awaiting.add(loop(0, 60))
        await awaiting.add([{"role": "assistant", "content": "tests/test_59.py is slow."}])
        await awaiting.add("And the second slowest?")
        packs.append(await awaiting.pack())
        for number in range(60, 64):
            await awaiting.add(loop(number, number + 1))
            packs.append(await awaiting.pack())
    return packs


@pytest.mark.parametrize("is_async", [False, True])
def test_the_document_s_summarize_sync_or_async_is_called_used_reused_and_what_it_replaced_is_read_again(
    *, is_async: bool
) -> None:
    llm, store = Llm(), MemoryStore()
    session = Session(
        "gpt-4o",
        store=store,
        window=60_000,
        strategy=configured(COMPACTION),
        summarizer=document_s(llm, is_async=is_async),
    )
    first, *later = asyncio.run(run(session))
    # Called once, at the boundary, with the old messages.
    ((system, messages),) = llm.asked
    assert system.endswith("Reason: session_compaction")
    assert {message["role"] for message in messages} == {"assistant", "tool"}
    assert messages[0]["tool_calls"][0]["function"]["arguments"] == '{"path": "tests/test_0.py"}'
    # Used, with the user's words, the files and what still fails beside it.
    (edit,) = session._engine.history.edits
    assert edit.reason.startswith("session_compaction: ")
    record = str(first.request["messages"][1]["content"])
    assert all(sentence in record for sentence in PROSE.removesuffix(".").split(". "))
    assert "src/slow.py (#" in record
    assert "Failing at the end: bash pytest -q" in record
    assert "Never touch conftest.py." in first.body.decode()
    # Reused on later requests.
    assert all(pack.request["messages"][1]["content"] == record for pack in later)
    # Read again from the archive.
    (pointer,) = edit.pointers
    archived = resolve(store, pointer)
    assert [entry.message for entry in archived] == [entry.message for entry in session.entries][
        edit.first : edit.last + 1
    ]
    assert [outcome.problem for outcome in verify(store, tenant="default", session="session")] == [""] * 5


@pytest.mark.parametrize(
    ("strategy", "reason"),
    [
        ("agentrail/session_compaction", "session_compaction"),
        ("agentrail/reactive", "reactive_full"),
        (strategy_for(agent_config({"contextStrategy": {"type": "summarize", "maxTokens": 2_000}})), "summarize"),
    ],
)
def test_its_prose_is_in_the_records_of_the_presets_with_the_user_s_words_files_and_open_failures_beside_it(
    strategy: Any, reason: str
) -> None:
    llm = Llm()
    chosen = configured({"triggerTokens": 3_000}) if strategy == "agentrail/session_compaction" else strategy
    window = 60_000 if strategy == "agentrail/session_compaction" else 6_000
    session = Session("gpt-4o", window=window, output_reserve=500, strategy=chosen, summarizer=document_s(llm))
    packs = asyncio.run(run(session))
    assert f"Reason: {reason}" in llm.asked[0][0]
    body = json.dumps([pack.request["messages"] for pack in packs])
    assert "The user is looking for the slow test module." in body
    assert "Never touch conftest.py." in body
    assert "src/slow.py (#" in body
    assert "Failing at the end: bash pytest -q" in body


def test_a_later_summary_is_of_the_last_one_and_what_came_since() -> None:
    """Not of the whole history once more, which grows without end."""
    given: list[list[Any]] = []

    def summarize(messages: list[dict[str, Any]], _ctx: Mapping[str, str]) -> str:
        given.append(messages)
        return PROSE

    strategy = configured({"triggerTokens": 3_000, "compactFraction": 0.8})
    with Session("gpt-4o", window=60_000, strategy=strategy, summarizer=summarize) as session:
        session.add("Which test is slow?")
        for start in range(0, 180, 60):
            session.add([*loop(start, start + 60), user_text("And now?")])
            session.pack()
    assert len(given) == 3
    assert [PROSE[:40] in str(messages[0]["content"]) for messages in given] == [False, True, True]
    assert max(map(len, given)) < 140


@pytest.mark.parametrize("is_async", [False, True])
def test_its_first_example_of_one_parameter_is_given_the_messages(is_async: bool) -> None:
    """It joins all messages: no summary, and rejected as such. In production it is to be replaced, it says."""
    given: list[Any] = []

    def join(messages: list[dict[str, Any]]) -> str:
        given.extend(messages)
        return "\n".join(f"{m['role']}: {json.dumps(m['content'])}" for m in messages)

    async def summarize(messages: list[dict[str, Any]]) -> str:
        return join(messages)

    chosen: Any = summarize if is_async else lambda messages: PROSE + join(messages)[:0]
    session = Session("gpt-4o", window=6_000, output_reserve=500, strategy="agentrail/reactive", summarizer=chosen)
    packs = asyncio.run(run(session))
    rejected = [event for pack in packs for event in pack.events if isinstance(event, SummaryRejected)]
    assert {message["role"] for message in given} <= {"user", "assistant", "tool"}
    assert len(given) > 100
    assert [event.reason.startswith("it has ") for event in rejected][:1] == [True] * is_async


@pytest.mark.parametrize("is_async", [False, True])
def test_a_wrapped_async_client_awaits_summarize_and_transforms(is_async: bool) -> None:
    asked: list[str] = []

    async def later(messages: list[dict[str, Any]], ctx: Mapping[str, str]) -> str:
        await asyncio.sleep(0)
        return at_once(messages, ctx)

    def at_once(messages: list[dict[str, Any]], ctx: Mapping[str, str]) -> str:
        asked.append(ctx["reason"])
        return f"The user looks for the slow test. The assistant read {len(messages) // 2} parts."

    events: list[Any] = []
    summarize: Callable[..., Any] = later if is_async else at_once
    with StrictProvider(Worker(), window_tokens=16_000) as provider:
        client: Any = wrap(
            openai_client(provider, AsyncOpenAI),
            window=16_000,
            strategy=compose([redacting_slowly, "agentrail"]),
            summarizer=summarize,
            on_event=events.append,
        )
        received = asyncio.run(work(client, "openai_chat"))
    assert len(received) == ROUNDS + 1
    assert set(asked) <= {*REASONS}
    assert "reactive_full" in asked
    assert not split(provider).own
    assert not provider.violations
    assert not [event for event in events if isinstance(event, SummaryRejected)]
    assert "The user looks for the slow test." in str(provider.requests[-1].body)
