"""The overflow ladder as aether-frame describes it: which layer gives way when, what comes first, what never."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lading.compaction.cutting import MOST_STUB_TOKENS
from lading.compaction.span_folding import count_spare_tokens
from lading.effects import Summarizer, SummaryRequest
from lading.engine import Engine
from lading.errors import WindowExceeded
from lading.events import StrategyOverruled, ToolsReduced
from lading.history.history import History
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import Tool, user_text
from lading.presets.aether_frame.overflow import (
    OLDER_EVIDENCE,
    OLDEST_EVIDENCE,
    OLDEST_TURNS,
    STEP_SUMMARY,
    TIGHTENED_SHARE,
    OverflowPlan,
    resolve_overflow,
)
from lading.presets.aether_frame.tail import Tail, strategy
from tests.engines import request, settings, template
from tests.examples import share_of_examples
from tests.histories import answered, called, said
from tests.presets.aether_frame.dialogues import ROOMY, apply, decided, rounds, talk
from tests.views import admitted, pressure

STEPS = (OLDER_EVIDENCE, STEP_SUMMARY, OLDEST_EVIDENCE, OLDEST_TURNS)
"""In the document's order."""


def taken(drafts: Sequence[Draft]) -> set[str]:
    """The overflow steps among the drafts."""
    return {draft.reason for draft in drafts} & set(STEPS)


def summarized_dialogue(rounds_after: int = 12) -> History:
    """Ten turns, of which the older are a summary; then the user's newest, with rounds of work in it."""
    history = admitted([*talk(0, 10, words=600, facts=200), user_text("Do it.")])
    apply(history)
    for message in rounds(0, rounds_after):
        history.append(message, call=2)
    return history


def after(view: View, drafts: Sequence[Draft]) -> int:
    """The tokens once the drafts apply."""
    return ROOMY - count_spare_tokens(view, drafts, pressure=pressure(ROOMY))


def test_the_steps_come_in_the_document_s_order_and_none_while_the_one_before_suffices() -> None:
    history = summarized_dialogue()
    view = history.view
    seen: list[set[str]] = []
    for room_tokens in range(view.tokens, 300, -300):
        steps = taken(decided(history, room_tokens))
        if not seen or steps != seen[-1]:
            seen.append(steps)
    # Evidence that was dropped, or left with its turn, is no summary: the first steps leave no trace any more.
    ends = [max(map(STEPS.index, steps), default=-1) for steps in seen]
    assert ends == sorted(ends)
    assert [set(), {OLDER_EVIDENCE}, {OLDER_EVIDENCE, STEP_SUMMARY}] == seen[:3]
    assert ends[-1] == STEPS.index(OLDEST_TURNS)
    assert {OLDEST_EVIDENCE} <= next(steps for steps in seen if OLDEST_TURNS in steps)


def test_older_evidence_becomes_a_summary_the_oldest_first_until_the_slack_is_free() -> None:
    history = admitted([user_text("Do it."), *rounds(0, 20)])
    room_tokens = history.view.tokens - 1
    drafts = decided(history, room_tokens)
    assert taken(drafts) == {OLDER_EVIDENCE}
    assert [draft.first for draft in drafts] == list(range(2, 2 + 2 * len(drafts), 2))
    assert after(history.view, drafts) <= room_tokens * 0.9 < after(history.view, drafts[:-1])
    roomier = decided(history, room_tokens, options=Tail(slack_percent=0))
    assert [draft.first for draft in roomier] == [2]
    more = decided(history, room_tokens, options=Tail(slack_percent=15))
    assert len(more) > len(drafts)


def test_while_everything_fits_an_agent_s_one_turn_is_left_alone() -> None:
    history = admitted([user_text("Do it."), *rounds(0, 20)])
    assert decided(history, history.view.tokens) == ()


def test_a_fresh_result_stays_inline_whatever_presses() -> None:
    history = admitted([user_text("Do it."), *rounds(0, 20)])
    fresh = history.entries[-1].index
    for room_tokens in range(300, history.view.tokens, 150):
        assert all(draft.last < fresh - 1 for draft in decided(history, room_tokens))


def test_a_summary_is_tightened_to_half_at_most() -> None:
    history = summarized_dialogue(rounds_after=0)
    view = history.view
    fold = view.items[view.head]
    plan = OverflowPlan(view, pressure(view.tokens - 1))
    resolve_overflow(plan, slack_tokens=fold.tokens // 4)
    (draft,) = plan.drafts
    assert draft.reason == STEP_SUMMARY
    assert draft.replacement[0].text.startswith("[conversation summary]\n[Record of messages ")
    now = sum(map(pressure().count, draft.replacement))
    assert fold.tokens * TIGHTENED_SHARE <= now + MOST_STUB_TOKENS / 4 < fold.tokens
    assert plan.spare >= fold.tokens // 4


def test_the_oldest_evidence_is_dropped_to_bare_pointers_before_a_turn_leaves() -> None:
    history = admitted([user_text("Do it."), *rounds(0, 20)])
    for room_tokens in range(history.view.tokens, 300, -40):
        drafts = decided(history, room_tokens, options=Tail(slack_percent=0))
        if OLDEST_EVIDENCE in taken(drafts):
            break
    assert OLDEST_TURNS not in taken(drafts)
    dropped = [draft.first for draft in drafts if draft.reason == OLDEST_EVIDENCE]
    assert dropped == list(range(2, 2 + 2 * len(dropped), 2))
    text = drafts[0].replacement[0].results[0].text
    assert text.startswith("[Result of read removed after use")
    assert "Original: artifact://t/s/log/2]" in text


def test_whole_turns_leave_the_oldest_first_and_the_newest_turn_last() -> None:
    history = admitted([*talk(0, 4, words=300), user_text("Do it."), *rounds(0, 4)])
    starts = [2, 4, 6, 8]
    ends: list[int] = []
    for room_tokens in range(history.view.tokens, 500, -20):
        drafts = [draft for draft in decided(history, room_tokens) if draft.reason == OLDEST_TURNS]
        ends += [draft.last + 1 for draft in drafts if draft.last + 1 not in ends]
    assert ends[:4] == starts
    assert all(end > 8 for end in ends[4:])


def test_what_left_with_its_turn_is_told_by_the_summary_and_by_a_stub_where_there_is_no_room() -> None:
    history = admitted([*talk(0, 4, words=300), user_text("Now what?")])
    (told,) = decided(history, 1_000)
    assert (told.kind, told.reason) == ("summarised", OLDEST_TURNS)
    assert "topic_0" in told.replacement[0].text
    (bare,) = decided(history, 120)
    assert (bare.kind, bare.reason) == ("dropped", OLDEST_TURNS)
    assert "artifact://t/s/log/1-7" in bare.replacement[0].text


def test_in_one_long_turn_rounds_leave_and_what_the_user_asked_stays() -> None:
    history = admitted([*talk(0, 1), user_text("Find the slow test."), *rounds(0, 60)])
    (fold, *_) = decided(history, 1_500)
    assert (fold.kind, fold.reason) == ("summarised", OLDEST_TURNS)
    assert "Find the slow test." in [message.text for message in fold.replacement]
    assert fold.last < history.entries[-2].index


def test_a_long_request_stays_for_the_slack_and_leaves_only_where_nothing_else_fits() -> None:
    asked = "Compare these. " * 120
    history = admitted([*talk(0, 3, words=300), user_text(asked), *rounds(0, 4, lines=3)])
    (spared,) = decided(history, 640)
    assert (spared.first, spared.last) == (1, 5)
    assert 640 * 0.9 < after(history.view, [spared]) <= 640
    (last,) = decided(history, 300)
    assert last.last > 5
    assert asked not in [message.text for message in last.replacement]
    assert last.pointers == (f"artifact://t/s/log/1-{last.last}",)


@share_of_examples(0.25)
@given(
    lines=st.lists(st.integers(0, 60), min_size=1, max_size=20),
    room_tokens=st.integers(200, 3_000),
    slack_percent=st.integers(0, 20),
)
def test_a_step_is_exhausted_before_the_next_begins(lines: list[int], room_tokens: int, slack_percent: int) -> None:
    history = admitted([*talk(0, 3), user_text("Do it.")])
    for number, count in enumerate(lines):
        for message in (called(f"c{number}"), answered(f"c{number}", f"value_{number} is set\n" * count)):
            history.append(message, call=1)
    options = Tail(slack_percent=slack_percent)
    drafts = decided(history, room_tokens, options=options)
    steps = taken(drafts)
    if OLDEST_TURNS in steps:
        # Behind what left, all evidence that was worth dropping is dropped, and the last step was needed.
        assert OLDER_EVIDENCE not in steps
        assert after(history.view, drafts) <= room_tokens
    elif OLDEST_EVIDENCE in steps:
        without = [draft for draft in drafts if draft.reason != OLDEST_EVIDENCE]
        assert after(history.view, without) > room_tokens - int(room_tokens * slack_percent / 100)
    assert drafts == decided(history, room_tokens, options=options)


def test_after_an_overflow_the_slack_takes_in_what_comes_next() -> None:
    engine = Engine(settings(8_000, strategy="aether_frame/conversation_tail"))
    engine.append([user_text("Do it.")])
    edited: list[bool] = []
    for number in range(120):
        pack = engine.pack(template=template("openai_chat"))
        edited.append(bool(pack.manifest.decisions))
        assert not any(isinstance(event, StrategyOverruled) for event in pack.events)
        engine.append(rounds(number, number + 1, lines=30))
    assert any(edited)
    # A round takes about 170 tokens, the slack 800.
    gaps = [index for index, is_edited in enumerate(edited) if is_edited]
    assert all(later - earlier >= 3 for earlier, later in pairwise(gaps))


def test_tools_give_way_after_everything_else_and_system_and_task_never() -> None:
    words = "A tool with a very long story about what it is for. " * 30
    tools = tuple(Tool(name, words, {"type": "object", "properties": {}}) for name in ("read", "write"))
    engine = Engine(settings(1_300, strategy="aether_frame/conversation_tail"))
    engine.append([user_text("Find it. " + "Task. " * 60), *rounds(0, 6, lines=30)])
    pack = engine.pack(tools=tools, template=template("openai_chat"))
    assert pack.manifest.tool_detail == "full"
    assert OLDEST_TURNS in {edit.reason for edit in engine.history.edits}
    engine.append([said("Done."), user_text("And this? " + "word " * 400)])
    pack = engine.pack(tools=tools, template=template("openai_chat"))
    assert any(isinstance(event, ToolsReduced) for event in pack.events)
    assert pack.manifest.tool_detail == "types"
    assert "Find it. " + "Task. " * 60 in pack.body.decode()


def test_where_nothing_may_go_any_more_a_typed_error_names_the_layer() -> None:
    engine = Engine(settings(300, strategy="aether_frame/conversation_tail"))
    engine.append([user_text("Task. " * 300)])
    outcome = request(engine)
    assert isinstance(outcome, WindowExceeded)
    assert outcome.layer == "conversation"


def test_a_model_is_asked_for_turns_that_age_and_never_to_tighten() -> None:
    asked: list[SummaryRequest] = []

    def summarize(request: SummaryRequest) -> str:
        asked.append(request)
        return "Goal: do it\n" + "Done: it went on for a while\n" * 60

    chosen = settings(40_000, strategy=strategy(Tail(slack_percent=0)))
    engine = Engine(replace(chosen, summarizer=Summarizer(summarize)))
    engine.append([*talk(0, 6, words=3_000, facts=300), user_text("Do it.")])
    engine.pack(template=template("openai_chat"))
    assert [request.reason for request in asked] == ["conversation: older than the last 5 turns"]
    too_much = 40_000 - engine.history.view.tokens
    engine.append([called("c", text="word" * too_much), answered("c")])
    engine.pack(template=template("openai_chat"))
    assert engine.history.edits[-1].reason == STEP_SUMMARY
    assert len(asked) == 1
    engine.append([said("word " * 200), user_text("And this?")])
    engine.pack(template=template("openai_chat"))
    assert len(asked) == 2
