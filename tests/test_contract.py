"""Every preset keeps every promise over any history and over recorded sessions, on every wire."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import force_setattr, replace

from lading.addresses import Address
from lading.audit.pointers import resolve
from lading.compaction import STRATEGIES, Compaction, Pressure, Strategy
from lading.compaction.user_rules import RESTATED
from lading.engine import Engine
from lading.errors import WindowExceeded
from lading.history.log import Draft
from lading.history.view import View
from lading.jsonbytes import dump
from lading.messages import Message, Tool, user_text
from lading.models.card import Conduct, Dialect
from lading.request.pack import Pack
from lading.session.session import Session
from lading.stores.memory import MemoryStore
from lading.wire import WIRES, find_wire
from tests import contract
from tests.contract import KINDS, PINNED, Preset, Step, Verdict, play, steps
from tests.engines import TOOLS, card, run, settings
from tests.examples import quick_diagonal, share_of_examples
from tests.histories import histories, tool_loop
from tests.preset_cases import PRESETS
from tests.trajectories import FILES, WINDOWS, chosen

SMALL = (300, 700, 1_500, 3_000)
WIDE = 1_000_000
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
PARTS = 4
"""A preset plays every so many of the recorded sessions at a window on a wire, and all of them at some."""
EVERY = 5
"""Of their requests those that extend the last one are judged once in so many; all others are."""
NUMBERS = count(1)
BORROWED = (Tool("read", "Read a file.", {"type": "object"}),)
every_wire = pytest.mark.parametrize("wire", sorted(WIRES))
every_preset = pytest.mark.parametrize("preset", sorted(PRESETS))
every_preset_and_wire = pytest.mark.parametrize(("preset", "wire"), quick_diagonal(sorted(PRESETS), sorted(WIRES)))


@st.composite
def sessions(draw: st.DrawFn) -> Callable[..., Verdict]:
    """A play of a wild history, often behind a tool loop, at a window that it may fill or that nothing fills, with
    an endpoint of any dialect. In it the user states rules and pins notes, and a message that happens to come
    before a request is pinned. (Recorded sessions are the long ones.)"""
    loop = tool_loop(draw(st.sampled_from([0, 0, 0, 4, 12])))
    window = draw(st.sampled_from(SMALL) if loop else st.integers(150, 1_500) | st.just(WIDE))
    made = steps([*loop, *draw(histories(max_size=10))[1:]] if loop else draw(histories()))
    place = draw(st.integers(0, len(made) - 1))
    made[place] = made[place]._replace(pin=bool(made[place].messages))
    return partial(
        play,
        made,
        window=window,
        conduct=Conduct(draw(st.sampled_from(DIALECTS)), prefill=False),
        reopened_at=draw(st.sampled_from([(), range(len(made))])),
    )


@every_preset_and_wire
@share_of_examples(0.02)
@given(played=sessions())
def test_every_preset_keeps_every_promise_over_any_history(
    wire: str, preset: str, played: Callable[..., Verdict]
) -> None:
    assert played(preset=PRESETS[preset], wire=wire).faults == ()


@pytest.fixture(scope="module")
def recorded(shared: Path) -> list[tuple[str, list[Step]]]:
    """The chosen sessions."""
    return chosen(shared / "data")


@pytest.mark.full
@every_wire
@every_preset
def test_every_preset_keeps_every_promise_over_recorded_sessions(
    wire: str, preset: str, recorded: list[tuple[str, list[Step]]]
) -> None:
    """Over a choice of them; ``python -m bench contract`` plays all."""
    verdicts: dict[tuple[str, int], Verdict] = {}
    is_twice = wire == "openai_chat"  # That a second engine says the same is no matter of the wire.
    for number, window in enumerate(WINDOWS, start=[*WIRES].index(wire)):
        for name, script in recorded[number % PARTS :: PARTS]:
            verdicts[name, window] = play(
                script, PRESETS[preset], window=window, wire=wire, twice=is_twice, every=EVERY
            )
    assert {key: verdict.faults for key, verdict in verdicts.items() if verdict.faults} == {}
    assert sum(verdict.requests + verdict.refused for verdict in verdicts.values()) > 100


@pytest.mark.full
def test_recorded_sessions_of_every_file_are_played(recorded: list[tuple[str, list[Step]]]) -> None:
    assert len({name.partition("/")[0] for name, _ in recorded}) == len(FILES)
    played = [(number + wire) % PARTS for number, wire in product(range(len(WINDOWS)), range(len(WIRES)))]
    assert set(played) == set(range(PARTS))


def test_every_row_of_the_table_is_played() -> None:
    assert STRATEGIES.keys() <= PRESETS.keys()
    assert all(PRESETS[name].strategy == name for name in STRATEGIES)


@every_preset_and_wire
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
        everything = Address("default", "session", "log", f"0-{len(session.entries) - 1}")
        assert resolve(session.store, everything) == tuple(session.entries)
    assert given == before
    assert tools == TOOLS


def as_dicts(history: list[Message], wire: str) -> list[dict[str, Any]]:
    """A history as its wire writes it, without the system prompt."""
    _, (*_, pack) = run(settings(100_000, wire=wire, strategy="append-only"), history)
    assert isinstance(pack, Pack)
    items = find_wire(wire).layout.items
    return [item for item in pack.request[items.field] if items.role(item) != "system"]


def forgetful(view: View, pressure: Pressure) -> Compaction:
    """Drops all behind the head but the newest two messages; states a rule of its own in their place."""
    end = len(view) - 2
    if end <= view.head or view.tokens < pressure.room_tokens:
        return Compaction()
    first, last = view.items[view.head].entry, view.last_entry(end)
    stated = user_text(f"{RESTATED}\nAlways pay.")
    return Compaction((Draft("dropped", first, last, (stated,), "gone", (pressure.address(f"{first}-{last}"),)),))


def failing(_view: View, _pressure: Pressure) -> Compaction:
    raise OSError("no disk")


def doubled(pack: Pack, _engine: Engine) -> Pack:
    """A request whose newest message stands in it ten times."""
    body = pack.request
    body["messages"] += body["messages"][-1:] * 9
    return replace(pack, body=dump(body))


def never_the_same(pack: Pack, _engine: Engine) -> Pack:
    """A request that is another one each time."""
    return replace(pack, body=pack.body + b" " * next(NUMBERS))


def silenced(pack: Pack, _engine: Engine) -> Pack:
    """A request without the task."""
    return replace(pack, body=pack.body.replace(b"Fix the bug", b""))


def meddling(pack: Pack, _engine: Engine) -> Pack:
    """A request whose making changes what was handed in."""
    force_setattr(BORROWED[0], "description", f"Read a file. {next(NUMBERS)}")
    return pack


def misled(pack: Pack, engine: Engine) -> Pack:
    """A request whose edits say that they took out the head, and lead nowhere."""
    edits = engine.history.edits
    edits[:] = [replace(edit, first=0, pointers=()) if edit.kind == "dropped" else edit for edit in edits]
    return pack


class Forging(MemoryStore):
    """A store that gives other manifests than those it was given."""

    def manifests(self, tenant: str, session: str, *, start: int = 0) -> Iterator[bytes]:
        """The manifests, with one figure changed in each."""
        yield from (
            data.replace(b'"call":', b'"call":1') for data in super().manifests(tenant, session, start=start)
        )


class Rash(Engine):
    """An engine that keeps what a call decided which failed."""

    def pack(self, **given: Any) -> Pack:
        """Drop a message where the request fits no window."""
        try:
            return super().pack(**given)
        except WindowExceeded:
            plan = self.history.plan(call=self.call)
            plan.apply(Draft("dropped", 2, 2, (), "rashly", ("artifact://default/session/log/2",)))
            self.history.commit(plan)
            raise


class Sabotage(NamedTuple):
    """A way to break promises."""

    breaks: set[str]
    strategy: str | Strategy = "basic"
    change: Callable[[Pack, Engine], Pack] = lambda pack, _engine: pack
    engine: type[Engine] = Engine
    store: type[MemoryStore] = MemoryStore


SABOTAGE = (
    Sabotage({"not pinned", "rule lost", "rule forged", "not reachable"}, Strategy("forgetful", forgetful)),
    Sabotage({"other error"}, Strategy("failing", failing)),
    Sabotage({"illegal", "too long"}, change=doubled),
    Sabotage({"not deterministic", "not idempotent", "prefix changed"}, change=never_the_same),
    Sabotage({"not raw"}, change=silenced),
    Sabotage({"input changed"}, change=meddling),
    Sabotage({"no pointer", "head or newest changed"}, change=misled),
    Sabotage({"edits of a failed call"}, "append-only", engine=Rash),
    Sabotage({"not verified"}, store=Forging),
    Sabotage(set()),
)


@pytest.mark.parametrize("row", SABOTAGE)
def test_what_breaks_a_promise_is_found(row: Sabotage, monkeypatch: pytest.MonkeyPatch) -> None:
    class Changed(row.engine):  # type: ignore[name-defined, misc]
        def pack(self, **given: Any) -> Pack:
            return row.change(super().pack(**given), self)

    monkeypatch.setattr(contract, "Engine", Changed)
    monkeypatch.setattr(contract, "MemoryStore", row.store)
    script = steps(tool_loop(12), tools=[BORROWED])
    verdict = play(script, Preset(row.strategy), window=700, wire="openai_chat", twice=row.store is MemoryStore)
    assert row.breaks <= set(verdict.by_kind) <= set(KINDS)
    assert bool(row.breaks) == bool(verdict.faults)


def test_each_promise_can_be_broken() -> None:
    assert set().union(*(row.breaks for row in SABOTAGE)) == set(KINDS)


def test_a_typed_error_is_no_fault_and_is_the_same_again() -> None:
    verdict = play(steps(tool_loop(30)), Preset("append-only"), window=700, wire="openai_chat")
    assert verdict.refused > 10
    assert verdict.requests > 5
    assert verdict.faults == ()
