"""``custom``: what a function of the caller's is given, and what becomes of what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.engine import Engine
from lading.events import StrategyOverruled
from lading.messages import Message, Text, user_text
from lading.presets.open_multi_agent import AgentConfig, Custom, strategy_for
from tests.engines import TOOLS, settings, template
from tests.presets.open_multi_agent.configured import applied, decided, loop, shown, texts
from tests.views import admitted, paired, pairing_faults

NOTE = "[{} messages were rewritten by compress. Originals: artifact://t/s/log/{}]"


def custom(compress: Callable[[Sequence[Message], int], Any]) -> dict[str, object]:
    return {"contextStrategy": {"type": "custom", "compress": compress}}


def test_it_is_given_the_messages_and_their_estimated_tokens_before_the_first_request_too() -> None:
    seen: list[tuple[list[Message], int]] = []

    def compress(messages: Sequence[Message], estimated_tokens: int) -> Sequence[Message]:
        seen.append((list(messages), estimated_tokens))
        return messages

    engine = Engine(settings(100_000, strategy=strategy_for(AgentConfig(context_strategy=Custom(compress)))))
    prompt = Message("system", (Text("s" * 4_000),))
    engine.append([prompt, user_text("12345678")])
    engine.pack(tools=TOOLS, template=template("openai_chat"))
    assert seen == [([user_text("12345678")], 2)]
    engine.append(loop(1, start=1, chars=400))
    engine.pack(tools=TOOLS, template=template("openai_chat"))
    assert [tokens for _, tokens in seen] == [2, 103]
    assert engine.history.edits == []


def test_what_it_drops_becomes_a_note_with_a_pointer_and_the_task_stays() -> None:
    history = loop(4)
    after = shown(custom(lambda messages, _: messages[-4:]), history)
    assert texts(after)[:2] == ["Find the slow test.", NOTE.format(4, "1-4")]
    assert after[2:] == history[-4:]


def test_what_it_gives_instead_is_shown_behind_the_note() -> None:
    history = loop(3)
    mine = user_text("[two rounds]")
    after = shown(custom(lambda messages, _: [messages[0], mine, *messages[-2:]]), history)
    assert texts(after)[1:3] == [NOTE.format(4, "1-4"), "[two rounds]"]
    assert after[3:] == history[-2:]


def test_it_decides_anew_each_time_and_its_edits_supersede_each_other() -> None:
    history = admitted(loop(4))
    options = custom(lambda messages, _: messages[-2:])
    applied(options, history)
    for message in loop(1, start=4):
        history.append(message, call=3)
    after = texts(applied(options, history, call=3))
    assert after[:2] == ["Find the slow test.", NOTE.format(8, "1-8")]
    assert len(after) == 4


def test_the_smallest_run_of_blocks_that_holds_the_change_is_edited() -> None:
    history = loop(4)

    def compress(messages: Sequence[Message], _estimated_tokens: int) -> Sequence[Message]:
        result = messages[4].results[0]
        shorter = Message("tool", (type(result)(result.call_id, (Text("short"),)),))
        return [*messages[:4], shorter, *messages[5:]]

    (draft,) = decided(custom(compress), admitted(history)).drafts
    assert (draft.kind, draft.first, draft.last) == ("summarised", 3, 4)
    assert texts(draft.replacement)[1:] == ["", "short"]


def test_messages_put_in_between_push_nothing_out() -> None:
    history = loop(3)
    mine = user_text("Remember the budget.")
    after = shown(custom(lambda messages, _: [*messages[:3], mine, *messages[3:]]), history)
    assert [text for text in texts(after) if text == "Remember the budget."] == ["Remember the budget."]
    assert [message for message in after if message in history] == history


def test_what_the_user_asked_stays_over_it_once() -> None:
    history = [*loop(1), user_text("Never push to main."), *loop(5, start=1)]
    after = texts(shown(custom(lambda messages, _: messages[-2:]), history))
    assert sum("Never push to main." in text for text in after) >= 1
    kept = texts(shown(custom(lambda messages, _: [messages[3], *messages[-2:]]), history))
    assert sum("Never push to main." in text for text in kept) == 1


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ([], "compress gave no messages"),
        (None, "compress must give a list of messages"),
        (["text"], "compress must give a list of messages"),
        ([user_text("only this")], "compress changed messages that the model has not answered"),
    ],
)
def test_what_cannot_be_shown_decides_nothing_and_is_told(answer: Any, fault: str) -> None:
    strategy = strategy_for(AgentConfig(context_strategy=Custom(lambda _messages, _tokens: answer)))
    strict = Engine(settings(100_000, strategy=strategy))
    strict.append(loop(3))
    with pytest.raises((ValueError, TypeError), match=fault):
        strict.pack(tools=TOOLS, template=template("openai_chat"))
    engine = Engine(settings(100_000, strategy=strategy, strict=False))
    engine.append(loop(3))
    pack = engine.pack(tools=TOOLS, template=template("openai_chat"))
    assert [event.why for event in pack.events if isinstance(event, StrategyOverruled) and fault in event.why]
    assert engine.history.edits == []


def test_bug_193_results_whose_call_it_dropped_leave_with_it() -> None:
    history = loop(4)
    assert pairing_faults([history[0], *history[-3:]]) == ["1: a result without its call"]
    after = shown(custom(lambda messages, _: messages[-3:]), history)
    assert pairing_faults(after) == []
    assert after[2:] == history[-2:]


@given(history=paired(), kept=st.integers(1, 6), dropped=st.integers(0, 3))
def test_no_function_parts_a_pair_or_loses_the_task(history: list[Message], kept: int, dropped: int) -> None:
    def compress(messages: Sequence[Message], _estimated_tokens: int) -> Sequence[Message]:
        return [*messages[dropped:-kept:2], *messages[-kept:]]

    after = history
    with suppress(ValueError):
        after = shown(custom(compress), history)
    assert pairing_faults(after) == []
    assert user_text("Do the task.") in after
