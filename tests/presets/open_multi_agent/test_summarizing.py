"""``summarize``: when, how far, in whose words, and what happens when there are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lading.effects import Summarizer, Summary, SummaryRequest
from lading.engine import Engine
from lading.errors import SummaryFailed
from lading.events import SummaryRejected
from lading.messages import Image, Message, Text, ToolResult, user_text
from lading.presets.open_multi_agent import AgentConfig, Summarize, strategy_for
from lading.presets.open_multi_agent.summarizing import NO_SUMMARIZER, find_older_half
from lading.stores.memory import MemoryStore
from tests.engines import TOOLS, settings, template
from tests.histories import said
from tests.presets.open_multi_agent.configured import call_and_result, decided, loop, shown, texts
from tests.views import admitted, paired, pairing_faults, pressure

PICTURE = "iVBORw0KGgo" * 80


def summarize(max_tokens: int = 1) -> dict[str, object]:
    return {"contextStrategy": {"type": "summarize", "maxTokens": max_tokens, "summaryModel": "small-one"}}


def long(rounds: int) -> list[Message]:
    """Rounds with enough in them for a summary to be worth it."""
    return loop(rounds, chars=4_000)


@pytest.mark.parametrize(
    ("roles", "position"),
    [("au", None), ("auu", 2), ("auau", 3), ("auauauu", 3), ("auauauau", 5), ("auauauauauu", 5), ("au" * 6, 7)],
)
def test_the_split_stands_at_the_even_number_that_is_about_half(roles: str, position: int | None) -> None:
    history = [user_text("task"), *(said("a") if role == "a" else user_text("u") for role in roles)]
    assert find_older_half(admitted(history).view, pressure=pressure(10_000)) == position


def test_nothing_happens_up_to_max_tokens() -> None:
    history = long(6)
    # The task has 19 characters, each call two, each result 4,000.
    assert shown(summarize(6_008), history) == history
    assert len(shown(summarize(6_007), history)) < len(history)


def test_fewer_than_four_messages_are_left_alone() -> None:
    history = long(1)
    assert shown(summarize(), history) == history


def test_four_messages_are_summarized() -> None:
    history = [*long(1), said("It is slow. " * 900)]
    assert len(history) == 4
    assert not any(message.results for message in shown(summarize(), history))


def test_a_summary_takes_the_place_of_the_older_half_and_the_task_stays() -> None:
    history, asked = long(6), list[SummaryRequest]()
    answer = Summary("Goal: find the slow test\nDone: read six files")
    (draft,) = decided(summarize(), admitted(history), answer=answer, asked=asked).drafts
    assert (draft.kind, draft.first, draft.last) == ("summarised", 1, 6)
    assert draft.pointers == ("artifact://t/s/log/1-6",)
    assert "Done: read six files" in draft.replacement[0].text
    assert asked[0].model == "small-one"


def test_the_heading_of_a_summary_is_that_of_any_fold_and_names_the_whole() -> None:
    (draft,) = decided(summarize(), admitted(long(6)), answer=Summary("Done: read six files")).drafts
    heading = draft.replacement[0].text.splitlines()[0]
    assert heading.startswith("[Record of messages 1-6 (")
    assert "restore #6 or all of artifact://t/s/log/1-6.]" in heading
    for answer in (Summary(""), SummaryFailed("the server is down")):
        (draft,) = decided(summarize(), admitted(long(6)), answer=answer).drafts
        assert draft.replacement[0].text.splitlines()[0] == heading


def test_without_a_summary_model_the_request_names_none() -> None:
    asked = list[SummaryRequest]()
    options: dict[str, object] = {"contextStrategy": {"type": "summarize", "maxTokens": 1}}
    decided(options, admitted(long(6)), answer=Summary("Done: read"), asked=asked)
    assert asked[0].model == ""


def test_nobody_to_ask_is_told_and_rules_tell_the_older_half() -> None:
    compaction = decided(summarize(), admitted(long(6)))
    assert compaction.rejected == (NO_SUMMARIZER,)
    assert compaction.drafts[0].kind == "summarised"


@pytest.mark.parametrize("text", ["", "   ", "I'm sorry, I cannot help with that."])
def test_bug_an_empty_summary_takes_no_turn_away_unread(text: str) -> None:
    compaction = decided(summarize(), admitted(long(6)), answer=Summary(text))
    assert compaction.rejected != ()
    assert "restore #6 or all of artifact://t/s/log/1-6" in compaction.drafts[0].replacement[0].text


def test_bug_a_summary_that_fails_does_not_fail_the_run() -> None:
    compaction = decided(summarize(), admitted(long(6)), answer=SummaryFailed("the server is down"))
    assert compaction.rejected == ("the server is down",)
    assert len(compaction.drafts) == 1


def test_bug_even_split_a_message_more_does_not_part_a_call_from_its_result() -> None:
    history = [*long(1), user_text("Careful: that loops."), *loop(5, start=1, chars=4_000)]
    rest = history[1:]
    at = max(2, len(rest) // 4 * 2)
    assert pairing_faults([history[0], *rest[at:]]) == ["1: a result without its call"]
    assert pairing_faults(shown(summarize(), history)) == []


@given(history=paired(), max_tokens=st.integers(1, 200))
def test_bug_even_split_holds_for_any_history(history: list[Message], max_tokens: int) -> None:
    assert pairing_faults(shown(summarize(max_tokens), history)) == []


def test_bug_196_no_picture_stands_in_what_the_model_is_shown() -> None:
    picture = Image(data=PICTURE, media_type="image/png")
    result = Message("tool", (ToolResult("p", (Text("see"), picture)),))
    seen = Message("user", (Text("look"), picture))
    history = [user_text("task"), call_and_result("p", "")[0], result, seen, *loop(8, start=1, chars=4_000)]
    asked = list[SummaryRequest]()
    decided(summarize(), admitted(history), answer=Summary("Done: looked"), asked=asked)
    assert "picture or file" in asked[0].prompt
    assert PICTURE[:40] not in asked[0].prompt


def test_bug_text_before_results_the_summary_is_a_message_of_its_own() -> None:
    after = shown(summarize(), long(6))
    assert [message.role for message in after[:3]] == ["user", "user", "assistant"]


def test_one_model_is_asked_once_and_its_summary_is_summarized_again_later() -> None:
    asked: list[SummaryRequest] = []

    def answer(request: SummaryRequest) -> str:
        asked.append(request)
        return "Goal: find the slow test\nDone: read some files"

    chosen = settings(100_000, strategy=strategy_for(AgentConfig(context_strategy=Summarize(5_000, "small-one"))))
    engine = Engine(replace(chosen, summarizer=Summarizer(answer)), MemoryStore())
    engine.append(long(5))
    first = engine.pack(tools=TOOLS, template=template("openai_chat"))
    again = engine.pack(tools=TOOLS, template=template("openai_chat"))
    assert len(asked) == 1
    assert first.body == again.body
    assert "Done: read some files" in first.body.decode()
    engine.append(loop(6, start=5, chars=4_000))
    later = engine.pack(tools=TOOLS, template=template("openai_chat"))
    assert len(asked) == 2
    assert "Done: read some files" in asked[1].earlier
    assert "summarize: more than 5000 tokens" in later.manifest.prefix.why
    assert later.manifest.sent.own is not None
    assert sum(item.kind == "summarised" for item in engine.history.view.items) == 1


def test_no_summarizer_is_an_event_of_the_request() -> None:
    engine = Engine(settings(100_000, strategy=strategy_for(AgentConfig(context_strategy=Summarize(5_000)))))
    engine.append(long(6))
    pack = engine.pack(tools=TOOLS, template=template("openai_chat"))
    assert [event.reason for event in pack.events if isinstance(event, SummaryRejected)] == [NO_SUMMARIZER]


def test_a_summary_that_would_take_as_much_as_it_replaces_is_not_made() -> None:
    history = [user_text("task"), said("a"), user_text("b"), said("c"), user_text("d")]
    assert shown(summarize(), history) == history
    assert texts(history)[0] == "task"
