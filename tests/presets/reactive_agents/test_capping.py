"""Results of at most so many characters: the cap holds, and the whole is named."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.messages import Image, Message, Text, ToolResult, user_text
from lading.models.profiles import CONTEXT_PROFILES
from lading.presets.reactive_agents.capping import cap_text
from tests.engines import packs, run, settings
from tests.histories import called, said

POINTER = "artifact://t/s/log/17"
LONG = st.one_of(
    st.text(max_size=3000),
    st.integers(0, 800).map(lambda times: "one line of output\n" * times),
    st.integers(0, 200).map(lambda times: json.dumps([{"id": n, "name": f"n{n}"} for n in range(times)])),
)


@given(text=LONG, most=st.integers(120, 2000))
def test_the_cap_holds_and_the_pointer_stands_in_what_is_cut(text: str, most: int) -> None:
    found = cap_text(text, most, pointer=POINTER)
    assert len(found) <= most
    assert found == text if len(text) <= most else POINTER in found


def test_where_no_note_fits_the_shorter_of_note_and_text_stands() -> None:
    assert cap_text("x" * 50, 40, pointer=POINTER) == "x" * 50
    assert POINTER in cap_text("x" * 500, 40, pointer=POINTER)


def test_what_the_request_asks_for_stays_first() -> None:
    lines = [f"line {number}" for number in range(500)]
    lines[250] = "the zebra is here"
    assert "zebra" in cap_text("\n".join(lines), 600, pointer=POINTER, terms=("zebra",))


@pytest.mark.parametrize("strategy", ["reactive_agents/progressive", "reactive_agents/scored"])
def test_a_result_takes_no_more_than_the_profile_says(strategy: str) -> None:
    text = "\n".join(f"{number}: some output of a tool" for number in range(200))
    picture = Image(data="aGk=", media_type="image/png")
    history = [
        user_text("Go."),
        called("a"),
        Message("tool", (ToolResult("a", (Text(text), picture)),)),
        said("Seen."),
        called("b"),
        Message("tool", (ToolResult("b", (Text("small"),)),)),
    ]
    engine, outcomes = run(settings(strategy=strategy), history)
    assert len(packs(outcomes)) == len(outcomes)
    (edit,) = [edit for edit in engine.history.edits if edit.kind == "clipped"]
    (result,) = edit.replacement[0].results
    assert len(result.text) <= CONTEXT_PROFILES["mid"].tool_result_max_chars
    assert edit.pointers == ("artifact://default/session/log/2",)
    assert "artifact://log/2" in result.text
    assert result.parts[1] is picture
    assert (edit.first, edit.last) == (2, 2)
    assert "small" in packs(outcomes)[-1].body.decode()


def test_capped_results_that_do_not_fit_together_share_the_room() -> None:
    calls = [called(f"c{number}").calls[0] for number in range(6)]
    results = [Message("tool", (ToolResult(call.id, (Text("word " * 150),)),)) for call in calls]
    history = [user_text("Go."), Message("assistant", tuple(calls)), *results]
    _, outcomes = run(settings(700, strategy="reactive_agents/progressive"), history)
    assert packs(outcomes)[-1].tokens <= 700
