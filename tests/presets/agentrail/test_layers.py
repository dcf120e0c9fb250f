"""Agentrail's layers as one composition, as its document describes them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from msgspec import Struct
from msgspec.structs import replace

from lading.compaction import Past, Strategy
from lading.compaction.composing import compose
from lading.errors import InputError
from lading.history.history import History
from lading.history.log import Edit
from lading.messages import Message, user_text
from lading.presets.agentrail.layers import Agentrail, configured, strategy
from lading.presets.agentrail.reactive import Reactive
from lading.presets.agentrail.session_boundary import Boundary
from lading.presets.agentrail.tool_results import ToolResults
from tests.histories import answered, called, said
from tests.presets.agentrail.test_session_boundary import talk
from tests.views import admitted, decide, pressure

LAYERS = strategy(Agentrail(ToolResults(100, 1, 400), Boundary(5_000, 10), Reactive()))
"""All three, with small numbers."""
NOTHING = Past()


def rows(rounds: int) -> list[Message]:
    """So many rounds, each with a result of 200 tokens."""
    names = [f"{number}" for number in range(rounds)]
    return [message for name in names for message in (called(name), answered(name, "row " * 200))]


def act(history: History, *, room_tokens: int = 10**6, past: Past = NOTHING) -> list[Edit]:
    """What the layers decide about a history whose messages were sent."""
    now = replace(pressure(room_tokens), sent_items=len(history.view), past=past)
    return decide(LAYERS, history, pressure=now)


def options_of(chosen: Strategy) -> list[Struct]:
    return [part.compact.keywords["options"] for part in chosen.parts]  # type: ignore[attr-defined]


def test_the_layers_act_in_order_and_each_by_its_own_trigger() -> None:
    loop = rows(6)
    history = admitted([*talk(10, chars=2_000)[:-1], user_text("go"), *loop])
    edits = act(history)
    assert {edit.reason for edit in edits} == {"compact_tool_results: a large result"}
    assert len(edits) == 5
    *previews, fold = act(history, past=Past(9_500, 10_000, window_tokens=10_000))
    assert fold.reason.startswith("reactive_micro: 8")
    assert len(previews) == 5
    asked = admitted([*talk(10, chars=2_000)[:-1], *loop, said("done"), user_text("next")])
    *previews, fold = act(asked, past=Past(9_500, 10_000, window_tokens=10_000))
    assert fold.reason.startswith("session_compaction: ")
    assert not any(fold.first <= preview.first <= fold.last for preview in previews)


def test_agentrail_is_a_composition_of_its_layers_and_may_go_on_with_another_strategy() -> None:
    layers = ["agentrail/tool_results", "agentrail/session_compaction", "agentrail/reactive"]
    assert [part.name for part in strategy(Agentrail()).parts] == layers
    assert [part.name for part in compose(["agentrail", "priced"]).parts] == [*layers, "priced"]


def test_what_a_preview_saves_within_a_fold_is_saved_once() -> None:
    history = admitted([user_text("go"), *rows(9)])
    for room_tokens in range(300, 2_000, 100):
        edits = act(history, room_tokens=room_tokens)
        freed = sum(edit.tokens_before - edit.tokens_after for edit in edits)
        assert history.view.tokens - freed <= room_tokens or not edits
        spans = sorted((edit.first, edit.last) for edit in edits)
        assert all(last < first for (_, last), (first, _) in pairwise(spans))


def test_the_document_s_configuration_is_taken_as_it_is_spelled() -> None:
    given = {
        "triggerTokens": 70_000,
        "minMessages": 12,
        "toolResults": {"maxTokensPerToolResult": 900, "keep_recent_tool_results": 3},
        "reactive": {
            "enabled": True,
            "microTriggerPct": 70,
            "fullTriggerPct": 80,
            "preserveRecentApiRounds": 1,
            "microBatchGroups": 4,
            "maxReactiveCompactionsPerRequest": 5,
        },
    }
    chosen = Agentrail(ToolResults(900, 3), Boundary(70_000, 12), Reactive(True, 70, 80, 1, 4, 5))
    assert options_of(configured(given)) == [chosen.tool_results, chosen.boundary, chosen.reactive]
    assert options_of(configured({})) == options_of(strategy(Agentrail()))


@pytest.mark.parametrize("given", [{"triggerToken": 1}, {"reactive": {"microTriggerPct": "x"}}, {"reactive": 1}])
def test_an_option_that_does_not_exist_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"options of Agentrail are invalid|no option 'triggerToken'"):
        configured(given)
