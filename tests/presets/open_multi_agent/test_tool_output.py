"""``max_tool_output_chars``: what a result looks like when it comes in."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import Session
from lading.errors import InputError
from lading.messages import Image, Message, Text, Tool, ToolCall, ToolResult, user_text
from lading.presets.open_multi_agent import agent_config, strategy_for
from lading.presets.open_multi_agent.tool_output import excerpt
from lading.wire import WIRES
from tests.histories import answered
from tests.presets.open_multi_agent.configured import arrived, call_and_result, loop, texts

WHOLE = "\n[Original: artifact://t/s/log/2]"


def test_golden_25_000_characters_become_exactly_10_000() -> None:
    text = "".join(chr(97 + at % 26) for at in range(25_000))
    shown = excerpt(text, 10_000)
    head, tail = 6_973, 2_989
    assert len(shown) == 10_000
    assert shown == text[:head] + "\n\n[...truncated 15038 characters...]\n\n" + text[-tail:]


@pytest.mark.parametrize(("size", "most"), [(10, 10), (9, 10), (0, 5)])
def test_what_fits_stays(size: int, most: int) -> None:
    assert excerpt("x" * size, most) == "x" * size


@pytest.mark.parametrize(("most", "expected"), [(36, "x" * 36), (5, "x" * 5)])
def test_where_the_mark_takes_everything_the_start_stays_alone(most: int, expected: str) -> None:
    assert excerpt("x" * 100, most) == expected


def test_the_smallest_excerpt_beside_a_mark() -> None:
    assert excerpt("ab" * 50, 37) == "\n\n[...truncated 99 characters...]\n\nb"


@given(text=st.text(max_size=300), most=st.integers(1, 320))
def test_an_excerpt_is_never_longer_than_its_cap(text: str, most: int) -> None:
    assert len(excerpt(text, most)) <= max(most, 0)
    assert (excerpt(text, most) == text) == (len(text) <= most)


@given(size=st.integers(1, 3_000), most=st.integers(1, 3_000))
def test_an_excerpt_has_seven_tenths_of_what_the_mark_leaves_from_the_start_and_the_rest_from_the_end(
    size: int, most: int
) -> None:
    text = "".join(chr(0x4E00 + at) for at in range(size))
    available = most - (33 + len(str(size)))
    shown = excerpt(text, most)
    if size <= most:
        assert shown == text
    elif available <= 0:
        assert shown == text[:most]
    else:
        head = math.floor(0.7 * available)
        cut, mark, tail = shown.partition(f"\n\n[...truncated {size - available} characters...]\n\n")
        assert (len(cut), len(tail)) == (head, available - head)
        assert mark
        assert text.startswith(cut)
        assert text.endswith(tail)


def test_a_result_is_capped_when_it_comes_in_and_says_where_the_whole_is() -> None:
    (_, _, result) = texts(arrived({"maxToolOutputChars": 1_000}, loop(1, chars=5_000)))
    assert result.removesuffix(WHOLE) == excerpt("x" * 5_000, 1_000)
    assert result.endswith(WHOLE)


def test_errors_are_capped_too_and_results_with_pictures_are_not() -> None:
    with_picture = Message("tool", (ToolResult("b", (Text("y" * 900), Image(url="https://example.org/a.png"))),))
    history = [
        user_text("task"),
        *call_and_result("a", "e" * 5_000, is_error=True),
        Message("assistant", (ToolCall("b", "look", "{}"),)),
        with_picture,
    ]
    after = arrived({"maxToolOutputChars": 500}, history)
    assert texts(after)[2] == excerpt("e" * 5_000, 500) + WHOLE
    assert after[4] == with_picture


@pytest.mark.parametrize(("agent", "expected"), [(1_000, 300), (None, 300), (100, 300)])
def test_the_cap_of_a_tool_takes_priority(agent: int | None, expected: int) -> None:
    options: dict[str, object] = {"maxToolOutputChars": agent, "maxOutputChars": {"runShell": 300}}
    after = texts(arrived(options, loop(1, chars=5_000, tool="runShell")))
    assert len(after[2].removesuffix(WHOLE)) == len(excerpt("x" * 5_000, expected))
    others = texts(arrived(options, loop(1, chars=5_000, tool="read")))
    assert len(others[2].removesuffix(WHOLE)) == (5_000 if agent is None else agent)


def named_tool(form: str) -> object:
    """A tool with a limit of its own, as it may be declared."""
    schema: dict[str, object] = {"type": "object", "properties": {}}
    function = {"name": "runShell", "description": "Run.", "parameters": schema}
    return {
        "value": Tool("runShell", "Run.", schema, max_output_chars=300),
        "anthropic": {"name": "runShell", "input_schema": schema, "maxOutputChars": 300},
        "openai": {"type": "function", "function": {**function, "maxOutputChars": 300}},
        "beside the function": {"type": "function", "function": function, "max_output_chars": 300},
    }[form]


@pytest.mark.parametrize("form", ["value", "anthropic", "openai", "beside the function"])
@pytest.mark.parametrize("wire", sorted(WIRES))
def test_the_cap_on_the_tool_itself_takes_priority_and_no_provider_is_sent_it(form: str, wire: str) -> None:
    config = agent_config({"maxToolOutputChars": 1_000, "maxOutputChars": {"runShell": 600}})
    with Session("claude-sonnet-4-5", strategy=strategy_for(config), wire=wire) as session:
        session.add([*loop(1, chars=5_000, tool="runShell"), *loop(1, chars=5_000, start=1)])
        body = session.pack(tools=[named_tool(form)]).body.decode()
    assert "axOutputChars" not in body
    assert "ax_output_chars" not in body
    assert [str(len(excerpt("x" * 5_000, most)) - most) for most in (300, 1_000)] == ["0", "0"]
    assert "[...truncated 4737 characters...]" in body
    assert "[...truncated 4037 characters...]" in body


@pytest.mark.parametrize("most", [0, -1, "300", 1.5, True])
def test_a_cap_that_is_no_number_of_characters_is_refused(most: object) -> None:
    with Session("claude-sonnet-4-5") as session, pytest.raises(InputError, match="maxOutputChars"):
        session.pack(tools=[{"name": "read", "input_schema": {"type": "object"}, "maxOutputChars": most}])


def test_each_of_parallel_results_has_the_cap_of_its_tool() -> None:
    calls = Message("assistant", (ToolCall("a", "read", "{}"), ToolCall("b", "shell", "{}")))
    history = [user_text("task"), calls, answered("a", "x" * 900, name=""), answered("b", "y" * 900, name="")]
    after = texts(arrived({"maxOutputChars": {"shell": 200}}, history))
    assert after[2] == "x" * 900
    assert after[3].startswith("y" * 100)
    assert len(after[3]) < 300


def test_a_result_that_would_only_grow_by_it_stays() -> None:
    after = texts(arrived({"maxToolOutputChars": 1_000}, loop(1, chars=1_001)))
    assert after[2] == "x" * 1_001


def test_what_was_restored_stays() -> None:
    history = [user_text("task"), *call_and_result("a", "r" * 4_000, tool="restore")]
    assert arrived({"maxToolOutputChars": 100}, history) == history


def test_bug_60_without_any_cap_an_enormous_result_still_fits_the_window() -> None:
    after = arrived({}, loop(1, chars=40_000), room_tokens=2_000)
    assert len(after[2].results[0].text) < 8_000
    assert "left out here" in texts(after)[2]
