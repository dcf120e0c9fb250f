"""Fast synthesis as requests show it: windows of turns, prior work, cut arguments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lading.history.view import View
from lading.messages import Message, Reasoning, Text, ToolCall, ToolResult, user_text
from lading.models.card import Tier
from lading.presets.reactive_agents.synthesis import FAST, FRONTIER, LARGE, LOCAL, MID
from lading.presets.reactive_agents.synthesis_fast import WINDOWS, TurnWindow, cut_arguments
from lading.request.pack import Pack
from tests.engines import packs, run, settings
from tests.histories import said
from tests.views import admitted, decided, pressure

POINTER = "artifact://t/s/log/3"
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=200)
    | st.just("long " * 60)
    | st.just(float("nan")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=6),
    max_leaves=6,
)


def turn(number: int, *, name: str = "read", content: str = "x", result: str = "") -> list[Message]:
    """A call and its result."""
    call = ToolCall(f"c{number}", name, json.dumps({"path": f"f{number}", "content": content}))
    text = result or f"result {number} " + "word " * 40
    return [Message("assistant", (call,)), Message("tool", (ToolResult(call.id, (Text(text),)),))]


def session(*rounds: Sequence[Message]) -> list[Message]:
    """A task, and these rounds."""
    return [user_text("Do the task."), *(message for one in rounds for message in one)]


def last(history: Sequence[Message], window: int = 8_000, wire: str = "openai_chat") -> Pack:
    """The last request of a history."""
    outcomes = run(settings(window, strategy="reactive_agents/synthesis_fast", wire=wire), history)[1]
    assert len(packs(outcomes)) == len(outcomes)
    return packs(outcomes)[-1]


def texts(pack: Pack) -> list[str]:
    """What each message of a request says."""
    return [str(message.get("content") or "") for message in pack.request["messages"]]


def test_windows_have_the_numbers_of_the_documents() -> None:
    assert {
        "local": TurnWindow(2, 100),
        "mid": TurnWindow(3, 200),
        "large": TurnWindow(5, 400),
        "frontier": TurnWindow(8, 600),
    } == WINDOWS


def test_the_last_turns_stay_whole_and_prior_work_is_one_message() -> None:
    history = session(*(turn(number) for number in range(6)))
    found = texts(last(history))
    assert found[1].startswith("[Prior work: called read → result 0 word word")
    assert found[1].count("called read") == 3
    assert found[1].endswith(" Original: artifact://log/1-6]")
    assert [text for text in found if text.startswith("result")] == [
        history[at].results[0].text for at in (8, 10, 12)
    ]
    assert all(len(piece) < 110 for piece in found[1].split(" | ")[:-1])


@pytest.mark.parametrize(
    ("strategy", "turns"),
    [(LOCAL, 2), (MID, 3), (LARGE, 5), (FRONTIER, 8), (FAST, 3)],
    ids=lambda it: str(it)[:30],
)
def test_each_tier_keeps_its_turns(strategy: Any, turns: int) -> None:
    log = admitted(session(*(turn(number) for number in range(12))))
    (draft,) = decided(strategy, log.view, pressure=pressure(8_000)).drafts
    assert draft.last == len(log.entries) - 1 - 2 * turns


def test_messages_of_the_user_and_answers_without_calls_are_not_lost() -> None:
    rounds = [turn(number) for number in range(9)]
    history = session(*rounds[:2], [said("An aside of mine."), user_text("Steer left.")], *rounds[2:])
    found = texts(last(history))
    assert "Steer left." in found
    assert "said An aside of mine." in found[1]


def test_prior_work_of_very_many_turns_is_bounded() -> None:
    found = texts(last(session(*(turn(number) for number in range(80))), 1_200))
    assert "earlier turns | called" in found[1]
    assert len(found[1]) < 2_000


def test_a_full_window_lets_turns_leave_early() -> None:
    pack = last(session(*(turn(number, result="word " * 300) for number in range(4))), 900)
    assert pack.tokens <= 900


def test_long_arguments_of_answered_calls_are_cut_and_the_newest_are_not() -> None:
    history = session(*(turn(number, name="file-write", content="Words of a report. " * 50) for number in range(3)))
    pack = last(history)
    calls = [call["function"]["arguments"] for m in pack.request["messages"] for call in m.get("tool_calls", [])]
    assert [json.loads(text)["path"] for text in calls] == ["f0", "f1", "f2"]
    note = "... [950 chars, whole: artifact://log/1]"
    assert json.loads(calls[0])["content"] == f"Words of a report. Words of a report. Words of a report.{note}"
    assert calls[2] == history[5].calls[0].arguments


def test_arguments_beside_reasoning_stay_as_issued() -> None:
    rounds = [turn(number, content="Words of a report. " * 50) for number in range(3)]
    signed = [[call.with_parts((Reasoning("hm", "c2ln"), *call.parts)), result] for call, result in rounds]
    assert "cut, whole" not in last(session(*signed), wire="anthropic").body.decode()


@given(value=st.dictionaries(st.text(max_size=9), VALUES, max_size=12), most=st.sampled_from([100, 200, 600]))
def test_cut_arguments_keep_their_keys_have_no_other_and_one_pointer(value: dict[str, Any], most: int) -> None:
    arguments = json.dumps(value)
    cut = cut_arguments(arguments, most, pointer=POINTER)
    assert len(cut) <= len(arguments)
    if cut != arguments:
        assert list(json.loads(cut)) == list(json.loads(arguments))
        assert cut.count(f" chars, whole: {POINTER}]") == 1
        assert max(map(len, texts_in(json.loads(cut)))) <= 80 + len(POINTER) + len("... [1000 chars, whole: ]")


def texts_in(value: Any) -> list[str]:
    """The texts in a JSON value, keys not included."""
    if isinstance(value, dict):
        return texts_in([*value.values()])
    return [text for item in value for text in texts_in(item)] if isinstance(value, list) else [f"{value}"]


def test_texts_of_more_than_80_characters_keep_60() -> None:
    arguments = json.dumps({"at": "x" * 80, "above": "ab " * 200})
    kept = json.loads(cut_arguments(arguments, 200, pointer=POINTER))
    assert kept["at"] == "x" * 80
    assert kept["above"] == f"{'ab ' * 19}ab... [600 chars, whole: {POINTER}]"


def test_each_result_of_prior_work_has_80_characters() -> None:
    short, long = "w" * 80, "w " * 40 + "w"
    found = texts(last(session(turn(0, result=short), turn(1, result=long), *map(turn, range(2, 6)))))
    told = [piece.partition(" → ")[2] for piece in found[1].split(" | ")]
    assert told[0] == short
    assert told[1].endswith("...")
    assert 70 < len(told[1]) <= 80


@pytest.mark.parametrize(("tier", "budget"), [("local", 100), ("mid", 200), ("large", 400), ("frontier", 600)])
def test_arguments_above_the_budget_of_the_tier_are_cut(tier: Tier, budget: int) -> None:
    def cut(chars: int) -> bool:
        content = "c" * (chars - len(json.dumps({"path": "f0", "content": ""})))
        view = admitted(session(turn(0, content=content), turn(1))).view
        pressed = replace(pressure(20_000), tier=tier)
        return any(draft.kind == "clipped" for draft in decided(FAST, view, pressure=pressed).drafts)

    # A note takes some thirty characters: those of a little more than the budget would only grow.
    assert (cut(budget), cut(budget + 90)) == (False, True)


def test_the_first_text_that_is_cut_has_the_pointer() -> None:
    arguments = json.dumps({"one": "ab " * 200, "in": ["cd " * 200], "three": "ef " * 200})
    cut = json.loads(cut_arguments(arguments, 400, pointer=POINTER))
    assert cut == {
        "one": f"{'ab ' * 19}ab... [600 chars, whole: {POINTER}]",
        "in": [f"{'cd ' * 19}cd... [600 chars]"],
        "three": f"{'ef ' * 19}ef... [600 chars]",
    }


def test_a_list_that_does_not_fit_is_shown_by_its_length() -> None:
    """The document cuts long texts alone: two hundred short ones would stay, whatever its budget."""
    rows = [f"row {number}" for number in range(200)]
    arguments = json.dumps({"path": "f1", "rows": rows, "last": 7})
    cut = json.loads(cut_arguments(arguments, 200, pointer=POINTER))
    assert cut == {"path": "f1", "rows": f"... [{len(json.dumps(rows))} chars, whole: {POINTER}]", "last": 7}


@pytest.mark.parametrize("arguments", ["{broken" + "x" * 500, "[" * 5_000, json.dumps(["x" * 500])])
def test_arguments_that_are_no_object_are_unchanged(arguments: str) -> None:
    assert cut_arguments(arguments, 200, pointer=POINTER) == arguments


def test_a_long_text_of_one_word_keeps_its_first_60_characters() -> None:
    key = "".join(f"{number:04}" for number in range(100))
    cut = json.loads(cut_arguments(json.dumps({"key": key}), 200, pointer=POINTER))
    assert cut == {"key": f"{key[:60]}... [400 chars, whole: {POINTER}]"}


NUMBERS = ["1e999", "-1E+400", "12345678901234567890.5", "1.10", "-0", "9" * 50, "1e3"]


@pytest.mark.parametrize("number", [*NUMBERS, "9" * 5_000])
def test_numbers_stay_as_they_are_written(number: str) -> None:
    arguments = f'{{"n": {number}, "in": [{{"n": {number}}}], "text": "{"word " * 100}"}}'
    cut = cut_arguments(arguments, 20_000 if len(number) > 50 else 400, pointer=POINTER)
    assert f'"n": {number}, "in": [{{"n": {number}}}]' in cut or cut == arguments
    assert msgspec.json.decode(cut, type=dict[str, msgspec.Raw])["n"] == msgspec.Raw(number.encode())


@pytest.mark.parametrize("written", [r"\ud83d", r"\ude00x", "\ud83d"])
def test_lone_surrogates_are_written_as_escapes(written: str) -> None:
    cut = cut_arguments(f'{{"a": "{written}", "text": "{"word " * 100}"}}', 200, pointer=POINTER)
    assert cut.isascii()
    assert json.loads(cut)["a"] == json.loads(f'"{written}"')


def test_short_arguments_and_those_no_note_shortens_are_unchanged() -> None:
    assert cut_arguments("{}", 100, pointer=POINTER) == "{}"
    arguments = json.dumps({"a": "x" * 70, "b": "y" * 25})
    assert cut_arguments(arguments, 100, pointer=POINTER) == arguments


def test_an_empty_view_asks_for_nothing() -> None:
    assert decided(FAST, View(), pressure=pressure(10)).drafts == ()


def test_arguments_that_prior_work_takes_out_of_view_are_not_cut_as_well() -> None:
    log = admitted(session(*(turn(number, content="Words of a report. " * 50) for number in range(8))))
    folded, *clipped = decided(FAST, log.view, pressure=pressure(20_000)).drafts
    assert (folded.kind, {draft.kind for draft in clipped}) == ("summarised", {"clipped"})
    assert [draft.first for draft in clipped] == [11, 13]
    assert folded.last == 10
