"""Summaries asked for ahead: used when they are due, waited for in time, discarded where the log has changed."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from threading import Event
from threading import enumerate as list_threads
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from lading import AsyncSession, Session
from lading.audit.replay import verify
from lading.compaction.priced import configured
from lading.effects import Summarizer, Summary, SummaryRequest
from lading.engine import Engine
from lading.events import SummaryDiscarded, SummaryRejected
from lading.messages import user_text
from lading.request.pack import Pack
from lading.request.summary_calls import SummaryCall
from lading.stores.memory import MemoryStore
from tests.engines import TOOLS, settings, template
from tests.examples import share_of_examples
from tests.replies import CHAT_TOOLS
from tests.test_summarizer import good, work
from tests.waiting import PATIENCE_S, ended, happened, happens, until

WINDOW = 4_000
MOST_ROUNDS = 60
SMALL, FEW_ROUNDS = 2_500, 36
"""A window in which as many compactions take fewer rounds."""
SOON_S = 0.05


class Model:
    """Answers once it may, and notes what it was asked."""

    def __init__(self, *, free: bool = True) -> None:
        self.free = Event()
        self.asked: list[SummaryRequest] = []
        if free:
            self.free.set()

    def __call__(self, request: SummaryRequest) -> Summary:
        self.asked.append(request)
        happened(self.free, "the model may answer")
        return Summary(good(request), 1_000, 100)


def opened(
    summarize: Any,
    *,
    when: Any = "full",
    timeout_s: float = PATIENCE_S,
    background: bool = True,
    window: int = WINDOW,
) -> Engine:
    chosen = settings(window, strategy=configured(when=when), strict=True)
    whom = Summarizer(summarize, timeout_s, background=background)
    engine = Engine(replace(chosen, summarizer=whom), MemoryStore())
    engine.append([user_text("Repair the dates in src/dates.py.")])
    return engine


def packs(engine: Engine, *, rounds: int = MOST_ROUNDS) -> Iterator[Pack]:
    """The requests of an agent, one for each round of tool calls."""
    for number in range(rounds):
        engine.append(work(1, start=number))
        yield engine.pack(tools=TOOLS, template=template("openai_chat"))


def summaries(pack: Pack) -> list[str]:
    return [decision.summary for decision in pack.manifest.decisions if decision.kind == "summarised"]


def find_compacted(made: Iterator[Pack]) -> Pack:
    """The next request with a record."""
    return next(pack for pack in made if summaries(pack))


def play_until_asked(model: Model, made: Iterator[Pack]) -> Pack:
    """Go on until the model is asked; return the request that was packed meanwhile."""
    for pack in made:
        assert not summaries(pack), "it was asked too late"
        if any(thread.name == "lading-summary" for thread in list_threads()) or model.asked:
            until("the question", lambda: model.asked)
            return pack
    raise AssertionError("it was never asked")


def events(pack: Pack, kind: type[Any]) -> list[str]:
    return [event.reason for event in pack.events if isinstance(event, kind)]


def verified(engine: Engine) -> bool:
    store = engine.recorder._store
    assert store is not None
    return not any(outcome.problem for outcome in verify(store, tenant="default", session="session"))


@pytest.mark.parametrize("when", ["full", 0.6])
def test_it_is_asked_before_it_is_due_and_the_agent_goes_on(when: Any) -> None:
    model = Model(free=False)
    engine = opened(model, when=when)
    made = packs(engine)
    asked = play_until_asked(model, made)
    # A request goes out although the model has not answered.
    later = next(made)
    assert not summaries(asked)
    assert not summaries(later)
    assert later.manifest.sent.own is None
    model.free.set()
    pack = find_compacted(made)
    assert summaries(pack) == [f"prompt 3, asked at call {asked.manifest.place.call}"]
    assert b"Goal: repair the dates" in pack.body
    own = pack.manifest.sent.own
    assert own is not None
    assert (own.calls, own.input_tokens, own.output_tokens) == (1, 1_000, 100)
    assert len(model.asked) == 1
    assert verified(engine)


def test_when_it_is_due_it_is_waited_for() -> None:
    bodies: list[list[bytes]] = []
    for is_free in (True, False):
        model = Model(free=is_free)
        engine = opened(model)
        made = packs(engine)
        found = [play_until_asked(model, made)]
        # The wait ends with the answer, whenever that comes: what is sent is the same.
        while not summaries(found[-1]):
            if engine.history.view.tokens > WINDOW - 600:
                model.free.set()
            found.append(next(made))
        bodies.append([pack.body for pack in found])
    assert bodies[0] == bodies[1]


def test_what_does_not_come_in_time_is_used_at_the_next_compaction() -> None:
    model = Model(free=False)
    engine = opened(model, timeout_s=SOON_S)
    made = packs(engine)
    asked = play_until_asked(model, made)
    pack = find_compacted(made)
    assert events(pack, SummaryRejected) == [f"no answer within {SOON_S:g} s"]
    assert summaries(pack) == ["failed"]
    assert pack.manifest.sent.own is None
    model.free.set()
    until("the end of the call", lambda: not engine.asking._busy.locked())
    later = find_compacted(made)
    assert f"prompt 3, asked at call {asked.manifest.place.call}" in summaries(later)
    assert b"Goal: repair the dates" in later.body
    assert later.manifest.sent.own is not None
    assert verified(engine)


CHANGES: dict[str, Callable[[Engine], object]] = {
    "withdrawn": lambda engine: engine.withdraw(4),
    "restated": lambda engine: engine.restate(0, user_text("Repair the times instead.")),
    "pinned": lambda engine: engine.history.pin(2, call=engine.call),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_answer_about_messages_that_were_changed_is_discarded(change: Callable[[Engine], object]) -> None:
    model = Model()
    engine = opened(model)
    made = packs(engine)
    asked = play_until_asked(model, made)
    change(engine)
    pack = next(made)
    assert len(events(pack, SummaryDiscarded)) == 1
    # It was paid for.
    assert pack.manifest.sent.own is not None
    mark = f"asked at call {asked.manifest.place.call}"
    for pack in made:
        assert not any(mark in summary for summary in summaries(pack))
    assert verified(engine)


def test_a_new_system_prompt_and_new_messages_leave_it_valid() -> None:
    model = Model()
    engine = opened(model)
    made = packs(engine)
    asked = play_until_asked(model, made)
    engine.append([user_text("Mind the tests as well.")])
    pack = find_compacted(made)
    assert summaries(pack) == [f"prompt 3, asked at call {asked.manifest.place.call}"]
    assert b"Mind the tests as well." in pack.body


def _refuse(_request: SummaryRequest) -> str:
    return "I'm sorry, I can't do that."


def _raise(_request: SummaryRequest) -> str:
    raise ConnectionError("no route")


@pytest.mark.parametrize(("summarize", "why"), [(_refuse, "it refuses"), (_raise, "ConnectionError: no route")])
def test_without_a_usable_answer_rules_stand_in(summarize: Any, why: str) -> None:
    engine = opened(summarize)
    made = packs(engine)
    pack = find_compacted(made)
    assert [why in reason for reason in events(pack, SummaryRejected)] == [True]
    assert summaries(pack) == ["failed"]
    assert pack.manifest.sent.own is not None
    assert pack.manifest.sent.own.calls == 1
    for _ in made:
        pass
    assert verified(engine)


def test_a_jump_over_the_limit_asks_at_once_and_waits() -> None:
    engine = opened(Model())
    engine.append(work(40))
    pack = engine.pack(tools=TOOLS, template=template("openai_chat"))
    assert summaries(pack) == ["prompt 3"]


def test_a_session_that_is_dropped_leaves_no_thread() -> None:
    model = Model(free=False)
    engine = opened(model)
    play_until_asked(model, packs(engine))
    left = weakref.ref(engine.asking)
    del engine
    gc.collect()
    # What is outstanding holds nothing of the session.
    assert left() is None
    model.free.set()
    until("the end of the thread", lambda: not any(one.name == "lading-summary" for one in list_threads()))


def session_of(summarize: Any) -> Session:
    """A session that asks ahead, and gives up long after the test has."""
    whom = Summarizer(summarize, 9 * PATIENCE_S, background=True)
    session = Session(
        "gpt-4o", window=WINDOW, output_reserve=200, strategy=configured(when="full"), summarizer=whom
    )
    return session.add("Repair the dates in src/dates.py.")


def test_closing_an_async_session_cancels_what_is_outstanding() -> None:
    async def main() -> None:
        begun, cancelled = asyncio.Event(), asyncio.Event()

        async def summarize(_request: SummaryRequest) -> str:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            return "never"

        async with AsyncSession(session_of(summarize)) as session:
            for number in range(MOST_ROUNDS):
                await session.add(work(1, start=number))
                await session.pack(CHAT_TOOLS)
                if session.session._engine.asking._busy.locked():
                    break
            await happens(begun, "it is asked")
        await happens(cancelled, "it is cancelled")

    asyncio.run(main())
    until("the end of the thread", lambda: not any(one.name == "lading-summary" for one in list_threads()))


def test_a_caller_who_is_cancelled_while_it_waits_leaves_the_session_sound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> Pack:
        loop, waiting, free = asyncio.get_running_loop(), asyncio.Event(), Event()

        def summarize(request: SummaryRequest) -> str:
            happened(free, "the test lets go")
            return good(request)

        def noted(call: SummaryCall) -> object:
            loop.call_soon_threadsafe(waiting.set)
            return waited(call)

        waited = SummaryCall.wait
        monkeypatch.setattr(SummaryCall, "wait", noted)
        async with AsyncSession(session_of(summarize)) as session:
            is_waiting = asyncio.ensure_future(happens(waiting, "it waits for the answer"))
            for number in range(MOST_ROUNDS):
                await session.add(work(1, start=number))
                packing = asyncio.ensure_future(session.pack(CHAT_TOOLS))
                await next(asyncio.as_completed([packing, is_waiting]))
                if is_waiting.done():
                    break
            packing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await packing
            free.set()
            return await session.pack(CHAT_TOOLS)

    assert asyncio.run(main()).violations == ()


ENDS = """
from threading import Event
from tests.request.test_background import Model, opened, packs, play_until_asked
model = Model(free=False)
play_until_asked(model, packs(opened(model)))
print("asked", flush=True)
"""


def test_a_process_ends_while_an_answer_is_outstanding() -> None:
    process = subprocess.Popen([sys.executable, "-c", ENDS], stdout=subprocess.PIPE, text=True)
    assert ended(process, "the process")[0] == "asked\n"
    assert process.returncode == 0


LATER_CHANGES: dict[str, Callable[[Engine], object]] = {
    **CHANGES,
    "newest withdrawn": lambda engine: engine.withdraw(len(engine.history.entries) - 3),
}


@share_of_examples(0.2)
@given(
    said=st.lists(st.sampled_from(["Goal: repair", "Done: wrote src/invented.py", "", "Open: " + "on " * 300])),
    changes=st.dictionaries(st.integers(3, FEW_ROUNDS - 4), st.sampled_from([*LATER_CHANGES]), max_size=2),
    when=st.sampled_from(["full", 0.5]),
)
@example(said=[], changes={24: "withdrawn"}, when="full")
def test_with_the_same_answers_both_ways_are_legal_and_can_be_built_again(
    said: list[str], changes: dict[int, str], when: Any
) -> None:
    for background in (True, False):
        asked: list[SummaryRequest] = []

        def summarize(request: SummaryRequest, asked: list[SummaryRequest] = asked) -> str:
            asked.append(request)
            return "\n".join([*said[len(asked) % 3 :], *([good(request)] if len(asked) % 2 else [])])

        engine = opened(summarize, when=when, background=background, window=SMALL)
        for number, pack in enumerate(packs(engine, rounds=FEW_ROUNDS)):
            assert pack.violations == ()
            assert pack.tokens <= SMALL
            if number in changes:
                LATER_CHANGES[changes[number]](engine)
        assert verified(engine)
