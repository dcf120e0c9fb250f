from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from lading.economics import (
    Rates,
    Usage,
    edit_price,
    is_cold,
    is_due,
    is_worth_waiting,
    rates_for,
    rent,
)
from lading.prefix_cache import PrefixCache
from tests.examples import share_of_examples

CLAUDE = Rates(0.10, 1.25)
HALF_READ = Rates(0.05, 1.25)
QUARTER_READ = Rates(0.025, 1.25)
NO_WRITE_PRICE = Rates(0.10, 1.0)
NO_CACHE = Rates(1.0, 1.0)

MASK = {"removed": 60_000, "suffix": 40_000, "inserted": 1_000}
SUMMARY = {"removed": 130_000, "suffix": 10_000, "inserted": 2_000}
ONE_TURN = {"removed": 1_600, "suffix": 16_000, "inserted": 60}
YOUNG_RESULT = {"removed": 10_000, "suffix": 4_800, "inserted": 0}


def calls_to_break_even(rates: Rates, edit: dict[str, int], *, own_calls: float = 0.0) -> float:
    """How many calls must follow an edit until it has saved what it cost."""
    price = edit_price(
        rates,
        cached_suffix_tokens=edit["suffix"],
        inserted_tokens=edit["inserted"],
        own_calls=own_calls,
    )
    return price / rent(rates, removable_tokens=edit["removed"] - edit["inserted"])


@pytest.mark.parametrize(
    ("rates", "mask", "one_turn"),
    [
        (CLAUDE, 8.0, 120),
        (Rates(0.10, 2.0), 13.2, 198),
        (HALF_READ, 16.7, 250),
        (Rates(0.05, 2.0), 27, 407),
        (QUARTER_READ, 34, 511),
        (NO_WRITE_PRICE, 6.3, 94),
        (Rates(0.02, 1.0), 34, 511),
    ],
)
def test_break_even_of_a_batch_and_of_one_turn(rates: Rates, mask: float, one_turn: float) -> None:
    assert calls_to_break_even(rates, MASK) == pytest.approx(mask, rel=0.01)
    assert calls_to_break_even(rates, ONE_TURN) == pytest.approx(one_turn, rel=0.005)


@pytest.mark.parametrize(
    ("rates", "calls"),
    [
        (CLAUDE, 3.1),
        (Rates(0.10, 2.0), 3.8),
        (HALF_READ, 5.1),
        (Rates(0.05, 2.0), 6.5),
        (QUARTER_READ, 9.0),
        (NO_WRITE_PRICE, 2.9),
    ],
)
def test_break_even_of_a_summary_that_a_model_writes(rates: Rates, calls: float) -> None:
    own_calls = 160_000 * rates.read + 2_000 * 5
    assert calls_to_break_even(rates, SUMMARY, own_calls=own_calls) == pytest.approx(calls, rel=0.02)


@pytest.mark.parametrize(("rates", "calls"), [(CLAUDE, 5.5), (HALF_READ, 11.5), (QUARTER_READ, 23.5)])
def test_a_young_result_is_cheap_to_clear(rates: Rates, calls: float) -> None:
    assert calls_to_break_even(rates, YOUNG_RESULT) == pytest.approx(calls, rel=0.01)


def cost_of_session(rates: Rates, edit: dict[str, int], kept: int, calls: int, *, edited: bool) -> float:
    """What a session pays from the call of the edit on, token by token, nothing new being said."""
    removed, suffix, inserted = edit["removed"], edit["suffix"], edit["inserted"]
    if not edited:
        return calls * (kept + removed + suffix) * rates.read
    first = kept * rates.read + (inserted + suffix) * rates.write
    return first + (calls - 1) * (kept + inserted + suffix) * rates.read


@given(
    st.sampled_from([CLAUDE, HALF_READ, QUARTER_READ, NO_WRITE_PRICE, Rates(0.10, 2.0)]),
    st.integers(1, 100_000),
    st.integers(0, 100_000),
    st.integers(0, 100_000),
    st.integers(1, 300),
)
def test_price_and_rent_are_the_difference_between_two_bills(
    rates: Rates, removed: int, suffix: int, kept: int, calls: int
) -> None:
    edit = {"removed": removed, "suffix": suffix, "inserted": removed // 20}
    saved = cost_of_session(rates, edit, kept, calls, edited=False) - cost_of_session(
        rates, edit, kept, calls, edited=True
    )
    price = edit_price(rates, cached_suffix_tokens=suffix, inserted_tokens=edit["inserted"])
    each_call = rent(rates, removable_tokens=removed - edit["inserted"])
    assert saved == pytest.approx(calls * each_call - price, abs=1e-3)


def test_without_a_cache_price_every_edit_is_due() -> None:
    assert edit_price(NO_CACHE, cached_suffix_tokens=10**6, inserted_tokens=100) == 0.0
    assert edit_price(Rates(1.0, 0.5), cached_suffix_tokens=10**6, inserted_tokens=100) == 0.0
    assert edit_price(NO_CACHE, cached_suffix_tokens=5, inserted_tokens=5, own_calls=7.0) == 7.0
    assert is_due(0.0, 0.0)


def test_regret_waits_longer() -> None:
    assert is_due(100.0, 100.0)
    assert not is_due(99.9, 100.0)
    assert not is_due(150.0, 100.0, regret=2.0)
    assert is_due(200.0, 100.0, regret=2.0)


def ski_rental(rents: list[float], price: float, regret: float = 1.0) -> float:
    """What the rule pays: it edits at the call whose rent would bring the account to the price."""
    account = 0.0
    for one in rents:
        if is_due(account + one, price, regret=regret):
            return account + price
        account += one
    return account


@share_of_examples(2)
@given(
    st.lists(st.floats(0, 1e5), max_size=40),
    st.floats(1e-3, 1e6),
    st.sampled_from([1.0, 1.5, 2.0]),
)
def test_whenever_the_session_ends_the_rule_pays_at_most_twice_the_best(
    rents: list[float], price: float, regret: float
) -> None:
    for end in range(len(rents) + 1):
        best = min(sum(rents[:end]), price)
        assert ski_rental(rents[:end], price, regret) <= (1 + regret) * best + 1e-9 * price
        assert ski_rental(rents[:end], price) <= 2 * best + 1e-9 * price


@pytest.mark.parametrize("rates", [CLAUDE, HALF_READ, QUARTER_READ])
@pytest.mark.parametrize("growth", [160, 1_600])
def test_under_steady_growth_the_rule_fires_at_the_best_interval(rates: Rates, growth: int) -> None:
    price = edit_price(rates, cached_suffix_tokens=16_000, inserted_tokens=600)
    account, calls = 0.0, 0
    while not is_due(account, price):
        calls += 1
        account += rent(rates, removable_tokens=growth * calls)
    assert calls == pytest.approx(math.sqrt(2 * price / (rates.read * growth)), abs=1.0)

    def cost_per_call(interval: int) -> float:
        carried = sum(rent(rates, removable_tokens=growth * call) for call in range(interval))
        return (carried + price) / interval

    best = min(range(1, 4 * calls), key=cost_per_call)
    assert cost_per_call(calls) <= cost_per_call(best) * 1.02


@given(*[st.builds(Usage, *[st.integers(0, 10**9)] * 3)] * 3)
def test_usage_adds_up(one: Usage, two: Usage, three: Usage) -> None:
    assert one + two == two + one
    assert (one + two) + three == one + (two + three)
    assert one + Usage() == one
    assert (one + two).tokens == one.tokens + two.tokens
    assert (one + two).cost(CLAUDE) == pytest.approx(one.cost(CLAUDE) + two.cost(CLAUDE))
    assert one.cost(NO_CACHE) == one.tokens


def test_each_kind_of_token_has_its_price() -> None:
    assert Usage(1000, 100, 10).cost(CLAUDE) == pytest.approx(100 + 125 + 10)


class Sent(Struct, frozen=True):
    """One request to a cache: what its units are, how long each is, how long nothing happened before it."""

    units: tuple[str, ...]
    lengths: tuple[int, ...]
    pause_s: float | None

    @property
    def chain(self) -> list[str]:
        return ["/".join(self.units[: end + 1]) for end in range(len(self.units))]

    @property
    def ends(self) -> list[int]:
        return [sum(self.lengths[: end + 1]) for end in range(len(self.lengths))]


@st.composite
def requests(draw: st.DrawFn) -> list[Sent]:
    """Requests that grow, go back and fork, as agents and their sub-agents make them."""
    sent = [Sent(("e",), (draw(st.integers(0, 50)),), 0.0)]
    for number in range(draw(st.integers(1, 12))):
        base = draw(st.sampled_from(sent))
        kept = draw(st.integers(0, len(base.units)))
        new = draw(st.integers(0, 3))
        units = (*base.units[:kept], *(f"{number}.{index}" for index in range(new)))
        lengths = (*base.lengths[:kept], *draw(st.lists(st.integers(0, 90), min_size=new, max_size=new)))
        sent.append(Sent(units, lengths, draw(st.sampled_from([None, 0.0, 1.0, 30.0, 300.0, 301.0, 999.0]))))
    return sent


def slow_bills(sent: list[Sent], min_prefix: int, ttl_s: float | None) -> list[Usage]:
    """The same cache, by looking at every prefix of every request."""
    used: dict[tuple[str, ...], float] = {}
    now, bills = 0.0, []
    for one in sent:
        now += one.pause_s or 0.0
        total, cached = sum(one.lengths), 0
        if total < min_prefix:
            bills.append(Usage(fresh_tokens=total))
            continue
        for end in range(1, len(one.units) + 1):
            at = used.get(one.units[:end])
            if at is not None and (ttl_s is None or now - at <= ttl_s):
                cached = sum(one.lengths[:end])
            used[one.units[:end]] = now
        cached = cached if cached >= min_prefix else 0
        bills.append(Usage(read_tokens=cached, written_tokens=total - cached))
    return bills


@share_of_examples(2)
@given(requests(), st.sampled_from([0, 40, 120]), st.sampled_from([None, 30.0, 300.0]))
def test_the_cache_bills_as_one_that_looks_at_every_prefix(
    sent: list[Sent], min_prefix: int, ttl_s: float | None
) -> None:
    cache = PrefixCache(min_prefix_tokens=min_prefix, ttl_s=ttl_s)
    now, bills = 0.0, []
    for one in sent:
        now += one.pause_s or 0.0
        bills.append(cache.bill(one.chain, one.ends, at_s=None if one.pause_s is None else now))
    assert bills == slow_bills(sent, min_prefix, ttl_s)
    assert [bill.tokens for bill in bills] == [sum(one.lengths) for one in sent]


def test_a_prompt_below_the_minimum_is_never_cached() -> None:
    exact = PrefixCache(min_prefix_tokens=1024)
    assert exact.bill(["a"], [1024]) == Usage(written_tokens=1024)
    assert exact.bill(["a"], [1024]) == Usage(read_tokens=1024)
    cache = PrefixCache(min_prefix_tokens=1024)
    assert cache.bill(["a"], [1023]) == Usage(fresh_tokens=1023)
    assert cache.bill(["a", "b"], [1023, 2000]) == Usage(written_tokens=2000)
    assert cache.bill(["a", "b", "c"], [1023, 2000, 2100]) == Usage(read_tokens=2000, written_tokens=100)
    assert cache.bill(["a", "x"], [1023, 3000]) == Usage(written_tokens=3000)


def test_an_empty_request_costs_nothing() -> None:
    assert PrefixCache().bill([], []) == Usage()


def test_reading_keeps_the_cache_warm() -> None:
    cache = PrefixCache(ttl_s=300)
    bills = [cache.bill(["a"], [5000], at_s=at) for at in (0.0, 300.0, 600.0, 901.0)]
    assert [bill.read_tokens for bill in bills] == [0, 5000, 5000, 0]


@pytest.mark.parametrize("odd_time", [None, 50.0])
def test_a_missing_or_earlier_time_does_not_cool_the_cache(odd_time: float | None) -> None:
    cache = PrefixCache(ttl_s=300)
    cache.bill(["a"], [5000], at_s=1_700_000_000.0)
    assert cache.bill(["a", "b"], [5000, 6000], at_s=odd_time).read_tokens == 5000
    assert cache.bill(["a", "b"], [5000, 6000], at_s=1_700_000_200.0).read_tokens == 6000


@pytest.mark.parametrize(
    ("idle_s", "ttl_s", "cold"),
    [(None, 300, False), (301, None, False), (300, 300, False), (300.5, 300, True), (-5, 300, False)],
)
def test_a_cache_is_cold_only_when_it_certainly_is(idle_s: float | None, ttl_s: float | None, cold: bool) -> None:
    assert is_cold(idle_s=idle_s, ttl_s=ttl_s) is cold


@pytest.mark.parametrize(
    ("write", "ttl_s", "expected"),
    [
        ({3600: 2.0, 300: 1.25}, 300, 1.25),
        ({3600: 2.0, 300: 1.25}, 60, 1.25),
        ({3600: 2.0, 300: 1.25}, 301, 2.0),
        ({3600: 2.0, 300: 1.25}, 86_400, 2.0),
        ({}, 300, 1.0),
    ],
)
def test_the_write_price_of_the_shortest_lifetime_that_covers(
    write: dict[int, float], ttl_s: float, expected: float
) -> None:
    assert rates_for(0.1, write, ttl_s=ttl_s) == Rates(0.1, expected)


@pytest.mark.parametrize(
    ("ageing", "waits"),
    [
        ([], False),
        ([0, 0, 0], False),
        ([1_000], True),
        ([0, 0, 3_000], True),
        ([0, 0, 2_000], False),
        ([100, 100, 100, 100], False),
    ],
)
def test_an_edit_waits_for_what_lowers_its_price_by_more_than_the_rent_until_then(
    ageing: list[int], waits: bool
) -> None:
    # A token that leaves the kept tail takes 1.15 off the price; a call's rent is 1,000.
    assert is_worth_waiting(CLAUDE, removable_tokens=10_000, ageing_tokens=ageing) is waits


def test_nothing_is_waited_for_where_no_cache_has_a_price() -> None:
    assert not is_worth_waiting(NO_CACHE, removable_tokens=1, ageing_tokens=[10_000])


@given(st.integers(0, 50_000), st.lists(st.integers(0, 20_000), max_size=10))
def test_the_more_is_removable_the_less_it_pays_to_wait(removable: int, ageing: list[int]) -> None:
    if is_worth_waiting(CLAUDE, removable_tokens=removable + 100, ageing_tokens=ageing):
        assert is_worth_waiting(CLAUDE, removable_tokens=removable, ageing_tokens=ageing)
