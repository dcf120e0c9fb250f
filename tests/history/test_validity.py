from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from lading.history.validity import (
    INVARIANTS,
    OpenLoopWhole,
    blocks,
    is_paired,
    legal_cuts,
    newest_block,
    open_loop,
)
from lading.messages import Message, Opaque, Reasoning, Text, ToolCall, ToolResult, user_text
from tests.histories import answered, called, histories, said
from tests.views import apart, paired


def latest_cut(history: list[Message]) -> int:
    """The last position at which everything the model has not answered yet, and its call, is kept."""
    assistants = [position for position, message in enumerate(history) if message.role == "assistant"]
    if not assistants:
        return 0
    last = assistants[-1]
    return last if history[last].calls or last == len(history) - 1 else last + 1


def separated(history: list[Message], position: int) -> bool:
    """Whether a call stands before the position and one of its results after it."""
    dropped = {call.id for message in history[:position] for call in message.calls}
    return any(result.call_id in dropped for message in history[position:] for result in message.results)


def in_open_reasoning_loop(history: list[Message], position: int) -> bool:
    """Whether the position stands inside the loop after the last words of the user, and the loop reasons."""
    asked = [i for i, message in enumerate(history) if message.role == "user" and not message.results]
    loop = asked[-1] + 1 if asked else 0
    reasons = any(isinstance(part, Reasoning) for message in history[loop:] for part in message.parts)
    return reasons and position > loop


@given(paired() | apart())
def test_the_legal_cuts_are_those_that_separate_nothing(history: list[Message]) -> None:
    expected = [
        position
        for position in range(len(history))
        if not separated(history, position) and position <= latest_cut(history)
    ]
    assert legal_cuts(history) == expected


@given(paired())
def test_a_wire_can_forbid_more(history: list[Message]) -> None:
    expected = [here for here in legal_cuts(history) if not in_open_reasoning_loop(history, here)]
    assert legal_cuts(history, (OpenLoopWhole(),)) == expected


@given(histories())
def test_blocks_are_a_partition(history: list[Message]) -> None:
    spans = list(blocks(history))
    assert [position for start, end in spans for position in range(start, end)] == list(range(len(history)))
    for start, end in spans:
        ids = {call.id for message in history[start:end] for call in message.calls}
        assert end == start + 1 or ids & {result.call_id for result in history[end - 1].results}


@given(apart())
def test_a_block_has_all_results_of_its_calls_and_the_newest_all_calls_of_its_results(
    history: list[Message],
) -> None:
    for start, end in [*blocks(history), (newest_block(history), len(history))]:
        assert not separated(history, start)
        assert not separated(history, end)


def test_a_block_is_a_call_with_all_its_results() -> None:
    both = Message("assistant", (ToolCall("a", "read", "{}"), ToolCall("b", "read", "{}")))
    history = [user_text("hi"), both, answered("b"), answered("a"), said("ok"), answered("x"), user_text("bye")]
    assert list(blocks(history)) == [(0, 1), (1, 4), (4, 5), (5, 6), (6, 7)]
    assert list(blocks([])) == []
    late = [user_text("hi"), called("a"), user_text("and"), called("b"), answered("a"), answered("b"), said("ok")]
    assert list(blocks(late)) == [(0, 1), (1, 6), (6, 7)]
    assert newest_block(late[:-1]) == 1


def test_the_newest_block_is_what_the_model_has_not_answered() -> None:
    history = [user_text("hi"), called("a"), answered("a")]
    assert newest_block(history) == 1
    assert newest_block([*history, said("ok"), user_text("more")]) == 4
    assert newest_block([*history, said("ok")]) == 3
    assert newest_block([user_text("hi"), user_text("there")]) == 0
    assert newest_block([]) == 0


def test_calls_without_all_results_are_never_cut_off() -> None:
    both = Message("assistant", (ToolCall("a", "read", "{}"), ToolCall("b", "read", "{}")))
    assert legal_cuts([user_text("hi"), both, answered("a")]) == [0, 1]


def test_what_the_user_said_since_the_last_answer_is_never_cut_off() -> None:
    assert legal_cuts([user_text("hi"), said("ok"), user_text("one"), user_text("two")]) == [0, 1, 2]


def test_results_inside_a_user_message_belong_to_the_loop() -> None:
    thinking = Message("assistant", (Reasoning("hm", "c2ln"), ToolCall("a", "read", "{}")))
    reply = Message("user", (ToolResult("a", (Text("one"),)), Text("and go on")))
    history = [user_text("hi"), said("ok"), user_text("go"), thinking, reply, called("b"), answered("b")]
    assert open_loop(history) == 3
    assert legal_cuts(history) == [0, 1, 2, 3, 5]
    assert legal_cuts(history, (OpenLoopWhole(),)) == [0, 1, 2, 3]


def test_a_loop_without_reasoning_may_be_cut() -> None:
    history = [user_text("hi"), called("a"), answered("a"), called("b"), answered("b")]
    assert legal_cuts(history, (OpenLoopWhole(),)) == legal_cuts(history) == [0, 1, 3]


def test_each_invariant_has_a_name_of_its_own() -> None:
    names = [invariant.name for invariant in (*INVARIANTS, OpenLoopWhole())]
    assert len(set(names)) == len(names)
    assert legal_cuts([]) == []


@pytest.mark.parametrize(
    ("call", "output"),
    [
        ({"type": "shell_call", "call_id": "c", "id": "s"}, {"type": "shell_call_output", "call_id": "c"}),
        ({"type": "local_shell_call", "call_id": "c", "id": "s"}, {"type": "local_shell_call_output", "id": "s"}),
        (
            {"type": "mcp_approval_request", "id": "m"},
            {"type": "mcp_approval_response", "approval_request_id": "m", "approve": True},
        ),
    ],
)
def test_a_call_that_is_kept_whole_and_its_output_belong_together(
    call: dict[str, Any], output: dict[str, Any]
) -> None:
    """Those of OpenAI's own tools that the caller runs, with words between them."""
    asked, answered_ = Message("assistant", (Opaque(call),)), Message("tool", (Opaque(output),))
    history = [user_text("go"), asked, user_text("And hurry."), answered_, said("yes")]
    assert [*blocks(history)] == [(0, 1), (1, 4), (4, 5)]
    assert is_paired(history)
    assert not is_paired([*history[:1], *history[2:]])
    assert not is_paired([*history[:3], *history[4:]])
    assert is_paired([Message("assistant", (Opaque(call), Opaque(output)))])
