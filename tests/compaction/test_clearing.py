from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lading.addresses import RESTORE, parse
from lading.compaction.clearing import MOST_NAME_CHARS, clear, is_worth_clearing
from lading.history.log import Draft
from lading.history.view import View, rebuild
from lading.messages import Image, Message, Text, ToolCall, ToolResult, user_text
from tests.histories import answered, called, histories, said, tool_loop
from tests.views import address, admitted, count, entries_of, paired, pairing_faults, pressure

WORDS = "word " * 200


def shown(*messages: Message) -> View:
    return rebuild(entries_of(messages), [])


def test_a_cleared_result_becomes_a_note_with_a_pointer() -> None:
    history = admitted([user_text("hi"), called("a"), answered("a", WORDS), said("ok")])
    (draft,) = clear(history.view, history.view.items, reason="test", pressure=pressure())
    assert (draft.kind, draft.first, draft.last, draft.reason) == ("cleared", 2, 2, "test")
    assert draft.pointers == (address("2"),)
    (message,) = draft.replacement
    (result,) = message.results
    assert result.call_id == "a"
    tokens = history.view.items[2].tokens
    assert result.text == f"[Result of read removed after use ({tokens} tokens). Original: {address('2')}]"
    history.apply(draft, call=2, room_tokens=1000)
    assert history.view.messages[1].calls == history.entries[1].message.calls
    assert clear(history.view, history.view.items, reason="test", pressure=pressure()) == []


def test_a_result_without_a_name_and_several_in_one_message() -> None:
    parts = (ToolResult("a", (Text(WORDS), Image(url="u"))), ToolResult("b", (Text(WORDS),)), Text("go on"))
    view = shown(called("a"), Message("user", parts, origin="anthropic", template={"k": 1}))
    (draft,) = clear(view, view.items, reason="test", pressure=pressure())
    (message,) = draft.replacement
    assert [result.text for result in message.results] == [
        f"[Result removed after use. Original: {address('1')}]"
    ] * 2
    assert message.parts[2] is parts[2]
    assert (message.origin, message.template) == ("anthropic", {"k": 1})


def test_results_that_one_edit_shows_of_several_entries_are_cleared_in_an_edit_of_these() -> None:
    history = admitted([user_text("hi"), called("a"), answered("a", WORDS), said("ok"), user_text("on")])
    several = tuple(history.view.messages[1:4])
    history.apply(Draft("reshaped", 1, 3, several, "test", (address("1-3"),)), call=1)
    (draft,) = clear(history.view, history.view.items, reason="test", pressure=pressure())
    assert (draft.first, draft.last, draft.pointers) == (1, 3, (address("1-3"),))


def test_small_results_stay() -> None:
    view = shown(answered("a", "short"), said("x" * 4000), user_text("y" * 4000))
    assert not any(map(is_worth_clearing, view.items))
    assert clear(view, view.items, reason="test", pressure=pressure()) == []


def test_a_small_result_beside_a_large_one_stays() -> None:
    parts = (ToolResult("a", (Text(WORDS),)), ToolResult("b", (Text("3 failed: test_login"),), is_error=True))
    view = shown(called("a"), called("b"), Message("user", parts), said("ok"))
    (draft,) = clear(view, view.items, reason="test", pressure=pressure())
    large, small = draft.replacement[0].results
    assert large.text.startswith("[Result removed after use")
    assert small is parts[1]
    pictured = ToolResult("b", (Text("A picture."), Image(url="u")))
    view = shown(called("a"), called("b"), Message("user", (parts[0], pictured)), said("ok"))
    (draft,) = clear(view, view.items, reason="test", pressure=pressure())
    assert [one.text[:15] for one in draft.replacement[0].results] == ["[Result removed"] * 2


def test_several_results_must_each_be_worth_a_note() -> None:
    text = "word " * 80
    one = shown(Message("user", (ToolResult("a", (Text(text),)),)))
    many = shown(Message("user", tuple(ToolResult(i, (Text(text if i == "a" else ""),)) for i in "abcdef")))
    assert is_worth_clearing(one.items[0])
    assert not is_worth_clearing(many.items[0])


def test_what_stands_beside_the_result_for_the_same_entry_stays() -> None:
    both = Message("assistant", (ToolCall("a", "read", "{}"), ToolCall("b", "read", "{}")))
    history = admitted(
        [user_text("hi"), both, answered("a"), answered("x", "stray"), answered("b", WORDS), said("ok")]
    )
    items = [item for item in history.view.items if item.entry == 4]
    assert len(items) == 2
    (draft,) = clear(history.view, items, reason="test", pressure=pressure())
    assert len(draft.replacement) == 2
    assert draft.replacement[1] is items[1].message
    assert "removed after use" in draft.replacement[0].results[0].text


def test_a_note_that_would_be_longer_than_the_result_is_not_made() -> None:
    view = shown(answered("a", "word " * 60), said("ok"))
    assert is_worth_clearing(view.items[0])
    far = pressure(address=lambda item: f"artifact://{'t' * 128}/{'s' * 128}/log/{item}")
    assert clear(view, view.items, reason="test", pressure=far) == []
    assert len(clear(view, view.items, reason="test", pressure=pressure())) == 1


def test_a_tool_is_named_whole_or_not_at_all() -> None:
    names = ["n" * MOST_NAME_CHARS, "n" * (MOST_NAME_CHARS + 1)]
    views = [shown(Message("tool", (ToolResult("a", (Text(WORDS),), name=name),))) for name in names]
    notes = [clear(view, view.items, reason="test", pressure=pressure())[0].replacement[0] for view in views]
    whole, without = (note.results[0].text for note in notes)
    assert f" of {names[0]} removed" in whole
    assert " of … removed" in without


def test_a_hostile_name_does_not_make_the_note_long() -> None:
    result = ToolResult("a", (Text(WORDS),), name="n" * 10_000)
    view = shown(Message("tool", (result,)))
    (draft,) = clear(view, view.items, reason="test", pressure=pressure())
    assert count(draft.replacement[0]) < 80


@given(paired())
def test_consumed_is_what_an_assistant_reply_followed(history: list[Message]) -> None:
    position = shown(*history).find_consumed_end()
    for here, message in enumerate(history):
        followed = any(later.role == "assistant" for later in history[here + 1 :])
        if message.results:
            assert (here < position) == followed


def test_nothing_is_consumed_before_anything_was_said() -> None:
    assert View().find_consumed_end() == 0
    assert shown(user_text("hi")).find_consumed_end() == 0
    assert shown(user_text("hi"), said("ok")).find_consumed_end() == 1


def test_parallel_results_are_unread_until_the_model_speaks() -> None:
    both = Message("assistant", (ToolCall("a", "read", "{}"), ToolCall("b", "read", "{}")))
    view = shown(*tool_loop(2), both, answered("a", WORDS), answered("b", WORDS))
    cleared = clear(view, view.items[: view.find_consumed_end()], reason="test", pressure=pressure())
    assert [draft.first for draft in cleared] == [3, 5]


def test_a_model_that_only_restores_has_not_answered_the_results() -> None:
    unread = [*tool_loop(2), called("a"), answered("a", WORDS)]
    restoring = [*unread, called("r", RESTORE), answered("r", WORDS, RESTORE)]
    again = [*restoring, called("s", RESTORE), answered("s", WORDS, RESTORE)]
    both = Message("assistant", (ToolCall("s", RESTORE, "{}"), ToolCall("b", "read", "{}")))
    ends = [shown(*history).find_consumed_end() for history in (unread, restoring, again, [*restoring, both])]
    assert ends == [6, 6, 6, 10]


@given(histories(), st.data())
def test_clearing_any_part_keeps_the_pairs_and_leaves_a_pointer(raw: list[Message], data: st.DataObject) -> None:
    history = admitted(raw)
    view = history.view
    start = data.draw(st.integers(0, len(view)))
    end = data.draw(st.integers(start, len(view)))
    before, tokens = list(view.items), view.tokens
    drafts = clear(view, view.items[start:end], reason="test", pressure=pressure())
    assert view.items == before
    for draft in drafts:
        history.apply(draft, call=2, room_tokens=1000)
    assert pairing_faults(view.messages) == []
    assert len(view) == len(before)
    assert view.tokens < tokens or not drafts
    named = {entry for draft in drafts for pointer in draft.pointers for entry in [parse(pointer).log_span()[0]]}
    for item, old in zip(view.items, before, strict=True):
        assert item.message is old.message or item.message == old.message or item.entry in named
        assert item.message.calls == old.message.calls
        assert item.message.text == old.message.text
