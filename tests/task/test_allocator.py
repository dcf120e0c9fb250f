"""Budgets by layer: the document's numbers, exact sums, ranges, and what each signal does."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.errors import FloorsExceedWindow, InputError, UnknownName
from lading.task.allocator import (
    BUDGETS,
    FLEXIBLE,
    FLOOR_RANGES,
    LAYERS,
    PROFILES,
    SIGNALS,
    Floors,
    LayerBudgets,
    TaskProfile,
    allocate,
)
from lading.task.signals import AllocatorSignals

EXAMPLES = AllocatorSignals(
    checklist_evidence_ratio=0.7,
    expected_tool_calls=3,
    risk_weight=1.0,
    retrieval_hit_rate=0.6,
    similarity=0.82,
    freshness=0.82,
    unresolved_questions=4,
    dialogue_depth=7,
)
"""The example column of the document's table of signals."""

ratios = st.floats(0, 1)
counts = st.integers(0, 1_000)
signal_values = st.builds(
    AllocatorSignals,
    checklist_evidence_ratio=ratios,
    expected_tool_calls=counts,
    risk_weight=ratios,
    retrieval_hit_rate=ratios,
    similarity=ratios,
    freshness=ratios,
    unresolved_questions=counts,
    dialogue_depth=counts,
)
windows = st.integers(100, 2_000_000)
profiles = st.sampled_from(sorted(PROFILES))
uses = st.dictionaries(st.sampled_from([layer for layer in LAYERS if layer != "slack_min"]), st.integers(0, 40))


def total(budgets: LayerBudgets) -> int:
    return sum(budgets.tokens.values()) + budgets.unused_tokens


def test_the_fixed_layers_of_the_document_have_its_percentages() -> None:
    shown = allocate(128_000).format_percentages()
    assert {layer: shown[layer] for layer in ("system", "task", "tools", "slack_min")} == {
        "system": "6%",
        "task": "8%",
        "tools": "5%",
        "slack_min": "10%",
    }


def test_budgets_of_the_documents_examples() -> None:
    found = {name: dict(allocate(128_000, profile=name, signals=EXAMPLES).tokens) for name in PROFILES}
    fixed = {"system": 7_680, "task": 10_240, "tools": 6_400, "slack_min": 12_800}
    assert found == {
        "research": fixed | {"evidence": 57_472, "memory": 21_883, "conversation": 11_525},
        "requirements": fixed | {"evidence": 48_252, "memory": 26_493, "conversation": 16_135},
        "test_construction": fixed | {"evidence": 54_528, "memory": 22_720, "conversation": 13_632},
    }
    assert all(sum(tokens.values()) == 128_000 for tokens in found.values())


def test_a_weight_is_the_low_end_of_its_range_plus_an_equal_part_of_the_width_for_each_signal() -> None:
    budgets = allocate(128_000, signals=EXAMPLES)
    assert budgets.signals["expected_tool_calls"] == budgets.signals["dialogue_depth"] == 0.5
    evidence = 55 + 10 / 3 * (0.7 + 0.5 + 1.0)
    memory = 20 + 5 / 3 * (0.6 + 0.82 + 0.82)
    assert budgets.weights == pytest.approx({"evidence": evidence, "memory": memory, "conversation": 12.5})
    assert budgets.shares["evidence"] == pytest.approx(100 * evidence / (evidence + memory + 12.5))


def test_the_highs_of_test_construction_sum_to_100_so_that_no_signal_moves_it() -> None:
    for signals in (AllocatorSignals(), EXAMPLES):
        shares = allocate(128_000, profile="test_construction", signals=signals).shares
        assert shares == {"evidence": 60.0, "memory": 25.0, "conversation": 15.0}


def test_a_share_stops_at_the_end_of_its_range_and_the_others_take_the_rest_by_weight() -> None:
    strong = AllocatorSignals(checklist_evidence_ratio=1, expected_tool_calls=10**9, risk_weight=1)
    shares = allocate(128_000, signals=strong).shares
    assert shares == pytest.approx({"evidence": 65, "memory": 35 * 20 / 30, "conversation": 35 * 10 / 30})


def test_quality_first_has_the_upper_ends_of_the_floors_and_cost_first_the_lower_with_half_of_the_window() -> None:
    assert {layer: high for layer, (_, high) in FLOOR_RANGES.items()} == floors_of("quality-first")
    assert {layer: low for layer, (low, _) in FLOOR_RANGES.items()} == floors_of("cost-first")
    budgets = allocate(100_000, floors="cost-first")
    assert budgets.unused_tokens == 50_000
    assert total(budgets) == 100_000
    assert budgets.remainder_tokens < allocate(100_000, floors="quality-first").remainder_tokens


def floors_of(name: str) -> dict[str, float]:
    return {layer: getattr(BUDGETS[name], layer) for layer in FLOOR_RANGES}


def test_docs_is_another_name_of_requirements() -> None:
    assert allocate(1_000, profile="docs") == allocate(1_000, profile="requirements")


def test_fixed_layers_that_exceed_the_window_are_an_error_that_says_by_how_much() -> None:
    with pytest.raises(FloorsExceedWindow) as raised:
        allocate(1_000, used={"tools": 5_000})
    assert raised.value.excess_tokens == 60 + 80 + 5_000 + 100 - 1_000
    assert str(raised.value) == (
        "The fixed layers need 4,240 tokens more than the window of 1,000 holds; tools alone takes 5,000. "
        "Split the step, or use a larger window."
    )


def test_a_remainder_of_nothing_is_no_error() -> None:
    budgets = allocate(1_000, used={"tools": 1_000 - 60 - 80 - 100})
    assert budgets.remainder_tokens == 0
    assert [budgets.tokens[layer] for layer in FLEXIBLE] == [0, 0, 0]


def test_unused_tokens_are_handed_on_in_order_and_the_rest_to_the_slack() -> None:
    before = allocate(10_000).tokens
    used = {"system": 100, "memory": 0, "evidence": before["evidence"] + 200}
    after = allocate(10_000, used=used).tokens
    spare = before["system"] - 100 + before["memory"]
    assert after["evidence"] == before["evidence"] + 200
    assert after["conversation"] == before["conversation"] + spare - 200
    assert after["slack_min"] == before["slack_min"]
    idle = allocate(10_000, used=dict.fromkeys(("system", "task", "tools", *FLEXIBLE), 0)).tokens
    assert idle == {**dict.fromkeys(LAYERS, 0), "slack_min": 10_000}


@given(windows, profiles, signal_values, st.sampled_from(sorted(BUDGETS)), uses)
def test_tokens_sum_to_the_window(
    window: int, profile: str, signals: AllocatorSignals, floors: str, used: dict[str, int]
) -> None:
    try:
        budgets = allocate(window, floors=floors, profile=profile, signals=signals, used=used)
    except FloorsExceedWindow:
        assert window < 300
        return
    assert total(budgets) == window
    assert min(budgets.tokens.values()) >= 0
    assert list(budgets.tokens) == list(LAYERS)


@given(windows, profiles, signal_values)
def test_shares_never_leave_the_ranges_of_the_profile(window: int, profile: str, signals: AllocatorSignals) -> None:
    budgets = allocate(window, profile=profile, signals=signals)
    for layer in FLEXIBLE:
        low, high = getattr(budgets.profile, layer)
        assert low - 1e-9 <= budgets.shares[layer] <= high + 1e-9
        bounds = (budgets.remainder_tokens * low / 100 - 1, budgets.remainder_tokens * high / 100 + 1)
        assert bounds[0] <= budgets.tokens[layer] <= bounds[1]
    assert sum(budgets.shares.values()) == pytest.approx(100)


@given(windows, profiles, signal_values, uses, st.data())
def test_a_higher_signal_never_makes_its_layer_smaller(
    window: int, profile: str, signals: AllocatorSignals, used: dict[str, int], data: Any
) -> None:
    layer = data.draw(st.sampled_from(FLEXIBLE))
    name = data.draw(st.sampled_from(SIGNALS[layer]))
    value = getattr(signals, name)
    higher = data.draw(st.integers(value, 2_000) if isinstance(value, int) else st.floats(value, 1))
    raised = msgspec.structs.replace(signals, **{name: higher})
    used = {name: window * percent // 100 for name, percent in used.items()}
    try:
        before, after = (
            allocate(window, profile=profile, signals=each, used=used).tokens[layer] for each in (signals, raised)
        )
    except FloorsExceedWindow:
        return
    assert after >= before


@given(st.integers(100, 10_000), profiles, signal_values)
def test_percentages_sum_to_100(window: int, profile: str, signals: AllocatorSignals) -> None:
    shown = allocate(window, profile=profile, signals=signals).format_percentages()
    assert list(shown) == list(LAYERS)
    assert sum(int(percent.removesuffix("%")) for percent in shown.values()) == 100


def test_the_same_input_gives_the_same_bytes_and_nothing_can_change_them() -> None:
    used = {"memory": 10}
    budgets = allocate(128_000, signals=EXAMPLES, used=used)
    assert msgspec.json.encode(budgets) == msgspec.json.encode(allocate(128_000, signals=EXAMPLES, used={**used}))
    used["memory"] = 20
    assert budgets.used == {"memory": 10}
    with pytest.raises(TypeError):
        budgets.tokens["memory"] = 1  # type: ignore[index]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"window_tokens": 0}, "window_tokens is 0; give a whole number from 1 on."),
        ({"profile": "reserch"}, "There is no task profile named 'reserch'. Did you mean 'research'?"),
        ({"floors": "cheap"}, "There is no budget named 'cheap'."),
        ({"floors": 5}, "A int cannot be used here: give a budget by name, or as Floors."),
        ({"used": {"slack_min": 5}}, "There is no layer 'slack_min' that uses tokens."),
        ({"used": {"memory": -1}}, "used tokens of memory is -1"),
        ({"used": 5}, "give the used tokens by layer"),
        ({"signals": {}}, "give signals as AllocatorSignals"),
    ],
)
def test_input_that_cannot_be_used_is_an_error_that_says_what_to_give(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError) as raised:
        allocate(**{"window_tokens": 1_000} | arguments)
    assert text in str(raised.value)
    assert isinstance(raised.value, UnknownName) == text.startswith(
        ("There is no task profile", "There is no budget")
    )


@pytest.mark.parametrize("percent", [-1, 101, float("nan"), "6", True])
def test_a_floor_is_a_percentage(percent: Any) -> None:
    with pytest.raises(InputError):
        Floors(system=percent)


@pytest.mark.parametrize("evidence", [(0, 50), (60, 50), (90, 95), (10, 20), (50, 101), 5, ("a", "b")])
def test_the_ranges_of_a_profile_hold_shares_that_sum_to_100(evidence: Any) -> None:
    with pytest.raises(InputError):
        TaskProfile(name="own", evidence=evidence, memory=(10, 20), conversation=(10, 20))


def test_a_profile_of_ones_own() -> None:
    own = TaskProfile(name="own", evidence=(50, 50), memory=(30, 30), conversation=(20, 20))
    assert allocate(1_000, profile=own).shares == {"evidence": 50.0, "memory": 30.0, "conversation": 20.0}
