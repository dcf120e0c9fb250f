from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lading.errors import InputError, PastChanged
from lading.messages import Message, Opaque, Reasoning, Text, ToolCall, ToolResult, tool_result, user_text
from lading.session.matching import Matched, fingerprint, match
from lading.session.session import Session
from lading.wire import find_wire
from lading.wire.openai_chat import decoding
from tests.counting import count_calls
from tests.histories import histories


def chat(message: dict[str, object]) -> str:
    (decoded,) = find_wire("openai_chat").decode({"messages": [message]}).messages
    return fingerprint(decoded)


def test_how_a_client_writes_a_message_makes_no_difference() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"a": 1}'}}
    spaced = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"a":1}'}}
    ways: list[dict[str, object]] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "assistant", "content": "", "tool_calls": [spaced]},
        {"role": "assistant", "tool_calls": [call], "refusal": None, "annotations": []},
    ]
    assert len({chat(way) for way in ways}) == 1
    assert chat({"role": "user", "content": "hi"}) == chat(
        {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}
    )


def test_what_a_message_says_makes_a_difference() -> None:
    messages = [
        user_text("a"),
        user_text("b"),
        Message("assistant", (Text("a"),)),
        Message("assistant", (Text("a"), ToolCall("1", "read", "{}"))),
        Message("assistant", (Text("a"), ToolCall("2", "read", "{}"))),
        Message("tool", (ToolResult("1", (Text("a"),)),)),
        Message("tool", (ToolResult("1", (Text("a"),), is_error=True),)),
    ]
    assert len({fingerprint(message) for message in messages}) == len(messages)


def test_reasoning_that_a_client_does_not_keep_makes_no_difference() -> None:
    thought = Message("assistant", (Reasoning("hm", "sig"), Text("yes")))
    assert fingerprint(thought) == fingerprint(Message("assistant", (Text("yes"),)))


ROLES = {
    "s": "system",
    "x": "system",
    "u": "user",
    "v": "user",
    "a": "assistant",
    "b": "assistant",
    "t": "tool",
    "r": "tool",
}


def matched(known: str, given_: str) -> Matched:
    return match(list(known), list(given_), roles=[ROLES[letter] for letter in given_])


@pytest.mark.parametrize(
    ("known", "given_", "start"),
    [
        ("", "su", 0),
        ("su", "", 0),
        ("su", "su", 2),
        ("su", "suat", 2),
        ("suat", "suatbr", 4),
        ("su", "at", 0),
        ("sua", "t", 0),
        ("sua", "at", 1),
        ("suat", "at", 2),
        ("suatb", "r", 0),
        ("suat", "t", 1),
        ("suatr", "t", 1),
        ("sua", "u", 0),
        ("suau", "u", 0),
        ("ua", "u", 0),
        ("su", "s", 1),
        ("suau", "vu", 0),
        ("uaua", "vabuv", 0),
        ("suav", "x", 0),
        ("suav", "xbu", 0),
    ],
)
def test_what_is_new_is_found(known: str, given_: str, start: int) -> None:
    found = matched(known, given_)
    assert (found.kind != "differs", found.position) == (True, start)


@pytest.mark.parametrize(
    ("known", "given_", "position"),
    [
        ("suat", "sva", 1),
        ("suat", "subt", 2),
        ("suat", "sua", 3),
        ("suatb", "suatar", 4),
        ("uat", "vatb", 0),
        ("ua", "vau", 0),
        ("suat", "xuat", 0),
        ("suat", "xv", 0),
    ],
)
def test_a_changed_past_says_where(known: str, given_: str, position: int) -> None:
    assert matched(known, given_) == Matched("differs", position)


@given(histories(max_size=12), st.data())
def test_any_history_told_again_adds_only_what_is_new(history: list[Message], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(history)))
    known = [fingerprint(message) for message in history]
    roles = ["tool" if message.results else message.role for message in history]
    assert match(known[:cut], known, roles=roles) == match(known[:cut], known) == Matched("continues", cut)
    start = data.draw(st.integers(0, cut))
    assert match(known[:cut], known[start:], start=start) == Matched("continues", cut)


def said(letters: str) -> list[Message]:
    """A message for each letter; equal letters are equal messages."""
    return [Message("user" if ROLES[letter] == "user" else "assistant", (Text(letter),)) for letter in letters]


@given(st.text("uvab", min_size=1, max_size=8), st.text("uvab", min_size=1, max_size=6))
def test_a_list_that_does_not_begin_like_the_history_is_new(known: str, given_: str) -> None:
    equal = sum(one == other for one, other in zip(known, given_, strict=False))
    assume(known[0] != given_[0] and 2 * equal < min(len(known), len(given_)))
    session = Session("gpt-4o").add(said(known))
    session.add(said(given_))
    # What was said last may be given again, if a reply is in it.
    ends = [given_[:length] for length in range(1, len(given_) + 1) if known.endswith(given_[:length])]
    repeated = [end for end in ends if {"a", "b"} & set(end)]
    shown = "".join(entry.message.text for entry in session.entries)
    assert shown in {known + given_[len(end) :] for end in ("", *repeated)}


@given(st.text("uvab", min_size=3, max_size=8), st.text("uvab", max_size=4), st.integers(0, 7), st.data())
def test_a_history_with_one_changed_message_is_a_changed_past(
    known: str, later: str, place: int, data: st.DataObject
) -> None:
    place %= len(known)
    other = data.draw(st.sampled_from("uvab").filter(lambda letter: letter != known[place]))
    changed = known[:place] + other + known[place + 1 :] + later
    with pytest.raises(PastChanged):
        Session("gpt-4o").add(said(known)).add(said(changed))


@given(st.text("suvabtr", max_size=8), st.text("suvabtr", max_size=8), st.integers(0, 8))
def test_where_a_history_differs_does_not_depend_on_what_is_known_to_be_equal(
    known: str, given_: str, start: int
) -> None:
    found = match(known, given_)
    is_whole = given_.startswith(known)
    assert found.kind == ("continues" if is_whole else "differs")
    assert known[: found.position] == given_[: found.position]
    assert is_whole or known[found.position : found.position + 1] != given_[found.position : found.position + 1]
    start = min(start, found.position)
    assert match(known, given_[start:], start=start) == found


@pytest.mark.parametrize("rounds", [2, 20])
def test_of_a_list_that_starts_with_the_last_one_only_what_is_new_is_decoded_once(rounds: int) -> None:
    with Session("gpt-4o") as session:
        history = [{"role": "user", "content": f"{number}"} for number in range(rounds)]
        session.add(history)
        history += [{"role": "assistant", "content": "yes"}, {"role": "user", "content": "go on"}]
        counted = count_calls(lambda: session.add(history), fingerprint, decoding._read_message)
        assert counted == {"fingerprint": 2, "_read_message": 2}
        assert len(session.entries) == rounds + 2


def test_nothing_handed_in_adds_nothing() -> None:
    assert matched("su", "") == Matched("overlaps", 0)


def test_a_number_that_json_cannot_carry_is_a_typed_error() -> None:
    with pytest.raises(InputError, match="NaN"):
        fingerprint(Message("user", (Opaque({"type": "odd", "value": float("nan")}),)))


def test_a_part_of_a_kind_of_its_own_is_known_by_its_meaning() -> None:
    issued = {
        "type": "ran",
        "caller": {"type": "direct"},
        "content": [{"a": None, "b": 1, "from": "x"}],
        "index": 2,
    }
    kept = {"content": [{"from_": "x", "b": 1}], "cache_control": {"type": "ephemeral"}, "type": "ran"}
    other = {"type": "ran", "caller": {"type": "program"}, "content": [{"b": 1, "from": "x"}]}
    known, again, else_ = (fingerprint(Message("assistant", (Opaque(value),))) for value in (issued, kept, other))
    assert known == again != else_


def test_new_results_and_a_text_said_before_are_no_history() -> None:
    session = Session("gpt-4o").add("Find the fault.")
    for number in range(3):
        call = ToolCall(f"call_{number}", "read", "{}")
        session.add([Message("assistant", (call,))])
        session.add([tool_result(f"call_{number}", f"{number}"), user_text("Continue.")])
    assert [entry.message.role for entry in session.entries] == ["user", *["assistant", "tool", "user"] * 3]
    calls = tuple(ToolCall(f"call_{number}", "read", "{}") for number in (7, 8))
    session.add([Message("assistant", calls)])
    session.add([tool_result("call_7", "7"), tool_result("call_8", "8"), user_text("x"), user_text("Continue.")])
    assert len(session.entries) == 15


def test_a_user_may_say_the_same_at_the_same_place() -> None:
    session = Session("gpt-4o").add([user_text("Find the fault."), user_text("Go on.")])
    session.add([user_text("And the other."), user_text("Go on.")])
    assert [entry.message.text for entry in session.entries][2:] == ["And the other.", "Go on."]


def test_a_system_message_in_the_middle_is_added_alone_in_its_own_form() -> None:
    session = Session("claude-opus-5-5").add("Find the fault.")
    added = {"type": "tool_addition", "tool": {"type": "tool_definition", "name": "deploy", "input_schema": {}}}
    notice = {"role": "system", "content": [added]}
    session.add(notice)
    assert session.pack(fields={"max_tokens": 9}).request["messages"][1:] == [notice]
    session.add([{"role": "assistant", "content": "ok"}, {"role": "user", "content": "on"}])
    session.add({"role": "system", "content": "Be brief."})
    assert session.pack(fields={"max_tokens": 9}).request["messages"][-1] == {
        "role": "system",
        "content": "Be brief.",
    }
