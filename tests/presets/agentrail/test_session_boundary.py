"""Compaction at the boundary of a request, and the three layers together, as Agentrail describes them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lading.compaction import Compaction, Past
from lading.errors import InputError
from lading.history.log import Draft
from lading.messages import Message, ToolCall, user_text
from lading.presets.agentrail.layers import Agentrail, configured
from lading.presets.agentrail.layers import compact as all_layers
from lading.presets.agentrail.reactive import Reactive
from lading.presets.agentrail.session_boundary import DEFAULTS, Boundary, compact, find_boundary
from lading.presets.agentrail.tool_results import ToolResults
from tests.histories import answered, called, said
from tests.views import admitted, pressure


def talk(turns: int, *, chars: int) -> list[Message]:
    """So many turns of one text each way, and a question at the end."""
    history: list[Message] = []
    for number in range(turns):
        history += [user_text(f"Question {number}. " + "word " * (chars // 5)), said(f"Answer {number}.")]
    return [*history, user_text("And now?")]


def decided(outcome: object) -> tuple[Draft, ...]:
    """The drafts of a decision for which nobody was asked."""
    assert isinstance(outcome, Compaction)
    return outcome.drafts


def test_the_defaults_are_those_of_the_document_s_example() -> None:
    assert Boundary(80_000, 20, 1 / 3) == DEFAULTS


def test_the_oldest_third_of_the_messages_is_folded_above_the_trigger() -> None:
    view = admitted(talk(30, chars=12_000)).view
    assert (len(view), view.tokens > 80_000) == (61, True)
    (draft,) = decided(compact(view, pressure(10**6)))
    # A third of 61 is 20: the first message of the user is among them, and stays as the head.
    assert (draft.first, draft.last) == (1, 19)
    assert draft.replacement[0].text.startswith("[session compaction summary]\n[Record of messages ")
    assert draft.reason == f"session_compaction: {view.tokens:,} tokens at the start of a request"


@pytest.mark.parametrize(
    ("options", "due"),
    [
        (Boundary(trigger_tokens=5_000, min_messages=21), True),
        (Boundary(trigger_tokens=5_000, min_messages=22), False),
        (Boundary(trigger_tokens=6_000, min_messages=21), False),
    ],
)
def test_fewer_messages_or_tokens_are_left_alone(options: Boundary, due: bool) -> None:
    view = admitted(talk(10, chars=2_000)).view
    assert (len(view), 5_000 < view.tokens < 6_000) == (21, True)
    assert bool(decided(compact(view, pressure(10**6), options=options))) == due


def test_only_the_first_call_of_a_request_compacts() -> None:
    options = Boundary(1_000, 5)
    history = admitted(talk(10, chars=2_000))
    opened = pressure(10**6)
    assert decided(compact(history.view, opened, options=options))
    assert decided(compact(history.view, replace(opened, past=Past(is_refused=True)), options=options)) == ()
    for message in (called("a"), answered("a", "found")):
        history.append(message, call=2)
    assert decided(compact(history.view, opened, options=options)) == ()


def test_the_cut_moves_on_past_results_and_back_where_only_results_follow() -> None:
    calls = Message("assistant", tuple(ToolCall(f"c{number}", "read", "{}") for number in range(6)))
    results = [answered(f"c{number}") for number in range(6)]
    loop = [user_text("go"), said("ok"), calls, *results, said("done"), user_text("more")]
    assert find_boundary(admitted(loop).view, pressure()) == 9
    assert find_boundary(admitted(loop[:9]).view, pressure(), options=Boundary(compact_fraction=0.9)) == 2
    assert find_boundary(admitted([user_text("go")]).view, pressure()) is None


@pytest.mark.parametrize(("trigger", "least", "fraction"), [(-1, 20, 0.3), (1, -1, 0.3), (1, 20, 0)])
def test_options_that_mean_nothing_are_refused(trigger: int, least: int, fraction: float) -> None:
    with pytest.raises(InputError):
        Boundary(trigger, least, fraction)


def test_a_view_that_does_not_fit_is_folded_whatever_the_trigger() -> None:
    view = admitted(talk(10, chars=2_000)).view
    (draft,) = decided(compact(view, pressure(3_000)))
    assert draft.reason == "session_compaction: the window is full"


def test_what_is_folded_already_is_not_folded_again() -> None:
    history = admitted(talk(10, chars=2_000))
    options = Boundary(1_000, 5)
    (draft,) = decided(compact(history.view, pressure(10**6), options=options))
    history.apply(draft, call=1, room_tokens=10**6)
    history.append(said("so"), call=2)
    history.append(user_text("next"), call=2)
    few = Boundary(1_000, 5, compact_fraction=0.1)
    assert find_boundary(history.view, pressure(), options=few) == 2
    assert decided(compact(history.view, pressure(10**6), options=few)) == ()


def rows(rounds: int) -> list[Message]:
    """So many rounds, each with a result of 200 tokens."""
    names = [f"{number}" for number in range(rounds)]
    return [message for name in names for message in (called(name), answered(name, "row " * 200))]


def layers() -> Agentrail:
    """All three, with small numbers."""
    return Agentrail(ToolResults(100, 1, 400), Boundary(5_000, 10), Reactive())


def test_the_three_layers_act_in_one_decision() -> None:
    loop = rows(6)
    view = admitted([*talk(10, chars=2_000)[:-1], user_text("go"), *loop]).view
    drafts = decided(all_layers(view, pressure(10**6), options=layers()))
    assert {draft.reason for draft in drafts} == {"compact_tool_results: a large result"}
    assert len(drafts) == 5
    hot = replace(pressure(10**6), past=Past(90, 100, window_tokens=100))
    fold, *previews = decided(all_layers(view, hot, options=layers()))
    assert fold.reason.startswith("reactive_micro: 90 %")
    assert len(previews) == 5
    asked = admitted([*talk(10, chars=2_000)[:-1], *loop, said("done"), user_text("next")]).view
    fold, *previews = decided(all_layers(asked, hot, options=layers()))
    assert fold.reason.startswith("session_compaction: ")
    assert not any(fold.first <= preview.first <= fold.last for preview in previews)


def test_what_a_preview_saves_within_a_fold_is_saved_once() -> None:
    loop = rows(9)
    view = admitted([user_text("go"), *loop]).view
    for room_tokens in range(300, 2_000, 100):
        drafts = decided(all_layers(view, pressure(room_tokens), options=layers()))
        spans = [view.span(draft.first, draft.last) for draft in drafts]
        freed = sum(view.tokens_before(end) - view.tokens_before(start) for start, end in spans)
        shown = sum(pressure().count(message) for draft in drafts for message in draft.replacement)
        assert view.tokens - freed + shown <= room_tokens or not drafts


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
    assert configured(given).compact.keywords == {"options": chosen}  # type: ignore[attr-defined]
    assert configured({}).compact.keywords == {"options": Agentrail()}  # type: ignore[attr-defined]


@pytest.mark.parametrize("given", [{"triggerToken": 1}, {"reactive": {"microTriggerPct": "x"}}, {"reactive": 1}])
def test_an_option_that_does_not_exist_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"options of Agentrail are invalid|no option 'triggerToken'"):
        configured(given)
