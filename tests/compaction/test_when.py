"""``priced`` as its caller chooses: when it compacts, and how much stays verbatim."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from lading.compaction import Compaction, Past, Strategy, apply_options, find_strategy, name_of
from lading.compaction.priced import STRATEGY, compact, without
from lading.compaction.priced import configured as priced
from lading.compaction.verbatim import DEFAULT_OPTIONS, VERBATIM_SHARE, PricedOptions
from lading.economics import Rates
from lading.effects import SummaryRequest
from lading.errors import InputError
from lading.history.log import Edit
from lading.history.view import View
from lading.request.pack import Pack
from tests import engines
from tests.engines import packs, run
from tests.examples import quick_diagonal, quick_first
from tests.histories import tool_loop
from tests.views import admitted, pressure

ROOM = 16_000


def decided(view: View, options: PricedOptions, **changed: Any) -> Compaction:
    pressing = replace(pressure(ROOM), past=Past(limit_tokens=ROOM))
    return compact(view, replace(pressing, **changed), options=options)


def runs(
    chosen: str | Strategy, window: int = 6_000, *, rounds: int = 250, **settings: Any
) -> tuple[list[Edit], list[Pack]]:
    engine, outcomes = run(engines.settings(window, strategy=chosen, **settings), tool_loop(rounds))
    assert len(packs(outcomes)) == len(outcomes)
    return [edit for edit in engine.history.edits if edit.kind != "repaired"], packs(outcomes)


def test_full_compacts_only_a_full_window() -> None:
    view = admitted(tool_loop(100)).view
    assert decided(view, DEFAULT_OPTIONS, account=1e9).drafts
    for pressing in ({"account": 1e9}, {"cache_cold": True}):
        assert decided(view, PricedOptions(when="full"), **pressing) == Compaction()
    (draft,) = decided(view, PricedOptions(when="full"), room_tokens=view.tokens - 1).drafts
    assert draft.reason == "the window is full"
    edits, sent = runs(priced("full"))
    assert {edit.forced_tokens > 0 for edit in edits} == {True}
    assert max(pack.tokens for pack in sent) > 0.9 * 6_000


def test_a_share_compacts_above_it_and_not_before() -> None:
    view = admitted(tool_loop(100)).view
    least = int(view.tokens / 0.8)
    for room, is_due in ((least - 5, True), (least + 5, False)):
        past = Past(limit_tokens=room)
        found = decided(view, PricedOptions(when=0.8), room_tokens=room, past=past, account=1e9, cache_cold=True)
        assert [draft.reason for draft in found.drafts] == [
            "the request took more than 80 % of the window"
        ] * is_due
        assert found.rent == 0


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_requests_stay_below_the_share_with_the_tools_in_them(share: float) -> None:
    edits, sent = runs(priced(share))
    assert {edit.reason for edit in edits} == {f"the request took more than {100 * share:g} % of the window"}
    assert {edit.forced_tokens for edit in edits} == {0}
    assert 0.9 * share < max(pack.tokens for pack in sent) / 6_000 <= share


def test_the_margin_and_the_tools_count_as_taken() -> None:
    view = admitted(tool_loop(100)).view
    limit = 2 * view.tokens
    # 30 % of the window is free, whatever else takes the rest.
    found = decided(
        view, PricedOptions(when=0.65), room_tokens=int(view.tokens + 0.3 * limit), past=Past(limit_tokens=limit)
    )
    assert found.drafts


def test_a_larger_verbatim_share_leaves_more_of_the_newest_as_it_is() -> None:
    view = admitted(tool_loop(300)).view

    def kept(share: float) -> int:
        (draft,) = decided(view, PricedOptions(verbatim=share), cache_cold=True).drafts
        return view.tokens - view.tokens_before(view.span(draft.first, draft.last)[1])

    for share in (VERBATIM_SHARE, 0.3, 0.5):
        assert share * ROOM - 200 < kept(share) <= share * ROOM + 200


def test_a_summary_is_asked_for_that_fits_below_the_share() -> None:
    view = admitted(tool_loop(300)).view
    wide = replace(
        pressure(
            2 * view.tokens,
        ),
        past=Past(limit_tokens=2 * view.tokens),
        output_price=5.0,
    )

    def most_tokens(share: float) -> int:
        steps = priced(share).compact(view, wide)
        assert not isinstance(steps, Compaction)
        request: SummaryRequest = next(steps)
        return request.most_tokens

    assert most_tokens(0.2) < most_tokens(0.4)


@pytest.mark.parametrize(("verbatim", "when"), quick_diagonal([0.01, 0.6, 0.9], ["pays", "full", 0.95]))
@pytest.mark.parametrize("window", quick_first([1_500, 6_000], 1))
def test_requests_fit_whatever_is_chosen(when: Any, verbatim: float, window: int) -> None:
    edits, sent = runs(priced(when, verbatim), window, rounds=window // 24)
    assert edits
    assert max(pack.tokens for pack in sent) <= window


def test_what_is_chosen_stands_in_the_name() -> None:
    named = [priced("full"), priced(0.8), priced(verbatim=0.3), priced(0.8, 0.3)]
    assert [found.name for found in named] == [
        "priced(when=full)",
        "priced(when=0.8)",
        "priced(verbatim=0.3)",
        "priced(when=0.8, verbatim=0.3)",
    ]
    assert priced("pays", VERBATIM_SHARE).name == STRATEGY.name == "priced"
    assert name_of(apply_options(without("calls"), when="full")) == "priced-without-calls(when=full)"


def test_options_change_what_was_chosen_and_leave_the_rest() -> None:
    assert apply_options("priced") == "priced"
    mine = apply_options(apply_options("priced", when="full"), verbatim=0.3)
    assert name_of(mine) == "priced(when=full, verbatim=0.3)"
    assert name_of(apply_options(mine, when="pays")) == "priced(verbatim=0.3)"
    as_given = [pack.body for pack in runs(priced("pays", VERBATIM_SHARE), rates=Rates(1.0, 1.0))[1]]
    assert as_given == [pack.body for pack in runs("priced", rates=Rates(1.0, 1.0))[1]]


@pytest.mark.parametrize("name", ["basic", "append-only", "reactive", "lading.compaction.basic:STRATEGY"])
def test_a_strategy_without_options_says_so(name: str) -> None:
    assert apply_options(name) == name
    for given in ({"when": "pays"}, {"verbatim": 0.3}):
        with pytest.raises(InputError, match=f"{name} has no options when and verbatim. Leave them out, or choose"):
            apply_options(name, **given)
        with pytest.raises(InputError, match="has no options"):
            apply_options(find_strategy(name), **given)


@pytest.mark.parametrize("value", [0, 0.0, 1, 1.0, 1.5, -0.1, float("nan"), float("inf"), "sometimes", "0.8", True])
def test_what_cannot_be_chosen_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match=r"^when is .*; give 'pays', 'full' or a share of the window"):
        priced(value)
    with pytest.raises(InputError, match=r"^verbatim is .*; give a share of the window"):
        priced(verbatim=value)


def test_nothing_is_left_to_compact_where_all_below_the_share_stays() -> None:
    for share, verbatim in ((0.3, 0.3), (0.3, 0.5), (0.1, None)):
        with pytest.raises(
            InputError, match=r"is not above verbatim=.* Give a larger when, or a smaller verbatim."
        ):
            priced(share, verbatim)
