"""The user's newest request, which every cut and record shows again, is shown as requests had it before."""

from __future__ import annotations

from typing import Any

import pytest

from lading import Session, verify
from lading.stores.memory import MemoryStore
from lading.wire import check, find_wire
from tests.examples import quick_diagonal
from tests.parts import SHOWN
from tests.replies import CHAT_TOOLS, chat_result

MODELS = {
    "anthropic": "claude-sonnet-5",
    "gemini": "gemini-3-pro",
    "openai_chat": "gpt-4o",
    "openai_responses": "gpt-5-mini",
}


def call(number: int) -> dict[str, Any]:
    """A message with a call, in the form of Chat Completions, which all formats read."""
    function = {"name": "read", "arguments": f'{{"path": "{number}"}}'}
    return {
        "role": "assistant",
        "content": f"I look at {number}. " + "word " * 600,
        "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
    }


@pytest.mark.parametrize(
    ("strategy", "kind", "wire"),
    quick_diagonal(["priced", "basic", "open_multi_agent/sliding_window"], [*SHOWN], [*MODELS]),
)
def test_a_request_of_parts_of_another_format_is_carried_in_this_format(
    strategy: str, kind: str, wire: str
) -> None:
    store = MemoryStore()
    with Session(
        MODELS[wire], wire=wire, store=store, window=16_000, output_reserve=200, strategy=strategy
    ) as session:
        session.add("First task.").add([{"role": "assistant", "content": "Done."}])
        session.add(
            [{"role": "user", "content": [*SHOWN[kind]("asked"), {"type": "text", "text": "The newest task."}]}]
        )
        for number in range(20):
            session.add([call(number), chat_result(f"c{number}", f"{number} " + "word " * 300)])
            pack = session.pack(CHAT_TOOLS)
            assert check(pack.request, find_wire(wire), card=session.settings.card, strict=True) == []
            assert b"The newest task." in pack.body
        assert {"dropped", "summarised"} & {edit.kind for edit in session.edits}
    assert {outcome.problem for outcome in verify(store, tenant="default", session="session")} == {""}


def test_a_request_that_the_caller_changed_is_carried_as_changed() -> None:
    with Session("gpt-4o", window=6_000, output_reserve=200, strategy="basic") as session:
        history: list[dict[str, Any]] = [
            {"role": "user", "content": "First task."},
            {"role": "assistant", "content": "Done."},
            {"role": "user", "content": [{"type": "text", "text": "The newest task."}], "name": "Ann"},
        ]
        session.add(history)
        session.pack(CHAT_TOOLS)
        history[2] = {"role": "user", "content": "The newest task.", "name": "Ann"}
        for number in range(8):
            history += [call(number), chat_result(f"c{number}", f"{number} " + "word " * 300)]
            session.add(history)
            pack = session.pack(CHAT_TOOLS)
        assert "dropped" in {edit.kind for edit in session.edits}
        assert history[2] in pack.request["messages"]
