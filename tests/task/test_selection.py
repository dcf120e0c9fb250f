"""Choice of candidates: the value it reaches beside the optimum, what it always holds, and its errors."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.allocation import LEAST, LEAST_MEAN, Instance, choose, compare, find_bounds, make_instances
from lading.errors import InputError, RequiredTooLarge, UnknownCandidate
from lading.task.candidates import Candidate
from lading.task.selection import MOST_SEARCHED, Selection, select
from tests.examples import quick_first


def find_optimum(candidates: Sequence[Candidate], budget_tokens: int, required: Sequence[str] = ()) -> float | None:
    """The largest value of all choices, each tried; None where the required ones do not fit."""
    best: float | None = None
    ids = [candidate.id for candidate in candidates]
    masks = [sum(1 << ids.index(needed) for needed in set(candidate.needs)) for candidate in candidates]
    least = sum(1 << ids.index(name) for name in set(required))

    def visit(at: int, chosen: int, tokens: int) -> None:
        nonlocal best
        if tokens > budget_tokens:
            return
        if at == len(candidates):
            members = [number for number in range(at) if chosen >> number & 1]
            if least & ~chosen or any(masks[number] & ~chosen for number in members):
                return
            value = compute_value([candidates[number] for number in members])
            best = value if best is None else max(best, value)
            return
        visit(at + 1, chosen | 1 << at, tokens + candidates[at].tokens)
        visit(at + 1, chosen, tokens)

    visit(0, 0, 0)
    return best


def compute_value(chosen: Sequence[Candidate]) -> float:
    """The value of a choice by its definition."""
    covered: dict[str, float] = {}
    for candidate in chosen:
        for concept, weight in candidate.concepts.items():
            covered[concept] = max(covered.get(concept, 0.0), weight)
    return sum(candidate.value for candidate in chosen) + sum(covered.values())


@st.composite
def pools(draw: Any) -> list[Candidate]:
    """Up to eight candidates that need each other in any way, cycles included."""
    size = draw(st.integers(1, 8))
    ids = [f"i{at}" for at in range(size)]
    weights = st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0])
    return [
        Candidate(
            name,
            draw(st.integers(1, 12)),
            draw(weights),
            draw(st.dictionaries(st.sampled_from("abcd"), weights, max_size=3)),
            tuple(draw(st.lists(st.sampled_from(ids), max_size=2))),
        )
        for name in ids
    ]


@pytest.mark.parametrize("count", quick_first([16, 500], 1))
def test_choices_among_14_come_close_to_the_best_of_all(count: int) -> None:
    check_ratios(make_instances(14, count), lambda one: find_optimum(one.candidates, one.budget_tokens) or 0.0)


@pytest.mark.parametrize("count", quick_first([4, 50], 1))
def test_choices_among_60_come_close_to_the_optimum_of_the_integer_program(count: int) -> None:
    pytest.importorskip("scipy", reason="the exact optimum needs scipy of the group dev")
    check_ratios(make_instances(60, count), lambda one: find_bounds(one).optimum)


def check_ratios(instances: Any, find: Any) -> None:
    ratios = [compare(choose(instance).value, find(instance)) for instance in instances]
    assert fmean(ratios) >= LEAST_MEAN
    assert min(ratios) >= LEAST
    assert max(ratios) <= 1 + 1e-6


def test_the_integer_program_agrees_with_trying_all_choices() -> None:
    pytest.importorskip("scipy", reason="the exact optimum needs scipy of the group dev")
    for instance in make_instances(10, 12, seed=7):
        bounds = find_bounds(instance)
        assert bounds.optimum == pytest.approx(find_optimum(instance.candidates, instance.budget_tokens), abs=1e-6)
        assert bounds.relaxed >= bounds.optimum - 1e-6


@given(pools(), st.integers(0, 50), st.data())
def test_a_choice_proven_optimal_is(candidates: list[Candidate], budget: int, data: Any) -> None:
    required = data.draw(st.lists(st.sampled_from([candidate.id for candidate in candidates]), max_size=2))
    best = find_optimum(candidates, budget, required)
    if best is None:
        with pytest.raises(RequiredTooLarge):
            select(candidates, budget, required=required)
        return
    selection = select(candidates, budget, required=required)
    check_selection(selection, candidates, budget)
    assert set(required) <= set(selection.chosen)
    assert selection.is_optimal
    assert selection.value == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("size", [20, MOST_SEARCHED + 50])
def test_a_choice_holds_what_its_members_need_and_fits(size: int) -> None:
    for candidates, budget in make_instances(size, 8):
        check_selection(select(candidates, budget), candidates, budget)


def check_selection(selection: Selection, candidates: Sequence[Candidate], budget: int) -> None:
    """What every selection promises."""
    by_id = {candidate.id: candidate for candidate in candidates}
    chosen = [by_id[name] for name in selection.chosen]
    assert selection.tokens == sum(candidate.tokens for candidate in chosen) <= budget
    assert selection.value == pytest.approx(compute_value(chosen))
    assert {needed for candidate in chosen for needed in candidate.needs} <= set(selection.chosen)
    assert sorted([*selection.chosen, *(dropped.id for dropped in selection.dropped)]) == sorted(by_id)


def test_among_many_the_choice_is_greedy_by_value_per_token() -> None:
    candidates = [Candidate(f"i{at:03}", 10 + at, 1.0) for at in range(MOST_SEARCHED + 20)]
    found = select(candidates, sum(range(10, 30)) + 29)
    assert found.chosen == tuple(f"i{at:03}" for at in range(20))
    assert not found.is_optimal


def test_among_many_one_large_candidate_may_be_worth_more_than_all_small_ones() -> None:
    small = [Candidate(f"i{at:03}", 1, 0.02) for at in range(MOST_SEARCHED + 20)]
    assert select([*small, Candidate("large", 200, 3.9)], 200).chosen == ("large",)


def test_among_many_a_candidate_becomes_cheaper_once_what_it_needs_is_chosen() -> None:
    filler = [Candidate(f"i{at:03}", 10, 2.0) for at in range(MOST_SEARCHED + 20)]
    shared = [
        Candidate("shared", 20),
        Candidate("x", 1, 5.0, needs=("shared",)),
        Candidate("y", 10, 3.0, needs=("shared",)),
    ]
    assert select([*filler, *shared], 41).chosen == ("i000", "shared", "x", "y")


def test_among_many_a_concept_of_a_candidate_and_of_what_it_needs_counts_once() -> None:
    filler = [Candidate(f"i{at:03}", 10, 0.8) for at in range(MOST_SEARCHED + 20)]
    pair = [Candidate("x", 10, 0.0, {"c": 1.0}, ("y",)), Candidate("y", 10, 0.0, {"c": 1.0}, ("x",))]
    assert select([*filler, *pair], 20).chosen == ("i000", "i001")


def test_swaps_leave_what_is_required_and_stay_within_the_budget() -> None:
    for candidates, budget in make_instances(40, 4):
        required = [min(candidates, key=lambda one: (bool(one.needs), one.value / one.tokens, one.tokens)).id]
        selection = select(candidates, budget, required=required)
        check_selection(selection, candidates, budget)
        assert required[0] in selection.chosen


def test_a_concept_counts_once_by_its_largest_weight() -> None:
    candidates = [
        Candidate("a", 10, concepts={"risk": 1.0}),
        Candidate("b", 10, concepts={"risk": 0.8}),
        Candidate("c", 10, concepts={"gap": 0.3}),
    ]
    selection = select(candidates, 20)
    assert selection.chosen == ("a", "c")
    assert selection.value == pytest.approx(1.3)
    assert select(candidates, 30).dropped[0].reason == "no gain"


def test_dropped_candidates_say_why_and_for_which_layer() -> None:
    candidates = [
        Candidate("a", 10, 5.0),
        Candidate("b", 10, 1.0, layer="memory"),
        Candidate("c", 8, 1.0, needs=("d",), layer="evidence"),
        Candidate("d", 8),
        Candidate("e", 1),
    ]
    found = {dropped.id: (dropped.layer, dropped.reason) for dropped in select(candidates, 15).dropped}
    assert found == {
        "b": ("memory", "overflow"),
        "c": ("evidence", "too large"),
        "d": ("", "no gain"),
        "e": ("", "no gain"),
    }


def test_candidates_that_need_each_other_are_taken_together() -> None:
    candidates = [
        Candidate("a", 5, 1.0, needs=("b",)),
        Candidate("b", 5, needs=("c",)),
        Candidate("c", 5, needs=("a",)),
    ]
    assert select(candidates, 15).chosen == ("a", "b", "c")
    assert select(candidates, 14).chosen == ()
    assert select([*candidates, Candidate("d", 1, 0.1)], 15, required=["b"]).chosen == ("a", "b", "c")


def test_required_candidates_come_first_with_what_they_need() -> None:
    candidates = [Candidate("a", 10, 9.0), Candidate("b", 5, needs=("c",)), Candidate("c", 5)]
    assert select(candidates, 10, required=["b", "b"]).chosen == ("b", "c")


def test_required_candidates_that_do_not_fit_are_named() -> None:
    candidates = [Candidate("a", 10, 9.0), Candidate("b", 5, needs=("c",)), Candidate("c", 8)]
    with pytest.raises(RequiredTooLarge) as raised:
        select(candidates, 10, required=["b"])
    assert (raised.value.required, raised.value.excess_tokens) == (("b", "c"), 3)
    assert str(raised.value) == (
        "The required candidates, with what they need, take 13 tokens and the budget has 10: b, c. "
        "Shorten them, require fewer, or split the step."
    )


def test_the_order_in_which_candidates_and_concepts_are_given_changes_nothing() -> None:
    for candidates, budget in make_instances(20, 4):
        turned = [
            Candidate(one.id, one.tokens, one.value, dict(reversed([*one.concepts.items()])), one.needs[::-1])
            for one in reversed(candidates)
        ]
        assert select(turned, budget) == select(candidates, budget)


def test_equal_candidates_are_taken_in_the_order_of_their_ids() -> None:
    assert select([Candidate(name, 10, 1.0) for name in "dbca"], 20).chosen == ("a", "b")


def test_nothing_to_choose_from() -> None:
    assert select([], 10) == Selection((), (), 0, 0.0, True)
    assert select([Candidate("a", 1, 1.0)], 0).dropped[0].reason == "too large"


def test_unknown_ids_are_an_error_that_names_them() -> None:
    with pytest.raises(UnknownCandidate) as raised:
        select([Candidate("a", 5, needs=("x", "y", "x"))], 10)
    assert raised.value.unknown == ("x", "y")
    assert str(raised.value) == (
        "No candidate has the id 'x', 'y', named by the candidate 'a'. Add it, or do not name it."
    )
    with pytest.raises(UnknownCandidate, match="named by required"):
        select([Candidate("a", 5)], 10, required=["b"])


def test_a_long_chain_of_needs_is_an_error_before_it_fills_the_memory() -> None:
    chain = [Candidate(f"i{at}", 1, 1.0, needs=(f"i{at - 1}",) if at else ()) for at in range(1_500)]
    with pytest.raises(InputError, match="Merge those that always go together"):
        select(chain, 10)


@pytest.mark.parametrize(
    "fields",
    [
        {"tokens": 0},
        {"tokens": 1.5},
        {"tokens": True},
        {"id": 5},
        {"value": -1.0},
        {"value": float("nan")},
        {"value": "1"},
        {"concepts": {"a": float("inf")}},
        {"concepts": ["a"]},
        {"needs": "ab"},
    ],
)
def test_a_candidate_that_cannot_be_used_is_an_error(fields: dict[str, Any]) -> None:
    usable: dict[str, Any] = {"id": "a", "tokens": 5}
    with pytest.raises(InputError):
        Candidate(**usable | fields)


def test_two_candidates_of_one_id_and_a_budget_that_is_no_count_are_errors() -> None:
    with pytest.raises(InputError, match="Two candidates have the id 'a'"):
        select([Candidate("a", 5), Candidate("a", 6)], 10)
    with pytest.raises(InputError, match="the budget is -1"):
        select([], -1)


def test_a_candidate_keeps_its_own_copy_of_the_concepts() -> None:
    concepts = {"a": 1.0}
    candidate = Candidate("a", 5, concepts=concepts)
    concepts["b"] = 1.0
    assert candidate.concepts == {"a": 1.0}
    with pytest.raises(TypeError):
        candidate.concepts["b"] = 1.0  # type: ignore[index]


def test_instances_are_the_same_each_time() -> None:
    assert list(make_instances(14, 4)) == list(make_instances(14, 4))
    assert isinstance(next(make_instances(14, 1)), Instance)
