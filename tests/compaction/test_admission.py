from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.compaction import Arrival
from lading.compaction.admission import MOST_TERMS, RESHAPED_TOKENS, admit, find_admission_cap, find_terms
from lading.history.log import Draft
from lading.history.view import View, rebuild
from lading.messages import Image, Message, Text, ToolCall, ToolResult, user_text
from tests.compaction.hostile import HOSTILE
from tests.examples import share_of_examples
from tests.histories import answered, called, histories, said
from tests.views import address, admitted, count, entries_of, pressure

ROWS = json.dumps([{"id": number, "name": f"name {number}", "state": "open"} for number in range(900)], indent=1)
LINES = "\n".join(f"{number}: a line about nothing in particular" for number in range(4_000))


def shown(*messages: Message) -> View:
    return rebuild(entries_of(messages), [])


def arrived(text: str, room: int, *, asked: str = "hi") -> Draft | None:
    view = shown(user_text(asked), called("a"), answered("a", text))
    return admit(Arrival(view.items[2], view), pressure(room))


def test_a_result_of_common_size_is_left_as_it_is() -> None:
    assert arrived("word " * 600, 100_000) is None
    assert arrived(LINES, 1_000_000) is None


def test_a_large_result_is_reshaped_without_loss() -> None:
    draft = arrived(ROWS, 100_000)
    assert draft is not None
    assert (draft.kind, draft.pointers) == ("reshaped", (address("2"),))
    (message,) = draft.replacement
    assert message.results[0].text.startswith("[Reformatted as json")
    assert count(answered("a", ROWS)) > RESHAPED_TOKENS
    assert count(message) < 0.9 * count(answered("a", ROWS))


def test_an_enormous_result_is_cut_to_what_was_asked_for() -> None:
    text = LINES.replace("2345: a line", "2345: the zebra crossing")
    draft = arrived(text, 6_000, asked="Find the ZEBRA please.")
    assert draft is not None
    assert draft.kind == "clipped"
    assert count(draft.replacement[0]) <= 0.8 * 6_000
    assert "2345: the zebra crossing" in draft.replacement[0].results[0].text
    assert address("2") in draft.replacement[0].results[0].text


def test_pictures_beside_the_text_stay_where_they_fit() -> None:
    picture = Image(data="aGk=")
    view = shown(user_text("hi"), called("a"), Message("tool", (ToolResult("a", (Text(ROWS), picture)),)))
    draft = admit(Arrival(view.items[2], view), pressure(100_000))
    assert draft is not None
    assert picture in draft.replacement[0].results[0].parts
    draft = admit(Arrival(view.items[2], view), pressure(1_200))
    assert draft is not None
    assert picture not in draft.replacement[0].results[0].parts


def test_what_was_restored_is_admitted_whole() -> None:
    view = shown(
        user_text("hi"), Message("assistant", (ToolCall("a", "restore", "{}"),)), answered("a", "word " * 900)
    )
    assert admit(Arrival(view.items[2], view), pressure(1_000)) is None


def test_unread_results_share_what_there_is() -> None:
    calls = Message("assistant", tuple(ToolCall(name, "read", "{}") for name in "abc"))
    view = shown(user_text("hi"), calls, answered("a", "x"), *(answered(name, LINES[:9_000]) for name in "bc"))
    cap = find_admission_cap(Arrival(view.items[3], view), pressure(3_000))
    assert 1_000 < cap < 1_500
    assert find_admission_cap(Arrival(view.items[3], view), pressure(9_000)) == int(
        0.8 * (9_000 - count(user_text("hi")))
    )


def test_terms_are_the_longest_words_of_what_was_asked_last() -> None:
    assert list(find_terms(shown(user_text("Find the Parser in parser, ab"), said("x")))) == ["parser", "find"]
    assert len(list(find_terms(shown(user_text(" ".join(f"word{number}" for number in range(99))))))) == MOST_TERMS
    assert list(find_terms(View())) == []
    beside = [Message("user", (ToolResult("a", ()), Text(text))) for text in ("Take port 1.", "Mind settings.")]
    asked = shown(user_text("Look first"), said("x"), user_text("Find the Parser"), called("a"), *beside)
    assert list(find_terms(asked)) == ["parser", "find", "settings", "mind"]
    assert list(find_terms(asked, 4)) == ["parser", "find", "take", "port"]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_results_are_cut_to_the_cap(name: str) -> None:
    draft = arrived(HOSTILE[name][:60_000], 2_000)
    assert draft is not None
    assert count(draft.replacement[0]) <= 0.8 * 2_000


@share_of_examples(0.6)
@given(histories(), st.integers(100, 3_000))
def test_what_is_admitted_is_never_larger_and_leads_to_the_whole(raw: list[Message], room: int) -> None:
    view = admitted(raw).view
    for item in view.items:
        draft = admit(Arrival(item, view), pressure(room))
        if draft is not None:
            start, end = view.span(item.entry, item.entry)
            before = view.tokens_before(end) - view.tokens_before(start)
            assert sum(map(count, draft.replacement)) < before
            assert set(draft.pointers) == {address(str(item.entry))}


def counted_for(answers: int) -> int:
    """How many messages are counted to admit so many answers that do not fit beside what stands before them."""
    counted = 0

    def counting(message: Message) -> int:
        nonlocal counted
        counted += 1
        return count(message)

    calls = (ToolCall(f"c{number}", "read", json.dumps({"path": "a" * 500})) for number in range(answers))
    asked = [user_text("hi"), said("word " * 4_000), Message("assistant", tuple(calls))]
    view = shown(*asked, *(answered(f"c{number}", "word " * 100) for number in range(answers)))
    for item in view.items[2:]:
        admit(Arrival(item, view), pressure(answers * 300, counter=counting))
    return counted


def test_answers_that_arrive_together_are_admitted_at_the_cost_of_their_number() -> None:
    assert 0 < counted_for(64) < 12 * counted_for(8)
