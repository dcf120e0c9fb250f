"""Messages that change the tools stay, and so does everything after them."""

from __future__ import annotations

from typing import Any

import pytest

from lading import Session
from lading.compaction import STRATEGIES
from lading.errors import WindowExceeded
from lading.wire import check
from tests.examples import quick_first

TOOLS = [{"name": "read", "input_schema": {"type": "object"}}]
ADDED = {
    "role": "system",
    "content": [
        {
            "type": "tool_addition",
            "tool": {"type": "tool_definition", "name": "deploy", "input_schema": {"type": "object"}},
        }
    ],
}
REMOVED = {"role": "system", "content": [{"type": "tool_removal", "tool": {"type": "tool", "name": "deploy"}}]}


def round_of(number: int, words: int = 250) -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {"path": f"src/{number}.py"}}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"line {number} of it\n" * words}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


@pytest.mark.parametrize(
    "strategy", quick_first(["priced", "basic", *sorted(STRATEGIES.keys() - {"append-only", "basic", "priced"})], 6)
)
def test_changes_of_the_tools_are_in_every_request(strategy: str) -> None:
    session = Session("claude-opus-5-5", window=12_000, strategy=strategy)
    session.add([{"role": "user", "content": "the task"}, *round_of(100), {"role": "assistant", "content": "ok"}])
    session.add([{"role": "user", "content": "deploy"}, ADDED])
    for number in range(30):
        session.add(round_of(number))
        if number == 10:
            session.add([{"role": "assistant", "content": "done"}, {"role": "user", "content": "enough"}, REMOVED])
        try:
            request = session.pack(TOOLS, fields={"max_tokens": 500}).request
        except WindowExceeded:
            assert number > 20
            return
        systems = [message for message in request["messages"] if message["role"] == "system"]
        assert systems == [ADDED, REMOVED][: 1 + (number >= 10)]
        assert check(request, session.wire, card=session.settings.card) == []


def test_rounds_before_the_first_change_may_go() -> None:
    session = Session("claude-opus-5-5", window=12_000)
    session.add(
        [{"role": "user", "content": "the task"}, *(one for number in range(20) for one in round_of(number))]
    )
    session.add([{"role": "assistant", "content": "ok"}, {"role": "user", "content": "deploy"}, ADDED])
    messages = session.pack(TOOLS, fields={"max_tokens": 500}).request["messages"]
    assert messages[-1] == ADDED
    assert len(messages) < 20


def test_the_error_says_why_a_window_is_too_small() -> None:
    session = Session("claude-opus-5-5", window=12_000)
    session.add([{"role": "user", "content": "the task"}, {"role": "assistant", "content": "ok"}])
    session.add([{"role": "user", "content": "deploy"}, ADDED])
    for number in range(40):
        session.add(
            [{"role": "assistant", "content": f"{number} " * 300}, {"role": "user", "content": f"{number} " * 300}]
        )
    with pytest.raises(WindowExceeded, match="since a change of the tools"):
        session.pack(TOOLS, fields={"max_tokens": 500})
