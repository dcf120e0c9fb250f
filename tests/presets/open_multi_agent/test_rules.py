"""``compact``: when it begins, what is old, and what becomes of it."""

from __future__ import annotations

import pytest

from lading.audit.replay import verify
from lading.engine import Engine
from lading.messages import Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult, user_text
from lading.presets.open_multi_agent import AgentConfig, Compact, strategy_for
from lading.stores.memory import MemoryStore
from tests.engines import TOOLS, packs, request, settings
from tests.histories import answered, said
from tests.presets.open_multi_agent.configured import applied, call_and_result, decided, loop, shown, texts
from tests.views import admitted, pairing_faults


def compact(max_tokens: int = 1, **options: int) -> dict[str, object]:
    return {"contextStrategy": {"type": "compact", "maxTokens": max_tokens, **options}}


def marked(chars: int, entry: int, tool: str = "read") -> str:
    return f"[Tool result: {tool} — {chars} chars, compacted] Kept at artifact://t/s/log/{entry}"


def test_nothing_happens_up_to_max_tokens_as_the_document_estimates_them() -> None:
    # The task has 19 characters, five calls two each, their results 1,000 each: 5,029 characters.
    history = loop(5, chars=1_000)
    assert shown(compact(1_258, preserveRecentTurns=1), history) == history
    assert texts(shown(compact(1_257, preserveRecentTurns=1), history))[2] == marked(1_000, 2)


def test_the_newest_four_pairs_stay_unless_told_otherwise() -> None:
    after = texts(shown(compact(), loop(6, chars=1_000)))
    assert [text == "x" * 1_000 for text in after[2::2]] == [False, False, True, True, True, True]
    after = texts(shown(compact(preserveRecentTurns=2), loop(6, chars=1_000)))
    assert [text == "x" * 1_000 for text in after[2::2]] == [False] * 4 + [True] * 2


def test_with_fewer_pairs_than_those_to_keep_nothing_is_old() -> None:
    history = loop(4, chars=1_000)
    assert shown(compact(), history) == history


def test_a_message_of_the_user_after_another_makes_no_pair() -> None:
    history = [*loop(2, chars=1_000), user_text("go"), user_text("on"), *loop(1, start=2, chars=1_000)]
    after = texts(shown(compact(preserveRecentTurns=2), history))
    assert (after[2], after[4]) == (marked(1_000, 2), "x" * 1_000)


@pytest.mark.parametrize(
    ("chars", "options", "is_kept"),
    [
        (199, {}, True),
        (200, {}, False),
        (299, {"minToolResultChars": 300}, True),
        (300, {"minToolResultChars": 300}, False),
    ],
)
def test_short_results_stay(chars: int, options: dict[str, int], *, is_kept: bool) -> None:
    after = texts(shown(compact(preserveRecentTurns=1, **options), loop(3, chars=chars)))
    assert after[2] == ("x" * chars if is_kept else marked(chars, 2))


def test_errors_delegated_answers_and_marks_stay() -> None:
    history = [
        user_text("task"),
        *call_and_result("a", "e" * 900, is_error=True),
        *call_and_result("b", "d" * 900, tool="delegate_to_agent"),
        *call_and_result("c", "[Tool output compressed" + "c" * 900),
        *call_and_result("d", "[Tool result:" + "t" * 900),
        *loop(1, start=1),
    ]
    assert shown(compact(preserveRecentTurns=1), history) == history


@pytest.mark.parametrize(("chars", "is_kept"), [(1_999, True), (2_000, False)])
def test_long_texts_of_the_assistant_become_their_first_characters(chars: int, *, is_kept: bool) -> None:
    history = [user_text("task"), said("y" * chars), user_text("u" * 5_000), *loop(1, start=1)]
    after = texts(shown(compact(preserveRecentTurns=1), history))
    mark = f"... [truncated — {chars} chars total] Kept at artifact://t/s/log/1"
    assert after[1] == ("y" * chars if is_kept else "y" * 200 + mark)
    assert after[2] == "u" * 5_000


def test_an_excerpt_is_never_cut_again() -> None:
    options = compact(preserveRecentTurns=1, minTextBlockChars=100, textBlockExcerptChars=300)
    history = admitted([user_text("task"), said("y" * 4_000), *loop(2, start=1)])
    once = applied(options, history)
    assert len(once[1].text) > 300
    assert decided(options, history).drafts == ()


def test_pictures_of_the_user_become_a_mark_and_calls_stay_whole() -> None:
    call = Message("assistant", (ToolCall("a", "write", '{"text": "' + "w" * 9_000 + '"}'),))
    picture = Message("user", (Text("see"), Image(data="d" * 4_000, media_type="image/png")))
    history = [user_text("task"), said("yes"), picture, call, answered("a"), *loop(1, start=1)]
    after = shown(compact(preserveRecentTurns=1), history)
    assert after[2].parts == (Text("see"), Text("[Image compacted] Kept at artifact://t/s/log/2"))
    assert after[3:5] == history[3:5]


def test_what_was_said_beside_reasoning_stays() -> None:
    thought = Message("assistant", (Reasoning("hm", "c2ln"), Text("y" * 4_000)))
    history = [user_text("task"), thought, user_text("go"), *loop(1, start=1)]
    assert shown(compact(preserveRecentTurns=1), history) == history


def test_with_no_pairs_to_keep_what_is_not_answered_yet_stays() -> None:
    history = loop(3, chars=1_000)
    after = texts(shown(compact(preserveRecentTurns=0), history))
    assert after[2::2] == [marked(1_000, 2), marked(1_000, 4), "x" * 1_000]


def test_what_earlier_cuts_show_and_what_is_pinned_stays() -> None:
    history = admitted([user_text("task"), said("y" * 4_000), *loop(2, start=1)])
    history.pin(1, call=1)
    assert decided(compact(preserveRecentTurns=1), history).drafts == ()


def test_bug_161_no_turn_is_lost_and_what_was_decided_is_kept() -> None:
    strategy = strategy_for(AgentConfig(context_strategy=Compact(10, preserve_recent_turns=1)))
    store = MemoryStore()
    engine = Engine(settings(100_000, strategy=strategy), store)
    history = loop(6, chars=1_000)
    outcomes = []
    for start in range(1, len(history), 2):
        engine.append(history[start - 1 : start] if start == 1 else [])
        engine.append(history[start : start + 2])
        outcomes.append(request(engine))
    assert len(engine.history.view) == len(history)
    assert pairing_faults(engine.history.view.messages) == []
    stored = store.load("default", "session")
    assert list(stored.edits) == engine.history.edits
    assert len(packs(outcomes)) == 6
    assert [outcome.problem for outcome in verify(store, tenant="default", session="session")] == [""] * 6


def test_bug_budgets_that_leave_out_prompt_and_tools_do_not_overfill_the_window() -> None:
    strategy = strategy_for(AgentConfig(context_strategy=Compact(100_000)))
    engine = Engine(settings(3_000, strategy=strategy, strict=False))
    engine.append([Message("system", (Text("s" * 4_000),)), *loop(12, chars=1_000)])
    pack = engine.pack(tools=TOOLS)
    # By the document's own estimate nothing presses: 3,015 of 100,000, the prompt left out.
    assert pack.tokens <= 3_000
    assert any(edit.reason.startswith("compact") for edit in engine.history.edits)


def test_a_part_of_a_result_that_nobody_knows_is_measured_as_it_is_stored() -> None:
    result = Message("tool", (ToolResult("c0", (Text("t" * 400), Opaque({"type": "odd", "is": "o" * 300}))),))
    (after,) = shown(compact(preserveRecentTurns=1), [*loop(1)[:2], result, *loop(1, start=1)])[2].results
    stored = '{"kind":"opaque","value":{"type":"odd","is":"' + "o" * 300 + '"}}'
    assert after.text == marked(400 + len(stored), 2)


def test_a_result_of_text_and_picture_is_measured_by_its_data() -> None:
    picture = Image(url="https://example.org/a.png")
    result = Message("tool", (ToolResult("c0", (Text("t" * 300), picture)),))
    history = [*loop(1)[:2], result, *loop(1, start=1)]
    assert texts(shown(compact(preserveRecentTurns=1), history))[2] == marked(300 + 25 + 32, 2)
