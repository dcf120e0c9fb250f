"""Every preset keeps every promise over any history, at four windows, on both wires."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lading.addresses import Address
from lading.audit.pointers import resolve
from lading.compaction import STRATEGIES, Compaction, Pressure, Strategy
from lading.engine import Engine
from lading.errors import WindowExceeded
from lading.history.log import Draft
from lading.history.view import View
from lading.jsonbytes import dump
from lading.messages import Message, Tool
from lading.request.pack import Pack
from lading.session.session import Session
from lading.stores.memory import MemoryStore
from lading.wire import WIRES
from tests import contract
from tests.contract import KINDS, PINNED, Preset, Step, play, steps
from tests.engines import TOOLS, card, run, settings
from tests.examples import share_of_examples
from tests.histories import histories, tool_loop
from tests.preset_cases import PRESETS

SMALL = (300, 700, 1_500, 3_000)
Change: TypeAlias = Callable[[Pack], Pack]
NUMBERS = count(1)
LENT: dict[str, Any] = {"type": "object"}
BORROWED = (Tool("read", "Read a file.", LENT),)
every_wire = pytest.mark.parametrize("wire", sorted(WIRES))
every_preset = pytest.mark.parametrize("preset", sorted(PRESETS))


@st.composite
def scripts(draw: st.DrawFn) -> tuple[list[Step], int]:
    """A wild history, often behind a tool loop, and a window for it. In it the user states rules and pins notes,
    and a message that happens to come before a request is pinned. (Recorded sessions are the long ones.)"""
    loop = tool_loop(draw(st.sampled_from([0, 0, 0, 4, 12])))
    window = draw(st.sampled_from(SMALL) if loop else st.integers(150, 1_500))
    made = steps([*loop, *draw(histories(max_size=10))[1:]] if loop else draw(histories()))
    place = draw(st.integers(0, len(made) - 1))
    made[place] = made[place]._replace(pin=bool(made[place].messages))
    return made, window


@every_wire
@every_preset
@share_of_examples(0.07)
@given(drawn=scripts())
def test_every_preset_keeps_every_promise_over_any_history(
    wire: str, preset: str, drawn: tuple[list[Step], int]
) -> None:
    script, window = drawn
    assert play(script, PRESETS[preset], window=window, wire=wire).faults == ()


def test_every_row_of_the_table_is_played() -> None:
    assert STRATEGIES.keys() <= PRESETS.keys()
    assert all(PRESETS[name].strategy == name for name in STRATEGIES)


@every_wire
@every_preset
def test_what_is_handed_in_as_dicts_is_untouched_and_pins_stay(wire: str, preset: str) -> None:
    said = as_dicts(tool_loop(16), wire)
    given = [said[:1], said[1:3], said[3:9], said[9:17], said[17:]]
    before, tools = copy.deepcopy(given), copy.deepcopy(TOOLS)
    strategy = PRESETS[preset].strategy
    with Session(card(), window=1_500, output_reserve=0, wire=wire, strategy=strategy) as session:
        for number, messages in enumerate(given):
            session.add(messages)
            session.add({"role": "user", "content": PINNED.format(number)}, pin=True)
            try:
                body = session.pack(tools=TOOLS).body.decode()
            except WindowExceeded:
                assert preset == "append-only"
                continue
            assert all(PINNED.format(earlier) in body for earlier in range(number + 1))
        for entry in session.entries:
            address = Address("default", "session", "log", str(entry.index))
            assert resolve(session.store, address) == (entry,)
    assert given == before
    assert tools == TOOLS


def as_dicts(history: list[Message], wire: str) -> list[dict[str, Any]]:
    """A history as its wire writes it, without the system prompt."""
    _, (*_, pack) = run(settings(100_000, wire=wire, strategy="append-only"), history)
    assert isinstance(pack, Pack)
    return [message for message in pack.request["messages"] if message["role"] != "system"]


def forgetful(view: View, pressure: Pressure) -> Compaction:
    """Drops all behind the head but the newest two messages; says nothing of it."""
    end = len(view) - 2
    if end <= view.head or view.tokens < pressure.room_tokens:
        return Compaction()
    first, last = view.items[view.head].entry, view.last_entry(end)
    return Compaction((Draft("dropped", first, last, (), "gone", (pressure.address(f"{first}-{last}"),)),))


def failing(_view: View, _pressure: Pressure) -> Compaction:
    raise OSError("no disk")


def doubled(pack: Pack) -> Pack:
    """A request whose newest message stands in it ten times."""
    body = pack.request
    body["messages"] += body["messages"][-1:] * 9
    return replace(pack, body=dump(body))


def never_the_same(pack: Pack) -> Pack:
    """A request that is another one each time."""
    return replace(pack, body=pack.body + b" " * next(NUMBERS))


def meddling(pack: Pack) -> Pack:
    """A request whose making changes what was handed in."""
    LENT["title"] = str(next(NUMBERS))
    return pack


class Forging(MemoryStore):
    """A store that gives other manifests than those it was given."""

    def manifests(self, tenant: str, session: str, *, start: int = 0) -> Iterator[bytes]:
        """The manifests, with one figure changed in each."""
        yield from (
            data.replace(b'"call":', b'"call":1') for data in super().manifests(tenant, session, start=start)
        )


@pytest.mark.parametrize(
    ("strategy", "change", "kinds"),
    [
        (Strategy("forgetful", forgetful), None, {"not pinned", "rule lost", "not reachable"}),
        (Strategy("failing", failing), None, {"other error"}),
        ("basic", doubled, {"illegal", "too long"}),
        ("basic", never_the_same, {"not deterministic", "not idempotent"}),
        ("basic", meddling, {"input changed"}),
        ("basic", None, set()),
    ],
)
def test_what_breaks_a_promise_is_found(
    strategy: str | Strategy,
    change: Callable[[Pack], Pack] | None,
    kinds: set[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Changed(Engine):
        def pack(self, **given: Any) -> Pack:
            made = super().pack(**given)
            return change(made) if change else made

    monkeypatch.setattr(contract, "Engine", Changed)
    verdict = play(steps(tool_loop(12), tools=[BORROWED]), Preset(strategy), window=700, wire="openai_chat")
    assert kinds <= set(verdict.by_kind)
    assert bool(kinds) == bool(verdict.faults)
    assert set(verdict.by_kind) <= set(KINDS)


def test_a_manifest_that_was_changed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "MemoryStore", Forging)
    verdict = play(steps(tool_loop(4)), Preset("basic"), window=700, wire="openai_chat", twice=False)
    assert set(verdict.by_kind) == {"not verified"}


def test_a_typed_error_is_no_fault_and_is_the_same_again() -> None:
    verdict = play(steps(tool_loop(30)), Preset("append-only"), window=700, wire="openai_chat")
    assert verdict.refused > 10
    assert verdict.requests > 5
    assert verdict.faults == ()
