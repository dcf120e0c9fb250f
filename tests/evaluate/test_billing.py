from __future__ import annotations

import pytest
from msgspec.structs import replace

from lading.economics import Usage as Tokens
from lading.evaluate.billing import AppendOnlyBill, RecordedBill, bill_append_only, sum_bills
from lading.evaluate.plan import PlanOptions, plan_replay
from lading.evaluate.replay import ReplayPlan, find_calls
from lading.models.catalog import find_card
from lading.sources import RecordedRequest, RecordedUsage
from tests.evaluate.sessions import asks, gives, recorded, said

MILLION = 1_000_000


def plan(model: str = "claude-sonnet-4-5", *, least: int = 0) -> ReplayPlan:
    """Claude Sonnet 4.5: 3 and 15 USD, cached reads at a tenth, writes at 1.25, cached for 300 s."""
    made, _ = plan_replay(recorded(model=model), PlanOptions())
    return replace(made, min_prefix_tokens=least)


def card_prices() -> tuple[float, float]:
    prices = plan().settings.card.prices
    assert prices.output_usd is not None
    return prices.input_usd, prices.output_usd


def bills(*usage: RecordedUsage, model: str = "claude-sonnet-4-5") -> RecordedBill:
    found = sum_bills(recorded(model=model, usage=usage), plan(model), card_of=lambda name: find_card(name)[0])
    assert found is not None
    return found


def test_model_calls_are_replies_after_the_first_user_message() -> None:
    messages = (
        said("system", "be brief"),
        said("assistant", "hello"),
        said("user", "go"),
        asks(("1", "read", "{}")),
        gives("1", "x"),
        said("assistant", "done"),
        said("user", "thanks"),
    )
    assert find_calls(messages) == [3, 5]
    assert find_calls(messages[:2]) == []


def test_append_only_reads_what_the_call_before_sent_and_writes_the_rest() -> None:
    bill = bill_append_only([10, 5, 20, 7], [1, 3], plan=plan(), tools_tokens=100, replies=[5, 7])
    assert bill.input == Tokens(read_tokens=110, written_tokens=110 + 25)
    assert (bill.calls, bill.output_tokens, bill.peak_tokens) == (2, 12, 135)
    input_usd, output_usd = card_prices()
    assert bill.input_usd == pytest.approx((110 * 0.1 + 135 * 1.25) * input_usd / MILLION)
    assert bill.output_usd == pytest.approx(12 * output_usd / MILLION)
    assert (bill.window_tokens, bill.calls_over_window, bill.unpriced_calls) == (200_000, 0, 0)


def test_a_prefix_below_the_least_is_not_cached() -> None:
    bill = bill_append_only([10, 5, 20, 7, 3, 1], [1, 3, 5], plan=plan(least=30), tools_tokens=0, replies=[])
    assert bill.input == Tokens(fresh_tokens=10, read_tokens=35, written_tokens=35 + 10)


def test_requests_above_the_window_are_counted() -> None:
    bill = bill_append_only([150_000, 1, 60_000, 1], [1, 3], plan=plan(), tools_tokens=0, replies=[])
    assert bill.calls_over_window == 1
    assert bill.window_share == pytest.approx(210_001 / 200_000)


def test_a_model_without_a_card_has_no_price() -> None:
    bill = bill_append_only([10, 5], [1], plan=plan("nobody-knows-it"), tools_tokens=0, replies=[5])
    assert (bill.input_usd, bill.output_usd, bill.unpriced_calls) == (0.0, 0.0, 1)


def test_append_only_bills_add_up_and_keep_the_fullest_window() -> None:
    one = AppendOnlyBill(1, Tokens(1, 2, 3), 4, 0.5, 0.25, 1, 900, 1_000, 0)
    other = AppendOnlyBill(2, Tokens(10, 20, 30), 40, 1.0, 2.0, 0, 1_000, 100_000, 3)
    assert one + other == AppendOnlyBill(3, Tokens(11, 22, 33), 44, 1.5, 2.25, 1, 900, 1_000, 3)
    assert one + AppendOnlyBill() == AppendOnlyBill() + one == one
    assert AppendOnlyBill().window_share == 0


def test_nothing_recorded_no_bill() -> None:
    assert sum_bills(recorded(), plan(), card_of=lambda name: find_card(name)[0]) is None


def test_recorded_costs_win_over_the_card() -> None:
    found = bills(
        RecordedUsage(0, input_tokens=1, cost_usd=0.5),
        RecordedUsage(
            1, input_tokens=MILLION, cache_read_tokens=MILLION, cache_write_tokens=MILLION, output_tokens=MILLION
        ),
        RecordedUsage(2, model="nobody-knows-it", input_tokens=7),
    )
    input_usd, output_usd = card_prices()
    assert found.cost_usd == pytest.approx(0.5 + input_usd * (1 + 0.1 + 1.25) + output_usd)
    assert (found.calls, found.calls_priced_by_card, found.unpriced_calls) == (3, 1, 1)
    assert (found.input_tokens, found.output_tokens) == (MILLION + 8, MILLION)
    assert (found.cache_read_tokens, found.cache_write_tokens) == (MILLION, MILLION)


def warm(read: int, written: int, *, at_s: float | None = None, model: str = "") -> RecordedUsage:
    return RecordedUsage(0, model=model, cache_read_tokens=read, cache_write_tokens=written, at_s=at_s)


@pytest.mark.parametrize(
    ("before", "after", "cause"),
    [
        (warm(0, 50_000, at_s=0), warm(0, 51_000, at_s=301), "idle"),
        (warm(0, 50_000, at_s=0), warm(0, 51_000, at_s=300), "unexplained"),
        (warm(0, 50_000), warm(0, 51_000), "unexplained"),
        (warm(0, 50_000, at_s=0), warm(0, 30_000, at_s=1), "history shortened"),
        (
            warm(0, 50_000, at_s=0),
            warm(0, 51_000, at_s=999, model="claude-opus-4-5"),
            "model changed",
        ),
    ],
)
def test_a_miss_and_its_cause(before: RecordedUsage, after: RecordedUsage, cause: str) -> None:
    (miss,) = bills(before, after).misses
    assert (miss.cause, miss.prefix_tokens, miss.read_tokens) == (cause, 50_000, 0)
    assert miss.idle_s == (None if before.at_s is None or after.at_s is None else after.at_s - before.at_s)
    assert miss.rewritten_tokens == min(50_000, after.cache_write_tokens)


def known(*changed: int | None, at_s: tuple[float, float] = (0, 1)) -> RecordedBill:
    """The bill of two calls, three requests apart, of which each but the first may have changed something."""
    first, last = (
        RecordedUsage(1, cache_write_tokens=50_000, at_s=at_s[0]),
        RecordedUsage(7, cache_write_tokens=51_000, at_s=at_s[1]),
    )
    requests = tuple(
        RecordedRequest(2 * number + 1, 0, (), changed_index)
        for number, changed_index in enumerate((None, *changed))
    )
    recording = recorded(model="claude-sonnet-4-5", usage=(first, last), requests=requests)
    found = sum_bills(recording, plan(), card_of=lambda name: find_card(name)[0])
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("changed", "index", "cause"),
    [
        ((None, None, 4), 4, "request changed"),
        ((None, 2, 4), 2, "request changed"),
        ((-1, 2, None), -1, "request changed"),
        ((None, None, None), None, "unexplained"),
        ((None, None, None, 3), None, "unexplained"),
    ],
)
def test_where_a_known_request_first_changed(
    changed: tuple[int | None, ...], index: int | None, cause: str
) -> None:
    (miss,) = known(*changed).misses
    assert (miss.changed_index, miss.cause) == (index, cause)


def test_a_cold_cache_explains_more_than_a_change() -> None:
    (miss,) = known(None, None, 4, at_s=(0, 999)).misses
    assert (miss.changed_index, miss.cause) == (4, "idle")


def test_what_a_miss_costs() -> None:
    (miss,) = bills(warm(0, 50_000), warm(10_000, 45_000)).misses
    assert (miss.read_tokens, miss.rewritten_tokens) == (10_000, 40_000)
    assert miss.extra_usd == pytest.approx(40_000 * (1.25 - 0.1) * card_prices()[0] / MILLION)
    (unpriced,) = bills(warm(0, 50_000), warm(0, 51_000), model="nobody-knows-it").misses
    assert unpriced.extra_usd is None


def hourly(written: int, *, hour: int, at_s: float = 0) -> RecordedUsage:
    return replace(warm(0, written, at_s=at_s), hour_write_tokens=hour)


def test_writes_that_are_kept_for_an_hour_have_a_price_of_their_own() -> None:
    base_usd = card_prices()[0] / MILLION
    assert bills(hourly(50_000, hour=50_000)).cost_usd == pytest.approx(50_000 * 2 * base_usd)
    assert bills(hourly(50_000, hour=20_000)).cost_usd == pytest.approx((30_000 * 1.25 + 20_000 * 2) * base_usd)
    (miss,) = bills(hourly(50_000, hour=50_000), hourly(51_000, hour=51_000)).misses
    assert miss.extra_usd == pytest.approx(50_000 * (2 - 0.1) * base_usd)


@pytest.mark.parametrize(
    ("hour", "idle_s", "cause"),
    [(50_000, 301, "unexplained"), (50_000, 3_601, "idle"), (20_000, 301, "idle"), (0, 301, "idle")],
)
def test_what_was_written_for_an_hour_is_cold_after_it(hour: int, idle_s: float, cause: str) -> None:
    (miss,) = bills(hourly(50_000, hour=hour), hourly(51_000, hour=hour, at_s=idle_s)).misses
    assert miss.cause == cause


@pytest.mark.parametrize(
    "after",
    [
        warm(50_000, 100),
        warm(45_000, 6_000),  # a tenth may be missing
        warm(60_000, 0),
    ],
)
def test_no_miss_while_most_of_the_prefix_is_read(after: RecordedUsage) -> None:
    assert bills(warm(0, 50_000), after).misses == ()


def test_a_prefix_too_short_to_be_cached_is_not_missed() -> None:
    least = plan().settings.card.cache.min_prefix_tokens
    assert bills(warm(0, least), warm(0, least)).misses == ()
    assert len(bills(warm(0, least + 1), warm(0, least + 1)).misses) == 1


def test_a_log_that_records_no_cache_has_no_misses() -> None:
    assert bills(RecordedUsage(0, input_tokens=50_000), RecordedUsage(1, input_tokens=51_000)).misses == ()


def test_bills_add_up() -> None:
    one, other = bills(warm(0, 50_000), warm(0, 51_000)), bills(warm(1, 2))
    both = one + other
    assert (both.calls, both.cache_write_tokens, both.misses) == (3, 101_002, one.misses)
    assert both.cost_usd == pytest.approx(one.cost_usd + other.cost_usd)
    assert one + RecordedBill() == one
