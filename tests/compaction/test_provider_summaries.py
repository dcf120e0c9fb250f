"""A provider's own summary of a conversation outlives every compaction of the messages around it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import Session
from lading.compaction import STRATEGIES
from lading.errors import WindowExceeded
from lading.messages import Opaque
from lading.stores.memory import MemoryStore
from lading.wire import check
from tests.examples import quick_diagonal

TOOLS = [{"name": "read", "input_schema": {"type": "object"}}]


def block(number: int, content: str | None = "The task is {}.") -> dict[str, Any]:
    return {"type": "compaction", "content": content and content.format(number), "encrypted_content": f"E{number}"}


def round_of(number: int, before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A call and its result, after these blocks of the same reply."""
    call = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {"path": f"src/{number}.py"}}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"line {number} of it\n" * 300}
    return [{"role": "assistant", "content": [*before, call]}, {"role": "user", "content": [result]}]


def find_blocks(messages: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """The positions of the compactions in a request, and the blocks."""
    return [
        (at, part)
        for at, message in enumerate(messages)
        for part in (message["content"] if isinstance(message["content"], list) else ())
        if part["type"] == "compaction"
    ]


def check_request(session: Session, request: dict[str, Any], newest: dict[str, Any]) -> None:
    """What comes after the newest summary is after it in the request too: a provider ignores what is before it."""
    place, found = find_blocks(request["messages"])[-1]
    assert found == newest
    since = next(
        entry.index for entry in reversed(session.entries) if Opaque(newest, is_summary=True) in entry.message.parts
    )
    for message in request["messages"][:place]:
        assert all(int(last) < since for last in re.findall(r"artifact://log/\d+-(\d+)", json.dumps(message)))
    assert check(request, session.wire, card=session.settings.card) == []


@pytest.mark.parametrize(
    ("strategy", "opens"),
    quick_diagonal([name for name in sorted(STRATEGIES) if name != "append-only"], [False, True]),
)
def test_the_newest_summary_is_in_every_request(strategy: str, opens: bool) -> None:
    store = MemoryStore()
    session = Session("claude-opus-5-5", window=12_000, strategy=strategy, store=store)
    newest = block(0)
    session.add(
        [{"role": "assistant", "content": [newest]}, {"role": "user", "content": "go on"}]
        if opens
        else [{"role": "user", "content": "the task"}, *round_of(100, [newest])]
    )
    for number in range(24):
        if number == 12:
            newest = block(number)
        session.add(round_of(number, [newest] if number == 12 else []))
        pack = session.pack(TOOLS, fields={"max_tokens": 500})
        check_request(session, pack.request, newest)
        if number == 16:
            session.close()
            session = Session("claude-opus-5-5", window=12_000, strategy=strategy, store=store)
    assert store.counts("default", "session")[1] > 5


@given(places=st.sets(st.integers(0, 19), max_size=4), window=st.integers(6_000, 14_000), basic=st.booleans())
def test_summaries_at_any_place(places: set[int], window: int, basic: bool) -> None:
    session = Session("claude-opus-5-5", window=window, strategy="basic" if basic else "priced")
    session.add("the task")
    newest = None
    for number in range(20):
        newest = block(number) if number in places else newest
        session.add(round_of(number, [block(number)] if number in places else []))
        try:
            pack = session.pack(TOOLS, fields={"max_tokens": 500})
        except WindowExceeded:
            return
        if newest:
            check_request(session, pack.request, newest)


def test_a_compaction_that_failed_is_no_summary() -> None:
    session = Session("claude-opus-5-5")
    session.add([{"role": "user", "content": "task"}, {"role": "assistant", "content": [block(1, content=None)]}])
    assert session.entries[1].message.parts == (Opaque(block(1, content=None)),)


@pytest.mark.parametrize("text", [[], [{"type": "text", "text": "x"}]])
def test_nothing_follows_a_reply_that_ends_in_a_summary(text: list[Any]) -> None:
    session = Session("claude-opus-5-5")
    session.add([{"role": "user", "content": "task"}, {"role": "assistant", "content": [*text, block(1)]}])
    pack = session.pack(fields={"max_tokens": 9})
    assert pack.request["messages"][-1] == {"role": "assistant", "content": [*text, block(1)]}
    assert check(pack.request, session.wire, card=session.settings.card, strict=True) == []


def test_another_provider_reads_the_text_of_a_summary() -> None:
    session = Session("gpt-4o")
    session.add([{"role": "user", "content": "task"}, {"role": "assistant", "content": [block(1)]}])
    session.add("go on")
    assert session.pack().request["messages"][1] == {"role": "assistant", "content": "The task is 1."}
