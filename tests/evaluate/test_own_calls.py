"""What compaction's own model calls take, in the figures of a replay."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from lading import jsonbytes
from lading.cli.replay import encode_line
from lading.effects import Summarizer, Summary, SummaryRequest
from lading.evaluate.plan import PlanOptions, plan_replay
from lading.evaluate.prices import Price
from lading.evaluate.replay import ReplayedCall, ReplayPlan, replay
from lading.evaluate.tally import Tally, tally
from tests.evaluate.sessions import recorded
from tests.histories import tool_loop


def replayed(summarize: Callable[[SummaryRequest], Summary] | None) -> tuple[Tally, list[ReplayedCall], ReplayPlan]:
    recording = recorded(*tool_loop(150, result_words=80))
    plan, _ = plan_replay(recording, PlanOptions(counter="estimate", strategy="priced", window_tokens=6_000))
    summarizer = Summarizer(summarize) if summarize else None
    plan = replace(plan, settings=replace(plan.settings, summarizer=summarizer))
    calls = list(replay(recording, plan, session="s"))
    return tally([(call, Price(plan.settings.rates, 1.0, 1.0)) for call in calls]), calls, plan


def test_they_are_told_and_charged() -> None:
    figures, calls, plan = replayed(lambda _request: Summary("", 700, 9))
    assert figures.own is not None
    times, price = figures.own.calls, plan.settings.card.prices.output
    assert times > 0
    assert (figures.own.input_tokens, figures.own.output_tokens) == (700 * times, 9 * times)
    assert figures.own.cost == pytest.approx(times * (700 + 9 * price))
    rates = plan.settings.rates
    billed = sum(call.billed.cost(rates) for call in calls)
    full = sum(call.append_only.cost(rates) for call in calls)
    assert figures.cost_ratio == pytest.approx((billed + figures.own.cost) / full)
    extra = [jsonbytes.load(encode_line(call, plan))["extra_input_tokens"] for call in calls]
    assert (sum(extra), set(extra)) == (700 * times, {0, 700})


def test_without_a_summarizer_there_are_none() -> None:
    figures, _, _ = replayed(None)
    assert figures.own is None


def test_tokens_read_from_a_cache_are_told_apart_and_charged_as_such() -> None:
    figures, calls, plan = replayed(lambda _request: Summary("", 700, 9, 500, 100))
    assert figures.own is not None
    times, rates = figures.own.calls, plan.settings.rates
    assert (figures.own.read_tokens, figures.own.written_tokens) == (500 * times, 100 * times)
    cost = 100 + 500 * rates.read + 100 * rates.write + 9 * plan.settings.card.prices.output
    assert figures.own.cost == pytest.approx(times * cost)
    lines = [jsonbytes.load(encode_line(call, plan)) for call in calls]
    assert sum(line["extra_input_tokens"] for line in lines) == 200 * times
    assert sum(line["extra_cached_input_tokens"] for line in lines) == 500 * times
