"""When a large result that was used becomes a digest between folds, and what that saves."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from lading.compaction.digesting import USED_ROUNDS, find_retired
from lading.compaction.priced import compact
from lading.economics import Rates
from lading.history.view import LARGE_TOKENS, Item, View
from lading.messages import Message, user_text
from lading.prefix_cache import PrefixCache
from tests.engines import packs, run, settings
from tests.histories import answered, called, said, tool_loop
from tests.views import admitted, pressure

ROWS = "\n".join(f"{number},order {number * 7919 % 10_007},{number % 90} EUR" for number in range(700))
"""About 4,000 tokens."""
RATES = Rates(0.1, 1.25)


def query(number: int) -> list[Message]:
    return [called(f"q{number}", "query"), answered(f"q{number}", ROWS, name="query")]


def small(number: int) -> list[Message]:
    return [called(f"s{number}", text=f"Look at {number}."), answered(f"s{number}", "word " * 20)]


def kinds(view: View, *, sent: int | None = None, rates: Rates = RATES, most_calls: float = 100) -> list[int]:
    """The entries that retire where all but the newest round was sent."""
    now = replace(pressure(50_000), sent_items=len(view) - 2 if sent is None else sent, rates=rates)
    return [item.entry for item in find_retired(view, now, start=view.head, most_calls=most_calls)]


def smalls(*numbers: int) -> list[Message]:
    return [message for number in numbers for message in small(number)]


def test_a_large_result_is_whole_for_three_rounds_after_it_was_read_and_then_it_is_a_digest() -> None:
    engine, outcomes = run(settings(50_000, strategy="priced"), [*tool_loop(9), *query(0), *smalls(*range(8))])
    (edit,) = engine.history.edits
    assert (edit.kind, edit.first, edit.reason) == ("digested", 21, "a large result was used")
    holds = [ROWS.splitlines()[333] in pack.body.decode() for pack in packs(outcomes)]
    assert holds == [*[False] * 10, *[True] * USED_ROUNDS, *[False] * 6]


def test_it_stays_while_what_stands_behind_it_costs_more_to_write_anew_than_it_cost_to_carry() -> None:
    def after(words: int) -> View:
        later = [called("s", text="Look."), answered("s", "word " * words)]
        return admitted([*tool_loop(20), *query(0), *later, *smalls(1, 2, 3)]).view

    assert kinds(after(20)) == kinds(after(700)) == [43]
    assert kinds(after(780)) == []
    assert kinds(after(780), sent=44) == [43]


def test_several_pay_together_where_the_older_would_not_alone() -> None:
    behind = [message for name in "ab" for message in (called(name), answered(name, "word " * 700))]
    first = [*tool_loop(5), *query(0), *behind]
    assert kinds(admitted([*first, *smalls(1, 2, 3, 4)]).view) == []
    assert kinds(admitted([*first, *query(1), *smalls(2, 3, 4)]).view) == [19, 13]


def test_it_must_have_paid_for_itself_soon() -> None:
    view = admitted([*tool_loop(5), *query(0), *smalls(1, 2, 3, 4)]).view
    assert kinds(view, most_calls=2.0) == [13]
    assert kinds(view, most_calls=0.5) == []


def test_small_results_digests_and_what_was_restored_or_is_pinned_stay() -> None:
    end = smalls(1, 2, 3, 4)
    least = answered("a", "x" * 4 * (LARGE_TOKENS - 20))
    assert kinds(admitted([*tool_loop(5), called("a"), least, *end]).view) == []
    history = admitted([*tool_loop(5), *query(0), *end])
    history.pin(13, call=1)
    assert kinds(history.view) == []
    history = admitted([*tool_loop(5), *query(0), *end])
    (draft,) = compact(history.view, replace(pressure(50_000), sent_items=len(history.view) - 2)).drafts
    history.apply(draft, call=1, room_tokens=50_000)
    assert kinds(history.view) == []


def test_where_nothing_is_cached_only_folds_edit() -> None:
    view = admitted([*tool_loop(5), *query(0), *smalls(1, 2, 3, 4)]).view
    assert compact(view, pressure(50_000)).drafts != ()
    assert compact(view, replace(pressure(50_000), rates=Rates(1.0, 1.0))).drafts == ()


def test_the_rent_of_what_a_fold_would_take_out_goes_on() -> None:
    view = admitted([*tool_loop(80), *query(0), *smalls(1, 2, 3, 4)]).view
    found = compact(view, replace(pressure(30_000), sent_items=len(view) - 2, account=1_000.0))
    assert [draft.kind for draft in found.drafts] == ["digested"]
    assert 1_000 < found.settle(1_000.0) < 2_000
    assert view.records_end == view.head


def test_a_session_of_large_tables_costs_a_tenth_less_and_shows_what_was_used() -> None:
    history: list[Message] = [user_text("Check the orders.")]
    for number in range(14):
        history += query(number)
        history += smalls(*range(10 * number, 10 * number + 3))
        history += [said(f"Row {number * 31} is the one."), user_text(f"Now {number}.")]
    costs = {}
    for strategy in ("priced", "without-digests"):
        dotted = {"without-digests": "lading.compaction.priced:DIGESTS"}.get(strategy, strategy)
        _, outcomes = run(settings(16_000, strategy=dotted), history)
        cache = PrefixCache()
        costs[strategy] = sum(cache.bill(pack.chain, pack.ends).cost(RATES) for pack in packs(outcomes))
    assert costs["priced"] < 0.9 * costs["without-digests"]


class CountedItems(list[Item]):
    """Items that count how often one is read."""

    reads = 0

    def __getitem__(self, at: Any) -> Any:
        self.reads += 1
        return super().__getitem__(at)


@pytest.mark.parametrize("rounds", [20, 400])
def test_finding_what_retires_reads_what_is_large_or_new_however_long_the_view_is(rounds: int) -> None:
    view = admitted([*tool_loop(rounds), *query(0), *smalls(1, 2, 3, 4)]).view
    assert kinds(view) == [view.items[-10].entry + 1]
    view._items = items = CountedItems(view.items)
    assert len(kinds(view)) == 1
    assert items.reads < 30
