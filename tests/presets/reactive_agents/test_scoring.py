"""Scores: the golden values, and the flaws that they do not have."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.history.history import History
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import Message, Text, ToolResult, user_text
from lading.presets.reactive_agents.scored import ScoreCache
from lading.presets.reactive_agents.scoring import (
    KIND_WEIGHTS,
    STOP_WORDS,
    MemoryItem,
    ScoreSignals,
    allocate_context_budget,
    compute_recency,
    compute_relevance,
    compute_signals,
    extract_task_words,
    score,
    scores,
    select_relevant_memories,
)
from lading.presets.reactive_agents.steps import Step, StepKind
from tests.histories import answered, called, said
from tests.views import admitted


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
    assert compute_signals(step, iterations_ago=ago, relevant=relevant).score == pytest.approx(expected, abs=5e-5)


def test_recency_decays_and_the_future_counts_as_now() -> None:
    assert compute_recency(3) == pytest.approx(0.4066, abs=5e-5)
    assert compute_recency(0) == compute_recency(-4) == 1.0


def test_the_document_s_weights_of_kinds() -> None:
    assert [KIND_WEIGHTS[kind] for kind in ("observation", "action", "thought")] == [0.8, 0.6, 0.4]
    assert [KIND_WEIGHTS[kind] for kind in ("memory", "rules", "task", "tool-ref")] == [0.5, 1.0, 1.0, 1.0]
    assert compute_signals(Step("other", ""), iterations_ago=0, relevant=0.0).weight == 0.5


def test_stop_words_and_words_of_two_letters_do_not_count() -> None:
    stop = "the a an is are was were to of in for and or on at by with from that this it"
    assert set(stop.split()) == STOP_WORDS
    assert len(STOP_WORDS) == 21
    assert extract_task_words(stop.upper()) == ()
    assert extract_task_words("go up map the API") == ("map", "api")


def test_urgency_multiplies_the_whole_sum_and_the_outcome_is_at_most_one() -> None:
    failed = compute_signals(Step("observation", "", failed=True), iterations_ago=3, relevant=0.5)
    well = compute_signals(Step("observation", ""), iterations_ago=3, relevant=0.5)
    assert (failed.urgency, well.urgency) == (1.5, 1.0)
    assert failed.score == pytest.approx(1.5 * well.score)
    assert compute_signals(Step("observation", "", failed=True), iterations_ago=0, relevant=1.0).score == 1.0
    assert compute_signals(Step("thought", "", failed=True), iterations_ago=0, relevant=0.0).urgency == 1.0


def test_a_pinned_step_scores_one() -> None:
    assert score(Step("thought", "", pinned=True), task="", iteration=99) == 1.0


def test_relevance_is_the_share_of_task_words_in_the_content() -> None:
    words = extract_task_words("Write the REPORT on TypeScript performance")
    assert words == ("write", "report", "typescript", "performance")
    assert compute_relevance(words, "a TYPESCRIPT reporter") == 0.5
    assert compute_relevance((), "anything") == 0.0
    assert extract_task_words("it is on by at") == ()


def test_duplicates_in_the_task_count_again() -> None:
    assert compute_relevance(extract_task_words("cats cats dogs"), "cats") == pytest.approx(2 / 3)


def test_punctuation_does_not_hide_a_word() -> None:
    assert compute_relevance(extract_task_words("Write the report."), "the report, written") == 0.5


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
    assert [item.content for item in select_relevant_memories(memories)] == ["a", "c"]


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
    found = compute_signals(step, iterations_ago=ago, relevant=relevant).score
    assert 0 < found <= 1
    assert compute_signals(step, iterations_ago=ago - 1, relevant=relevant).score >= found


def session() -> History:
    """A task, a steering user, and rounds of which one failed and one is about penguins."""
    history = [user_text("Count penguins."), called("a"), answered("a", "penguins everywhere")]
    history += [called("b"), Message("tool", (ToolResult("b", (Text("no such file"),), is_error=True),))]
    return admitted([*history, user_text("The penguins, please."), said("Well."), called("c"), answered("c", "ok")])


def test_a_strategy_or_caller_is_told_what_each_entry_of_a_view_is_worth_and_why() -> None:
    found = scores(session().view)
    # Entry 0 is the head; the newest round, the fourth, began with entry 7.
    assert list(found) == [1, 2, 3, 4, 5, 6, 7, 8]
    recent = math.exp(-0.3 * 3)
    assert found[2] == ScoreSignals(False, 0.5 * recent + 0.2 * 0.5 + 0.3 * 0.8, recent, 0.5, 0.8, 1.0)
    assert found[2].score == pytest.approx(0.5433, abs=5e-5)
    assert (found[4].urgency, found[4].relevance) == (1.5, 0.0)
    assert (found[5].is_pinned, found[5].score) == (True, 1.0)
    assert (found[8].recency, found[8].weight) == (1.0, 0.8)
    assert found[1].weight == 0.6
    assert found[6].weight == 0.4


def test_the_task_of_scores_may_be_given() -> None:
    found = scores(session().view, task="a file")
    assert found[4].relevance == 1.0
    assert found[2].relevance == 0.0


def test_what_the_caller_pinned_scores_one_and_what_left_the_view_keeps_its_score() -> None:
    history = session()
    before = scores(history.view)
    history.pin(2, call=1)
    assert scores(history.view)[2].score == 1.0
    assert scores(history.view)[2].relevance == before[2].relevance
    draft = Draft("dropped", 3, 4, (user_text("gone"),), "why", ("artifact://t/s/log/3-4",))
    history.apply(draft, call=2, room_tokens=100)
    assert scores(history.view)[4] == before[4]
    assert scores(View()) == {}


def test_the_batch_that_is_scored_goes_by_the_same_advice() -> None:
    history = session()
    advice = scores(history.view)
    ranks = ScoreCache().rank_entries(history.view, full_detail_steps=1)
    assert {entry: (pinned, score) for entry, (pinned, _, score) in ranks.items()} == {
        entry: (signal.is_pinned, signal.score) for entry, signal in advice.items()
    }
    assert [entry for entry, (_, recent, _) in ranks.items() if recent] == [7, 8]
