"""When an agent repeats itself, and that compressed results are no reason to think so."""

from __future__ import annotations

import pytest

from lading.compaction.open_multi_agent import Repetition, repetition
from lading.engine import Engine
from lading.messages import Message, Text, ToolCall, user_text
from tests.compaction.open_multi_agent.configured import call_and_result, loop, shown
from tests.engines import TOOLS, settings, template
from tests.histories import said


def calling(*arguments: str, text: str = "") -> Message:
    """One message with a call for each of these arguments."""
    calls = (ToolCall(f"c{at}", "read", one) for at, one in enumerate(arguments))
    return Message("assistant", (Text(text), *calls) if text else tuple(calls))


SAME = calling('{"a": 1, "b": {"c": 2, "d": 3}}')


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], None),
        ([SAME] * 2, None),
        ([SAME] * 3, Repetition("calls", 3)),
        ([SAME] * 9, Repetition("calls", 4)),
        ([SAME, calling('{"b":{"d":3,"c":2},"a":1}'), SAME], Repetition("calls", 3)),
        ([calling("{}", "[1]"), calling("[1]", "{}"), calling("{}", "[1]")], Repetition("calls", 3)),
        ([SAME, SAME, calling("{}")], None),
        ([SAME, calling("{}"), SAME, calling("{}")], None),
        ([SAME, SAME, said("well"), SAME], None),
        ([said("I  look again. "), said("I look\nagain."), said(" I look again.")], Repetition("text", 3)),
        ([said("one"), said("two"), said("two")], None),
        ([said(" ")] * 5, None),
        ([calling("{broken"), calling("{broken"), calling("{broken")], Repetition("calls", 3)),
        ([calling("[" * 100_000)] * 3, Repetition("calls", 3)),
        ([calling('"\ud83d"')] * 3, Repetition("calls", 3)),
        ([calling("{}", text="x"), calling("[]", text="x"), calling("1", text="x")], Repetition("text", 3)),
    ],
)
def test_three_alike_in_a_row_are_a_repetition(messages: list[Message], expected: Repetition | None) -> None:
    assert repetition([user_text("task"), *messages]) == expected


def test_more_may_be_allowed() -> None:
    assert repetition([SAME] * 4, max_repetitions=5) is None
    assert repetition([SAME] * 9, max_repetitions=5) == Repetition("calls", 5)


def test_compressed_results_make_no_repetition_and_hide_none() -> None:
    different = [user_text("task")]
    for number in range(4):
        different += [calling(f'{{"path": "{number}"}}'), call_and_result("c0", "x" * 900)[1]]
    assert repetition(shown({"compressToolResults": True}, different)) is None
    alike = loop(4, chars=900)
    assert repetition(shown({"compressToolResults": True}, alike)) == repetition(alike) == Repetition("calls", 4)


def test_bug_221_a_run_that_stopped_between_call_and_result_leaves_a_legal_history() -> None:
    history = [*loop(1), SAME]
    assert history[-1].calls
    engine = Engine(settings(100_000, strategy="sliding-window"))
    engine.append(history)
    assert engine.pack(tools=TOOLS, template=template("openai_chat")).violations == ()
