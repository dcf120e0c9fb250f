"""The benchmark of payloads: a step sends its payload once, whatever follows."""

from __future__ import annotations

from bench.step_payloads import RATES, make_candidates, measure_step

CALLS = 6


def test_a_step_pays_for_its_payload_once_and_reads_it_from_the_cache_then() -> None:
    without, plain_tokens = measure_step(CALLS, has_payload=False)
    held, tokens = measure_step(CALLS, has_payload=True)
    payload = tokens - plain_tokens
    assert payload > 500
    assert held.fresh - without.fresh == payload
    assert held.read - without.read == payload * (CALLS - 1)
    assert held.cost - without.cost <= payload * (RATES.write + (CALLS - 1) * RATES.read) + 1e-6


def test_candidates_are_the_same_each_time() -> None:
    assert make_candidates(3) == make_candidates(3)
