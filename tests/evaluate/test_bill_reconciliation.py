"""A recorded bill beside simulated ones: the parts of their difference, on bills made so that each is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lading.economics import Usage
from lading.evaluate.bill_reconciliation import BillComparison, CostPart, add_bills, compare_bills
from lading.evaluate.plan import PlanOptions, plan_replay
from lading.evaluate.replay import ReplayedCall, ReplayPlan, replay
from lading.messages import Message
from lading.sources import Recording
from lading.sources.recording import RecordedUsage
from tests.engines import TOOLS
from tests.histories import answered, called, said
from tests.report.histories import hostile_history

MODEL = "claude-sonnet-4-5"
READ_USD, WRITE_USD, BASE_USD = 0.3e-6, 3.75e-6, 3e-6


def session(history: Sequence[Message], **fields: object) -> Recording:
    facts = {"id": "s", "model": MODEL, "tools": TOOLS, "tools_recorded": True, **fields}
    return Recording(messages=tuple(history), raw_indices=tuple(range(len(history))), **facts)  # type: ignore[arg-type]


def walked(recording: Recording, **options: object) -> tuple[ReplayPlan, list[ReplayedCall]]:
    plan, _ = plan_replay(recording, PlanOptions(counter="estimate", **options))  # type: ignore[arg-type]
    return plan, list(replay(recording, plan, session="s"))


def billed(
    recording: Recording, bill: Callable[[int, ReplayedCall], Usage], **options: object
) -> tuple[Recording, ReplayPlan, list[ReplayedCall]]:
    """The recording with a bill of each call."""
    plan, calls = walked(recording, **options)
    usage = []
    for at, call in enumerate(calls):
        of = bill(at, call)
        kinds = {
            "input_tokens": of.fresh_tokens,
            "cache_read_tokens": of.read_tokens,
            "cache_write_tokens": of.written_tokens,
        }
        usage.append(RecordedUsage(call.upto, model=MODEL, output_tokens=10, **kinds))
    return replace(recording, usage=tuple(usage)), plan, calls


def compared(recording: Recording, bill: Callable[[int, ReplayedCall], Usage], **options: object) -> BillComparison:
    recording, plan, calls = billed(recording, bill, **options)
    found = compare_bills(recording, plan, replays={"basic": calls})
    assert found is not None
    return found


def part(found: BillComparison, name: str, cause: str = "") -> CostPart:
    [item] = [item for item in found.differences if item.part == name and item.cause == cause]
    return item


def total(found: BillComparison) -> float:
    return sum(item.cost for item in found.differences)


def beyond(found: BillComparison) -> float:
    return found.recorded.cost - found.simulated["append-only"].cost


def test_a_bill_that_is_the_simulated_one_leaves_no_difference() -> None:
    found = compared(session(hostile_history(30)), lambda _, call: call.append_only)
    assert found.recorded.input == found.simulated["append-only"].input
    # A line through points that a line of factor one hits is that line, but for what was expected beforehand.
    assert found.factor == pytest.approx(1.0, abs=1e-3)
    assert total(found) == pytest.approx(0.0, abs=1e-9)
    assert not [item for item in found.differences if item.part == "missed"]


def test_what_the_provider_counts_and_what_was_not_recorded_are_told_apart() -> None:
    def bill(at: int, call: ReplayedCall) -> Usage:
        before, now = call.append_only.read_tokens, call.append_only.tokens
        size, cached = (round(1.2 * tokens) + 12_000 for tokens in (now, before))
        return Usage(read_tokens=cached, written_tokens=size - cached) if at else Usage(written_tokens=size)

    # Requests that are long enough for the cache from the first on.
    history = [*hostile_history(40)]
    history[0] = said("system " + "word " * 2_000)
    history[0] = replace(history[0], role="system")
    found = compared(session(history), bill)
    assert found.factor == pytest.approx(1.2, rel=0.01)
    assert found.unrecorded_tokens / found.calls == pytest.approx(12_000, rel=0.02)
    counted = found.simulated["append-only"]
    assert part(found, "counts").cost == pytest.approx(0.2 * counted.cost, rel=0.05)
    constant = 12_000 * (WRITE_USD + (found.calls - 1) * READ_USD)
    assert part(found, "not recorded").cost == pytest.approx(constant, rel=0.02)
    assert abs(part(found, "other requests").cost) < 0.01 * found.recorded.cost
    assert counted.scaled_cost == pytest.approx(found.recorded.cost, rel=0.01)
    assert total(found) == pytest.approx(beyond(found))


def test_a_miss_is_told_with_its_cause_and_place() -> None:
    history = hostile_history(20)[:-1]
    history += [
        said("Done."),
        Message("user", said("Go on.").parts),
        called("x"),
        answered("x", "ok"),
        said("Done."),
    ]
    missing = history.index(history[-3])

    def bill(_: int, call: ReplayedCall) -> Usage:
        size = call.append_only.tokens
        return Usage(written_tokens=size) if call.upto == missing else call.append_only

    found = compared(session(history), bill)
    miss = part(found, "missed", "unexplained")
    assert (miss.calls, miss.turn_starts, miss.nothing_read) == (1, 1, 1)
    assert miss.cost == pytest.approx(miss.tokens * (WRITE_USD - READ_USD))
    assert total(found) == pytest.approx(beyond(found))
    assert miss.cost == pytest.approx(beyond(found), rel=1e-6)


def test_what_others_had_sent_is_read_at_once() -> None:
    def bill(at: int, call: ReplayedCall) -> Usage:
        size = call.append_only.tokens
        return Usage(read_tokens=size + 5_000) if not at else Usage(5_000 + call.append_only.read_tokens, size)

    early = part(compared(session(hostile_history(10)), bill), "read before it was sent")
    assert early.calls >= 1
    assert early.cost < 0 < early.tokens


def test_where_the_simulated_cache_cools_too_a_pause_is_no_difference() -> None:
    history = hostile_history(20)
    times = tuple(float(at if at < 30 else at + 10_000) for at in range(len(history)))
    at_s = {"times_s": times}

    def bill(_: int, call: ReplayedCall) -> Usage:
        return Usage(written_tokens=call.append_only.tokens) if call.upto == 30 else call.append_only

    warm = compared(session(history, **at_s), bill)
    assert [item.cause for item in warm.differences if item.part == "missed"] == ["unexplained"]
    cold = compared(session(history, **at_s), bill, ttl_s=300.0)
    assert [item for item in cold.differences if item.part == "missed"] == []
    assert cold.simulated["append-only"].cost > warm.simulated["append-only"].cost
    assert total(cold) == pytest.approx(beyond(cold), abs=1e-9)


RECORDING = session(hostile_history(12))
PLAN, CALLS = walked(RECORDING, window_tokens=4_000)
SIZES = st.integers(0, 200_000)


@given(st.lists(st.tuples(SIZES, SIZES, SIZES, st.booleans()), min_size=len(CALLS), max_size=len(CALLS)))
def test_the_parts_add_up_whatever_was_billed(bills: list[tuple[int, int, int, bool]]) -> None:
    usage = tuple(
        RecordedUsage(
            call.upto, model=MODEL, input_tokens=fresh, cache_read_tokens=read, cache_write_tokens=written
        )
        for call, (fresh, read, written, is_billed) in zip(CALLS, bills, strict=True)
        if is_billed
    )
    found = compare_bills(replace(RECORDING, usage=usage), PLAN, replays={"basic": CALLS})
    if not usage:
        assert found is None
        return
    assert found is not None
    assert total(found) == pytest.approx(beyond(found), abs=1e-9)
    assert found.calls + found.unbilled_calls == len(CALLS)
    assert add_bills([found, None]) == found
    twice = add_bills([found, found])
    assert twice is not None
    assert twice.factor == pytest.approx(found.factor)
    assert total(twice) == pytest.approx(2 * total(found))


def test_each_strategy_has_a_bill_and_output_is_the_same() -> None:
    recording, plan, calls = billed(
        session(hostile_history(40)), lambda _, call: call.append_only, window_tokens=4_000
    )
    found = compare_bills(recording, plan, replays={"basic": calls, "other": calls})
    assert found is not None
    assert list(found.simulated) == ["append-only", "basic", "other"]
    basic = found.simulated["basic"]
    kinds = basic.input
    usd = kinds.read_tokens * READ_USD + kinds.written_tokens * WRITE_USD + kinds.fresh_tokens * BASE_USD
    assert basic.cost == pytest.approx(usd)
    assert basic.cost < found.simulated["append-only"].cost
    assert found.output[0] == 410
    assert found.output[1] == pytest.approx(410 * 15e-6)


def test_what_was_paid_stands_beside_the_cards_prices() -> None:
    recording, plan, calls = billed(session(hostile_history(5)), lambda _, call: call.append_only)
    usage = [replace(bill, cost_usd=1.0) for bill in recording.usage[:2]] + list(recording.usage[2:])
    found = compare_bills(replace(recording, usage=tuple(usage)), plan, replays={"basic": calls})
    assert found is not None
    assert found.paid[:2] == (2, 2.0)
    assert 0 < found.paid[2] < 0.1


def test_without_a_price_costs_are_in_base_input_tokens() -> None:
    recording, plan, calls = billed(
        session(hostile_history(5), model="nobody-knows-it"), lambda _, call: call.append_only
    )
    recording = replace(recording, usage=tuple(replace(bill, model="") for bill in recording.usage))
    found = compare_bills(recording, plan, replays={"basic": calls})
    assert found is not None
    assert not found.is_priced
    assert found.recorded.cost == pytest.approx(found.recorded.input.cost(plan.settings.rates))
    assert found.output[1] == 0.0
    priced = compared(session(hostile_history(5)), lambda _, call: call.append_only)
    assert add_bills([found, priced]) == priced


def test_what_is_known_to_be_missing_is_named() -> None:
    def named(**fields: object) -> str:
        history = hostile_history(5)[0 if fields.pop("system") else 1 :]
        found = compared(session(history, **fields), lambda _, call: call.append_only)
        return next(item.cause for item in found.differences if item.part == "not recorded")

    assert named(system=True) == ""
    assert named(system=False) == "system prompt"
    assert named(system=False, tools_recorded=False) == "system prompt and tool schemas"
