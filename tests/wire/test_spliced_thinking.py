"""Thinking of several responses in one message: what Anthropic takes, and what is left out."""

from __future__ import annotations

from typing import Any

import pytest

from lading import Session
from lading.history.repair import Repairer
from lading.models.catalog import find_card
from lading.stores.memory import MemoryStore
from lading.wire import find_wire
from lading.wire.fitting import find_needs
from tests.wire.codec_cards import PLAIN

CARDS = [PLAIN, find_card("anthropic.claude-3-7-sonnet-20250219-v1:0")[0]]


def block(word: str) -> dict[str, Any]:
    """A block by its first letter: thinking, redacted thinking, text, a call, or a server's tool and its result."""
    blocks: dict[str, dict[str, Any]] = {
        "h": {"type": "thinking", "thinking": word, "signature": f"c2ln{word}"},
        "e": {"type": "thinking", "thinking": "", "signature": f"c2ln{word}"},
        "r": {"type": "redacted_thinking", "data": word},
        "t": {"type": "text", "text": word},
        "c": {"type": "tool_use", "id": word, "name": "read", "input": {}},
        "s": {"type": "server_tool_use", "id": word, "name": "web_search", "input": {"query": "x"}},
        "w": {"type": "web_search_tool_result", "tool_use_id": word, "content": []},
    }
    return blocks[word[0]]


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("h1 t1 c1", "h1 t1 c1"),
        ("h1 r1 t1 c1", "h1 r1 t1 c1"),
        ("r1 h1 c1", "r1 h1 c1"),
        ("t1 h1 c1", "t1 h1 c1"),
        ("h1 c1 h2 c2", "h1 c1 h2 c2"),
        ("h1 s1 w1 h2 t1 c1", "h1 s1 w1 h2 t1 c1"),
        ("h1 t1 h2 t2 c1", "h2 t1 t2 c1"),
        ("h1 h2 c1", "h2 c1"),
        ("e1 e2 t1", "e2 t1"),
        ("h1 r1 h2 r2 c1", "h2 r2 c1"),
        ("h1 t1 r2 t2 c1", "r2 t1 t2 c1"),
        ("h1 t1 h2 t2 h3", "h3 t1 t2"),
        ("h1 t1 h2 c1 h3 t3 h4 c2", "h2 t1 c1 h4 t3 c2"),
    ],
)
def test_a_message_keeps_the_thinking_of_one_response_between_calls(given: str, shown: str, card: Any) -> None:
    wire = find_wire("anthropic")
    (message,) = wire.read_items([{"role": "assistant", "content": [block(word) for word in given.split()]}])
    border = Repairer(find_needs(wire, card))
    border.repair(wire.read_items([{"role": "user", "content": "Go."}])[0])
    admitted = border.repair(message)
    (sent,) = wire.write(admitted.messages, card)
    assert sent["content"] == [block(word) for word in shown.split()]
    assert [repair.rule for repair in admitted.repairs] == ["reasoning_left_out"] * (given != shown)
    assert Repairer(find_needs(wire, card)).repair(message, is_issued=True).messages[-1:] == (message,)


@pytest.mark.parametrize("as_reply", [True, False])
def test_a_reply_with_two_thinking_blocks_goes_back_as_it_came(as_reply: bool) -> None:
    said = [block(word) for word in ("h1", "t1", "h2", "c1")]
    session = Session("claude-sonnet-4-5")
    session.add("Go.").pack(fields={"max_tokens": 100})
    usage = {"input_tokens": 9, "output_tokens": 9}
    body = {"id": "m", "type": "message", "role": "assistant", "content": said, "stop_reason": "tool_use"}
    if as_reply:
        session.reply(body | {"usage": usage})
    else:
        session.add([{"role": "assistant", "content": said}])
    session.add([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "x"}]}])
    assert session.pack().request["messages"][1]["content"] == said


@pytest.mark.parametrize("other", ["claude-opus-4-5", "claude-sonnet-4-5"])
def test_a_reply_with_two_thinking_blocks_stays_where_the_model_changes(other: str) -> None:
    said = [block(word) for word in ("h1", "h2", "c1")]
    store = MemoryStore()
    with Session("claude-sonnet-4-5", store=store) as session:
        session.add("Go.").pack(fields={"max_tokens": 100})
        usage = {"input_tokens": 9, "output_tokens": 9}
        body = {"id": "m", "type": "message", "role": "assistant", "content": said, "stop_reason": "tool_use"}
        session.reply(body | {"usage": usage})
    with Session(other, store=store) as session:
        session.add([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "x"}]}])
        assert session.pack().request["messages"][1]["content"] == said
    # In a format that knows no such rule, it was not looked at.
    with Session("gpt-4o", store=store) as session:
        session.pack()
    merged = [{"role": "assistant", "content": [block(word) for word in ("h3", "t3", "h4", "t4")]}]
    with Session("gpt-4o", store=store) as session:
        session.add(find_wire("anthropic").read_items(merged))
        session.pack()
    with Session("claude-sonnet-4-5", store=store) as session:
        session.add("And?")
        last = session.pack(fields={"max_tokens": 100}).request["messages"][-2]["content"]
        assert [one["type"] for one in last].count("thinking") <= 1
