from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace

from lading.history.repair import CONTINUE, EMPTY, OPENING, UNANSWERED, Repairer
from lading.history.repair_rules import RULES, CallNeeds, Needs
from lading.messages import Message, Text, ToolCall, ToolResult, user_text
from tests.examples import share_of_examples
from tests.growth import assert_linear
from tests.histories import answered, called, histories, said


def shown(history: list[Message], needs: Needs | None = None) -> tuple[list[Message], list[str]]:
    """The history as the repairer shows it, closed for a request, and the rules that were applied."""
    repairer = Repairer(needs)
    repaired = [repairer.repair(message) for message in history]
    repaired.append(repairer.find_closing())
    messages = [message for item in repaired for message in item.messages]
    return messages, [repair.rule for item in repaired for repair in item.repairs]


def test_a_sound_history_passes_as_the_same_objects() -> None:
    history = [user_text("hi"), called("a"), answered("a"), said("done"), user_text("thanks")]
    messages, rules = shown(history)
    assert rules == []
    assert all(one is other for one, other in zip(messages, history, strict=True))


def test_a_call_without_a_result_is_answered_before_the_next_message() -> None:
    messages, rules = shown([user_text("hi"), called("a"), user_text("stop")])
    assert rules == ["unanswered_call"]
    assert messages[2] == Message("tool", (ToolResult("a", (Text(UNANSWERED),), is_error=True),))


def test_a_call_that_needs_no_result_gets_none() -> None:
    history = [user_text("hi"), called("a"), user_text("stop"), called("b")]
    messages, rules = shown(
        history, Needs(calls=CallNeeds(may_stay_open=lambda message: message.calls[0].id == "a"))
    )
    assert messages[:3] == history[:3]
    assert rules == ["unanswered_call"]


def test_one_of_two_parallel_calls_without_a_result() -> None:
    both = Message("assistant", (ToolCall("a", "read", "{}"), ToolCall("b", "read", "{}")))
    messages, rules = shown([user_text("hi"), both, answered("b"), said("ok"), user_text("go on")])
    assert rules == ["unanswered_call"]
    assert [result.call_id for message in messages for result in message.results] == ["b", "a"]


def test_a_late_result_is_shown_as_text_and_the_earlier_request_stays() -> None:
    repairer = Repairer()
    first = [message for raw in [user_text("hi"), called("a")] for message in repairer.repair(raw).messages]
    closing = repairer.find_closing()
    repairer.close(closing)
    first += closing.messages
    late = repairer.repair(answered("a", "the real result"))
    assert [repair.rule for repair in late.repairs] == ["orphan_result"]
    assert late.messages[0].role == "user"
    assert "the real result" in late.messages[0].text


def test_an_orphan_between_parallel_results_waits_for_them() -> None:
    both = Message("assistant", (ToolCall("a", "read", "{}"), ToolCall("b", "read", "{}")))
    messages, rules = shown([user_text("hi"), both, answered("a"), answered("x", "stray"), answered("b")])
    assert rules == ["orphan_result"]
    assert [message.role for message in messages] == ["user", "assistant", "tool", "tool", "user"]
    assert "stray" in messages[-1].text


def test_an_orphan_that_waits_for_a_result_which_never_comes_is_shown() -> None:
    both = Message("assistant", (ToolCall("a", "read", "{}"), ToolCall("b", "read", "{}")))
    messages, rules = shown(
        [user_text("hi"), both, answered("a"), answered("x", "stray"), said("ok"), user_text("go")]
    )
    assert rules == ["orphan_result", "unanswered_call"]
    assert [message.role for message in messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
        "assistant",
        "user",
    ]
    assert "stray" in messages[4].text


def test_closing_changes_nothing_until_it_is_closed() -> None:
    repairer = Repairer()
    repairer.repair(called("a"))
    assert [repair.rule for repair in repairer.find_closing().repairs] == ["unanswered_call"]
    assert repairer.repair(answered("a")).messages == (answered("a"),)


def test_duplicate_ids_are_renamed_from_the_second_on() -> None:
    history = [user_text("hi"), called("a"), answered("a"), called("a"), answered("a"), user_text("go on")]
    messages, rules = shown(history)
    assert rules == ["duplicate_id", "duplicate_id"]
    assert messages[1] is history[1]
    assert messages[3].calls[0].id == messages[4].results[0].call_id == "a_2"


def test_a_long_duplicate_id_stays_within_forty_characters() -> None:
    long = "x" * 40
    messages, _ = shown([user_text("hi"), called(long), answered(long), called(long), answered(long)])
    assert len(messages[3].calls[0].id) <= 40
    assert messages[4].results[0].call_id == messages[3].calls[0].id


def test_an_id_or_a_name_that_the_wire_does_not_take_is_replaced_with_its_result() -> None:
    needs = Needs(calls=CallNeeds(r".{1,40}"), tool_name=r"[a-z_]{1,64}")
    long = "chatcmpl-tool-" + "0" * 32
    history = [user_text("hi"), called(long, "files.read"), answered(long), called("b"), answered("b")]
    messages, rules = shown(history, needs)
    assert rules == ["unfit_name", "unfit_id", "unfit_id"]
    call = messages[1].calls[0]
    assert call.name == "files_read"
    assert len(call.id) <= 40
    assert messages[2].results[0].call_id == call.id
    assert messages[3] is history[3]


def test_a_result_that_names_its_function_is_shown_with_the_name_that_its_call_has() -> None:
    history = [user_text("hi"), called("a", "mcp: do.it"), answered("a", name="mcp: do.it")]
    messages, rules = shown(history, Needs(tool_name=r"[a-z_]+"))
    assert (messages[1].calls[0].name, messages[2].results[0].name) == ("mcp__do_it", "mcp__do_it")
    assert rules == ["unfit_name", "unfit_name"]


@pytest.mark.parametrize("before", [[], [Message("system", (Text("Be brief."),))], [said("Hello.")]])
def test_what_may_not_open_a_conversation_gets_a_user_turn_before_it(before: list[Message]) -> None:
    history = [*before, called("a"), answered("a"), called("b"), answered("b")]
    messages, rules = shown(history, Needs(may_open=lambda first: not first.calls))
    assert messages == [*before, user_text(OPENING), *history[len(before) :]]
    assert rules == ["starts_with_assistant"]


def test_a_conversation_that_the_assistant_may_open_stays_as_it_is() -> None:
    history = [said("Hello."), user_text("hi")]
    assert shown(history, Needs(may_open=lambda first: not first.calls)) == (history, [])
    assert shown([called("a"), answered("a")])[1] == []


def test_a_tool_message_without_a_result_is_the_users() -> None:
    messages, rules = shown([user_text("hi"), called("a"), Message("tool"), user_text("So?")])
    assert [message.role for message in messages] == ["user", "assistant", "tool", "user", "user"]
    assert messages[3].text == EMPTY
    assert rules == ["unanswered_call", "empty_text"]


def test_two_calls_of_one_id_in_one_message_are_answered_in_order() -> None:
    twice = Message("assistant", (ToolCall("a", "read", "{}"), ToolCall("a", "shell", "{}")))
    messages, _ = shown([user_text("hi"), twice, answered("a", "one"), answered("a", "two")])
    assert [result.call_id for message in messages for result in message.results] == ["a", "a_2"]
    assert [result.text for message in messages for result in message.results] == ["one", "two"]


def test_results_without_a_name_answer_calls_of_one_id_in_order() -> None:
    thrice = Message("assistant", tuple(ToolCall("a", name, "{}") for name in ("read", "shell", "list")))
    history = [user_text("hi"), thrice, *(answered("a", text, name="") for text in ("one", "two", "three"))]
    results = [result for message in shown(history)[0] for result in message.results]
    assert [(result.call_id, result.text) for result in results] == [("a", "one"), ("a_2", "two"), ("a_3", "three")]


def test_an_empty_message_says_that_it_is_empty() -> None:
    messages, rules = shown([user_text("hi"), said(""), user_text("  ")])
    assert rules == ["empty_text", "empty_text"]
    assert [message.text for message in messages[1:]] == [EMPTY, EMPTY]


def test_empty_text_beside_a_call_stays_unless_the_wire_forbids_it() -> None:
    beside = Message("assistant", (Text(""), ToolCall("a", "read", "{}")))
    history = [user_text("hi"), beside, answered("a")]
    assert shown(history) == (history, [])
    messages, rules = shown(history, Needs(no_empty_texts=True))
    assert rules == ["empty_text"]
    assert messages[1].parts == beside.parts[1:]


def test_missing_results_join_the_user_message_that_brings_the_others() -> None:
    both = Message("assistant", (ToolCall("a", "read", "{}"), ToolCall("b", "read", "{}")))
    reply = Message("user", (ToolResult("a", (Text("one"),)), Text("and go on")))
    messages, rules = shown([user_text("hi"), both, reply])
    assert rules == ["unanswered_call"]
    assert [result.call_id for result in messages[2].results] == ["a", "b"]
    assert messages[2].parts[-1] == Text("and go on")


def test_a_request_never_ends_with_an_assistant_message() -> None:
    messages, rules = shown([user_text("hi"), said("a thought")])
    assert rules == ["ends_with_assistant"]
    assert messages[-1] == user_text(CONTINUE)


def test_runs_of_one_role_are_reported_where_they_must_alternate() -> None:
    history = [user_text("hi"), user_text("again"), said("a"), said("b"), user_text("c")]
    assert shown(history)[1] == []
    assert shown(history, Needs(alternation=True))[1] == ["same_role_run", "same_role_run"]


@share_of_examples(2)
@given(histories())
def test_every_history_comes_out_paired(history: list[Message]) -> None:
    messages, rules = shown(history)
    assert set(rules) <= set(RULES)
    waiting: set[str] = set()
    seen: set[str] = set()
    for message in messages:
        if message.results:
            ids = [result.call_id for result in message.results]
            assert len(ids) == len(set(ids))
            assert set(ids) <= waiting
            waiting -= set(ids)
        else:
            assert not waiting
        for call in message.calls:
            assert call.id
            assert call.id not in seen
            seen.add(call.id)
            waiting.add(call.id)
    assert not waiting
    assert messages[-1].role != "assistant"


@given(histories())
def test_what_was_shown_is_never_shown_otherwise(history: list[Message]) -> None:
    whole = Repairer()
    for cut in range(1, len(history)):
        half = Repairer()
        assert [half.repair(message) for message in history[:cut]][-1] == whole.repair(history[cut - 1])


def test_the_page_of_repairs_lists_every_rule_in_the_codes_words() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "repairs.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", page, re.MULTILINE))
    assert listed == RULES


def test_calls_without_an_id_are_paired_with_results_without_one() -> None:
    history = [
        user_text("hi"),
        called(""),
        answered("", "one"),
        Message("assistant", (ToolCall("", "look", "{}"), ToolCall("", "restore", "{}"))),
        Message("tool", (ToolResult("", (Text("two"),), name="restore"),)),
        answered("", "three"),
    ]
    messages, rules = shown(history, Needs(calls=CallNeeds(r".{1,40}")))
    assert "orphan_result" not in rules
    assert "unanswered_call" not in rules
    first, (look, restore) = messages[1].calls, messages[3].calls
    ids = [call.id for call in (*first, look, restore)]
    assert all(ids)
    assert len(set(ids)) == 3
    assert [result.call_id for message in messages for result in message.results] == [ids[0], restore.id, look.id]


def _parallel(number: int, *, call_id: str = "c", result_id: str = "c", is_named: bool = False) -> list[Message]:
    """One message with so many calls, and their results; named ones come in the opposite order."""
    names = [f"read_{at}" if is_named else "" for at in range(number)]
    calls = tuple(ToolCall(call_id.format(at), name or "read", "{}") for at, name in enumerate(names))
    answers = (ToolResult(result_id, (Text("ok"),), name=name) for name in reversed(names))
    return [user_text("Go."), Message("assistant", calls), *(Message("tool", (answer,)) for answer in answers)]


@pytest.mark.parametrize(
    "calls",
    [
        {},
        {"is_named": True},
        {"call_id": "c{}", "result_id": ""},
        {"call_id": "c{}", "result_id": "", "is_named": True},
    ],
    ids=["one id", "one id, by name", "no id", "no id, by name"],
)
def test_parallel_calls_are_answered_in_linear_time(calls: dict[str, Any]) -> None:
    few, many = (_parallel(number, **calls) for number in (500, 4_500))
    assert UNANSWERED not in str(shown(many))
    assert_linear(shown, few, many)


class Compared(str):
    """A name that counts how often it is compared, and how often names were."""

    times = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return str.__eq__(self, other)


def _count_comparisons(number: int, *, ids: Sequence[str], named: str) -> int:
    """Comparisons of names while so many parallel calls get results that name a function."""
    calls = tuple(ToolCall(ids[at % len(ids)], Compared(f"read{at}"), "{}") for at in range(number))
    results = tuple(ToolResult("", name=Compared(named.format(number - 1 - at))) for at in range(number))
    if ids[0]:
        results = tuple(replace(result, call_id=ids[at % len(ids)]) for at, result in enumerate(results))
    Compared.times = 0
    shown([user_text("Go."), Message("assistant", calls), Message("user", results)])
    return Compared.times


@pytest.mark.parametrize("ids", [("c",), ("",), ("a", "b")])
def test_results_that_name_another_function_are_matched_with_few_comparisons(ids: Sequence[str]) -> None:
    for number in (200, 1_600):
        assert _count_comparisons(number, ids=ids, named="write{}") <= 12 * number


@pytest.mark.parametrize("needs", [Needs(), Needs(calls=CallNeeds("[a-z]+"))])
def test_an_id_that_would_fill_a_window_is_replaced(needs: Needs) -> None:
    long = "a" * 1_000_000
    messages, rules = shown([user_text("hi"), called(long), answered(long)], needs)
    assert rules == ["unfit_id", "unfit_id"]
    assert messages[1].calls[0].id == messages[2].results[0].call_id
    assert len(messages[1].calls[0].id) < 100
