"""Signals of a task: what each measures, and how all are scaled."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.errors import InputError
from lading.messages import Message, Text, ToolCall, ToolResult, own_words, tool_result, user_text
from lading.task import signals
from lading.task.signals import (
    HALF_COUNTS,
    AllocatorSignals,
    count_dialogue_depth,
    count_expected_tool_calls,
    count_unresolved_questions,
    measure_checklist_evidence_ratio,
    measure_coverage,
    measure_freshness,
    measure_retrieval_hit_rate,
    measure_similarity,
    scale,
    weigh_risk,
)


def says(text: str, *, calls: int = 0) -> Message:
    made = (ToolCall(f"c{at}", "search", "{}") for at in range(calls))
    return Message("assistant", (Text(text), *made) if text else tuple(made))


def test_counts_scale_to_one_half_at_the_documents_examples_and_never_reach_one() -> None:
    signals = AllocatorSignals(expected_tool_calls=3, unresolved_questions=4, dialogue_depth=7, similarity=0.82)
    assert scale(signals) == {
        "checklist_evidence_ratio": 0.0,
        "expected_tool_calls": 0.5,
        "risk_weight": 0.0,
        "retrieval_hit_rate": 0.0,
        "similarity": 0.82,
        "freshness": 0.0,
        "unresolved_questions": 0.5,
        "dialogue_depth": 0.5,
    }
    assert 0.99 < scale(AllocatorSignals(dialogue_depth=10_000))["dialogue_depth"] < 1


@given(st.sampled_from(sorted(HALF_COUNTS)), st.integers(0, 10_000))
def test_a_larger_count_scales_higher(name: str, count: int) -> None:
    low, high = (scale(AllocatorSignals(**{name: each}))[name] for each in (count, count + 1))
    assert 0 <= low < high < 1


@pytest.mark.parametrize(
    "fields",
    [
        {"similarity": 1.01},
        {"similarity": -0.1},
        {"freshness": float("nan")},
        {"risk_weight": "High"},
        {"dialogue_depth": -1},
        {"dialogue_depth": 1.5},
    ],
)
def test_signals_out_of_range_are_an_error(fields: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(fields))):
        AllocatorSignals(**fields)


def test_checklist_and_coverage() -> None:
    assert measure_checklist_evidence_ratio([True, False, True, False]) == 0.5
    assert measure_checklist_evidence_ratio([]) == 0.0
    assert measure_coverage({"a", "b", "c", "d"}, {"a", "x"}) == 0.25
    assert measure_coverage(set(), {"a"}) == 1.0


def test_risks_in_words_and_numbers() -> None:
    assert [weigh_risk(risk) for risk in ("low", " Medium", "High", 0.3)] == [0.0, 0.5, 1.0, 0.3]
    for risk in ("severe", 1.5, None):
        with pytest.raises(InputError):
            weigh_risk(risk)  # type: ignore[arg-type]


def test_expected_tool_calls_are_the_median_of_the_complete_turns() -> None:
    first = [user_text("go"), says("", calls=1), tool_result("c0", "x"), says("", calls=3), says("done")]
    assert count_expected_tool_calls(first, tools=2) == 2
    second = [*first, user_text("more"), says("", calls=1), says("done"), user_text("again"), says("", calls=9)]
    assert count_expected_tool_calls(second, tools=2) == 3
    assert count_expected_tool_calls([], tools=5) == 5


def test_an_item_is_a_hit_if_its_id_or_one_of_its_values_is_in_the_answer() -> None:
    shown = {
        "mem_17": "The service well-known as billing listens on port 8443.",
        "mem_22": "Retries are in src/retry/policy.py.",
        "mem_3": "The budget is 50.",
        "mem_30": "Prefers short answers.",
    }
    assert measure_retrieval_hit_rate(shown, "It listens on 8443.") == 0.25
    assert measure_retrieval_hit_rate(shown, "See src/retry/policy.py and mem_30.") == 0.5
    assert measure_retrieval_hit_rate(shown, "A well-known answer with 50 short words.") == 0.0
    assert measure_retrieval_hit_rate(shown, "It listens on 8443.", known="Is port 8443 open?") == 0.0
    assert measure_retrieval_hit_rate({}, "mem_17") == 0.0
    assert measure_retrieval_hit_rate({"": "nothing"}, "any") == 0.0


def test_similarity_is_the_share_of_the_words_that_the_best_text_contains() -> None:
    assert measure_similarity("Retry policy of payments", ["retry now", "the PAYMENTS retry Policy"]) == 1.0
    assert measure_similarity("Retry policy of payments", ["retry now"]) == pytest.approx(1 / 3)
    assert measure_similarity("", ["retry"]) == measure_similarity("retry", []) == 0.0


def test_freshness_halves_each_week() -> None:
    assert measure_freshness([0]) == 1.0
    assert measure_freshness([7]) == 0.5
    assert measure_freshness([0, 14, float("inf")]) == pytest.approx((1 + 0.25 + 0) / 3)
    assert measure_freshness([]) == 0.0
    for age in (-1, float("nan"), "2 days"):
        with pytest.raises(InputError):
            measure_freshness([age])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([user_text("Which port? And which host?")], 2),
        ([user_text("Which port?"), says("8443.")], 0),
        ([user_text("Which port?"), says("I will look.", calls=1)], 1),
        ([user_text("Which port?"), says("Do you mean the public one?")], 2),
        ([user_text("Which port?"), says("Which host?"), user_text("The first."), says("8443.")], 0),
        ([says("Shall I go on?"), own_words("Step 3."), tool_result("c0", "Done? No.")], 1),
        ([user_text("Open http://x.io/?a=1 and run `a ? b : c`.\n```\nif x? y\n```")], 0),
        ([user_text("どのポート？教えて。")], 1),
        ([user_text('He asked "why?"'), says("")], 1),
        ([says("Which port?", calls=1), Message("user", (ToolResult("c0", ()), Text("The first.")))], 0),
        ([says("Which port?", calls=1), Message("user", (ToolResult("c0", ()),))], 1),
    ],
)
def test_a_question_is_open_until_the_other_side_answers(messages: list[Message], expected: int) -> None:
    assert count_unresolved_questions(messages) == expected


def test_dialogue_depth_counts_what_the_user_says() -> None:
    talk = [user_text("a"), says("", calls=1), tool_result("c0", "x"), own_words("note"), says("b"), user_text("c")]
    assert count_dialogue_depth(talk) == 2


@given(st.text("abcß é_1.", max_size=60), st.text("abcß é_1.", max_size=60))
def test_known_words_are_those_of_all_words(text: str, query: str) -> None:
    words = signals.find_words(query)
    assert signals.find_known_words(text, words) == signals.find_words(text) & words


def test_many_known_words_are_those_of_all_words() -> None:
    words = {f"word{at}" for at in range(2_000)}
    assert signals.find_known_words("Word7 and word1999, not word7000", words) == {"word7", "word1999"}
