"""Strategies that misbehave: what the engine does about them, in tests and at run time."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lading.compaction import Arrival, Compaction, Pressure, Strategy
from lading.engine import Engine
from lading.errors import IllegalRequest, PackError, StoreError, WindowExceeded
from lading.events import StrategyOverruled, ToolsReduced
from lading.history.log import Draft, Edit, EditKind
from lading.history.view import View
from lading.messages import Message, Tool, ToolCall, ToolResult, tool_result, user_text
from lading.request.pack import Pack
from lading.stores.memory import MemoryStore
from lading.testing.legality import find_violations
from lading.tokens.affine import Factors
from lading.tokens.calibration import ENOUGH, Calibration
from lading.wire import WIRES
from tests.engines import TOOLS, settings, template
from tests.histories import said, tool_loop
from tests.preset_cases import EXPLODING, SPLITTER, TIMID, drop

NOTHING: Any = None
HERE = "artifact://default/session/log/"


def test_a_strategy_that_breaks_a_rule_raises_in_tests() -> None:
    with pytest.raises(IllegalRequest, match="made an illegal request"):
        _until_edited(Engine(settings(2_000, strategy="tests.preset_cases:SPLITTER")))


@pytest.mark.parametrize("strategy", [SPLITTER, TIMID, EXPLODING])
def test_at_run_time_a_bad_strategy_is_overruled_by_a_legal_cut(strategy: Strategy) -> None:
    engine = Engine(settings(2_000, strategy=strategy, strict=False))
    pack = _until_edited(engine)
    assert (pack.violations, pack.tokens <= 2_000) == ((), True)
    assert any(isinstance(event, StrategyOverruled) for event in pack.events)
    assert [edit.kind for edit in engine.history.edits] == ["dropped"]


def test_a_strategy_that_shows_more_messages_than_before_gets_the_room_that_these_leave() -> None:
    """A message costs tokens beside those counted, and the first room is for five messages."""

    def fill(view: View, pressure: Pressure) -> Compaction:
        if len(view) < 5:
            return Compaction()
        each = user_text("x" * 40)
        left = pressure.room_tokens - view.tokens_before(view.head) - view.items[-1].tokens
        shown = (each,) * (left // pressure.count(each))
        return Compaction((Draft("reshaped", 1, 3, shown, "filled", (HERE + "1-3",)),))

    engine = Engine(settings(2_000, strategy=Strategy("fill", fill)))
    engine.start_from(Calibration(factors=Factors(per_message=10.0), seen=ENOUGH))
    words = "word " * 500
    engine.append([user_text("Go."), said(words), user_text(words), said(words), user_text("On.")])
    pack = engine.pack()
    assert pack.tokens + 10 * len(engine.history.view) <= 2_000
    assert [edit.kind for edit in engine.history.edits] == ["reshaped"]
    assert not any(isinstance(event, StrategyOverruled) for event in pack.events)


@st.composite
def drafts(draw: st.DrawFn, last: int) -> Draft:
    """An edit that shows any messages in place of any entries, with calls and results that others may have."""
    first = draw(st.integers(1, last))
    end = min(first + draw(st.integers(0, 2)), last)
    ids = st.sampled_from([f"call_{number}" for number in range(4)] + ["c0", "elsewhere"])
    shown = st.one_of(
        st.builds(lambda call_id: Message("assistant", (ToolCall(call_id, "read", "{}"),)), ids),
        st.builds(lambda one, two: Message("tool", (ToolResult(one), ToolResult(two))), ids, ids),
        st.builds(lambda call_id: tool_result(call_id, "short"), ids),
        st.sampled_from([user_text("short"), said("short"), Message("tool")]),
        st.just(tool_loop(4)[first]),
    )
    messages = tuple(draw(st.lists(shown, max_size=3)))
    kinds: tuple[EditKind, ...] = ("cleared", "clipped", "digested", "summarised", "dropped")
    kind = draw(st.sampled_from(kinds))
    span = str(first) if first == end else f"{first}-{end}"
    return Draft(kind, first, end, messages, "mine", (HERE + span,))


@pytest.mark.parametrize("wire", WIRES)
@given(drawn=st.lists(drafts(8), min_size=1, max_size=2))
def test_no_edit_of_a_strategy_breaks_a_rule(wire: str, drawn: list[Draft]) -> None:
    """Not even one that is not verified yet: another reading of the format's rules, that of the strict provider,
    finds nothing in the request."""
    once = Strategy("once", lambda _view, _pressure: Compaction(tuple(drawn)))
    chosen = settings(100_000, strategy=once, strict=False, wire=wire)
    engine = Engine(chosen)
    engine.append(tool_loop(4))
    pack = engine.pack(tools=TOOLS, template=template(wire))
    assert find_violations(wire, json.loads(pack.body), card=chosen.card, issued=None) == []
    assert pack.violations == ()
    is_overruled = any(isinstance(event, StrategyOverruled) for event in pack.events)
    assert is_overruled or len(engine.history.edits) == len(drawn)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("other", ["call_0", "elsewhere"])
def test_an_edit_with_a_second_result_is_overruled(wire: str, other: str) -> None:
    results = (tool_result("call_0", "a"), tool_result(other, "b"))
    draft = Draft("cleared", 3, 3, results, "mine", (HERE + "3",))
    engine = Engine(settings(100_000, strategy=Strategy("twice", _once(draft)), strict=False, wire=wire))
    engine.append([*tool_loop(1), said("Done."), user_text("Go on.")])
    pack = engine.pack(tools=TOOLS, template=template(wire))
    assert [event.why for event in pack.events if isinstance(event, StrategyOverruled)] != []
    assert engine.history.edits == []


def _once(draft: Draft) -> Callable[[View, Pressure], Compaction]:
    return lambda _view, _pressure: Compaction((draft,))


def test_where_nothing_presses_the_edits_of_a_bad_strategy_leave_no_trace_in_the_request() -> None:
    eager = Strategy(
        "eager", lambda view, pressure: drop(view, replace(pressure, room_tokens=0), upto=len(view) - 1)
    )
    engine, plain = (Engine(settings(100_000, strategy=chosen, strict=False)) for chosen in (eager, "append-only"))
    for one in (engine, plain):
        one.append(tool_loop(3))
    pack = engine.pack(tools=TOOLS, template=template("openai_chat"))
    assert pack.body == plain.pack(tools=TOOLS, template=template("openai_chat")).body
    assert any(isinstance(event, StrategyOverruled) for event in pack.events)
    assert engine.history.edits == []


def test_a_strategy_that_failed_in_an_attempt_that_was_given_up_is_not_overruled() -> None:
    """It fails while the tools are whole; with names alone the request fits without it."""
    rooms: list[int] = []

    def fail_first(_view: View, pressure: Pressure) -> Compaction:
        rooms.append(pressure.room_tokens)
        if rooms[0] == pressure.room_tokens:
            raise RuntimeError("no")
        return Compaction()

    wordy = Tool("read", "word " * 1_500, {"type": "object", "properties": {}})
    engine = Engine(settings(2_000, strategy=Strategy("first", fail_first), strict=False))
    engine.append([user_text("Go."), said("Yes?"), user_text("word " * 1_000)])
    pack = engine.pack(tools=(wordy,), template=template("openai_chat"))
    assert len(rooms) > 1
    assert [type(event) for event in pack.events] == [ToolsReduced]


@pytest.mark.parametrize("change", ["pop", "clear", "append", "sort", "__setitem__", "__delitem__", "__iadd__"])
def test_the_edits_that_a_strategy_sees_cannot_be_changed(change: str) -> None:
    seen: list[Sequence[Edit]] = []

    def look(view: View, pressure: Pressure) -> Compaction:
        seen.append(pressure.past.edits)
        assert not hasattr(pressure.past.edits, change)
        return Compaction() if pressure.past.edits else drop(view, replace(pressure, room_tokens=0), upto=4)

    engine = Engine(settings(100_000, strategy=Strategy("look", look)))
    engine.append(tool_loop(3))
    engine.pack(tools=TOOLS, template=template("openai_chat"))
    engine.append([said("Done."), user_text("Go on.")])
    engine.pack(tools=TOOLS, template=template("openai_chat"))
    (edit,) = engine.history.edits
    assert [*seen[-1]] == [*reversed(seen[-1])] == seen[-1][:] == [edit]
    assert (seen[-1][0], len(seen[-1]), isinstance(seen[-1], list)) == (edit, 1, False)


class Wordless(Exception):
    """An error that cannot even say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_error_without_words_is_an_event_too() -> None:
    def fail(_view: View, _pressure: Pressure) -> Compaction:
        raise Wordless

    engine = Engine(settings(2_000, strategy=Strategy("wordless", fail), strict=False))
    engine.append([user_text("Hello.")])
    assert [event.why for event in engine.pack().events if isinstance(event, StrategyOverruled)] == [
        "it failed: Wordless"
    ]


class FullOnce(MemoryStore):
    """A store that refuses the first manifest."""

    refused = False

    def append(self, *args: Any, **kwargs: Any) -> None:
        """Refuse it."""
        if kwargs.get("manifest") and not self.refused:
            self.refused = True
            raise StoreError("The disk is full.")
        super().append(*args, **kwargs)


def test_bytes_of_a_request_that_could_not_be_stored_are_not_in_the_next() -> None:
    """A strategy cuts once, for the request that is refused; the next shows everything."""
    asked: list[int] = []

    def cut_once(view: View, pressure: Pressure) -> Compaction:
        asked.append(len(view))
        return drop(view, replace(pressure, room_tokens=0), upto=view.head + 2) if len(asked) == 1 else Compaction()

    engine = Engine(settings(100_000, strategy=Strategy("once", cut_once)), FullOnce("once"))
    plain = Engine(settings(100_000, strategy="append-only"))
    for one in (engine, plain):
        one.append(tool_loop(3))
    with pytest.raises(StoreError, match="full"):
        engine.pack(tools=TOOLS, template=template("openai_chat"))
    pack = engine.pack(tools=TOOLS, template=template("openai_chat"))
    assert pack.body == plain.pack(tools=TOOLS, template=template("openai_chat")).body
    assert engine.history.edits == []


@pytest.mark.parametrize(
    ("draft", "fault"),
    [
        (Draft("dropped", 0, 1, (), "", ("p",)), "touches the pinned opening messages"),
        (Draft("dropped", 3, 99, (), "", ("p",)), "names entries that the log does not have"),
        (Draft("dropped", 5, 3, (), "", ("p",)), "names entries that the log does not have"),
        (Draft("dropped", 2, 5, (), "", ("p",)), "drops the newest message"),
        (Draft("cleared", 3, 3, (), "", ()), "leaves no pointer"),
        (Draft("repaired", 3, 3, (), "", (HERE + "3",)), "calls itself repaired, which only repairs"),
        (Draft("cleared", 3, 3, (), "", ("nowhere",)), "a pointer that does not lead"),
        (Draft("cleared", 3, 3, (), "", (HERE + "2",)), "a pointer that does not lead"),
        (Draft("cleared", 3, 3, (), "", (HERE + "3-99",)), "a pointer that does not lead"),
        (Draft("cleared", 3, 3, (), "", ("artifact://default/other/log/3",)), "a pointer that does not lead"),
    ],
)
def test_an_unsound_edit_is_never_applied(draft: Draft, fault: str) -> None:
    once = Strategy("once", lambda _view, _pressure: Compaction((draft,)))
    for strict in (True, False):
        engine = Engine(settings(2_000, strategy=once, strict=strict))
        engine.append(tool_loop(2))
        if strict:
            with pytest.raises(PackError, match=fault):
                engine.pack()
        else:
            assert any(
                isinstance(event, StrategyOverruled) and fault in event.why for event in engine.pack().events
            )
        assert engine.history.edits == []


@pytest.mark.parametrize(
    ("rubbish", "fault"),
    [
        (NOTHING, "a NoneType, not a Compaction"),
        (Compaction(rent=math.nan), "is nan, not a finite number"),
        (Compaction((NOTHING,)), "it gave a NoneType, not a Draft"),
        (Compaction(rejected=(NOTHING,)), "rejected must be texts"),
        (Compaction(stuck=cast(Any, 5)), "stuck and rejected must be texts"),
        (Compaction((Draft("cleared", 3, 3, (), NOTHING, (HERE + "3",)),)), "Expected `str`"),
        (Compaction((Draft("cleared", 3, 3, (NOTHING,), "", (HERE + "3",)),)), "Expected `object`"),
    ],
)
def test_what_is_no_compaction_decides_nothing(rubbish: Compaction, fault: str) -> None:
    decided = Strategy("rubbish", lambda _view, _pressure: rubbish)
    engine = Engine(settings(2_000, strategy=decided, strict=False))
    engine.append(tool_loop(2))
    (event,) = [event for event in engine.pack().events if isinstance(event, StrategyOverruled)]
    assert fault in event.why
    assert engine.history.edits == []


def test_carrying_cost_that_no_manifest_can_hold_is_overruled() -> None:
    engine = Engine(
        settings(2_000, strategy=Strategy("dear", lambda _view, _pressure: Compaction(rent=1e308)), strict=False)
    )
    engine.append(tool_loop(2))
    engine.pack()
    for _ in range(3):
        engine.append([said("Yes."), user_text("Go on.")])
        assert any(isinstance(event, StrategyOverruled) for event in engine.pack().events)


def test_an_admission_may_touch_the_entry_that_arrived_only() -> None:
    def admit(arrival: Arrival, _pressure: Pressure) -> Draft | None:
        if arrival.item.entry != 5:
            return None
        return Draft("dropped", 2, 5, (), "all of it", (HERE + "2-5",))

    engine = Engine(settings(strategy=replace(TIMID, admit=admit), strict=False))
    engine.append(tool_loop(3))
    (event,) = [event for event in engine.pack().events if isinstance(event, StrategyOverruled)]
    assert "entry 5 arrived, the draft touches 2 to 5" in event.why
    assert engine.history.edits == []


def test_an_admission_may_shorten_the_view_while_others_wait() -> None:
    seen: list[int] = []

    def admit(arrival: Arrival, _pressure: Pressure) -> Draft | None:
        seen.append(arrival.item.entry)
        if arrival.item.entry != 2:
            return None
        return Draft("dropped", 2, 2, (), "not needed", (HERE + "2",))

    engine = Engine(settings(strategy=replace(TIMID, admit=admit)))
    engine.append([user_text("hi"), said("yes"), user_text("aside"), said("well"), user_text("go on")])
    engine.pack()
    assert seen == [0, 1, 2, 3, 4]
    assert [edit.kind for edit in engine.history.edits] == ["dropped"]


def test_what_happened_at_a_call_that_failed_is_not_told_at_the_next() -> None:
    engine = Engine(settings(2_000, strategy=EXPLODING, strict=False))
    engine.append([user_text("hi")])
    with pytest.raises(WindowExceeded):
        engine.pack(tools=[Tool("huge", template={"type": "huge", "text": "words " * 8_000})])
    assert [type(event) for event in engine.pack().events] == [StrategyOverruled]


def test_a_strategy_that_raises_is_heard_in_tests() -> None:
    engine = Engine(settings(2_000, strategy=EXPLODING))
    engine.append([user_text("hi")])
    with pytest.raises(RuntimeError, match="a bug in a user's strategy"):
        engine.pack()


def _until_edited(engine: Engine) -> Pack:
    for message in tool_loop(60):
        if message.role == "assistant":
            pack = engine.pack(tools=TOOLS, template=template("openai_chat"))
            if engine.history.edits:
                return pack
        engine.append([message])
    raise AssertionError("the window was never full")


@given(st.integers(1, 60), st.integers(0, 8), st.booleans())
def test_no_strategy_is_asked_where_the_opening_messages_do_not_fit(window: int, rounds: int, offers: bool) -> None:
    asked: list[Arrival] = []
    watching = Strategy("watching", admit=lambda arrival, _pressure: asked.append(arrival))
    tools = TOOLS if offers else ()

    def requested(window: int, rounds: int) -> Pack | WindowExceeded:
        engine = Engine(settings(window, strategy=watching))
        engine.append(tool_loop(rounds))
        asked.clear()
        try:
            return engine.pack(tools=tools)
        except WindowExceeded as error:
            return error

    if isinstance(requested(window, 0), Pack):
        return
    refused = requested(window, rounds)
    assert isinstance(refused, WindowExceeded)
    assert asked == []
    # The window that the error asks for is the least in which the conversation can begin.
    least = sum(refused.counts.values()) - refused.counts["slack"]
    assert f"needs at least {least} tokens and has room for {window} " in str(refused)
    assert isinstance(requested(least, 0), Pack)
    assert isinstance(requested(least - 1, 0), WindowExceeded)
