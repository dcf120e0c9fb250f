from __future__ import annotations

import math
from typing import Any

import pytest

from lading.sources import RecordedUsage
from lading.sources.billing import read_usage


def test_anthropic() -> None:
    bill = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 100,
        "cache_read_input_tokens": 2000,
        "output_tokens": 8,
        "service_tier": "standard",
    }
    assert read_usage(bill, message_index=4, model="claude", at_s=9.0) == RecordedUsage(
        4, "claude", 3, 8, cache_read_tokens=2000, cache_write_tokens=100, at_s=9.0
    )


@pytest.mark.parametrize(
    ("creation", "hour"),
    [
        ({"ephemeral_5m_input_tokens": 40, "ephemeral_1h_input_tokens": 60}, 60),
        ({"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 0}, 0),
        ({"ephemeral_1h_input_tokens": 900}, 100),
        ({"ephemeral_1h_input_tokens": "60"}, 0),
        (60, 0),
        (None, 0),
    ],
)
def test_anthropic_tells_which_writes_are_kept_for_an_hour(creation: object, hour: int) -> None:
    bill = {"input_tokens": 3, "cache_creation_input_tokens": 100, "cache_creation": creation}
    assert read_usage(bill, message_index=0) == RecordedUsage(
        0, input_tokens=3, cache_write_tokens=100, hour_write_tokens=hour
    )


def test_openai_counts_the_cached_into_the_prompt() -> None:
    bill = {
        "prompt_tokens": 120,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 100},
    }
    assert read_usage(bill, message_index=1) == RecordedUsage(
        1, input_tokens=20, output_tokens=7, cache_read_tokens=100
    )
    assert read_usage({"prompt_tokens": 120}, message_index=1) == RecordedUsage(1, input_tokens=120)


def test_short_names_with_cost_time_and_model_of_their_own() -> None:
    bill = {
        "model": "own",
        "timestamp": 1763681630793,
        "input": 1,
        "output": 2,
        "cacheRead": 3,
        "cacheWrite": 4,
        "cost_total": 0.25,
    }
    assert read_usage(bill, message_index=0, model="other", at_s=5.0) == RecordedUsage(
        0, "own", 1, 2, 3, 4, cost_usd=0.25, at_s=1763681630.793
    )


@pytest.mark.parametrize(
    "bill",
    [None, 3, "x", [], {}, {"input": 0}, {"input": "7"}, {"input": True}, {"input": -3}, {"input": 10**30}],
)
def test_what_counts_nothing_is_no_bill(bill: Any) -> None:
    assert read_usage(bill, message_index=0) is None


@pytest.mark.parametrize("cost", [None, "1", True, -1, math.nan, math.inf, 10**400])
def test_a_cost_that_is_none(cost: Any) -> None:
    usage = read_usage({"input": 1, "cost_usd": cost}, message_index=0)
    assert usage is not None
    assert usage.cost_usd is None
