"""Reactive compaction as Agentrail describes it: when it comes, what it folds, what it leaves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lading import Session, SessionOptions
from lading.compaction import Compaction, Past, Pressure
from lading.engine import Engine, reopen
from lading.errors import InputError, WindowExceeded
from lading.events import Compacted
from lading.history.history import History
from lading.history.log import Draft, Edit, Reported
from lading.messages import Message, ToolCall, user_text
from lading.presets.agentrail import budget_used_pct
from lading.presets.agentrail.reactive import (
    DEFAULTS,
    Reactive,
    choose_level,
    compact,
    find_rounds,
    find_spans,
    strategy,
)
from lading.request.pack import Pack
from lading.stores import open_store
from lading.wire import WIRES
from tests.engines import TOOLS, request, settings, template
from tests.examples import share_of_examples
from tests.histories import answered, histories
from tests.replies import messages_reply
from tests.views import admitted, pressure

WINDOW, LIMIT = 200_000, 190_000
"""The window of the document, and what 10,000 tokens for the answer leave of it."""


def work(start: int, stop: int, *, lines: int = 40) -> list[Message]:
    """API rounds: a call and its result, each with a value of its own."""
    history: list[Message] = []
    for number in range(start, stop):
        call = ToolCall(f"c{number}", "read", f'{{"path": "src/mod_{number}.py"}}')
        history += [Message("assistant", (call,)), answered(f"c{number}", f"value_{number} is set\n" * lines)]
    return history


def two_requests(before: int, after: int) -> History:
    """So many rounds for a first request of the user, so many for a second."""
    return admitted([user_text("Do one."), *work(0, before), user_text("Do two."), *work(before, before + after)])


def filled(reported_tokens: int, edits: tuple[Edit, ...] = (), *, room_tokens: int = 10**6) -> Pressure:
    """A pressure after a request that took so many tokens of the window."""
    return replace(pressure(room_tokens), past=Past(reported_tokens, LIMIT, False, edits, window_tokens=WINDOW))


def decided(outcome: object) -> tuple[Draft, ...]:
    """The drafts of a decision for which nobody was asked."""
    assert isinstance(outcome, Compaction)
    return outcome.drafts


def apply(history: History, reported_tokens: int, call: int) -> list[str]:
    """Decide and apply; the levels of what was folded."""
    drafts = decided(compact(history.view, filled(reported_tokens, tuple(history.edits))))
    for draft in drafts:
        history.apply(draft, call=call, room_tokens=10**6)
    return [draft.reason.partition(":")[0] for draft in drafts]


def test_the_defaults_are_the_document_s() -> None:
    assert Reactive(True, 85, 92, 2, 2, 3) == DEFAULTS


@pytest.mark.parametrize(
    ("reported_tokens", "wanted"),
    [(0, ""), (169_999, ""), (170_000, "micro"), (183_999, "micro"), (184_000, "full"), (260_000, "full")],
)
def test_micro_comes_at_85_percent_of_the_window_and_full_at_92(reported_tokens: int, wanted: str) -> None:
    history = two_requests(6, 6)
    assert choose_level(history.view, filled(reported_tokens)) == wanted
    assert choose_level(history.view, filled(reported_tokens), options=Reactive(enabled=False)) == ""


@pytest.mark.parametrize(("free", "wanted"), [(20_001, ""), (20_000, "micro"), (6_000, "full")])
def test_without_reported_usage_what_the_count_leaves_free_is_measured(free: int, wanted: str) -> None:
    view = two_requests(6, 6).view
    counted = replace(filled(0, room_tokens=view.tokens + free), past=Past(None, LIMIT, window_tokens=WINDOW))
    assert choose_level(view, counted) == wanted


def session_of(**options: Any) -> Session:
    """A session of a model with a window of 200,000 tokens."""
    return Session("claude-sonnet-4-5", strategy="agentrail/reactive", window=WINDOW, **options)


def reasons_after(session: Session, tokens: int, *, lines: int = 40) -> list[str]:
    """The reasons of the edits after a request of eight rounds that took so many tokens, and a result of lines."""
    session.add([user_text("Do it."), *work(0, 8, lines=lines)])
    session.pack()
    call = {"type": "tool_use", "id": "c8", "name": "read", "input": {}}
    session.reply(messages_reply(call) | {"usage": {"input_tokens": tokens, "output_tokens": 9}})
    session.add(answered("c8", "value_8 is set\n" * lines))
    return [decision.reason for decision in session.pack().manifest.decisions]


@pytest.mark.parametrize(
    ("tokens", "reasons"),
    [
        (169_999, []),
        (170_000, ["reactive_micro: 85 % of the window, request 0"]),
        (184_000, ["reactive_full: 92 % of the window, request 0"]),
    ],
)
def test_percentages_are_of_the_whole_window_whatever_is_kept_for_the_answer(
    tokens: int, reasons: list[str]
) -> None:
    """With a reserve of 10,000 the percentages came at 161,500 and 174,800 tokens."""
    with session_of(output_reserve=10_000) as session:
        assert reasons_after(session, tokens) == reasons


def test_where_requests_end_below_the_threshold_the_forced_edit_says_so() -> None:
    with session_of() as session:
        # A quarter of the window is kept for the answer: 85 % of it is never reached.
        reasons = reasons_after(session, 129_000, lines=3_000)
    assert reasons == [
        "reactive_full: the request does not fit, and requests end at 75 % of the window, before 85 %: the rest is "
        "kept for the answer, request 0"
    ]


def test_budget_used_pct_is_of_one_request_and_the_whole_window() -> None:
    assert [budget_used_pct(tokens) for tokens in (0, 999, 1_000, 128_000, 170_000)] == [0, 0, 1, 64, 85]
    assert budget_used_pct(85_000, 100_000) == 85


def test_a_round_starts_at_each_assistant_message_and_the_prompt_is_in_none() -> None:
    history = two_requests(4, 3)
    assert find_rounds(history.view) == ([1, 3, 5, 7, 9], [10, 12, 14, 16])
    assert find_rounds(two_requests(0, 3).view) == ([], [2, 4, 6, 8])
    assert find_rounds(admitted([user_text("hi")]).view) == ([], [])


def test_micro_folds_the_two_oldest_rounds_before_the_prompt_else_behind_it() -> None:
    def folds(before: int, after: int) -> list[tuple[int, int]]:
        view = two_requests(before, after).view
        return [(place.start, place.end) for place in find_spans(view, filled(0), wanted="micro")]

    assert folds(6, 6) == [(1, 5)]
    assert folds(3, 6) == [(1, 3)]
    assert folds(2, 6) == [(6, 10)]
    assert folds(0, 6) == [(2, 6)]
    assert folds(2, 2) == []


def test_full_folds_all_but_the_two_newest_rounds_on_both_sides_of_the_prompt() -> None:
    history = two_requests(5, 6)
    (before, after) = decided(compact(history.view, filled(190_000)))
    assert (before.first, before.last) == (1, 6)
    assert (after.first, after.last) == (12, 19)
    shown = [message.text for draft in (before, after) for message in draft.replacement]
    assert all(text.startswith("[reactive full summary]\n[Record of messages") for text in shown)
    assert "src/mod_0.py" in shown[0]
    assert "src/mod_5.py" in shown[1]


def test_options_change_how_many_rounds_stay_and_how_many_a_micro_takes() -> None:
    view = two_requests(9, 0).view
    options = Reactive(preserve_recent_api_rounds=4, micro_batch_groups=3)
    assert [place.end for place in find_spans(view, filled(0), wanted="micro", options=options)] == [7]
    assert [place.end for place in find_spans(view, filled(0), wanted="full", options=options)] == [11]
    assert strategy(options).name == "agentrail/reactive"


@pytest.mark.parametrize(
    ("kept", "most", "batch", "micro_pct"),
    [(-1, 3, 2, 85), (2, -1, 2, 85), (2, 3, 0, 85), (2, 3, 2, 0), (2, 3, 2, 95)],
)
def test_options_that_mean_nothing_are_refused(kept: int, most: int, batch: int, micro_pct: int) -> None:
    with pytest.raises(InputError):
        Reactive(True, micro_pct, 92, kept, batch, most)


def test_after_a_micro_the_same_request_gets_a_full_and_after_three_nothing() -> None:
    history = two_requests(20, 4)
    assert apply(history, 175_000, 1) == ["reactive_micro"]
    assert apply(history, 175_000, 2) == ["reactive_full", "reactive_full"]
    for message in work(24, 30):
        history.append(message, call=3)
    assert apply(history, 175_000, 3) == ["reactive_full"]
    for message in work(30, 36):
        history.append(message, call=4)
    assert apply(history, 199_000, 4) == []
    history.append(user_text("Do three."), call=5)
    assert apply(history, 175_000, 5) == ["reactive_micro"]


def test_a_refused_request_is_folded_whatever_it_took() -> None:
    history = two_requests(5, 6)
    refused = replace(pressure(10**6), past=Past(None, LIMIT, True, window_tokens=WINDOW))
    assert choose_level(history.view, refused) == "full"
    (draft, _) = decided(compact(history.view, refused))
    assert draft.reason == "reactive_full: the prompt was too long, request 11"


def test_what_does_not_fit_is_folded_deeper_than_the_document_would() -> None:
    history = two_requests(3, 5)
    fits = decided(compact(history.view, filled(10, room_tokens=history.view.tokens - 200)))
    assert {draft.reason for draft in fits} == {"reactive_full: the request does not fit, request 7"}
    deep = decided(compact(history.view, filled(10, room_tokens=700)))
    assert [(draft.kind, draft.first) for draft in deep] == [("summarised", 1)]
    assert "Do two." in [message.text for message in deep[0].replacement]
    cut = decided(compact(history.view, filled(10, room_tokens=300)))
    assert [(draft.kind, draft.first) for draft in cut] == [("dropped", 1)]
    assert decided(compact(history.view, filled(10, room_tokens=100))) == ()


def test_rounds_that_are_shorter_than_their_fold_stay() -> None:
    history = admitted([user_text("hi"), *work(0, 3, lines=1)])
    outcome = compact(history.view, filled(190_000))
    assert decided(outcome) == ()
    assert isinstance(outcome, Compaction)
    assert outcome.stuck.startswith("outside the newest rounds")


@pytest.mark.parametrize("name", ["agentrail/reactive", "agentrail/layers"])
@pytest.mark.parametrize("wire", sorted(WIRES))
@share_of_examples(0.25)
@given(
    history=histories(max_size=8),
    window=st.integers(300, 2_000),
    shares=st.lists(st.integers(50, 100), max_size=8),
)
def test_whatever_usage_is_reported_requests_are_legal_and_the_same_after_reopening(
    name: str, wire: str, history: list[Message], window: int, shares: list[int]
) -> None:
    chosen = settings(window, strategy=name, wire=wire)
    with open_store("memory", "test") as store:
        engine, plain = Engine(chosen, store), Engine(chosen)
        reports = iter(shares)
        for message in history:
            if message.role == "assistant":
                pack, same = request(engine), request(plain)
                assert isinstance(pack, Pack) == isinstance(same, Pack)
                share = next(reports, 0)
            usage = Reported(window * share // 100) if message.role == "assistant" and share else None
            for line in (engine, plain):
                line.append([message], usage=usage)
        engine.save()
        again, same = request(reopen(chosen, store)), request(plain)
        if isinstance(same, Pack):
            assert isinstance(again, Pack)
            assert again.body == same.body
            expected = same.manifest.sent.expected  # what was reported may teach that a picture takes less
            assert (same.tokens if expected is None else expected.tokens) <= window
        else:
            assert isinstance(again, WindowExceeded)


def ask(engine: Engine) -> Pack:
    return engine.pack(tools=TOOLS, template=template(engine.settings.wire))


def answer(engine: Engine, number: int, reported_tokens: int) -> None:
    call, result = work(number, number + 1)
    engine.append([call], usage=Reported(reported_tokens))
    engine.append([result])


def test_the_last_real_usage_reaches_the_strategy_and_the_event_counts_messages() -> None:
    with open_store("memory", "test") as store:
        chosen = settings(100_000, strategy="agentrail/reactive")
        engine = Engine(chosen, store)
        engine.append([user_text("Do it."), *work(0, 8)])
        assert ask(engine).manifest.decisions == ()
        answer(engine, 8, 84_999)
        assert ask(engine).manifest.decisions == ()
        answer(engine, 9, 85_000)
        pack = ask(engine)
        assert [edit.reason for edit in engine.history.edits] == ["reactive_micro: 85 % of the window, request 0"]
        assert [event for event in pack.events if isinstance(event, Compacted)] == [Compacted(3, 21, 18)]
        answer(engine, 10, 86_000)
        engine.save()
        again = reopen(chosen, store)
        assert ask(again).events[-1] == Compacted(4, 20, 7)
        assert again.history.edits[-1].reason == "reactive_full: 86 % of the window, request 0"


def test_a_call_without_usage_or_with_more_than_the_window_is_measured_by_our_count() -> None:
    """There, usage summed over the calls of a request exceeded the window and was taken for that of one prompt."""
    engine = Engine(settings(100_000, strategy="agentrail/reactive"))
    engine.append([user_text("Do it."), *work(0, 8)])
    ask(engine)
    answer(engine, 8, 250_000)
    assert DEFAULTS.full_trigger_pct < 250_000 * 100 / 100_000
    assert ask(engine).manifest.decisions == ()
    # The next request is not measured by the usage of the one before it.
    answer(engine, 9, 95_000)
    ask(engine)
    decided_once = len(engine.history.edits)
    engine.append([user_text("And this.")])
    ask(engine)
    assert len(engine.history.edits) == decided_once == 1


@pytest.mark.parametrize(
    ("usage", "edits"),
    [
        ({"input_tokens": 84_999}, 0),
        ({"input_tokens": 5_000, "cache_read_input_tokens": 76_000, "cache_creation_input_tokens": 3_999}, 0),
        ({"input_tokens": 5_000, "cache_read_input_tokens": 76_000, "cache_creation_input_tokens": 4_000}, 1),
    ],
)
def test_usage_is_what_was_sent_and_what_the_cache_read_and_wrote(usage: dict[str, int], edits: int) -> None:
    options = SessionOptions(strict=True)
    with Session(
        "claude-sonnet-4-5",
        strategy="agentrail/reactive",
        window=100_000,
        output_reserve=0,
        options=options,
    ) as session:
        session.add([user_text("Do it."), *work(0, 8)])
        session.pack()
        call = {"type": "tool_use", "id": "c8", "name": "read", "input": {}}
        session.reply(messages_reply(call) | {"usage": {**usage, "output_tokens": 9}})
        session.add(answered("c8", "value_8 is set"))
        assert len(session.pack().manifest.decisions) == edits
