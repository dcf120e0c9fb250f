"""When an agent repeats itself, and that compressed results are no reason to think so."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lading.engine import Engine
from lading.errors import LoopStopped
from lading.messages import Message, Text, ToolCall, user_text
from lading.session.loop_detection import LoopDetection, find_loop
from lading.session.options import SessionOptions
from lading.session.session import Session
from tests.engines import TOOLS, settings, template
from tests.histories import answered, said
from tests.presets.open_multi_agent.configured import call_and_result, loop
from tests.views import admitted


def calling(*arguments: str, text: str = "") -> list[Message]:
    """One message with a call for each of these arguments, and their results."""
    calls = tuple(ToolCall(f"c{at}", "read", one) for at, one in enumerate(arguments))
    texts = (Text(text),) if text else ()
    return [Message("assistant", (*texts, *calls)), *(answered(call.id) for call in calls)]


SAME = calling('{"a": 1, "b": {"c": 2, "d": 3}}')


def repetition(messages: Sequence[Message], max_repetitions: int = 3) -> tuple[str, int] | None:
    loop = find_loop(admitted(messages).view, options=LoopDetection(max_repetitions))
    return (loop.kind, loop.times) if loop else None


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([], None),
        ([SAME] * 2, None),
        ([SAME] * 3, ("calls", 3)),
        ([SAME] * 9, ("calls", 4)),
        ([SAME, calling('{"b":{"d":3,"c":2},"a":1}'), SAME], ("calls", 3)),
        ([calling("{}", "[1]"), calling("[1]", "{}"), calling("{}", "[1]")], ("calls", 3)),
        ([SAME, SAME, calling("{}")], None),
        ([SAME, calling("{}"), SAME, calling("{}")], None),
        ([SAME, SAME, [said("well")], SAME], None),
        ([[said("I  look again. ")], [said("I look\nagain.")], [said(" I look again.")]], ("text", 3)),
        ([[said("one")], [said("two")], [said("two")]], None),
        ([[said(" ")]] * 5, None),
        ([calling("{broken"), calling("{broken"), calling("{broken")], ("calls", 3)),
        ([calling("[" * 100_000)] * 3, ("calls", 3)),
        ([calling('"\ud83d"')] * 3, ("calls", 3)),
        ([calling("{}", text="x"), calling("[]", text="x"), calling("1", text="x")], None),
        ([calling("{}", text=text) for text in "xyz"], ("calls", 3)),
    ],
)
def test_three_alike_in_a_row_are_a_repetition(
    answers: list[list[Message]], expected: tuple[str, int] | None
) -> None:
    assert repetition([user_text("task"), *(message for answer in answers for message in answer)]) == expected


def test_more_may_be_allowed() -> None:
    assert repetition([user_text("task"), *SAME * 4], max_repetitions=5) is None
    assert repetition([user_text("task"), *SAME * 9], max_repetitions=5) == ("calls", 5)


def test_compressed_results_make_no_repetition_and_hide_none() -> None:
    different = [user_text("task")]
    for number in range(4):
        different += [calling(f'{{"path": "{number}"}}')[0], call_and_result("c0", "x" * 900)[1]]
    assert repetition(different) is None
    options = SessionOptions(loop_detection=LoopDetection(on_loop_detected="terminate"))
    with Session("gpt-4o", strategy="open_multi_agent/compress_tool_results", options=options) as session:
        session.add(different)
        session.pack(TOOLS)
        session.add(calling("[]")[0])
        for _ in range(2):
            session.add(answered("c0", "x" * 900))
            assert session.pack(TOOLS).events
            session.add(calling("[]")[0])
        session.add(answered("c0", "x" * 900))
        with pytest.raises(LoopStopped):
            session.pack(TOOLS)


def test_bug_221_a_run_that_stopped_between_call_and_result_leaves_a_legal_history() -> None:
    history = [*loop(1), SAME[0]]
    assert history[-1].calls
    engine = Engine(settings(100_000, strategy="open_multi_agent/sliding_window"))
    engine.append(history)
    assert engine.pack(tools=TOOLS, template=template("openai_chat")).violations == ()
