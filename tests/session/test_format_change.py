"""A session that began in one provider format goes on in any other, in the middle of a tool loop too."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest

from lading import Session, verify
from lading.messages import Image, Message, Reasoning, Text, Tool, ToolCall, ToolResult, user_text
from lading.stores.memory import MemoryStore
from lading.wire import WIRES, check, find_wire, group_messages

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


@pytest.mark.parametrize(("home", "other"), [*permutations(WIRES, 2)])
@pytest.mark.parametrize("ids", [True, False], ids=["ids", "no ids"])
@pytest.mark.parametrize("window", [100_000, 2_500], ids=["wide", "full"])
def test_a_session_goes_on_in_another_format(home: str, other: str, ids: bool, window: int) -> None:
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
