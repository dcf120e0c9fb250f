"""Compacted tool results as Agentrail describes them: which are due, what stands in their place."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from lading.compaction import Compaction, find_strategy
from lading.errors import InputError
from lading.history.log import Draft
from lading.messages import Image, Message, Text, ToolCall, ToolResult, user_text
from lading.presets.agentrail.tool_results import (
    DEFAULTS,
    ToolResults,
    compact,
    compact_tool_results,
    draft_edits,
)
from tests.histories import answered, called, said
from tests.views import address, admitted, pressure


def sized(call_id: str, tokens: int) -> Message:
    """A result of exactly so many tokens by the tests' counter."""
    return answered(call_id, "word" * (tokens - 8))


def compacted(*results: Message, options: ToolResults = DEFAULTS) -> list[int]:
    """The entries that are compacted of results that follow each other."""
    history = [user_text("go")]
    for result in results:
        history += [called(result.results[0].call_id), result]
    view = admitted([*history, said("done")]).view
    return [draft.first for draft in draft_edits(view, pressure(10**6), options=options)]


def decided(outcome: object) -> tuple[Draft, ...]:
    """The drafts of a decision for which nobody was asked."""
    assert isinstance(outcome, Compaction)
    return outcome.drafts


def test_the_defaults_are_the_document_s() -> None:
    assert ToolResults(1_500, 2, None) == DEFAULTS
    assert DEFAULTS.most_recent_tokens == 6_000
    assert ToolResults(2_000).most_recent_tokens == 8_000
    assert ToolResults(2_000, max_tokens_per_recent_tool_result=10).most_recent_tokens == 10


def test_the_document_s_spelling_is_taken() -> None:
    assert find_strategy("compactToolResults") is find_strategy("agentrail/tool_results")


def test_a_result_above_1500_tokens_is_compacted_once_two_newer_ones_stand_behind_it() -> None:
    assert compacted(sized("a", 1_501), sized("b", 10), sized("c", 10)) == [2]
    assert compacted(sized("a", 1_500), sized("b", 10), sized("c", 10)) == []
    assert compacted(sized("a", 1_501), sized("b", 10)) == []
    assert compacted(sized("a", 1_501), sized("b", 1_501), options=ToolResults(keep_recent_tool_results=0)) == [
        2,
        4,
    ]


def test_one_of_the_two_newest_is_compacted_above_6000_tokens() -> None:
    assert compacted(sized("a", 6_000), sized("b", 6_001)) == [4]


def test_results_in_one_message_are_told_apart() -> None:
    calls = Message("assistant", tuple(ToolCall(name, "read", "{}") for name in "abc"))
    results = tuple(ToolResult(name, (Text("word" * 1_600),)) for name in "abc")
    view = admitted([user_text("go"), calls, Message("user", results, origin="anthropic"), said("done")]).view
    (draft,) = draft_edits(view, pressure(10**6), options=DEFAULTS)
    (message,) = draft.replacement
    assert [result.text == "word" * 1_600 for result in message.results] == [False, True, True]


def test_a_preview_of_200_characters_stands_beside_size_and_pointer() -> None:
    text = "\n".join(f"line {number}" for number in range(2_000))
    view = admitted([user_text("go"), called("a"), answered("a", text), *[said("so")] * 2]).view
    (draft,) = draft_edits(view, pressure(10**6), options=ToolResults(keep_recent_tool_results=0))
    tokens = view.items[2].tokens
    assert draft.replacement[0].text == ""
    shown = draft.replacement[0].results[0].text
    assert shown == f"[Compacted result, ~{tokens:,} tokens. Original: {address('2')}]\n{text[:200]}"
    assert (draft.kind, draft.pointers) == ("cleared", (address("2"),))


def test_pictures_are_counted_one_line_is_said_to_be_one_and_an_error_shows_its_end() -> None:
    long = "x" * 8_000 + "the cause"
    parts = (Text(long), Image(data="aGk="), Image(data="aGk="))
    result = Message("tool", (ToolResult("a", parts, is_error=True),))
    view = admitted([user_text("go"), called("a"), result, said("so")]).view
    (draft,) = draft_edits(view, pressure(10**6), options=ToolResults(keep_recent_tool_results=0))
    lines = draft.replacement[0].results[0].text.splitlines()
    assert lines[1:3] == ["[2 image(s) removed from context]", "[One long line: read it by a query.]"]
    assert lines[3] == "x" * 200
    assert lines[4].endswith("the cause")
    assert draft.replacement[0].results[0].is_error


def test_what_was_compacted_is_not_compacted_again() -> None:
    history = admitted([user_text("go"), called("a"), sized("a", 9_000)])
    for draft in decided(compact(history.view, pressure(10**6), options=ToolResults(0, 0))):
        history.apply(draft, call=1, room_tokens=10**6)
    assert len(history.edits) == 1
    assert decided(compact(history.view, pressure(10**6), options=ToolResults(0, 0))) == ()


def test_a_result_that_its_note_would_not_shorten_stays() -> None:
    assert compacted(sized("a", 20), options=ToolResults(0, 0)) == []


def test_where_previews_do_not_suffice_what_is_old_is_folded() -> None:
    rounds = [message for number in range(9) for message in (called(f"{number}"), sized(f"{number}", 300))]
    view = admitted([user_text("go"), *rounds]).view
    (draft,) = decided(compact(view, pressure(1_500)))
    assert (draft.kind, draft.reason) == ("summarised", "compact_tool_results: the window is full")
    assert decided(compact(view, replace(pressure(60)))) == ()


@pytest.mark.parametrize(("most", "kept"), [(-1, 2), (1_500, -1)])
def test_negative_options_are_refused(most: int, kept: int) -> None:
    with pytest.raises(InputError):
        ToolResults(most, kept)


def test_for_messages_of_no_session_options_are_taken_in_either_spelling() -> None:
    given = [user_text("go"), called("c0"), answered("c0", "line\n" * 400), called("c1"), answered("c1", "short")]
    own: dict[str, Any] = {"maxTokensPerToolResult": 40, "keepRecentToolResults": 1}
    shown = compact_tool_results(given, own)
    assert shown == compact_tool_results(given, ToolResults(40, 1))
    assert shown[2].results[0].text.startswith("[Compacted result, ~")
    with pytest.raises(InputError, match="Did you mean 'maxTokensPerToolResult'"):
        compact_tool_results(given, {"maxTokensPerToolResults": 40})
    with pytest.raises(InputError, match=r"ToolResults\(\.\.\.\)"):
        compact_tool_results(given, 40)  # type: ignore[arg-type]
