from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.price_rule import (
    FOLD_TOKENS,
    HEAD_TOKENS,
    KEPT_STEPS,
    TABLES,
    Session,
    append_only,
    bursts,
    ending_at_edits,
    growth_stops,
    optimum,
    ruled,
    shaped,
)
from lading.economics import Rates
from lading.prefix_cache import PrefixCache

APPENDED = st.lists(st.integers(1, 40_000), max_size=18)
RATES = st.sampled_from(TABLES)


def simulated(session: Session, rates: Rates, edits: Collection[int]) -> float:
    """The bill of a session that is folded at those calls, told by the cache."""
    cache, folded, cost = PrefixCache(), 0, 0.0
    for call in range(session.calls):
        if call in edits:
            folded = max(call - KEPT_STEPS + 1, 0)
        names, sizes = ["head"], [HEAD_TOKENS]
        for step, tokens in enumerate(session.appended[: call + 1]):
            names.append(f"{names[-1]} {'f' if step < folded else 'r'}{step}")
            sizes.append(sizes[-1] + (min(tokens, FOLD_TOKENS) if step < folded else tokens))
        cost += cache.bill(names, sizes).cost(rates)
    return cost


def choices(session: Session) -> Iterator[tuple[int, ...]]:
    """Every set of calls at which something may be folded."""
    calls = range(KEPT_STEPS, session.calls)
    return chain.from_iterable(combinations(calls, size) for size in range(len(calls) + 1))


@given(APPENDED, RATES)
def test_costs_are_those_that_the_cache_bills(appended: list[int], rates: Rates) -> None:
    session = Session(appended)
    if appended:
        assert append_only(session, rates) == pytest.approx(simulated(session, rates, ()))
        for waits in (True, False):
            found = ruled(session, rates, waits=waits)
            assert found.cost == pytest.approx(simulated(session, rates, found.edits))


@pytest.mark.parametrize("rates", TABLES[:2])
@pytest.mark.parametrize(
    "appended",
    [[30_000] * 3 + [50] * 13, [500] * 15, [100, 20_000] * 8, [1] * 9 + [25_000] + [1] * 5, [60_000] + [10] * 15],
)
def test_the_optimum_is_the_best_of_all_choices(appended: list[int], rates: Rates) -> None:
    session = Session(appended)
    best = min(simulated(session, rates, edits) for edits in choices(session))
    assert optimum(session, rates) == pytest.approx(best)


@pytest.mark.parametrize("rates", TABLES)
def test_the_rule_is_near_the_optimum_on_shaped_sessions(rates: Rates) -> None:
    sessions = shaped(50)
    optima = [optimum(session, rates) for session in sessions]
    costs = [ruled(session, rates).cost for session in sessions]
    assert 1.0 <= sum(costs) / sum(optima) <= 1.06
    for session, cost, best in zip(sessions, costs, optima, strict=True):
        assert cost / best * (1 + 1e-9) >= 1.0
        assert cost / best <= 1.25
        assert best <= append_only(session, rates) * (1 + 1e-9)


@pytest.mark.parametrize("rates", TABLES)
def test_the_rule_is_2_competitive_on_hostile_sessions(rates: Rates) -> None:
    sessions = shaped(10)
    hostile = [*ending_at_edits(sessions, rates), *growth_stops(sessions), *bursts(20)]
    assert max(ruled(session, rates).cost / optimum(session, rates) for session in hostile) <= 2


def test_a_session_that_ends_at_an_edit_ends_with_it() -> None:
    for session in ending_at_edits(shaped(10), TABLES[0]):
        assert ruled(session, TABLES[0]).edits[-1] == session.calls - 1


def test_the_rule_waits_for_a_large_append_that_is_about_to_leave_the_kept_tail() -> None:
    session = Session([60_000] + [30] * 5 + [20_000] + [30] * 40)
    plain, waiting = (ruled(session, TABLES[0], waits=waits) for waits in (False, True))
    assert plain.edits == (13, 16)
    assert waiting.edits == (16,)
    assert waiting.cost < plain.cost


def test_a_higher_regret_edits_later_and_less() -> None:
    sessions = shaped(30)
    edits = [sum(len(ruled(session, TABLES[0], regret=dial).edits) for session in sessions) for dial in (0.5, 1, 3)]
    assert edits == sorted(edits, reverse=True)
    assert edits[0] > edits[-1]


def test_shaped_sessions_have_the_shape() -> None:
    sessions = shaped(2_000)
    calls, tokens = sum(session.calls for session in sessions), sum(session.raw[-1] for session in sessions)
    large = sum(appended for session in sessions for appended in session.appended if appended >= 10_000)
    assert calls / 2_000 == pytest.approx(66, rel=0.05)
    assert tokens / calls == pytest.approx(1_600, rel=0.05)
    assert large / tokens == pytest.approx(2 / 3, rel=0.05)
