"""Context providers: where their text is, what it costs, and that a bad one costs its own text only."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lading import AsyncSession, Session, SessionOptions, verify
from lading.audit.snapshots import build_snapshot, load_trail
from lading.compaction.fencing import fence
from lading.effects import ContextProvider, Provide, RequestContext
from lading.errors import InputError, LoopStopped
from lading.events import ContextInFront, ContextLeftOut, LoopDetected
from lading.messages import Message, is_own, user_text
from lading.request.pack import Pack
from lading.session.loop_detection import LoopDetection
from lading.stores.memory import MemoryStore
from lading.wire import WIRES, find_wire
from tests.engines import TOOLS
from tests.histories import answered, called, said, tool_loop

MODELS = {"anthropic": "claude-sonnet-5", "gemini": "gemini-3-pro"}
"""By the format; another has one of OpenAI's."""
Provider = ContextProvider | Provide
every_wire = pytest.mark.parametrize("wire", WIRES)


def left_out(pack: Pack) -> list[tuple[str, str]]:
    return [(event.provider, event.why) for event in pack.events if isinstance(event, ContextLeftOut)]


def opened(wire: str, **given: Any) -> Session:
    return Session(MODELS.get(wire, "gpt-4o"), wire=wire, **given)


def items_of(wire: str, pack: Pack) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = pack.request[find_wire(wire).layout.items.field]
    return items


class Clock:
    """A provider whose text is another one each time."""

    def __init__(self, name: str) -> None:
        self.__name__, self.asked = name, 0

    def __call__(self, context: RequestContext, messages: Sequence[Message]) -> list[dict[str, str]]:
        self.asked += 1
        text = f"{self.__name__} {self.asked} of {context.user_id}: {len(messages)} messages"
        return [{"role": "user", "content": text}]


@every_wire
def test_twenty_turns_with_five_volatile_providers_have_one_snapshot_in_the_last_request(wire: str) -> None:
    clocks = [Clock(name) for name in ("identity", "memory", "knowledge", "skills", "workspace")]
    stores = MemoryStore(), MemoryStore()
    with (
        opened(wire, store=stores[0], providers=clocks, options=SessionOptions(user="ada")) as told,
        opened(wire, store=stores[1]) as plain,
    ):
        for turn in range(1, 21):
            packs = []
            for session in (told, plain):
                session.add(f"Question {turn}.")
                packs.append(session.pack(TOOLS))
                session.add(called(f"c{turn}"))
                session.add(answered(f"c{turn}"))
                session.add(said(f"Answer {turn}."))
            one, other = packs
            assert one.chain == other.chain
            assert one.manifest.prefix == other.manifest.prefix
            own = one.manifest.counts["tail"]
            assert one.tokens == other.tokens + own
            count, body = told._engine.count, one.body.decode()
            said_now = [f"{clock.__name__} {turn} of ada: {4 * turn - 3} messages" for clock in clocks]
            assert own <= sum(count(user_text(text)) for text in said_now) + count(user_text(fence("context", "-")))
            assert [body.count(f"{clock.__name__} ") for clock in clocks] == [1] * 5
            places = [body.index(text) for text in said_now]
            assert places == sorted(places)
        assert not any(is_own(entry.message) for entry in told.entries)
        name = told.settings.session
    for store in stores:
        assert [one.problem for one in verify(store, tenant="default", session=name)] == [""] * 20


@every_wire
def test_a_stable_provider_is_asked_and_said_once_also_after_reopening(wire: str, tmp_path: Path) -> None:
    clock, other = Clock("rules"), Clock("now")
    providers: list[Provider] = [ContextProvider(clock, "stable"), other]
    for turn in range(3):
        with opened(wire, store=tmp_path, providers=providers) as session:
            session.add([*([said("Yes.")] if turn else []), user_text(f"Question {turn}.")])
            body = session.pack().body.decode()
            assert body.count("rules 1 of") == 1
            assert clock.asked == 1
            assert f"now {turn + 1} of" in body
            assert sum(is_own(entry.message) for entry in session.entries) == 1
            assert is_own(session.entries[1].message)


def test_a_stable_text_is_said_again_where_it_was_withdrawn_and_in_a_fork() -> None:
    clock = Clock("rules")
    with Session("gpt-4o", providers=[ContextProvider(clock, "stable")]) as session:
        session.add("First.")
        session.pack()
        session.withdraw(0)
        session.add("Other.")
        assert "rules 2 of" in session.pack().body.decode()
        with session.fork("Third.") as fork:
            assert "rules 3 of" in fork.pack().body.decode()


@every_wire
def test_in_front_the_text_is_before_the_history_and_an_event_has_its_price(wire: str) -> None:
    clock = Clock("now")
    with opened(wire, providers=[ContextProvider(clock, place="front")]) as session:
        prices = []
        for message in tool_loop(6):
            session.add(message)
            if message.role in ("user", "tool"):
                pack = session.pack(TOOLS)
                prices += [event.price for event in pack.events if isinstance(event, ContextInFront)]
        first = next(item for item in items_of(wire, pack) if item.get("role") == "user")
        assert "now 7 of" in str(first)
        assert prices[0] == 0
        assert prices[1:] == sorted(prices[1:])
        if wire == "anthropic":
            assert prices[-1] > prices[1] > 0
        snapshot = build_snapshot(load_trail(session.store, tenant="default", session=session.name))
        assert "front" in [item.layer for item in snapshot.shown]


@pytest.fixture
def released() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_a_provider_that_fails_hangs_or_says_too_much_costs_its_own_text_only(released: threading.Event) -> None:
    def failing(_context: RequestContext) -> str:
        raise ValueError("no idea")

    def hanging() -> str:
        released.wait()
        return "late"

    def calling() -> list[Message]:
        return [called("c")]

    def ending() -> str:
        raise SystemExit

    providers: list[Provider] = [
        failing,
        ContextProvider(hanging, timeout_s=0.02),
        ContextProvider(lambda: "word " * 100, most_chars=50, name="long"),
        lambda: None,
        lambda: 7,
        calling,
        ending,
        Clock("last"),
    ]
    with Session("gpt-4o", providers=providers) as session:
        session.add("Go.")
        pack = session.pack()
        reasons = dict(left_out(pack))
        assert reasons["failing"] == "ValueError: no idea"
        assert reasons["hanging"] == "no answer within 0.02 s"
        assert reasons["long"] == "its last 450 characters are more than most_chars"
        assert "int was given" in reasons["<lambda>"]
        assert "give text" in reasons["calling"]
        assert reasons["ending"] == "it ended its thread"
        *_, tail = pack.request["messages"]
        assert tail["content"].count("<<<context") == 1
        assert "[450 characters left out]" in tail["content"]
        assert "last 1 of" in tail["content"]
        assert dict(left_out(session.pack()))["hanging"] == "its previous call has not returned yet"


def test_texts_that_leave_no_room_for_each_other_are_left_out_in_order() -> None:
    providers = [ContextProvider(lambda: "word " * 500, name=name) for name in ("one", "two", "three")]
    with Session("gpt-4o", providers=[*providers, Clock("small")], window=6_000, output_reserve=500) as session:
        session.add("Go.")
        pack = session.pack()
        assert [name for name, _ in left_out(pack)] == ["three"]
        assert "small 1 of" in pack.body.decode()


def test_a_request_without_room_for_any_provider_is_made_without_them() -> None:
    with Session("gpt-4o", providers=[Clock("now")], window=1_000, output_reserve=100) as session:
        session.add("word " * (session.settings.budget.room_tokens - 20))
        pack = session.pack()
        assert "now" not in pack.body.decode()
        assert left_out(pack) == [("now", "the request has no room beside its other layers")]


@every_wire
def test_a_stable_text_that_leaves_no_room_is_taken_back_and_said_once_there_is_room(wire: str) -> None:
    """A session that could not make any request again would be lost."""
    rules = ContextProvider(lambda: "Rule. " * 2_000, "stable", most_chars=20_000, name="rules")
    store = MemoryStore()
    with opened(wire, store=store, providers=[rules], window=1_500, output_reserve=200) as session:
        for turn in range(3):
            session.add(f"Question {turn}.")
            pack = session.pack()
            assert "Rule." not in pack.body.decode()
            why = "the request has no room beside its other layers"
            assert left_out(pack) == ([] if turn else [("rules", why)])
            session.add(said("Yes."))
        assert len(session.entries) == 7
    with opened(wire, store=store, providers=[rules], window=100_000) as session:
        session.add("Is there room now?")
        pack = session.pack()
        assert pack.body.decode().count("Rule. Rule.") > 900
        assert left_out(pack) == []
    assert {one.problem for one in verify(store, tenant="default", session="session")} == {""}


@every_wire
def test_async_providers_are_awaited_by_both_sessions(wire: str) -> None:
    loops = []

    async def workspace(context: RequestContext) -> str:
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return f"workspace of {context.session_id}"

    async def hanging() -> str:
        await asyncio.Event().wait()
        return ""

    providers: list[Provider] = [workspace, ContextProvider(hanging, timeout_s=0.05)]
    with opened(wire, name="work", providers=providers) as session:
        session.add("Go.")
        pack = session.pack()
        assert "workspace of work" in pack.body.decode()
        assert [name for name, _ in left_out(pack)] == ["hanging"]

    async def run() -> bool:
        async with AsyncSession(opened(wire, name="work", providers=[workspace])) as waiting:
            await waiting.add("Go.")
            body = (await waiting.pack(tail="Now.")).body.decode()
            assert body.index("workspace of work") < body.index("Now.")
            return loops[-1] is asyncio.get_running_loop()

    assert asyncio.run(run())


def test_a_smaller_request_after_a_refusal_has_the_same_text_and_asks_nobody() -> None:
    clock = Clock("now")
    with Session("gpt-4o", providers=[clock]) as session:
        session.add(tool_loop(8))
        session.pack(TOOLS, tail="Be quick.")
        again = session.retry("maximum context length is 800 tokens").request["messages"][-1]["content"]
        assert "now 1 of" in again
        assert again.endswith("Be quick.")
        assert clock.asked == 1
        assert "Be quick." not in session.pack(TOOLS).body.decode()


def test_what_is_no_provider_is_refused() -> None:
    with pytest.raises(InputError, match="a context provider is a function"):
        Session("gpt-4o", providers=["text"])  # type: ignore[list-item]
    with pytest.raises(InputError, match="providers is a list"):
        Session("gpt-4o", providers=7)  # type: ignore[arg-type]
    with pytest.raises(InputError, match='"volatile" or "stable"'):
        ContextProvider(str, "often")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="timeout_s above 0"):
        ContextProvider(str, timeout_s=0)
    with pytest.raises(InputError, match="Two stable providers have the name"):
        Session("gpt-4o", providers=[ContextProvider(lambda: "", "stable"), ContextProvider(lambda: "", "stable")])


# A loop's warning, for one request.


@contextmanager
def looping(wire: str) -> Iterator[Session]:
    options = SessionOptions(loop_detection=LoopDetection(transient=True))
    with opened(wire, options=options) as session:
        session.add("Go.")
        yield session


@every_wire
def test_a_transient_warning_is_in_one_request_and_the_next_repetition_is_stopped(wire: str) -> None:
    with looping(wire) as session:
        for number in range(3):
            session.add([called(f"c{number}"), answered(f"c{number}")])
            pack = session.pack(TOOLS)
        assert "[Lading: you made the same tool calls" in str(items_of(wire, pack)[-1])
        assert [event.action for event in pack.events if isinstance(event, LoopDetected)] == ["inject"]
        assert session.pack(TOOLS).body == pack.body
        assert not any(is_own(entry.message) for entry in session.entries)
        session.add([called("d", "shell"), answered("d")])
        assert "[Lading: you made" not in session.pack(TOOLS).body.decode()
        for number in range(3, 6):
            session.add([called(f"c{number}"), answered(f"c{number}")])
            assert ("[Lading: you made" in session.pack(TOOLS).body.decode()) == (number == 5)
        session.add([called("c6"), answered("c6")])
        with pytest.raises(LoopStopped):
            session.pack(TOOLS)
