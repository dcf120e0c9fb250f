"""Loop detection at work in sessions: the warning in the request, the stop, and what is no loop there."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lading import AsyncSession, LoopDetection, Session, SessionOptions, verify
from lading.errors import InputError, LoopStopped
from lading.events import LoopDetected
from lading.messages import Message, Reasoning, ToolCall, is_own, own_words, user_text
from lading.request.pack import Pack
from lading.session.loop_detection import Action, Loop
from lading.stores.sqlite import open_sqlite
from tests.engines import TOOLS
from tests.examples import quick_diagonal
from tests.histories import answered, said

MODELS = {"openai_chat": "gpt-4o", "anthropic": "claude-sonnet-5"}
WIRES = pytest.mark.parametrize("wire", MODELS)
FOLDING = (
    "priced",
    "open_multi_agent/compress_tool_results",
    "open_multi_agent/sliding_window",
    "agentrail/reactive",
)
IDS = itertools.count()
WARNED = "[Lading: you made the same tool calls 3 times in a row"


def session(wire: str = "openai_chat", *, detection: LoopDetection | None = None, **settings: Any) -> Session:
    options = SessionOptions(loop_detection=detection or LoopDetection())
    return Session(MODELS[wire], options=options, **settings)


def again(*arguments: str, words: int = 5) -> list[Message]:
    """A round of these calls, with a result each; ids are never those of another round."""
    calls = tuple(ToolCall(f"c{next(IDS)}", "read", given) for given in arguments or ('{"path": "a"}',))
    return [Message("assistant", calls), *(answered(call.id, "word " * words) for call in calls)]


def played(line: Session, *rounds: Sequence[Message]) -> list[Pack]:
    """A request after each of these rounds."""
    packs = []
    for messages in rounds:
        line.add(list(messages))
        packs.append(line.pack(TOOLS))
    return packs


def detected(pack: Pack) -> list[tuple[str, int, str]]:
    return [(event.kind, event.times, event.action) for event in pack.events if isinstance(event, LoopDetected)]


@WIRES
def test_a_warning_stands_behind_the_results_and_the_next_repetition_is_stopped(wire: str) -> None:
    with session(wire) as line:
        packs = played(line, [user_text("go")], again(), again(), again())
        assert [detected(pack) for pack in packs] == [[], [], [], [("calls", 3, "inject")]]
        newest = packs[-1].request["messages"][-1]
        if wire == "anthropic":
            assert [block["type"] for block in newest["content"]] == ["tool_result", "text"]
            assert newest["content"][1]["text"].startswith(WARNED)
        else:
            assert packs[-1].request["messages"][-2]["role"] == "tool"
            assert newest["role"] == "user"
            assert newest["content"].startswith(WARNED)
        assert packs[-1].violations == ()
        assert line.pack().body == packs[-1].body
        line.add(again())
        for _ in range(2):
            with pytest.raises(LoopStopped, match="4 times in a row") as stopped:
                line.pack()
            assert (stopped.value.kind, stopped.value.times) == ("calls", 4)
        (event,) = [event for event in line.events if isinstance(event, LoopDetected)]
        assert (event.action, event.times, event.call) == ("terminate", 4, 6)
        line.add("Then leave it.")
        assert detected(line.pack()) == []
        assert [detected(pack) for pack in played(line, again(), again(), again())] == [
            [],
            [],
            [("calls", 3, "inject")],
        ]


def test_a_warning_whose_request_fails_is_part_of_the_next_one_and_stored_with_it() -> None:
    with session() as line:
        played(line, [user_text("go")], again(), again())
        line.add(again())
        stored = line.store.counts(*line.settings.owner)
        for _ in range(2):
            with pytest.raises(InputError, match="at_s"):
                line.pack(at_s=math.nan)
            assert line.store.counts(*line.settings.owner) == stored
        pack = line.pack()
        assert detected(pack) == [("calls", 3, "inject")]
        assert sum(str(message.get("content")).startswith(WARNED) for message in pack.request["messages"]) == 1
        assert line.store.counts(*line.settings.owner) == (stored[0] + 1, stored[1], stored[2] + 1)


@WIRES
def test_parallel_calls_in_another_order_with_other_keys_are_the_same(wire: str) -> None:
    one, other = '{"a": 1, "b": {"x": 1, "y": 2}}', '{"b":{"y":2,"x":1},"a":1}'
    with session(wire) as line:
        packs = played(line, [user_text("go")], again(one, "{}"), again("{}", other), again(other, "{}"))
        assert detected(packs[-1]) == [("calls", 3, "inject")]
        messages = packs[-1].request["messages"]
        if wire == "anthropic":
            assert [block["type"] for block in messages[-1]["content"]] == ["tool_result", "tool_result", "text"]
        else:
            assert [message["role"] for message in messages[-3:]] == ["tool", "tool", "user"]


def test_a_recovery_resets_and_the_next_loop_is_warned_of() -> None:
    with session() as line:
        packs = played(line, [user_text("go")], again(), again(), again(), again("{}"), again(), again(), again())
        assert [detected(pack) for pack in packs if detected(pack)] == [[("calls", 3, "inject")]] * 2


def test_it_is_off_by_default_and_alternation_is_no_loop() -> None:
    with Session("gpt-4o") as line:
        assert not any(detected(pack) for pack in played(line, [user_text("go")], *(again() for _ in range(6))))
    with session() as line:
        rounds = [again(given) for _ in range(4) for given in ("[]", "{}")]
        assert not any(detected(pack) for pack in played(line, [user_text("go")], *rounds))


def test_what_the_user_asks_again_is_no_loop() -> None:
    with session() as line:
        for number in range(4):
            assert detected(played(line, [user_text(f"Run it again, {number}."), *again()])[0]) == []
            line.add(said("It passed."))


def test_an_answer_that_says_the_same_again_is_warned_of_where_nobody_spoke() -> None:
    with session() as line:
        line.add("go")
        line.add([said("I am  stuck."), said("I am stuck."), said("I am stuck. ")])
        assert detected(line.pack()) == [("text", 3, "inject")]


@pytest.mark.parametrize("action", ["continue", "inject", "terminate"])
def test_a_function_decides_and_is_asked_once_for_each_answer(action: Action) -> None:
    seen: list[int] = []

    def decide(loop: Loop) -> Action:
        seen.append(loop.times)
        return action

    with session(detection=LoopDetection(on_loop_detected=decide)) as line:
        played(line, [user_text("go")], again(), again())
        line.add(again())
        if action == "terminate":
            with pytest.raises(LoopStopped):
                line.pack()
            return
        assert detected(line.pack()) == [("calls", 3, action)]
        assert detected(line.pack()) == [("calls", 3, action)][:0]
        assert seen == [3]
        assert any(is_own(entry.message) for entry in line.entries) == (action == "inject")
        assert detected(played(line, again())[0]) == [("calls", 4, action)]


def test_a_function_that_fails_is_told_of_and_counts_as_warn() -> None:
    def failing(_: Loop) -> Action:
        raise RuntimeError("no idea")

    with session(detection=LoopDetection(on_loop_detected=failing)) as line:
        *_, pack = played(line, [user_text("go")], again(), again(), again())
        (event,) = [event for event in pack.events if isinstance(event, LoopDetected)]
        assert (event.action, event.failed) == ("inject", "RuntimeError: no idea")
        line.add(again())
        with pytest.raises(LoopStopped):
            line.pack()


def test_a_function_is_asked_once_for_an_answer_with_steering_behind_it() -> None:
    seen: list[int] = []

    def decide(loop: Loop) -> Action:
        seen.append(loop.times)
        return "continue"

    with session(detection=LoopDetection(on_loop_detected=decide)) as line:
        played(line, [user_text("go")], again(), again(), again(), [own_words("[Steering] Go on.")])
        assert seen == [3]


def test_terminate_stops_at_once() -> None:
    with session(detection=LoopDetection(on_loop_detected="terminate")) as line:
        played(line, [user_text("go")], again(), again())
        line.add(again())
        with pytest.raises(LoopStopped):
            line.pack()
        assert not any(is_own(entry.message) for entry in line.entries)


@WIRES
def test_a_session_that_is_opened_again_knows_that_it_warned(wire: str, tmp_path: Path) -> None:
    rounds = [[user_text("go")], again(), again(), again()]
    with session(wire, store=tmp_path) as line:
        played(line, *rounds)
        warned = line.pack().body
    history = [message for messages in rounds for message in messages]
    with session(wire, store=tmp_path) as line:
        line.add(history)
        assert line.pack().body == warned
        history += again()
        line.add(history)
        with pytest.raises(LoopStopped):
            line.pack()
    with session(wire, store=tmp_path) as line:
        with pytest.raises(LoopStopped):
            line.pack()
        line.add([*history, *again("{}")])
        line.pack()
        assert line.why("Try something else").verdict == "present"
    with open_sqlite(tmp_path) as store:
        assert all(outcome.problem == "" for outcome in verify(store, tenant="default", session="session"))


def test_results_that_priced_took_away_and_the_model_reads_again_are_no_loop() -> None:
    """Each file is read, leaves for the newer ones, and is read again: the documents' warning about clearing."""
    paths = [f'{{"path": "file-{number}"}}' for number in range(3)]
    with session(window=4_000, output_reserve=200, strategy="basic") as line:
        packs = played(line, [user_text("go")], *[again(path, words=1_500) for _ in range(4) for path in paths])
        assert any(pack.manifest.decisions for pack in packs)
        assert not any(detected(pack) for pack in packs)


@WIRES
def test_a_result_that_left_before_it_was_asked_for_again_is_no_loop(wire: str) -> None:
    with session(wire, window=20_000, output_reserve=200, strategy="agentrail/tool_results") as line:
        packs = played(line, [user_text("go")], *(again(words=9_000) for _ in range(4)))
        assert not any(detected(pack) for pack in packs)


@pytest.mark.parametrize(
    ("strategy", "wire"),
    quick_diagonal(FOLDING, [*MODELS]),
)
def test_a_folded_history_hides_no_loop_and_the_warning_stays_no_word_of_the_user(wire: str, strategy: str) -> None:
    with session(wire, strategy=strategy, window=5_000, output_reserve=300) as line:
        line.add("Find the key.")
        rounds = [again(f'{{"n": {number}}}', words=300) for number in range(25)]
        played(line, *rounds)
        packs = played(line, *(again(words=300) for _ in range(3)))
        assert detected(packs[-1]) == [("calls", 3, "inject")]
        later = [again(f'{{"n": {number}}}', words=300) for number in range(40)]
        packs = played(line, *later)
        assert not any(detected(pack) for pack in packs)
        last = packs[-1].body.decode()
        assert "Find the key." in last
        if strategy != "open_multi_agent/compress_tool_results":
            assert line.why("Try something else").verdict == "removed"
        assert "Asked: [Lading" not in last
        warnings = [entry.index for entry in line.entries if is_own(entry.message)]
        assert len(warnings) == 1
        assert line._engine.history.view.newest_request == (0, user_text("Find the key."))


def test_a_warning_in_a_loop_of_signed_reasoning_is_legal() -> None:
    def thinking(number: int) -> list[Message]:
        call, result = again()
        return [call.with_parts((Reasoning(f"{number}", "c2ln"), *call.parts)), result]

    with session("anthropic") as line:
        packs = played(line, [user_text("go")], *map(thinking, range(3)))
        assert detected(packs[-1]) == [("calls", 3, "inject")]
        assert packs[-1].violations == ()


def test_a_retry_of_a_refused_request_is_not_judged_again() -> None:
    with session(window=100_000) as line:
        for number in range(6):
            played(line, [user_text(f"go {number}"), *again(f'{{"n": {number}}}', words=400)])
        played(line, again(), again(), again())
        smaller = line.retry("prompt is too long: 210345 tokens > 200000 maximum")
        assert detected(smaller) == []
        assert WARNED in smaller.body.decode()


def test_it_works_when_it_is_awaited() -> None:
    async def main() -> None:
        async with AsyncSession(session()) as line:
            await line.add("go")
            for _ in range(3):
                await line.add(again())
                pack = await line.pack(TOOLS)
            assert detected(pack) == [("calls", 3, "inject")]
            await line.add(again())
            with pytest.raises(LoopStopped):
                await line.pack()

    asyncio.run(main())
