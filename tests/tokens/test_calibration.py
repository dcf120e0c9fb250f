from __future__ import annotations

import math
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.calibration import compute_margin
from lading.tokens.affine import Factors
from lading.tokens.calibration import RUN, WINDOW, Calibration
from lading.tokens.plausibility import EXACT, MOST_TOKENS, UNSENT, PlausibleShares, RequestCount

ANY = st.integers(-(10**30), 10**30)
SIZES = st.lists(st.integers(0, 40).flatmap(lambda bits: st.integers(1, 1 << bits)), max_size=30)
STEPS = st.lists(
    st.tuples(st.integers(1, 200_000), st.integers(1, 300), st.floats(0.5, 2), st.booleans()), max_size=40
)


def _true(counted: RequestCount, *, factor: float = 1.25, constant: int = 1_600) -> int:
    return round(factor * counted.tokens) + 8 * counted.messages + constant


def _grown(requests: int, *, seed: int = 1, factor: float = 1.25, start: Calibration | None = None) -> Calibration:
    """After a conversation that grew, counts of what is new being off by up to a tenth."""
    chance = random.Random(seed)
    calibration, counted, true = start or Calibration(), RequestCount(500, 2), 500 + 1_600
    for number in range(requests):
        calibration = calibration.learn(counted, true, kept=number > 0)
        new = chance.randint(50, 3_000)
        true += round(new * factor * chance.uniform(0.9, 1.1)) + 16
        counted = RequestCount(counted.tokens + new, counted.messages + 2)
    return calibration


def _repacked(
    requests: int, *, seed: int = 1, factor: float = 1.25, start: Calibration | None = None
) -> Calibration:
    """After requests that share nothing, each off by up to a twentieth."""
    chance = random.Random(seed)
    calibration = start or Calibration()
    for _ in range(requests):
        counted = RequestCount(chance.randint(2_000, 60_000), chance.randint(3, 60))
        reported = round(_true(counted, factor=factor) * chance.uniform(0.95, 1.05))
        calibration = calibration.learn(counted, reported, kept=False)
    return calibration


def _after(steps: list[tuple[int, int, float, bool]]) -> Calibration:
    calibration = Calibration()
    for tokens, messages, ratio, kept in steps:
        calibration = calibration.learn(RequestCount(tokens, messages), round(tokens * ratio), kept=kept)
    return calibration


def test_nothing_learned_is_the_count_and_the_initial_margin() -> None:
    nothing = Calibration()
    assert nothing.predict(RequestCount(12_345, 9), kept=False) == 12_345
    assert nothing.predict(RequestCount(12_345, 9), kept=True) == 12_345
    assert compute_margin(nothing, 12_345, initial_margin_tokens=800, kept=True) == 800
    assert nothing.compute_room(100_000, initial_margin_tokens=800, messages=9, kept=False) == 99_200
    assert nothing.compute_room(100, initial_margin_tokens=800, messages=9, kept=False) == 0
    assert msgspec.json.encode(nothing) == b"{}"


def test_the_first_report_explains_what_was_never_counted() -> None:
    learned = Calibration().learn(RequestCount(60, 2), 1_687, kept=False)
    assert learned.predict(RequestCount(60, 2), kept=False) == pytest.approx(1_687, rel=0.03)
    assert learned.predict(RequestCount(7_660, 6), kept=True) == pytest.approx(1_687 + 7_600, rel=0.02)


def test_a_request_that_extends_the_last_is_the_last_and_what_is_new() -> None:
    known = Calibration(
        factors=Factors(1.2, 5.0, 900.0), last=RequestCount(10_000, 20), last_reported_tokens=14_000, seen=1
    )
    assert known.predict(RequestCount(11_000, 22), kept=True) == 14_000 + 1_200 + 10
    assert known.predict(RequestCount(11_000, 22), kept=False) == 13_200 + 110 + 900


@pytest.mark.parametrize("seed", range(5))
def test_growing_conversations_are_predicted_within_the_margin(seed: int) -> None:
    known = _grown(30, seed=seed)
    assert known.factors.per_token == pytest.approx(1.25, rel=0.08)
    assert known.last is not None
    longer = RequestCount(known.last.tokens + 2_000, known.last.messages + 2)
    true = known.last_reported_tokens + 2_500 + 16
    predicted = known.predict(longer, kept=True)
    assert predicted == pytest.approx(true, rel=0.01)
    assert true <= predicted + compute_margin(known, predicted, initial_margin_tokens=10**6, kept=True)


@pytest.mark.parametrize("seed", range(5))
def test_repacked_requests_are_predicted_after_five(seed: int) -> None:
    known = _repacked(5, seed=seed)
    for counted, within in (
        (RequestCount(5_000, 10), 0.16),
        (RequestCount(30_000, 40), 0.06),
        (RequestCount(60_000, 60), 0.06),
    ):
        assert known.predict(counted, kept=False) == pytest.approx(_true(counted), rel=within)


def test_a_long_conversation_does_not_forget_what_a_short_request_takes() -> None:
    known = _grown(400)
    assert known.predict(RequestCount(3_000, 12), kept=False) == pytest.approx(3_750 + 96 + 1_600, rel=0.15)


def test_margins_follow_the_residuals_of_their_kind_between_one_percent_and_the_initial() -> None:
    known = Calibration(
        seen=9, last=RequestCount(1, 1), kept_residuals=(30,) * 23 + (400,), repacked_residuals=(450,) * 5
    )
    assert compute_margin(known, 100_000, initial_margin_tokens=20_000, kept=True) == 1_000
    assert compute_margin(known, 100_000, initial_margin_tokens=20_000, kept=False) == 9_000
    assert compute_margin(known, 100_000, initial_margin_tokens=700, kept=True) == 700
    few = msgspec.structs.replace(known, repacked_residuals=(450,) * 4)
    assert compute_margin(few, 100_000, initial_margin_tokens=20_000, kept=False) == 20_000


def test_the_same_request_sent_again_teaches_nothing() -> None:
    known = _grown(10)
    assert known.last is not None
    again = known.learn(known.last, known.last_reported_tokens, kept=True)
    assert again == known


@pytest.mark.parametrize("reported", [0, -1, 10, 3_000_000, 10**400])
def test_impossible_reports_are_not_learned(reported: int) -> None:
    known = _grown(10)
    assert known.last is not None
    longer = RequestCount(known.last.tokens + 100, known.last.messages + 2)
    after = known.learn(longer, reported, kept=True)
    assert after == msgspec.structs.replace(known, rejected=1)
    assert known.learn(longer, reported, kept=False).last is None


@pytest.mark.parametrize(
    "counted", [RequestCount(0, 1), RequestCount(-5, 1), RequestCount(5, 0), RequestCount(MOST_TOKENS + 1, 1)]
)
def test_impossible_counts_are_not_learned(counted: RequestCount) -> None:
    assert Calibration().learn(counted, 1_000, kept=False) == Calibration(rejected=1)


def test_one_surprise_changes_no_factor_and_is_not_built_on() -> None:
    known = _repacked(20)
    counted = RequestCount(30_000, 30)
    after = known.learn(counted, 2 * _true(counted), kept=False)
    assert (after.factors, after.last, after.rejected, after.surprises) == (known.factors, None, 1, 1)
    usual = after.learn(counted, _true(counted), kept=True)
    assert usual.surprises == 0
    assert usual.last == counted


@pytest.mark.parametrize("factor", [0.8, 1.7])
def test_surprises_in_a_row_in_one_direction_are_another_tokenizer(factor: float) -> None:
    known = _repacked(30)
    assert known.factors.per_token == pytest.approx(1.25, rel=0.05)
    after = _repacked(RUN, seed=2, factor=factor, start=known)
    assert (after.seen, after.surprises, after.rejected) == (1, 0, RUN - 1)
    learned = _repacked(5, seed=3, factor=factor, start=after)
    counted = RequestCount(30_000, 30)
    assert learned.predict(counted, kept=False) == pytest.approx(_true(counted, factor=factor), rel=0.08)


def test_surprises_in_turn_above_and_below_are_not() -> None:
    known = _repacked(20)
    counted = RequestCount(30_000, 30)
    for turn in range(6):
        known = known.learn(counted, round(_true(counted) * (2 if turn % 2 else 0.5)), kept=False)
    assert (known.seen, abs(known.surprises), known.rejected) == (20, 1, 6)


def test_a_certain_surprise_starts_anew_at_once() -> None:
    known = _grown(20)
    assert known.last is not None
    longer = RequestCount(known.last.tokens + 100, known.last.messages + 2)
    real = round(1.4 * known.last_reported_tokens)
    after = known.learn(longer, real, kept=True, certain=True)
    assert (after.seen, after.last, after.last_reported_tokens) == (1, longer, real)
    assert after.predict(longer, kept=False) == pytest.approx(real, rel=0.02)


def test_another_model_starts_with_nothing() -> None:
    known = Calibration().for_model("anthropic", "claude-sonnet-4-5").learn(RequestCount(100, 2), 140, kept=False)
    assert known.for_model("anthropic", "claude-sonnet-4-5") is known
    assert known.for_model("anthropic", "claude-opus-4-5") == Calibration("anthropic", "claude-opus-4-5")


@given(STEPS, st.integers(1, 10**7), st.integers(0, 10**5), st.integers(1, 500), st.booleans())
def test_the_room_is_what_fits_with_its_margin_and_one_token_more_does_not(
    steps: list[tuple[int, int, float, bool]], limit: int, initial: int, messages: int, kept: bool
) -> None:
    known = _after(steps)

    def taken(tokens: int) -> int:
        predicted = known.predict(RequestCount(tokens, messages), kept=kept)
        factors = known.factors
        slope = max(1.0, factors.per_token)
        if known.last is None:
            offset = factors.per_message * messages + max(factors.constant, 0.0)
            predicted = max(predicted, math.ceil(slope * tokens + offset))
        elif tokens > known.last.tokens:
            predicted = max(predicted, known.last_reported_tokens + math.ceil(slope * (tokens - known.last.tokens)))
        return predicted + compute_margin(known, predicted, initial_margin_tokens=initial, kept=kept)

    room = known.compute_room(limit, initial_margin_tokens=initial, messages=messages, kept=kept)
    assert room == 0 or taken(room) <= limit
    assert taken(room + 1) > limit or taken(0) > limit


@given(
    st.lists(st.tuples(st.integers(1, 400), st.integers(1, 9)), min_size=1, max_size=40),
    st.integers(0, 30_000),
    st.integers(2_000, 200_000),
    st.booleans(),
)
def test_tools_that_take_less_than_counted_make_no_room_for_a_large_request(
    requests: list[tuple[int, int]], over: int, limit: int, kept: bool
) -> None:
    known, counted = Calibration(), RequestCount(over, 0)
    for number, (tokens, messages) in enumerate(requests):
        counted = RequestCount(counted.tokens + tokens, counted.messages + messages)
        known = known.learn(counted, counted.tokens - over, kept=number > 0)
    room = known.compute_room(limit, initial_margin_tokens=limit // 50, messages=counted.messages + 12, kept=kept)
    assert room - over <= limit


@given(STEPS, st.integers(0, 10**6), st.integers(0, 10**6), st.booleans())
def test_more_limit_is_no_less_room_and_more_counted_is_no_less_predicted(
    steps: list[tuple[int, int, float, bool]], one: int, other: int, kept: bool
) -> None:
    known, (less, more) = _after(steps), sorted((one, other))
    rooms = [known.compute_room(limit, initial_margin_tokens=900, messages=20, kept=kept) for limit in (less, more)]
    assert rooms[0] <= rooms[1]
    predicted = [known.predict(RequestCount(tokens, 20), kept=kept) for tokens in (less, more)]
    assert predicted[0] <= predicted[1]


@given(STEPS)
def test_one_read_back_goes_on_as_if_never_written(steps: list[tuple[int, int, float, bool]]) -> None:
    straight = stored = Calibration("provider", "model")
    for tokens, messages, ratio, kept in steps:
        counted, reported = RequestCount(tokens, messages), round(tokens * ratio)
        straight = straight.learn(counted, reported, kept=kept)
        stored = stored.learn(counted, reported, kept=kept)
        stored = msgspec.json.decode(msgspec.json.encode(stored), type=Calibration)
    assert stored == straight
    assert msgspec.json.encode(stored) == msgspec.json.encode(straight)


@given(SIZES, SIZES, SIZES, st.floats(0.2, 5), st.booleans())
def test_requests_of_any_size_leave_the_factors_within_their_bounds(
    tokens: list[int], messages: list[int], unseen: list[int], ratio: float, kept: bool
) -> None:
    known = Calibration()
    for count, some, more in zip(tokens, messages, unseen, strict=False):
        reported = -(-count // 5) + round(count * (ratio - 0.2)) + more % 50_000
        known = known.learn(RequestCount(count, min(count, some)), reported, kept=kept)
        assert 0.3 <= known.factors.per_token <= 3
        assert 0 <= known.factors.per_message <= 100
        assert abs(known.factors.constant) <= 100_000


@given(st.lists(st.tuples(ANY, ANY, ANY, st.booleans(), st.booleans()), max_size=20), ANY, ANY, ANY)
def test_any_numbers_are_survived(
    steps: list[tuple[int, int, int, bool, bool]], limit: int, initial: int, messages: int
) -> None:
    known = Calibration()
    for tokens, count, reported, kept, certain in steps:
        known = known.learn(RequestCount(tokens, count), reported, kept=kept, certain=certain)
    for kept in (False, True):
        assert known.predict(RequestCount(limit, messages), kept=kept) >= 0
        assert known.compute_room(limit, initial_margin_tokens=initial, messages=messages, kept=kept) >= 0


def test_it_stays_small() -> None:
    known = _grown(200, start=_repacked(200, start=Calibration("anthropic", "claude-sonnet-4-5-20250929")))
    assert len(known.kept_residuals) == len(known.repacked_residuals) == WINDOW
    assert len(msgspec.json.encode(known)) < 600


@pytest.mark.parametrize("floor", [EXACT, UNSENT])
def test_a_request_that_is_sent_again_is_believed_with_the_same_report_and_no_other(floor: PlausibleShares) -> None:
    counted = RequestCount(20_000, 40)
    calibration = Calibration().learn(counted, 19_800, kept=False)
    believed = [
        calibration.is_plausible(counted, tokens, kept=True, floor=floor, tools_tokens=0)
        for tokens in (19_800, 19_840, 25_000)
    ]
    assert believed == [True, True, False]
