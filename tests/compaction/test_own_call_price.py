"""What the price rule expects a summary by the session's own model to cost."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lading.compaction.summaries import REQUEST_TOKENS, SUMMARY_SHARE, estimate_own_call
from lading.messages import Message, Text, user_text
from tests.views import admitted, pressure

FOLD_TOKENS = 2_000


def test_the_prompt_is_read_from_the_cache_while_it_is_warm() -> None:
    replies = (Message("assistant", (Text("I read. " * 400),)) for _ in range(40))
    view = admitted([user_text("Which test is slow?"), *replies]).view
    asking = replace(pressure(100_000), output_price=5.0, sent_items=30, asks_itself=True)
    rates, output = asking.rates, 5.0 * FOLD_TOKENS * SUMMARY_SHARE
    warm = estimate_own_call(view, 1, end=20, fold_tokens=FOLD_TOKENS, pressure=asking).total
    assert warm == pytest.approx(rates.read * view.tokens_before(30) + rates.write * REQUEST_TOKENS + output)
    cold = estimate_own_call(view, 1, end=20, fold_tokens=FOLD_TOKENS, pressure=replace(asking, cache_cold=True))
    other = estimate_own_call(view, 1, end=20, fold_tokens=FOLD_TOKENS, pressure=replace(asking, asks_itself=False))
    assert warm < cold.total == other.total
    assert estimate_own_call(view, 1, end=20, fold_tokens=100, pressure=asking).total == 0.0


def test_waiting_saves_the_answer_but_not_the_reading_of_what_is_new() -> None:
    replies = (Message("assistant", (Text("I read. " * 100),)) for _ in range(40))
    view = admitted([user_text("Which test is slow?"), *replies]).view
    asking = replace(pressure(100_000), output_price=5.0)
    halves = [
        estimate_own_call(view, start, end=end, fold_tokens=FOLD_TOKENS, pressure=asking)
        for start, end in ((1, 21), (21, 41))
    ]
    whole = estimate_own_call(view, 1, end=41, fold_tokens=FOLD_TOKENS, pressure=asking)
    assert whole.reading == pytest.approx(sum(half.reading for half in halves))
    assert 2 * whole.once == pytest.approx(sum(half.once for half in halves))
