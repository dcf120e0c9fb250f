"""``compress_tool_results``: which results become a mark, from which length on, and what never does."""

from __future__ import annotations

from itertools import pairwise

import pytest
from msgspec.structs import replace

from lading.engine import Engine
from lading.messages import Image, Message, Text, ToolCall, ToolResult, user_text
from lading.presets.open_multi_agent import AgentConfig, strategy_for
from tests.engines import TOOLS, settings, template
from tests.histories import answered, said
from tests.presets.open_multi_agent.configured import (
    ROOM_TOKENS,
    applied,
    call_and_result,
    decided,
    loop,
    shown,
    texts,
)
from tests.views import admitted, pressure

ON: dict[str, object] = {"compressToolResults": True}


def marked(chars: int, entry: int) -> str:
    return f"[Tool output compressed — {chars} chars, already processed] Kept at artifact://t/s/log/{entry}"


@pytest.mark.parametrize(
    ("options", "chars", "becomes"),
    [
        (ON, 500, "x" * 500),
        (ON, 501, marked(501, 2)),
        ({"compressToolResults": {"minChars": 2000}}, 2_000, "x" * 2_000),
        ({"compress_tool_results": {"min_chars": 2000}}, 2_001, marked(2_001, 2)),
        ({"compressToolResults": False}, 5_000, "x" * 5_000),
        ({}, 5_000, "x" * 5_000),
    ],
)
def test_results_longer_than_the_threshold_become_a_mark(
    options: dict[str, object], chars: int, becomes: str
) -> None:
    assert texts(shown(options, [*loop(1, chars=chars), *loop(1, start=1)]))[2] == becomes


def test_the_call_id_stays() -> None:
    (after,) = shown(ON, loop(2, chars=900))[2].results
    assert after.call_id == "c0"


def test_the_newest_message_with_results_stays_even_when_it_was_answered() -> None:
    history = [*loop(2, chars=900), said("Found."), user_text("Thanks. Next?")]
    assert texts(shown(ON, history))[2:5:2] == [marked(900, 2), "x" * 900]


def test_parallel_results_of_the_newest_message_all_stay() -> None:
    calls = Message("assistant", tuple(ToolCall(name, "read", "{}") for name in "abc"))
    newest = [calls, *(answered(name, "y" * 900) for name in "abc")]
    assert shown(ON, [*loop(1), *newest])[3:] == newest


def test_errors_delegated_answers_and_what_was_restored_stay() -> None:
    history = [
        user_text("task"),
        *call_and_result("a", "e" * 900, is_error=True),
        *call_and_result("b", "d" * 900, tool="delegate_to_agent"),
        *call_and_result("c", "r" * 900, tool="restore"),
        *loop(1, start=1),
    ]
    assert shown(ON, history) == history


def test_nothing_is_compressed_before_the_first_request() -> None:
    history = admitted(loop(3, chars=900))
    assert decided(ON, history, pressed=pressure(ROOM_TOKENS)).drafts == ()
    assert len(decided(ON, history).drafts) == 2


def test_a_result_with_a_picture_is_measured_by_its_data() -> None:
    picture = Image(data="d" * 600, media_type="image/png")
    result = Message("tool", (ToolResult("c0", (Text("see"), picture)),))
    history = [*loop(1)[:2], result, *loop(1, start=1)]
    assert texts(shown(ON, history))[2] == marked(3 + 600 + len("image/png") + 32, 2)


def test_a_mark_that_is_no_shorter_than_its_result_is_not_made() -> None:
    history = [*loop(1, chars=60), *loop(1, start=1)]
    assert shown({"compressToolResults": {"minChars": 1}}, history) == history


def test_bug_118_a_mark_is_never_compressed_again_and_its_number_stays() -> None:
    options: dict[str, object] = {"compressToolResults": {"minChars": 10}}
    history = admitted(loop(2, chars=900))
    first = texts(applied(options, history))[2]
    # A rule that only looks at the length would take the mark for a result of so many characters:
    assert len(first) >= 10
    for call, message in enumerate(loop(2, start=2, chars=900)):
        history.append(message, call=3 + call)
    assert texts(applied(options, history, call=9))[2:5:2] == [marked(900, 2), marked(900, 4)]


def test_bug_118_marks_that_a_history_brings_along_are_known() -> None:
    old = "[Tool output compressed — 7000 chars, already processed]" + " " * 600
    history = [user_text("task"), *call_and_result("a", old), *loop(1, start=1)]
    assert shown(ON, history) == history


def test_bug_116_used_results_leave_and_the_request_stops_growing_with_them() -> None:
    strategy = strategy_for(AgentConfig(compress_tool_results=True))
    engine = Engine(settings(100_000, strategy=strategy))
    engine.append([user_text("task")])
    sizes: list[int] = []
    for number in range(1, 7):
        sizes.append(engine.pack(tools=TOOLS, template=template("openai_chat")).tokens)
        engine.append(loop(1, start=number, chars=8_000))
    growth = [later - earlier for earlier, later in pairwise(sizes[1:])]
    assert sizes[1] > 2_000
    assert all(more < 100 for more in growth)


def test_nothing_is_lost_the_pointer_holds_what_was_said() -> None:
    (draft,) = decided(ON, admitted(loop(2, chars=900))).drafts
    assert (draft.kind, draft.pointers) == ("cleared", ("artifact://t/s/log/2",))
    assert draft.reason == "compress_tool_results: a used result"


def test_a_pinned_result_stays() -> None:
    history = admitted(loop(2, chars=900))
    history.pin(2, call=1)
    assert decided(ON, history).drafts == ()


def test_it_works_beside_a_window() -> None:
    options = ON | {"contextStrategy": {"type": "sliding-window", "maxTurns": 2}}
    after = texts(shown(options, loop(4, chars=900)))
    assert after[1].startswith("[Earlier conversation history truncated — 2 turn(s) removed]")
    assert after[3] == marked(900, 6)
    assert after[5] == "x" * 900


def test_no_view_is_changed_by_deciding() -> None:
    history = admitted(loop(3, chars=900))
    before = list(history.view.items)
    decided(ON, history, pressed=replace(pressure(ROOM_TOKENS), sent_items=5))
    assert history.view.items == before
