"""What messages and views hold cannot be changed by those who read them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lading import jsonbytes
from lading.audit.replay import verify
from lading.compaction import Arrival, Compaction, Pressure, Strategy
from lading.engine import Engine
from lading.events import StrategyOverruled
from lading.history.view import View
from lading.messages import Message, Opaque, user_text
from lading.stores.memory import MemoryStore
from lading.wire import WIRES, find_wire
from tests.engines import TOOLS, settings, template
from tests.histories import said, tool_loop
from tests.preset_cases import drop

_CALLS: tuple[tuple[str, tuple[object, ...]], ...] = (
    *((name, ()) for name in ("clear", "pop", "popitem", "reverse", "sort")),
    *((name, ("x",)) for name in ("append", "add", "discard", "remove", "__delitem__")),
    *((name, (0,)) for name in ("pop", "__delitem__")),
    *((name, ({"x": 1},)) for name in ("update", "__ior__")),
    *((name, (["x"],)) for name in ("extend", "__iadd__")),
    *((name, ("role", "x")) for name in ("__setitem__", "setdefault")),
    *((name, (0, "x")) for name in ("__setitem__", "insert")),
    ("__imul__", (2,)),
)
"""Ways in which a value may be changed, as calls of its methods."""


def _reach(*roots: object) -> list[object]:
    """All that public names, keys and items lead to, but functions and what a strategy may write."""
    found: dict[int, object] = {}
    waiting = [*roots]
    while waiting:
        value = waiting.pop()
        if id(value) in found or callable(value) or isinstance(value, str | int | float | None):
            continue
        found[id(value)] = value
        names = (name for name in dir(value) if not name.startswith("_") and name not in ("readings", "derived"))
        waiting += [getattr(value, name) for name in names]
        waiting += value.values() if isinstance(value, Mapping) else value if isinstance(value, Iterable) else ()
    return [*found.values()]


def _change_all(*roots: object) -> None:
    """Try every way to change anything that is reached."""
    for value in _reach(*roots):
        for name in [name for name in dir(value) if not name.startswith("_")]:
            with suppress(AttributeError, TypeError):
                setattr(value, name, None)
        for name, arguments in _CALLS:
            with suppress(AttributeError, TypeError, IndexError, KeyError, ValueError):
                getattr(value, name)(*arguments)


def _change_all_on_arrival(arrival: Arrival, pressure: Pressure) -> None:
    _change_all(arrival, pressure)


def _drop_once(view: View, pressure: Pressure) -> Compaction:
    is_due = len(view) > 8 and not pressure.past.edits
    return drop(view, replace(pressure, room_tokens=0), upto=view.head + 2) if is_due else Compaction()


def _change_all_in_compact(view: View, pressure: Pressure) -> Compaction:
    _change_all(view, pressure)
    return _drop_once(view, pressure)


_HEEDFUL = Strategy("heedful", _drop_once)


def _with_fields(wire: str) -> list[Message]:
    """Messages of a provider with fields and parts that this version does not know."""
    odd = {"type": "odd", "deep": [{"list": [1, 2]}]}
    if wire == "gemini":
        contents = [
            {"role": "user", "parts": [{"text": "hi", "vendor": {"a": [1]}}, odd]},
            {"role": "model", "parts": [{"text": "yo"}], "vendor_id": {"z": 1}},
            {"role": "user", "parts": [{"text": "go"}], "vendor": [{"b": {}}]},
        ]
        return [*find_wire(wire).read_items(contents)]
    kind = "input_text" if wire == "openai_responses" else "text"
    body = {
        "model": "m",
        "max_tokens": 9,
        find_wire(wire).layout.items.field: [
            {"role": "user", "content": [{"type": kind, "text": "hi", "vendor": {"a": [1]}}, odd]},
            {"role": "assistant", "content": "yo", "vendor_id": {"z": 1}},
            {"role": "user", "content": "go", "vendor": [{"b": {}}]},
        ],
    }
    return [*find_wire(wire).decode(body).messages]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "strategy",
    [replace(_HEEDFUL, admit=_change_all_on_arrival), replace(_HEEDFUL, compact=_change_all_in_compact)],
)
def test_what_a_strategy_reads_it_cannot_change(strategy: Strategy, wire: str) -> None:
    """Not even where it hides its attempts: the requests are those of one that changes nothing."""
    store = MemoryStore("changed")
    engine = Engine(settings(100_000, strategy=replace(strategy, name="heedful"), strict=False, wire=wire), store)
    plain = Engine(settings(100_000, strategy=_HEEDFUL, wire=wire))
    for number in range(4):
        new = _with_fields(wire) if not number else [said(f"Yes, {number}."), user_text(f"And {number}?")]
        new += tool_loop(2)[2:] if number == 1 else []
        packs = []
        for one in (engine, plain):
            one.append(new)
            packs.append(one.pack(tools=TOOLS, template=template(wire)))
        assert packs[0].body == packs[1].body
        assert engine.history.edits == plain.history.edits
    assert [edit.kind for edit in engine.history.edits] == ["dropped"]
    verdicts = [*verify(store, tenant="default", session="session")]
    assert [verdict.problem for verdict in verdicts] == [""] * 4


@pytest.mark.parametrize(
    "change",
    [
        lambda view: view.items.clear(),
        lambda view: view.append(user_text("more"), entry=len(view), tokens=3),
        lambda view: view.items[0].message.template.update(x=1),
        lambda view: view.items[0].message.parts[1].value["deep"].append(1),
    ],
)
def test_a_strategy_that_tries_to_change_what_it_reads_is_overruled(change: Callable[[Any], object]) -> None:
    def compact(view: View, _pressure: Pressure) -> Compaction:
        change(view)
        return Compaction()

    engine = Engine(settings(100_000, strategy=Strategy("changes", compact), strict=False))
    engine.append(_with_fields("openai_chat"))
    assert [type(event) for event in engine.pack().events] == [StrategyOverruled]


@given(
    value=st.recursive(
        st.none() | st.integers() | st.text(max_size=2),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    )
)
def test_what_a_message_holds_is_equal_to_what_it_was_made_of_and_shares_nothing_with_it(value: Any) -> None:
    given_value = deepcopy(value)
    message = Message("user", (Opaque(given_value),), template={"x": given_value})
    _change_all(message)
    assert message == Message("user", (Opaque(value),), template={"x": value})
    assert json.loads(jsonbytes.dump_value(message)) == {
        "role": "user",
        "parts": [{"kind": "opaque", "value": value}],
        "template": {"x": value},
    }
    held = deepcopy(message.template)
    for each in [given_value, held]:
        _change_all(each)
    assert message == Message("user", (Opaque(value),), template={"x": value})
