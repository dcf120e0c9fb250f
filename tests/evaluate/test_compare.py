from __future__ import annotations

from pathlib import Path

import pytest

from lading.compaction import STRATEGIES
from lading.economics import Rates
from lading.errors import UnknownName
from lading.evaluate.arms import Arm
from lading.evaluate.baselines import ARMS
from lading.evaluate.compare import Contestant, NamedRates, compare, find_contestant
from lading.evaluate.scores import ContestantScore, list_failed_guards
from lading.evaluate.session_runs import RecordedSession, make_counter, run_arm
from tests.cli.commands import ROOT, lading
from tests.evaluate.contests import CHEAP, FREE_TAIL, NO_CACHE, ORPHAN, TAIL, grid, rounds, session, ticking

FULL = find_contestant("append-only")
BASIC = find_contestant("basic")
TAILED = Contestant("tail", TAIL)
EXAMPLES = ROOT / "examples" / "sessions"


def standings(
    *contestants: Contestant, sessions: tuple[RecordedSession, ...] = (), window: int = 200
) -> list[ContestantScore]:
    return compare(
        sessions or (session(),), grid(*contestants, windows=(window,)), advance=lambda _: None, clock=ticking
    )


def only(
    *contestants: Contestant, sessions: tuple[RecordedSession, ...] = (), window: int = 200
) -> ContestantScore:
    (found,) = standings(*contestants, sessions=sessions, window=window)
    return found


def test_names_are_of_strategies_and_arms() -> None:
    assert Contestant("basic", strategy="basic") == BASIC
    assert FULL.arm is not None
    assert find_contestant("tests.evaluate.contests:TAIL") == Contestant("tests.evaluate.contests:TAIL", TAIL)
    assert find_contestant("lading.compaction.basic:STRATEGY").arm is None
    for name in ARMS:
        assert find_contestant(name).arm is not None or name in STRATEGIES
    with pytest.raises(UnknownName, match="Choose one of: aether_frame/conversation_tail, "):
        find_contestant("nothing-of-the-kind")
    with pytest.raises(UnknownName, match="is neither a strategy nor an arm"):
        find_contestant("tests.evaluate.contests:CHEAP")


def test_what_takes_options_is_named_after_them() -> None:
    full, shared = find_contestant("priced", when="full"), find_contestant("without-calls", when=0.8, verbatim=0.3)
    assert [full.name, shared.name] == ["priced(when=full)", "priced-without-calls(when=0.8, verbatim=0.3)"]
    assert find_contestant("priced", when="pays").name == find_contestant("priced").name
    assert find_contestant("basic", when="full", verbatim=0.3) == BASIC
    pays, forced = standings(find_contestant("priced"), full, sessions=(session(*rounds(80)),), window=2_000)
    assert forced.tokens.mean > pays.tokens.mean
    assert (pays.edits.voluntary > 0, forced.edits.voluntary, forced.edits.forced > 0) == (True, 0, True)


def test_append_only_is_the_measure_of_all() -> None:
    found = only(FULL)
    assert (found.cost.ratio, found.cost.worst, found.cost.harmed) == (1.0, 1.0, 0.0)
    assert (found.recall.bound, found.recall.far_bound, found.recall.far_bound_steps) == (1.0, 1.0, 1.0)
    assert (found.guards.head_whole, found.guards.newest_whole, found.guards.generated_share) == (1.0, 1.0, 0.0)
    assert found.guards.over_window == found.exceeding_calls > 0
    assert list_failed_guards(found) == ("over the window",)


def test_only_calls_whose_history_exceeds_the_window_ask_for_values() -> None:
    found = only(FULL)
    # Each call reads what the result before it named, the last one what the first result named.
    assert found.recall.values == found.exceeding_calls
    assert (found.recall.far_values, found.recall.far_steps) == (1, 1)
    wide = only(FULL, window=100_000)
    assert (wide.exceeding_calls, wide.recall.values, wide.recall.bound, wide.recall.far_bound) == (
        0,
        0,
        None,
        None,
    )
    assert (wide.guards.run_median_tokens, wide.guards.generated_share) == (None, None)
    assert (wide.cost.within, wide.cost.over) == (1.0, None)
    assert list_failed_guards(wide) == ()


def test_what_left_is_not_there_but_behind_its_address() -> None:
    found = only(BASIC, window=170)
    assert found.guards.violations == {}
    assert found.guards.over_window == 0
    assert found.edits.forced > 0
    assert found.recall.far_present == 0.0
    assert found.recall.far_available == 1.0
    assert (found.recall.bound or 0) < 1


def test_an_arm_pays_for_its_own_calls() -> None:
    found = only(TAILED)
    assert found.recall.far_bound == 0.0
    assert found.recall.available == found.recall.present
    assert 0 < found.tokens.mean <= found.tokens.p95 <= found.tokens.peak < 200
    free = only(Contestant("free", FREE_TAIL))
    # Seven calls: ten tokens read, two fresh, one written by the model at five.
    own = 7 * (10 * 0.1 + 2 + 5)
    ratio = found.cost.ratio / free.cost.ratio
    assert ratio == pytest.approx(1 + own / _bill(FREE_TAIL))


def _bill(arm: Arm) -> float:
    walked = session()
    steps = run_arm(walked, arm.show, count=make_counter(walked), clock=ticking)
    return sum(step.usage.cost(CHEAP.rates) for step in steps if step.usage)


def test_a_contestant_that_breaks_a_guard_says_which() -> None:
    found = only(Contestant("orphan", ORPHAN))
    assert found.guards.violations["C2"] == found.calls
    assert (found.guards.invented, found.guards.invented_values) == (1, ("made_up.py",))
    assert found.guards.newest_whole == 0.0
    assert list_failed_guards(found) == ("breaks rules", "invented values", "short run")


def test_calls_without_a_request_are_charged_in_full_and_hold_nothing() -> None:
    found = only(BASIC, window=30)
    assert found.guards.errors > 0
    assert "no request" in list_failed_guards(found)
    assert (found.recall.present or 0) < 1


def test_every_contestant_stands_at_every_window_and_price() -> None:
    told: list[int] = []
    wanted = grid(FULL, BASIC, TAILED, windows=(150, 300), prices=(CHEAP, NO_CACHE))
    found = compare((session(), session(name="t")), wanted, advance=told.append, clock=ticking)
    names = [(item.window_tokens, item.strategy, item.prices) for item in found]
    assert names == [
        (window, name, prices)
        for window in (150, 300)
        for name in ("append-only", "basic", "tail")
        for prices in ("cheap", "none")
    ]
    assert sum(told) == 18 * wanted.runs == 18 * (1 + 2 * (2 + 2))
    assert all(item.calls == 18 for item in found)


def test_a_strategy_decides_by_the_prices_and_an_arm_is_billed_by_them() -> None:
    dear = NamedRates("dear", Rates(1.0, 100.0))
    plans = grid(BASIC, TAILED, windows=(1500,), prices=(NO_CACHE, dear))
    sessions = (session(*rounds(8, words=200)),)
    free, costly, tail_free, tail_costly = compare(sessions, plans, advance=lambda _: None, clock=ticking)
    assert free.edits.voluntary > costly.edits.voluntary
    assert tail_free.tokens == tail_costly.tokens
    assert tail_free.cost.ratio != tail_costly.cost.ratio


def test_sessions_add_up_and_the_worst_is_named() -> None:
    short = session(*rounds(1), name="short")
    long = session(*rounds(12), name="long")
    both = only(BASIC, sessions=(short, long))
    alone = [only(BASIC, sessions=(one,)) for one in (short, long)]
    assert both.calls == sum(item.calls for item in alone)
    assert both.cost.worst == max(item.cost.ratio for item in alone)
    assert both.cost.worst_session == max(("short", "long"), key=lambda name: alone[name == "long"].cost.ratio)
    assert (both.cost.within, both.cost.over) == (alone[0].cost.ratio, alone[1].cost.ratio)
    assert min(item.cost.ratio for item in alone) <= both.cost.ratio <= both.cost.worst
    assert both.ms_per_call > 0


def test_nothing_to_compare() -> None:
    found = compare((), grid(BASIC), advance=lambda _: None)
    assert [(item.calls, item.cost.ratio, item.recall.bound, item.guards.head_whole) for item in found] == [
        (0, 1.0, None, None)
    ]


CUT_IN_A_WORD = {"agentrail/layers", "agentrail/tool_results"}
"""Texts are cut after so many characters: half of a path is a value that nobody said."""


@pytest.mark.full
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.jsonl.gz")), ids=lambda path: path.name.partition(".")[0])
def test_no_strategy_without_a_model_invents_a_value(path: Path) -> None:
    names = ",".join(sorted(STRATEGIES.keys() - CUT_IN_A_WORD))
    options = ("--windows", "8k,64k", "--counter", "cl100k", "--prices", ".1/1.25", "--json")
    ended = lading("compare", path, "--strategies", names, *options)
    found = {(item["strategy"], item["window_tokens"]): item["guards"] for item in ended.data["standings"]}
    assert len(found) == 2 * len(names.split(","))
    assert {at: guards["invented_values"] for at, guards in found.items() if guards["invented"]} == {}
