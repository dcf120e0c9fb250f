"""Scores: the golden values, and the flaws that they do not have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.compaction.reactive_agents.scoring import (
    KIND_WEIGHTS,
    STOP_WORDS,
    MemoryItem,
    allocate_context_budget,
    combined,
    recency,
    relevance,
    relevant_memories,
    score,
    task_words,
)
from lading.compaction.reactive_agents.steps import Step, StepKind


@pytest.mark.parametrize(
    ("ago", "relevant", "kind", "failed", "expected"),
    [
        (0, 1.0, "observation", False, 0.94),
        (3, 0.5, "observation", False, 0.5433),
        (3, 0.5, "observation", True, 0.8149),
        (8, 0.0, "thought", False, 0.1654),
        (1, 0.25, "action", False, 0.6004),
        (0, 1.0, "observation", True, 1.0),
        (3, 0.5, "action", True, 0.4833),
        (0, 0.0, "rules", False, 0.8),
        (0, 0.0, "memory", False, 0.65),
        (0, 0.0, "other", False, 0.65),
    ],
)
def test_golden_scores(ago: int, relevant: float, kind: StepKind, failed: bool, expected: float) -> None:
    step = Step(kind, "", failed=failed)
    assert combined(step, iterations_ago=ago, relevant=relevant) == pytest.approx(expected, abs=5e-5)


def test_recency_decays_and_the_future_counts_as_now() -> None:
    assert recency(3) == pytest.approx(0.4066, abs=5e-5)
    assert recency(0) == recency(-4) == 1.0


def test_the_document_s_weights_of_kinds() -> None:
    assert [KIND_WEIGHTS[kind] for kind in ("observation", "action", "thought")] == [0.8, 0.6, 0.4]
    assert len(STOP_WORDS) == 21


def test_a_pinned_step_scores_one() -> None:
    assert score(Step("thought", "", pinned=True), task="", iteration=99) == 1.0


def test_relevance_is_the_share_of_task_words_in_the_content() -> None:
    words = task_words("Write the REPORT on TypeScript performance")
    assert words == ("write", "report", "typescript", "performance")
    assert relevance(words, "a TYPESCRIPT reporter") == 0.5
    assert relevance((), "anything") == 0.0
    assert task_words("it is on by at") == ()


def test_duplicates_in_the_task_count_again() -> None:
    assert relevance(task_words("cats cats dogs"), "cats") == pytest.approx(2 / 3)


def test_punctuation_does_not_hide_a_word() -> None:
    assert relevance(task_words("Write the report."), "the report, written") == 0.5


def test_recent_are_as_many_iterations_as_the_profile_says_and_not_one_more() -> None:
    steps = [Step("thought", "", iteration) for iteration in range(10)]
    split = allocate_context_budget(steps, task="", iteration=9, full_detail_steps=3)
    assert split.recent == (7, 8, 9)
    assert split.scored == (6, 5, 4, 3, 2, 1, 0)


def test_the_others_come_by_score_and_the_newer_of_equals_first() -> None:
    steps = [
        Step("observation", "about cats", 0),
        Step("thought", "nothing", 0),
        Step("thought", "nothing", 0),
        Step("user", "pinned", 0, pinned=True),
        Step("observation", "failed", 0, failed=True),
    ]
    split = allocate_context_budget(steps, task="cats", iteration=9, full_detail_steps=1)
    assert (split.pinned, split.recent, split.scored) == ((3,), (), (0, 4, 2, 1))


def test_memories_of_less_than_three_tenths_are_dropped() -> None:
    memories = [MemoryItem("a", 0.3), MemoryItem("b", 0.29999), MemoryItem("c", 1.0)]
    assert [item.content for item in relevant_memories(memories)] == ["a", "c"]


@given(
    ago=st.integers(-5, 10_000),
    relevant=st.floats(0, 1),
    kind=st.sampled_from(["observation", "action", "thought", "user"]),
    failed=st.booleans(),
)
def test_scores_are_shares_and_newer_is_never_worse(
    ago: int, relevant: float, kind: StepKind, failed: bool
) -> None:
    step = Step(kind, "", failed=failed)
    found = combined(step, iterations_ago=ago, relevant=relevant)
    assert 0 < found <= 1
    assert combined(step, iterations_ago=ago - 1, relevant=relevant) >= found
