from __future__ import annotations

import pytest
from hypothesis import given

from lading.history.history import History
from lading.history.log import Draft
from lading.history.repair import EMPTY
from lading.history.repair_rules import Needs
from lading.messages import Message, ToolCall, user_text
from tests.histories import answered, called, histories, said
from tests.views import address, admitted, count, pairing_faults


def test_an_orphan_that_waited_for_parallel_results_is_shown_after_them() -> None:
    both = Message("assistant", (ToolCall("a", "read", "{}"), ToolCall("b", "read", "{}")))
    history = admitted([user_text("hi"), both, answered("a"), answered("x", "stray"), answered("b")])
    assert [message.role for message in history.view.messages] == ["user", "assistant", "tool", "tool", "user"]
    assert "stray" in history.view.messages[-1].text
    assert [(edit.first, edit.kind, edit.reason) for edit in history.edits] == [
        (3, "repaired", "orphan_result"),
        (4, "repaired", "orphan_result"),
    ]


def test_the_log_holds_what_was_said_and_the_view_what_was_mended() -> None:
    raw = [user_text("hi"), said(""), user_text("more")]
    history = admitted(raw)
    assert [entry.message for entry in history.entries] == raw
    assert [message.text for message in history.view.messages] == ["hi", EMPTY, "more"]


@given(histories())
def test_the_view_of_any_history_is_paired_and_the_log_is_raw(raw: list[Message]) -> None:
    history = admitted(raw)
    assert pairing_faults(history.view.messages) == []
    assert all(entry.message is message for entry, message in zip(history.entries, raw, strict=True))


def test_a_plan_that_is_dropped_has_changed_nothing() -> None:
    history = History(Needs(), count)
    raw = [user_text("hi"), called("a"), answered("a"), called("b")]
    for message in raw:
        history.append(message, call=1)
    draft = Draft("dropped", 1, 2, (user_text("gone"),), "test", (address("1-2"),))
    plan = history.plan(call=1)
    branch = plan.branch()
    branch.apply(draft)
    assert [message.text for message in branch.view.messages[:2]] == ["hi", "gone"]
    assert len(plan.view) == len(branch.view) + 1 == len(raw) + 1
    untouched = plan.branch()
    plan.apply(Draft("dropped", 0, 0, (user_text("said"),), "test", (address("0"),)))
    assert branch.view.messages[0].text == untouched.view.messages[0].text == "hi"
    assert (history.view.messages, history.edits) == (raw, [])
    history.append(answered("b"), call=1)
    assert history.edits == []


def test_a_committed_plan_is_the_same_as_its_edits_made_at_once() -> None:
    planned, direct = (admitted([user_text("hi"), called("a"), answered("a"), called("b")]) for _ in range(2))
    draft = Draft("dropped", 1, 2, (user_text("gone"),), "test", (address("1-2"),))
    plan = planned.plan(call=1)
    plan.apply(draft, room_tokens=100)
    planned.commit(plan)
    direct.commit(direct.plan(call=1))
    direct.apply(draft, call=1, room_tokens=100)
    assert (planned.edits, planned.view.items) == (direct.edits, direct.view.items)
    for history in (planned, direct):
        history.append(answered("b"), call=2)
    assert planned.view.items == direct.view.items


@pytest.mark.parametrize(("first", "last"), [(1, 2), (1, 4), (3, 3)])
def test_what_one_edit_shows_is_withdrawn_whole_or_not_at_all(first: int, last: int) -> None:
    history = admitted([user_text("hi"), called("a"), answered("a"), called("b"), answered("b"), user_text("on")])
    history.apply(Draft("summarised", first, last, (user_text("gone"),), "test", (address("0"),)), call=1)
    shown = history.view.items
    for entry in range(first + 1, last + 1):
        assert history.withdraw(entry, call=2) is None
    assert (history.view.items, len(history.edits)) == (shown, 1)
    assert history.withdraw(first, call=2) == first
    history.append(user_text("from here"), call=2)
    assert history.view.messages[-1].text == "from here"


@given(histories(), histories())
def test_a_restored_history_goes_on_as_if_it_had_never_stopped(raw: list[Message], later: list[Message]) -> None:
    history, restored = admitted(raw), History(Needs(), count)
    restored.restore(history.entries, history.edits)
    for one in (history, restored):
        for message in later:
            one.append(message, call=2)
        one.commit(one.plan(call=2))
    assert restored.view.items == history.view.items
    assert (restored.log, restored.entries, restored.edits) == (history.log, history.entries, history.edits)
