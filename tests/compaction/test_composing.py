"""Several strategies as one: in order, each by its own trigger, with one epoch at a call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise, product
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lading import AsyncSession, Session, SessionOptions, resolve, verify
from lading.compaction import STRATEGIES, Compaction, Past, Pressure, Strategy
from lading.compaction.composing import compose
from lading.compaction.priced import configured as priced
from lading.errors import InputError, UnknownName
from lading.events import StrategyOverruled, SummaryNotAsked
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import Message, Text, ToolCall, ToolResult, user_text
from lading.models.profiles import CONTEXT_PROFILES
from lading.presets.open_multi_agent import AgentConfig, Custom, MinChars, strategy_for
from lading.stores.memory import MemoryStore
from lading.wire import WIRES
from tests.contract import Preset, Verdict, play, steps
from tests.engines import TOOLS
from tests.examples import quick_first, share_of_examples
from tests.histories import said, tool_loop
from tests.preset_cases import PRESETS, WELL
from tests.test_contract import sessions
from tests.views import admitted, decide, pressure

SECRET = "sk-4711"


def redacting(messages: Sequence[Message]) -> Sequence[Message]:
    """Shows no secret; a message without one stays the same object."""

    def hide(part: Any) -> Any:
        if isinstance(part, Text):
            return Text(part.text.replace(SECRET, "[redacted]"))
        if isinstance(part, ToolResult):
            return ToolResult(part.call_id, tuple(map(hide, part.parts)))
        return part

    return [
        message.with_parts(tuple(map(hide, message.parts))) if SECRET in str(message) else message
        for message in messages
    ]


async def redacting_slowly(messages: Sequence[Message]) -> Sequence[Message]:
    """The same, of a service."""
    await asyncio.sleep(0)
    return redacting(messages)


def work(number: int) -> list[Message]:
    """A round whose words and result hold the secret."""
    call = ToolCall(f"c{number}", "read", f'{{"path": "src/mod_{number}.py"}}')
    found = f"mod_{number} failed: {SECRET} is not valid\n" + "line of code\n" * 40
    return [
        Message("assistant", (Text(f"The key {SECRET} is in module {number}."), call)),
        Message("tool", (ToolResult(call.id, (Text(found),)),)),
    ]


def compacting(name: str, seen: list[tuple[str, int, int]], *, at: int | None = None) -> Strategy:
    """A strategy that notes what it sees; ``at``: and drops everything before that entry."""

    def compact(view: View, now: Pressure) -> Compaction:
        seen.append((name, len(view), now.sent_items))
        first = view.items[view.head].entry
        if at is None or view.span(first, first) == (0, 0) or first >= at:
            return Compaction()
        pointer = now.address(f"{first}-{at - 1}")
        return Compaction((Draft("dropped", first, at - 1, (user_text(f"by {name}"),), name, (pointer,)),))

    return Strategy(name, compact)


def test_parts_run_in_order_and_see_what_those_before_them_left() -> None:
    seen: list[tuple[str, int, int]] = []
    history = admitted(tool_loop(8))
    parts = [compacting("first", seen), compacting("second", seen, at=6), compacting("third", seen)]
    edits = decide(compose(parts), history, pressure=replace(pressure(10**6), sent_items=len(history.view)))
    # Two opening messages; behind the edit at position 2 nothing counts as cached.
    assert seen == [("first", 18, 18), ("second", 18, 18), ("third", 15, 2)]
    assert [(edit.reason, edit.first, edit.last) for edit in edits] == [("second", 2, 5)]


def test_the_edits_of_all_parts_at_a_call_are_one_epoch() -> None:
    """One change of what the provider has cached, priced from the earliest of them on."""
    alone, both = (
        compose(["open_multi_agent/compress_tool_results"]),
        compose(["open_multi_agent/compress_tool_results", compacting("late", [], at=12)]),
    )
    prefixes = []
    for strategy in (alone, both):
        with Session("gpt-4o", strategy=strategy) as session:
            packs = []
            for message in tool_loop(12, result_words=200):
                session.add([message])
                packs += [session.pack(TOOLS)] if message.role == "tool" else []
            edits = session._engine.history.edits
        prefixes.append([pack.manifest.prefix for pack in packs])
        calls = [edit.call for edit in edits]
    changed = [sum(bool(prefix.first_changed) for prefix in of) for of in prefixes]
    assert len(calls) > len(set(calls))  # several edits at a call,
    assert changed[1] <= len(set(calls))  # one change of the prefix
    assert all(prefix.price > 0 for of in prefixes for prefix in of if prefix.first_changed)


def test_of_two_edits_over_the_same_entries_the_later_stays() -> None:
    history = admitted(tool_loop(8))
    both = compose([compacting("a", [], at=4), compacting("b", [], at=8)])
    edits = decide(both, history, pressure=pressure(10**6))
    assert [(edit.reason, edit.first, edit.last) for edit in edits] == [("b", 2, 7)]


def shortening(view: View, now: Pressure) -> Compaction:
    """Of a caller who knows nothing of edits of several entries: each long result becomes three words."""
    drafts: list[Draft] = []
    for item in view.items:
        if item.message.results and item.tokens > 500:
            short = ToolResult(item.message.results[0].call_id, (Text("shortened it is"),))
            shown = view.with_message(item, item.message.with_parts((short,)))
            drafts.append(Draft("cleared", item.entry, item.entry, shown, "long", (now.address(str(item.entry)),)))
    return Compaction(tuple(drafts))


PARTS = ["agentrail/tool_results", "open_multi_agent/compress_tool_results", "priced", Strategy("own", shortening)]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: getattr(part, "name", part))
def test_what_a_later_part_makes_of_the_text_of_an_earlier_one_takes_its_place(part: Any) -> None:
    """The edit of a transform is of the whole block, the later one of the result in it: both were shown once, and
    as the provider then refuses the request, what the transform had hidden was sent."""
    found = f"{SECRET} is used.\n" * 1_000
    history = [user_text("Go."), *tool_loop(1)[2:], Message("assistant", (ToolCall("c", "read", "{}"),))]
    history += [
        Message("tool", (ToolResult("c", (Text(found),)),)),
        *tool_loop(4, result_words=40)[2:],
        said("Done."),
    ]
    store = MemoryStore()
    with Session("gpt-4o", store=store, strategy=compose([redacting, part]), window=9_000) as session:
        session.add([*history, user_text("And now?")])
        pack = session.pack(TOOLS)
    assert [event for event in pack.events if isinstance(event, StrategyOverruled)] == []
    assert SECRET not in pack.body.decode()
    edits = {(edit.first, edit.last): edit for edit in session._engine.history.edits}
    assert len(edits) == len(session._engine.history.edits)
    hidden = [entry.message for edit in edits.values() for uri in edit.pointers for entry in resolve(store, uri)]
    assert found in [result.text for message in hidden for result in message.results]
    assert [outcome.problem for outcome in verify(store, tenant="default", session="session")] == [""]


def test_the_last_part_such_as_priced_makes_room_and_those_before_it_only_where_it_cannot() -> None:
    history = admitted(tool_loop(40, result_words=60))
    full = pressure(1_000)
    assert history.view.tokens > 1_000
    marking = "open_multi_agent/compress_tool_results"
    for composed in ([marking, "priced"], ["priced", marking]):
        edits = decide(compose(composed), history, pressure=full)
        assert [edit.reason for edit in edits if edit.kind == "summarised"] == ["the window is full"]


def test_what_the_parts_before_it_freed_is_no_longer_reported() -> None:
    seen: list[int | None] = []

    def look(_view: View, now: Pressure) -> Compaction:
        seen.append(now.past.reported_tokens)
        return Compaction()

    history = admitted(tool_loop(8, result_words=60))
    sent = replace(pressure(10**6), sent_items=len(history.view), past=Past(reported_tokens=5_000))
    parts = [Strategy("a", look), compacting("b", [], at=8), Strategy("c", look)]
    (edit,) = decide(compose(parts), history, pressure=sent)
    assert seen == [5_000, 5_000 - edit.tokens_before + edit.tokens_after]


def test_each_part_keeps_its_own_account() -> None:
    def carrying(name: str, *, rent: float, price: float) -> Strategy:
        def compact(view: View, now: Pressure) -> Compaction:
            if now.account + rent < price:
                return Compaction(rent=rent)
            item = view.items[-1]
            pointer = now.address(f"{item.entry}")
            return Compaction((Draft("clipped", item.entry, item.entry, (item.message,), name, (pointer,)),))

        return Strategy(name, compact)

    both = compose([carrying("often", rent=2.0, price=4.0), carrying("seldom", rent=1.0, price=4.0)])
    store = MemoryStore()
    reasons: list[list[str]] = []
    for number in range(8):
        with Session("gpt-4o", name="s", store=store, strategy=both) as session:
            session.add("Go." if not number else work(number))
            reasons.append([decision.reason for decision in session.pack(TOOLS).manifest.decisions])
    # Where both are due, the later one's edit of the same message stays.
    assert reasons == [[], ["often"], [], ["seldom"], [], ["often"], [], ["seldom"]]
    assert all(outcome.problem == "" for outcome in verify(store, tenant="default", session="s"))


def test_a_part_that_fails_is_overruled_by_its_name_and_the_others_decide() -> None:
    def fail(_view: View, _pressure: Pressure) -> Compaction:
        raise RuntimeError("no idea")

    with Session("gpt-4o", strategy=compose([redacting, Strategy("failing", fail), "priced"])) as session:
        session.add([user_text("Go."), *work(1)])
        pack = session.pack(TOOLS)
    (event,) = [event for event in pack.events if isinstance(event, StrategyOverruled)]
    assert (event.strategy, "no idea" in event.why) == ("failing", True)
    assert SECRET not in pack.body.decode()


def test_what_is_not_composed_is_said() -> None:
    with pytest.raises(InputError, match="A composition needs a strategy"):
        compose([])
    with pytest.raises(UnknownName, match="no strategy named 'pricd'"):
        compose(["pricd"])
    with pytest.raises(InputError, match="a strategy is a name"):
        compose([cast(Any, 3)])
    with pytest.raises(InputError, match="when and verbatim"):
        Session("gpt-4o", strategy=compose(["agentrail", redacting]), when=0.5)


def test_names_options_and_profiles_are_those_of_the_parts() -> None:
    composed = compose(["agentrail", redacting, "priced"])
    assert composed.name == "agentrail/layers+redacting+priced"
    assert [part.name for part in composed.parts] == [
        "agentrail/tool_results",
        "agentrail/session_compaction",
        "agentrail/reactive",
        "redacting",
        "priced",
    ]
    assert compose([composed, "append-only"]).parts == composed.parts
    assert not compose(["append-only"]).changes_requests
    assert composed.with_options is not None
    assert composed.with_options(0.5, None).parts[-1].name == priced(0.5).name
    scored = compose(["reactive_agents/scored", "priced"], name="mine")
    assert scored.with_profile is not None
    assert scored.with_profile(CONTEXT_PROFILES["local"]).name == "mine"
    assert scored.with_profile(CONTEXT_PROFILES["local"]).parts[0].compact != scored.parts[0].compact


def test_clipping_what_is_enormous_comes_last_and_once() -> None:
    """Strategies without an admission of their own do not keep others from reducing a result to what matters."""
    capped = strategy_for(AgentConfig(compress_tool_results=MinChars(10_000)))
    rows = "\n".join(f'{{"id": {number}, "state": "ok"}}' for number in range(3_000))
    history = [user_text("Which row is 1234?"), *work(0)[:1], Message("tool", (ToolResult("c0", (Text(rows),)),))]
    bodies: list[bytes] = []
    for strategy in ("priced", compose(["agentrail/tool_results", capped, "priced"])):
        with Session("gpt-4o", window=12_000, output_reserve=0, strategy=strategy) as session:
            session.add(history)
            bodies.append(session.pack(TOOLS).body)
    assert b"1234" in bodies[0]
    assert b"1234" in bodies[1]


@pytest.mark.parametrize("strategy", [[redacting, "priced"], ["priced", redacting], ["agentrail", redacting]])
def test_what_a_transform_hides_no_record_shows(strategy: list[Any]) -> None:
    store = MemoryStore()
    composed = compose(strategy)
    with Session("gpt-4o", store=store, window=3_000, output_reserve=0, strategy=composed) as session:
        session.add("Find the key.")
        for number in range(40):
            session.add(work(number))
            pack = session.pack(TOOLS)
            assert SECRET not in pack.body.decode()
        assert "[Record of messages" in pack.body.decode()
        assert [SECRET in str(entry.message) for entry in session.entries[1:]] == [True] * 80
        pointers = {pointer for edit in session._engine.history.edits for pointer in edit.pointers}
        assert any(SECRET in str(resolve(store, pointer)) for pointer in pointers)
    assert [outcome.problem for outcome in verify(store, tenant="default", session="session")] == [""] * 40


def test_an_async_transform_and_compress_are_awaited_in_an_async_session() -> None:
    async def compress(messages: Sequence[Message], _tokens: int) -> Sequence[Message]:
        await asyncio.sleep(0)
        return [messages[0], *messages[-4:]] if len(messages) > 8 else messages

    custom = strategy_for(AgentConfig(context_strategy=_custom(compress)))

    async def run() -> str:
        composed = compose([redacting_slowly, custom, "priced"])
        async with AsyncSession(Session("gpt-4o", strategy=composed)) as session:
            await session.add("Find the key.")
            for number in range(8):
                await session.add(work(number))
                pack = await session.pack(TOOLS)
                assert not [event for event in pack.events if isinstance(event, StrategyOverruled)]
            return pack.body.decode()

    body = asyncio.run(run())
    assert SECRET not in body
    assert "rewritten by compress" in body
    assert "mod_2 failed" not in body
    assert "mod_7 failed: [redacted]" in body


@pytest.mark.parametrize("strategy", [redacting_slowly, "custom"])
def test_an_async_function_in_a_sync_session_is_said_to_need_an_async_one(strategy: Any) -> None:
    async def compress(messages: Sequence[Message], _tokens: int) -> Sequence[Message]:
        return messages

    parts = [strategy_for(AgentConfig(context_strategy=_custom(compress))) if strategy == "custom" else strategy]
    with Session("gpt-4o", strategy=compose(parts)) as session:
        session.add([user_text("Find the key."), *work(1)])
        events = session.pack(TOOLS).events
    assert any(isinstance(event, StrategyOverruled) and "use AsyncSession" in event.why for event in events)


def test_a_part_that_removes_without_asking_is_named() -> None:
    options = SessionOptions(summarizer=WELL)
    composed = compose(["open_multi_agent/sliding_window", "priced"])
    with Session("gpt-4o", strategy=composed, options=options) as session:
        session.add(tool_loop(60))
        events = session.pack(TOOLS).events
    (event,) = [event for event in events if isinstance(event, SummaryNotAsked)]
    assert "the strategy open_multi_agent/sliding_window asks for none here" in event.reason


def _custom(compress: Callable[[Sequence[Message], int], Awaitable[Sequence[Message]]]) -> Any:
    return Custom(compress)


# Pairs of all strategies.

NAMES = sorted(STRATEGIES)
LOOP = tool_loop(14, result_words=60)
SCRIPT = steps([*LOOP, said("Done."), user_text("And now?"), *LOOP[2:18]])


def play_pair(pair: Sequence[str], wire: str) -> Verdict:
    """A script through a pair of strategies, with a model to ask, in a window that it fills."""
    return play(SCRIPT, Preset(compose(pair), WELL, keeps_newest=False), window=1_500, wire=wire)


PAIRS = sorted(pairwise([*NAMES, NAMES[0]]), key=lambda pair: NAMES.index(pair[0]) % 2)
"""First those that name each strategy once."""


@pytest.mark.parametrize("pair", quick_first([(pair,) for pair in PAIRS], len(PAIRS) // 2), ids="+".join)
def test_a_pair_of_strategies_keeps_every_promise(pair: tuple[str, str]) -> None:
    wire = sorted(WIRES)[len(pair[0]) % len(WIRES)]
    assert play_pair(pair, wire).faults == ()


@pytest.mark.full
@pytest.mark.parametrize("wire", sorted(WIRES))
@pytest.mark.parametrize("first", NAMES)
def test_all_pairs_of_strategies_keep_every_promise(first: str, wire: str) -> None:
    # Each pair in two of the formats.
    start = (NAMES.index(first) + sorted(WIRES).index(wire)) % 2
    verdicts = {pair: play_pair(pair, wire) for pair in product([first], NAMES[start::2])}
    assert {pair: verdict.faults for pair, verdict in verdicts.items() if verdict.faults} == {}
    assert sum(verdict.edits for verdict in verdicts.values()) > 50


@pytest.mark.parametrize("wire", sorted(WIRES))
@share_of_examples(0.2)
@given(played=sessions(), names=st.lists(st.sampled_from(sorted(PRESETS)), min_size=2, max_size=4))
def test_compositions_of_any_presets_keep_every_promise_over_any_history(
    wire: str, played: Callable[..., Verdict], names: list[str]
) -> None:
    parts = [PRESETS[name] for name in names]
    composed = Preset(
        compose([part.strategy for part in parts]),
        next((part.summarizer for part in parts if part.summarizer), None),
        strict=all(part.strict for part in parts),
        keeps_newest=all(part.keeps_newest for part in parts),
    )
    assert played(preset=composed, wire=wire).faults == ()
