"""``sliding-window``: which messages stay, what is said of the others, and what may not be broken by it."""

from __future__ import annotations

import json
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import Session
from lading.engine import Engine
from lading.messages import Message, Text, ToolCall, ToolResult, user_text
from lading.presets.open_multi_agent import AgentConfig, SlidingWindow, strategy_for
from lading.presets.open_multi_agent.turns import find_turns, group_messages
from lading.stores.memory import MemoryStore
from lading.wire import WIRES
from tests.engines import TOOLS, settings, template
from tests.histories import answered, said
from tests.presets.open_multi_agent.configured import applied, call_and_result, loop, shown, texts
from tests.views import admitted, paired, pairing_faults

NOTICE = "[Earlier conversation history truncated — {} turn(s) removed]"


def window(max_turns: int) -> dict[str, object]:
    return {"contextStrategy": {"type": "sliding-window", "maxTurns": max_turns}}


def test_twice_max_turns_messages_stay_as_they_are() -> None:
    history = loop(3)
    assert shown(window(3), history) == history


def test_a_turn_leaves_as_a_whole_or_not_at_all() -> None:
    history = [*loop(3), user_text("go on")]
    assert shown(window(3), history) == history
    history = [*loop(3), user_text("go"), user_text("on")]
    assert texts(shown(window(3), history))[1].startswith(NOTICE.format(1))
    assert shown(window(3), history)[2:] == history[3:]


def test_the_kept_part_may_exceed_the_target_by_one_message() -> None:
    history = [*loop(4), user_text("go on")]
    kept = shown(window(2), history)[2:]
    assert kept == history[5:]
    assert len(kept) == 2 * 2 + 1


def test_turns_are_counted_not_messages() -> None:
    history = [user_text("task"), said("hello"), user_text("and"), *loop(5, start=1)]
    assert texts(shown(window(2), history))[1].startswith(NOTICE.format(4))


def test_results_of_parallel_calls_are_one_message() -> None:
    calls = Message("assistant", tuple(ToolCall(name, "read", "{}") for name in "abc"))
    block = [calls, *(answered(name) for name in "abc")]
    history = [user_text("task"), *block, *loop(1, start=1)]
    assert shown(window(2), history) == history
    assert shown(window(1), history)[2:] == history[5:]


def test_a_cut_that_would_part_what_is_not_answered_yet_waits() -> None:
    history = [user_text("task"), said("yes"), user_text("one"), user_text("two"), user_text("three")]
    assert shown(window(1), history)[2:] == history[2:]


def test_a_request_that_is_shown_again_is_not_counted_as_left_out() -> None:
    history = [*loop(2), user_text("And the slow build?"), *loop(4, start=2)]
    after = texts(shown(window(2), history))
    assert after[1].startswith(NOTICE.format(4))
    assert after[2] == "And the slow build?"


def _number(at: int, message: Message) -> Message:
    """The message with a text that no other has."""
    return message.with_parts(
        tuple(Text(f"{part.text} {at}") if isinstance(part, Text) else part for part in message.parts)
    )


@given(history=paired(), later=st.lists(st.integers(1, 4), max_size=4), max_turns=st.integers(1, 3))
def test_the_notice_counts_the_turns_that_are_not_shown_however_many_cuts_there_were(
    history: list[Message], later: list[int], max_turns: int
) -> None:
    log, start = admitted(map(_number, count(), history)), 20
    for call, rounds in enumerate([0, *later], 2):
        for message in loop(rounds, start=start) if rounds else []:
            log.append(message, call=call)
        start += rounds
        after = applied(window(max_turns), log, call=call)
        noticed = [text for text in texts(after) if text.startswith("[Earlier conversation")]
        assert len(noticed) <= 1
        raw = [entry.message for entry in log.entries]
        every = [raw[at] for at, _ in find_turns(group_messages(raw, log.view.head))]
        left_out = sum(message not in after for message in every)
        assert noticed == [] or noticed[0].startswith(NOTICE.format(left_out))


@pytest.mark.parametrize("max_turns", [0, -1])
def test_no_turns_at_all_keeps_everything(max_turns: int) -> None:
    history = loop(30)
    assert shown(window(max_turns), history) == history


def test_the_task_stays_and_the_notice_counts_all_turns_left_out_with_a_pointer_to_them() -> None:
    history = admitted(loop(4))
    assert texts(applied(window(3), history))[:2] == [
        "Find the slow test.",
        NOTICE.format(1) + " 2 messages, kept at artifact://t/s/log/1-2",
    ]
    for message in loop(2, start=4):
        history.append(message, call=3)
    assert texts(applied(window(3), history, call=3))[:2] == [
        "Find the slow test.",
        NOTICE.format(3) + " 6 messages, kept at artifact://t/s/log/1-6",
    ]


def test_each_call_opens_an_epoch_that_is_priced_and_named() -> None:
    strategy = strategy_for(AgentConfig(context_strategy=SlidingWindow(2)))
    engine = Engine(settings(100_000, strategy=strategy), MemoryStore())
    engine.append(loop(2, chars=400))
    prefixes = [engine.pack(tools=TOOLS, template=template("openai_chat")).manifest.prefix]
    for number in range(3):
        engine.append(loop(1, start=9 + number, chars=400))
        prefixes.append(engine.pack(tools=TOOLS, template=template("openai_chat")).manifest.prefix)
    assert [bool(prefix.first_changed) for prefix in prefixes] == [False, True, True, True]
    assert all("sliding-window: more than 2 turns" in prefix.why for prefix in prefixes[1:])
    assert all(prefix.price > 0 for prefix in prefixes[1:])


def test_bug_193_no_result_is_parted_from_its_call() -> None:
    history = [*loop(4), user_text("go on")]
    by_count = [history[0], *history[-4:]]
    assert pairing_faults(by_count) == ["1: a result without its call"]
    assert pairing_faults(shown(window(2), history)) == []


@given(history=paired(), max_turns=st.integers(-1, 5))
def test_bug_193_holds_for_any_history(history: list[Message], max_turns: int) -> None:
    assert pairing_faults(shown(window(max_turns), history)) == []


@pytest.mark.parametrize("wire", sorted(WIRES))
def test_bug_text_before_results_the_notice_never_stands_in_front_of_a_result(wire: str) -> None:
    call = Message("assistant", (ToolCall("a", "read", "{}"),))
    turn = [call, Message("user", (ToolResult("a", (Text("found"),)), Text("and go on")))]
    history = [*loop(3), *turn]
    # The notice as a text in front of the first message of the user that is kept:
    noticed = Message("user", (Text("[truncated]"), *turn[1].parts))
    assert not isinstance(noticed.parts[0], ToolResult)
    strategy = strategy_for(AgentConfig(context_strategy=SlidingWindow(1)))
    engine = Engine(settings(100_000, strategy=strategy, wire=wire))
    engine.append(history)
    pack = engine.pack(tools=TOOLS, template=template(wire))
    assert pack.violations == ()
    for message in engine.history.view.messages:
        kinds = [isinstance(part, ToolResult) for part in message.parts]
        assert kinds == sorted(kinds, reverse=True)


def test_bug_steering_what_the_user_asks_on_the_way_outlives_every_window() -> None:
    steering = "Never touch the file legacy.py."
    history = [*loop(2), user_text(steering), user_text("Now the other one."), *loop(6, start=2)]
    assert steering not in texts([history[0], *history[-4:]])
    after = texts(shown(window(2), history))
    assert any(steering in text for text in after)
    assert "Now the other one." in after


def test_a_round_that_is_still_running_stays_whole() -> None:
    history = [*loop(2), *call_and_result("z", "newest")]
    assert shown(window(1), history)[-2:] == history[-2:]


@pytest.mark.parametrize("name", ["sliding_window", "compact", "summarize", "compress_tool_results"])
@pytest.mark.parametrize(("most", "chars"), [(8_000, 5_000), (32_000, 20_000)])
def test_calls_with_long_arguments_fit_beside_their_results(most: int, chars: int, name: str) -> None:
    ids = ["a", "b", "c"]
    with Session("gpt-4o", window=most, strategy=f"open_multi_agent/{name}") as session:
        session.add("Write the files.")
        note = json.dumps({"path": "a.py", "note": "some words " * (chars // 11)})
        session.add([Message("assistant", tuple(ToolCall(one, "write", note) for one in ids))])
        session.add([answered(one, "a line of output\n" * (most // 4)) for one in ids])
        pack = session.pack()
        assert pack.tokens < most
        assert not pack.violations
