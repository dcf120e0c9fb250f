from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.addresses import parse
from lading.compaction.cutting import MOST_STUB_TOKENS, cut, find_cut_points, make_plain
from lading.compaction.user_rules import RESTATED
from lading.history.validity import OpenLoopWhole, legal_cuts
from lading.messages import Message, Reasoning, Role, Text, ToolCall, ToolResult, user_text
from tests.histories import answered, called, histories, said, tool_loop
from tests.views import address, admitted, count, paired, pairing_faults, pressure


def count_bytes(message: Message) -> int:
    """A counter that is harsh on odd characters: a token for each three bytes."""
    return 4 + len(repr(message).encode("utf-8", "surrogatepass")) // 3


def test_the_stub_says_how_much_of_what_and_where_it_is() -> None:
    history = admitted(tool_loop(5))
    tokens = history.view.tokens_before(8) - history.view.tokens_before(2)
    draft = cut(history.view, 8, reason="test", pressure=pressure())
    assert (draft.kind, draft.first, draft.last, draft.reason) == ("dropped", 2, 7, "test")
    assert draft.pointers == (address("2-7"),)
    (stub,) = draft.replacement
    assert stub == user_text(
        f"[6 earlier messages ({tokens} tokens) were removed to fit the context window. "
        f"Tools called: read 3x. Original: {address('2-7')}]"
    )


def test_a_stub_without_calls_names_no_tools() -> None:
    history = admitted([user_text("hi"), said("one"), user_text("two"), said("three"), user_text("four")])
    (stub,) = cut(history.view, 2, reason="test", pressure=pressure()).replacement
    assert "Tools" not in stub.text


def test_a_later_cut_absorbs_the_stub() -> None:
    history = admitted(tool_loop(8))
    history.apply(cut(history.view, 6, reason="one", pressure=pressure()), call=2, room_tokens=100)
    assert [item.entry for item in history.view.items[:4]] == [0, 1, 2, 6]
    draft = cut(history.view, 7, reason="two", pressure=pressure())
    history.apply(draft, call=3, room_tokens=100)
    assert (draft.first, draft.last, draft.pointers) == (2, 9, (address("2-9"),))
    stubs = [message for message in history.view.messages if "were removed to fit" in message.text]
    assert len(stubs) == 1
    assert stubs[0].text.startswith("[8 earlier messages")
    assert "Tools called: read 4x." in stubs[0].text


def test_a_cut_right_behind_a_stub_points_to_all_that_the_stub_stands_for() -> None:
    history = admitted(tool_loop(8))
    history.apply(cut(history.view, 6, reason="one", pressure=pressure()), call=2, room_tokens=100)
    draft = cut(history.view, 3, reason="two", pressure=pressure())
    assert (draft.first, draft.last, draft.pointers) == (2, 5, (address("2-5"),))


def test_rules_pins_and_the_last_request_of_the_user_stand_behind_the_stub() -> None:
    history = admitted(
        [
            user_text("Fix it."),
            said("ok"),
            user_text("Never edit b.py."),
            said("It is port 8080."),
            user_text("Look at c.py."),
            called("a"),
            answered("a"),
        ]
    )
    history.pin(3, call=1)
    _, *carried = cut(history.view, 5, reason="test", pressure=pressure()).replacement
    assert carried == [
        user_text(f"{RESTATED}\nNever edit b.py."),
        user_text("[Pinned message of the assistant]\nIt is port 8080."),
        user_text("Look at c.py."),
    ]


def test_a_request_that_takes_too_much_of_the_room_is_not_carried_over() -> None:
    history = admitted([user_text("Fix it."), said("ok"), user_text("word " * 900), called("a"), answered("a")])
    assert len(cut(history.view, 3, reason="test", pressure=pressure(5_000)).replacement) == 2
    assert len(cut(history.view, 3, reason="test", pressure=pressure(4_000)).replacement) == 1


@pytest.mark.parametrize("role", ["tool", "user"])
def test_a_pinned_result_stands_alone_as_text(role: Role) -> None:
    pinned = Message(role, (ToolResult("a", (Text("9 files"),)),))
    assert make_plain(pinned) == user_text(f"[Pinned message of the {role}]\n9 files")


HOSTILE = ["🂠𓀀𝔘" * 500, "\ud83d" * 500, "中" * 500, "a b-c_d.e" * 90, "\n" * 500, "]\"'{}\\" * 99]


@pytest.mark.parametrize("name", HOSTILE)
def test_the_stub_stays_below_its_limit_whatever_the_tools_are_called(name: str) -> None:
    calls = tuple(ToolCall(f"{n}", f"{n}{name}", "{}") for n in range(6))
    results = [answered(call.id) for call in calls]
    history = admitted([user_text("hi"), Message("assistant", calls), *results, said("ok"), user_text("go")])
    harsh = pressure(counter=count_bytes)
    (stub,) = cut(history.view, 8, reason="test", pressure=harsh).replacement
    assert count_bytes(stub) < MOST_STUB_TOKENS
    assert address("1-7") in stub.text


def test_an_entry_shown_as_several_messages_is_never_split() -> None:
    both = Message("assistant", (ToolCall("a", "read", "{}"), ToolCall("b", "read", "{}")))
    history = admitted(
        [user_text("hi"), both, answered("a"), answered("x", "stray"), answered("b"), said("ok"), user_text("go")]
    )
    view = history.view
    split = next(here for here in range(1, len(view)) if view.items[here].entry == view.items[here - 1].entry)
    assert split in legal_cuts(view.messages)
    assert split not in find_cut_points(view, pressure())
    assert find_cut_points(view, pressure()) != []


def test_the_head_is_never_cut() -> None:
    history = admitted([user_text("one"), user_text("two"), user_text("three")])
    assert find_cut_points(history.view, pressure()) == []
    history = admitted([user_text("one"), user_text("two"), said("ok"), user_text("three")])
    assert find_cut_points(history.view, pressure()) == [3]


def test_a_loop_that_reasons_is_cut_only_where_the_wire_allows_it() -> None:
    thinking = Message("assistant", (Reasoning("hm", "c2ln"), ToolCall("a", "read", "{}")))
    loop = [user_text("go"), thinking, answered("a"), called("b"), answered("b")]
    view = admitted([user_text("hi"), said("ok"), *loop]).view
    assert find_cut_points(view, pressure()) == [2, 3, 5]
    assert find_cut_points(view, pressure(invariants=(OpenLoopWhole(),))) == [2, 3]


@given(paired())
def test_a_wire_can_forbid_cuts(history: list[Message]) -> None:
    view = admitted(history).view
    fewer = set(find_cut_points(view, pressure(invariants=(OpenLoopWhole(),))))
    assert fewer == set(find_cut_points(view, pressure())) & set(legal_cuts(view.messages, (OpenLoopWhole(),)))


@given(histories(), st.data())
def test_cuts_keep_pairs_head_and_newest_and_point_to_all_that_left(
    raw: list[Message], data: st.DataObject
) -> None:
    history = admitted(raw)
    view = history.view
    for call in (2, 3):
        points = find_cut_points(view, pressure())
        if not points:
            return
        position = data.draw(st.sampled_from(points))
        head, kept = view.items[: view.head], view.items[position:]
        entries_before = {item.entry for item in view.items}
        draft = cut(view, position, reason="test", pressure=pressure())
        history.apply(draft, call=call, room_tokens=1000)
        assert view.items[: view.head] == head
        shown = len(draft.replacement)
        assert view.messages[view.head :][:shown] == list(draft.replacement)
        assert view.items[view.head + shown :] == kept
        assert pairing_faults(view.messages) == []
        (pointer,) = draft.pointers
        first, last, _ = parse(pointer).log_span()
        assert (first, last) == (draft.first, draft.last)
        assert entries_before - {item.entry for item in view.items} <= set(range(first, last + 1))


def test_a_cut_history_starts_with_a_stub_of_the_user() -> None:
    history = admitted([user_text("hi"), called("a"), answered("a"), said("ok"), user_text("more")])
    history.apply(cut(history.view, 3, reason="test", pressure=pressure()), call=2, room_tokens=100)
    assert [message.role for message in history.view.messages] == ["user", "user", "assistant", "user"]
    assert isinstance(history.view.messages[1].parts[0], Text)
    assert count(history.view.messages[1]) < 60
