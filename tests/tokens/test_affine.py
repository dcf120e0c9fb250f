from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.tokens.affine import NO_SUMS, Factors, Observation, Sums, add_observations, fit

TOKENS = st.integers(1, 1 << 40)


def _fed(rows: list[tuple[float, float]], truth: Factors, *, older: float = 1.0) -> Sums:
    sums = NO_SUMS
    for tokens, messages in rows:
        true = truth.per_token * tokens + truth.per_message * messages + truth.constant
        sums = add_observations(sums, [Observation((tokens, messages, 1.0), true, 0.001 * true)], older=older)
    return sums


def test_nothing_observed_is_what_was_expected() -> None:
    assert fit(NO_SUMS) == Factors(1.0, 0.0, 0.0)


def test_the_factors_of_exact_observations_are_found() -> None:
    truth = Factors(1.27, 6.0, 1_640.0)
    rows = [(1_000.0 * n * (1 + n % 3), 5.0 * n + n % 4) for n in range(1, 30)]
    found = fit(_fed(rows, truth))
    assert found.per_token == pytest.approx(1.27, rel=0.002)
    assert found.per_message == pytest.approx(6.0, abs=0.5)
    assert found.constant == pytest.approx(1_640.0, rel=0.01)


def test_equal_requests_leave_the_fit_where_it_was_however_many() -> None:
    truth = Factors(1.2, 0.0, 0.0)
    few = fit(_fed([(10_000.0, 20.0)] * 50, truth, older=0.98))
    many = fit(_fed([(10_000.0, 20.0)] * 2_000, truth, older=0.98))
    assert many.per_token == pytest.approx(few.per_token, abs=0.001)
    assert many.per_message == pytest.approx(few.per_message, abs=0.1)


def test_what_is_older_counts_less() -> None:
    old, new = Factors(1.0, 0.0, 0.0), Factors(1.5, 0.0, 0.0)
    rows = [(1_000.0 * n, 10.0) for n in range(1, 21)]
    sums = _fed(rows, old)
    for tokens, messages in rows:
        sums = add_observations(
            sums, [Observation((tokens, messages, 1.0), 1.5 * tokens, 0.001 * tokens)], older=0.5
        )
    assert fit(sums).per_token == pytest.approx(new.per_token, abs=0.02)


def test_a_factor_stays_within_its_bounds_and_the_others_make_the_best_of_it() -> None:
    rows = [(1_000.0 * n, float(n % 7 + 1)) for n in range(1, 30)]
    found = fit(_fed(rows, Factors(1.3, -30.0, 0.0)))
    assert found.per_message == 0.0
    assert 1.2 < found.per_token < 1.3
    assert fit(_fed(rows, Factors(9.0, 0.0, 0.0))).per_token == 3.0
    assert fit(_fed(rows, Factors(0.01, 0.0, 0.0))).per_token == 0.3


@given(st.lists(st.tuples(TOKENS, TOKENS, TOKENS, st.booleans()), max_size=30))
def test_any_observations_give_finite_factors_within_bounds(seen: list[tuple[int, int, int, bool]]) -> None:
    sums = NO_SUMS
    for tokens, messages, reported, whole in seen:
        row = (float(tokens), float(min(messages, tokens)), float(whole))
        sums = add_observations(sums, [Observation(row, reported, 0.04 * reported + 10)], older=0.98)
    found = fit(sums)
    assert all(math.isfinite(value) for value in (found.per_token, found.per_message, found.constant))
    assert 0.3 <= found.per_token <= 3
    assert 0 <= found.per_message <= 100
    assert abs(found.constant) <= 100_000
