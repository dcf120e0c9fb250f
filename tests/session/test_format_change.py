"""A session that began in one provider format goes on in any other, in the middle of a tool loop too."""

from __future__ import annotations

import json
import re
from itertools import permutations
from typing import Any

import pytest

from lading import Session, verify
from lading.events import Repaired
from lading.messages import Image, Message, Reasoning, Text, Tool, ToolCall, ToolResult, user_text
from lading.stores.memory import MemoryStore
from lading.wire import WIRES, check, find_wire, group_messages
from tests.examples import quick_diagonal

MODELS = {
    "openai_chat": "gpt-4o",
    "openai_responses": "gpt-5-mini",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-3-pro",
}
PICTURE = Image(data="iVBORw0KGgo=", media_type="image/png")
LOOK = Tool("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})


def rounds(start: int, calls: int) -> list[Message]:
    """An answer with parallel calls, and their results; the last has a picture."""
    asked = tuple(ToolCall(f"c{start}-{at}", "look", json.dumps({"at": str(at)})) for at in range(calls))
    results = [Message("tool", (ToolResult(one.id, (Text(f"seen {one.id} " * 40),)),)) for one in asked]
    shown = Message("tool", (ToolResult(asked[-1].id, (Text("a picture"), PICTURE)),))
    return [Message("assistant", (Reasoning("hm"), Text("I look."), *asked)), *results[:-1], shown]


def said(wire: str, messages: list[Message], *, ids: bool) -> list[Any]:
    """The messages as dicts of a format; ``ids``: with the ids of calls where the format can do without."""
    form, card = find_wire(wire), Session(MODELS[wire], wire=wire).settings.card
    groups = group_messages(messages, form, card=card)
    items = [item for group in groups for item in form.encode_group(group, card)]
    for part in [part for item in items for part in item.get("parts", ())]:
        for kind in ("functionCall", "functionResponse"):
            if not ids and kind in part:
                del part[kind]["id"]
    return items


@pytest.mark.parametrize(
    ("formats", "ids", "window"), quick_diagonal([*permutations(WIRES, 2)], [True, False], [2_500, 100_000])
)
def test_a_session_goes_on_in_another_format(formats: tuple[str, str], ids: bool, window: int) -> None:
    home, other = formats
    store = MemoryStore()
    for number, wire in enumerate((home, other, home)):
        with Session(MODELS[wire], store=store, wire=wire, window=window, output_reserve=500) as session:
            opening = [user_text("Look around.")] if number == 0 else []
            for at in range(4):
                new = [*opening, *rounds(10 * number + at, 1 + at % 3)]
                session.add(said(wire, new, ids=ids))
                pack, opening = session.pack([LOOK]), []
                assert check(pack.request, find_wire(wire), card=session.settings.card, strict=True) == []
    assert {outcome.problem for outcome in verify(store, tenant="default", session="session")} == {""}


THOUGHTS: dict[str, list[Any]] = {
    "anthropic": [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "plan", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "b3BhcXVl"},
                {"type": "text", "text": "Hi."},
            ],
        }
    ],
    "gemini": [
        {"role": "model", "parts": [{"text": "plan", "thought": True, "thoughtSignature": "c2ln"}, {"text": "Hi."}]}
    ],
    "openai_chat": [{"role": "assistant", "content": "Hi.", "reasoning_content": "plan"}],
    "openai_responses": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hi."}],
        },
    ],
}
HIDDEN = (b"c2ln", b"b3BhcXVl", b"gAAA", b"plan", b"rs_1", b"msg_1")


@pytest.mark.parametrize(("home", "other"), [*permutations(WIRES, 2)])
def test_reasoning_stays_with_its_issuer_and_comes_back_to_it(home: str, other: str) -> None:
    store, found = MemoryStore(), dict[int, Any]()
    for number, wire in enumerate((home, other, home)):
        with Session(MODELS[wire], store=store, wire=wire) as session:
            if number == 0:
                session.add("Hello").add(THOUGHTS[home])
            session.add(f"And {number}?")
            found[number] = pack = session.pack()
            assert check(pack.request, find_wire(wire), card=session.settings.card, strict=True) == []
            session.add(said(wire, [Message("assistant", (Text("Well."),))], ids=True))
    field = find_wire(home).layout.items.field
    start = 1 + len(THOUGHTS[home])
    assert found[0].request[field][1:start] == THOUGHTS[home]
    assert found[2].request[field][1:start] == THOUGHTS[home]
    assert not any(secret in found[1].body for secret in HIDDEN)
    rules = [[event.rule for event in pack.events if isinstance(event, Repaired)] for pack in found.values()]
    assert rules[0] == []
    assert rules[1] == ["reasoning_left_out"] * (2 if home == "anthropic" else 1)
    assert {outcome.problem for outcome in verify(store, tenant="default", session="session")} == {""}


def test_parts_that_another_format_does_not_have_are_told_when_the_session_goes_on() -> None:
    store = MemoryStore()
    with Session(MODELS["anthropic"], store=store) as session:
        session.add([{"role": "user", "content": [{"type": "container_upload", "file_id": "f"}]}])
        session.pack()
    with Session(MODELS["openai_chat"], store=store) as session:
        pack = session.add("Go on.").pack()
        assert b"[container_upload left out. Original: artifact://log/0]" in pack.body
        assert [event.rule for event in pack.events if isinstance(event, Repaired)] == ["part_left_out"]


def test_ids_are_as_the_host_wants_them() -> None:
    with Session("mistral-large") as session:
        session.add("Look.")
        for number in range(3):
            session.add(Message("assistant", (ToolCall(f"toolu_{number % 2}", "look", "{}"),)))
            session.add(Message("tool", (ToolResult(f"toolu_{number % 2}", (Text("ok"),)),)))
        messages = session.pack([LOOK]).request["messages"]
    asked = [one["tool_calls"][0]["id"] for one in messages if one["role"] == "assistant"]
    assert asked == [one["tool_call_id"] for one in messages if one["role"] == "tool"]
    assert len(set(asked)) == 3
    assert all(re.fullmatch("[A-Za-z0-9]{9}", one) for one in asked)


ASKED = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
OPENINGS: dict[str, list[Any]] = {
    "a text": [{"role": "assistant", "content": "Hello."}],
    "a call": [
        {"role": "assistant", "content": None, "tool_calls": [ASKED]},
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
    ],
    "a text and a call": [
        {"role": "assistant", "content": "Hello."},
        {"role": "assistant", "content": "I look.", "tool_calls": [ASKED]},
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
    ],
    "a system message and a call": [
        {"role": "system", "content": "Be brief."},
        {"role": "assistant", "content": None, "tool_calls": [ASKED]},
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
    ],
}


@pytest.mark.parametrize("ended", [True, False], ids=["user last", "assistant last"])
@pytest.mark.parametrize("opening", OPENINGS)
@pytest.mark.parametrize(("model", "wire"), [("gemini-3-pro", "gemini"), ("mistral-large", "openai_chat")])
def test_a_session_that_the_assistant_began_goes_on_where_the_user_must(
    model: str, wire: str, opening: str, ended: bool
) -> None:
    store = MemoryStore()
    with Session("gpt-4o", store=store) as session:
        session.add(OPENINGS[opening]).add([user_text("Go on.")] if ended and opening != "a text" else [])
        session.pack([LOOK])
    for changed, form in ((model, wire), ("gpt-4o", "openai_chat"), (model, wire)):
        with Session(changed, wire=form, store=store) as session:
            session.add("And now?" if changed == model else "And then?")
            pack = session.pack([LOOK])
            body, card = pack.request, session.settings.card
            assert not [*check(body, find_wire(form), card=card, strict=True), *pack.violations]
    assert {outcome.problem for outcome in verify(store, tenant="default", session="session")} == {""}
