from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.compaction.identifiers import leaves
from lading.compaction.state import MOST_QUOTES, QUOTED_CHARS, State
from lading.messages import Message, Text, ToolCall, ToolResult, user_text
from tests.compaction.hostile import HOSTILE
from tests.growth import assert_linear, ladder
from tests.histories import histories, said

MARKERS = ("Asked", "Decided", "Open", "Failed", "Done", "also")


def count(text: str) -> int:
    """A token for each four characters, and three for the message."""
    return 3 + -(-len(text) // 4)


def drawn(history: Sequence[Message]) -> State:
    state = State()
    for entry, message in enumerate(history):
        state.add(entry, message)
    return state


def lines(history: Sequence[Message], section: str = "", *, since: int = 0) -> list[str]:
    """The lines of a section, or all."""
    text = drawn(history).written(most_tokens=4_000, count=count, since=since)
    return [line for line in text.splitlines() if line.startswith(section)]


def call(path: str = "src/a.py", name: str = "edit", call_id: str = "c") -> Message:
    return Message("assistant", (ToolCall(call_id, name, f'{{"path": "{path}"}}'),))


def result(text: str, *, failed: bool = False, call_id: str = "c") -> Message:
    return Message("tool", (ToolResult(call_id, (Text(text),), is_error=failed),))


def test_what_was_asked_is_quoted_on_one_line_cut_between_words() -> None:
    history = [user_text("Make it\n  fast."), said("ok"), user_text("word " * 100), user_text(" \n ")]
    asked = lines(history, "Asked")
    assert asked[0] == "Asked: Make it fast."
    assert asked[1].endswith("word …")
    assert len(asked[1]) <= len("Asked: ") + QUOTED_CHARS + 2
    assert len(asked) == 2
    assert lines([user_text(" " * 999 + "Hello.")], "Asked") == ["Asked: Hello."]


def test_what_was_decided_is_quoted_by_sentence() -> None:
    history = [said("I looked. The root cause is the cache. It rains. We'll keep the old API! Because it is so.")]
    assert lines(history, "Decided") == [
        "Decided: The root cause is the cache.",
        "Decided: We'll keep the old API!",
        "Decided: Because it is so.",
    ]
    assert lines([user_text("I decided it."), result("decided because")], "Decided") == []


def test_what_is_done_is_counted_by_tool() -> None:
    history = [call(), result("ok"), call(name="read"), call(name="read"), call(name="n" * 10_000)]
    assert lines(history, "Done") == ["Done: read 2x, edit 1x, … 1x"]
    assert lines(history, "Done", since=2) == ["Done: read 2x, … 1x"]
    assert lines([call(name="n" * 60)], "Done") == [f"Done: {'n' * 60} 1x"]
    assert lines([call(name="read\nAlways do it")], "Done") == ["Done: read Always do it 1x"]


def test_what_is_open_is_what_was_last_said_to_be() -> None:
    first = said("Plan:\n- [ ] write tests\n* [x] read code\nTODO: run them")
    assert lines([first], "Open") == ["Open: - [ ] write tests", "Open: TODO: run them"]
    assert lines([first, said("All is fine.")], "Open") == ["Open: - [ ] write tests", "Open: TODO: run them"]
    assert lines([first, said("Next step: deploy")], "Open") == ["Open: Next step: deploy"]


def test_a_failure_is_told_by_its_telling_line_until_the_same_succeeds() -> None:
    failed = [call(), result("running\nTypeError: x is not y\nbye", failed=True)]
    assert lines(failed, "Failed") == ["Failed: edit src/a.py: TypeError: x is not y"]
    assert lines([*failed, call("src/b.py"), result("ok")], "Failed") == lines(failed, "Failed")
    assert lines([*failed, call(), result("ok")], "Failed") == []
    again = [*failed, call(), result("KeyError: fatal", failed=True)]
    assert lines(again, "Failed") == ["Failed: edit src/a.py: KeyError: fatal"]


def test_an_error_line_in_a_result_that_is_none_is_no_failure() -> None:
    assert lines([call(), result("0 errors, none failed")], "Failed") == []
    assert lines([result("error", failed=True, call_id="nobody")], "Failed") == []
    assert lines([call(), result("", failed=True)], "Failed") == ["Failed: edit src/a.py:"]
    assert lines([call(), result("\n no \n", failed=True)], "Failed") == ["Failed: edit src/a.py: no"]


def test_parallel_calls_fail_and_succeed_apart() -> None:
    both = Message("assistant", (*call("a.py", call_id="1").calls, *call("b.py", call_id="2").calls))
    history = [both, result("error", failed=True, call_id="2"), result("fine", call_id="1")]
    assert lines(history, "Failed") == ["Failed: edit b.py: error"]


def test_the_newest_of_many_stay() -> None:
    asked = lines([user_text(f"Do step {number}.") for number in range(30)], "Asked")
    assert asked == [f"Asked: Do step {number}." for number in range(30 - MOST_QUOTES, 30)]


def test_only_what_was_said_since_is_told() -> None:
    history = [user_text("One, in src/one.py."), said("ok"), user_text("Two, in src/two.py.")]
    assert lines(history, since=1) == ["Asked: Two, in src/two.py.", "also: src/two.py"]


def test_a_line_too_long_for_its_share_does_not_keep_others_away() -> None:
    history = [user_text("Ship it."), call(name="deploy-" * 400)]
    assert "Asked: Ship it." in drawn(history).written(most_tokens=150, count=count)


@given(histories(), st.integers(-10, 300), st.integers(0, 8))
def test_a_state_is_bounded_and_says_nothing_new(history: list[Message], most_tokens: int, since: int) -> None:
    text = drawn(history).written(most_tokens=most_tokens, count=count, since=since)
    assert not text or count(text) <= most_tokens
    assert text == drawn(history).written(most_tokens=most_tokens, count=count, since=since)
    log = " ".join(_everything(history)).split()
    for line in text.splitlines():
        marker, _, content = line.partition(": ")
        counted = re.sub(r"\b\d+x(?:, |$)", "", content) if marker == "Done" else content
        pieces = [*counted.replace("…", " ").split(), *([] if marker in MARKERS else [marker])]
        assert all(any(piece.rstrip(":") in word for word in log) for piece in pieces), line


def _everything(history: Sequence[Message]) -> list[str]:
    texts: list[str] = []
    for message in history:
        texts.append(message.text)
        texts += [piece for call in message.calls for piece in (call.name, call.arguments)]
        texts += [text for call in message.calls for _, text in leaves(call.arguments)]
        texts += [result.text for result in message.results]
    return texts


def test_taking_in_one_by_one_is_the_same_as_at_once() -> None:
    history = [user_text("Fix src/a.py."), call(), result("error: no", failed=True), said("TODO: look"), call()]
    state = State()
    for entry, message in enumerate(history):
        state.add(entry, message)
        state.written(most_tokens=300, count=count)
        assert state.upto == entry
    assert state.written(most_tokens=300, count=count) == drawn(history).written(most_tokens=300, count=count)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_taken_in_in_linear_time(name: str) -> None:
    def take_in(text: str) -> None:
        state = drawn([user_text(text), Message("assistant", (Text(text), ToolCall("c", text, text)))])
        state.add(2, result(text, failed=True))
        assert count(state.written(most_tokens=500, count=count)) <= 500

    assert_linear(take_in, *ladder(HOSTILE[name]))
