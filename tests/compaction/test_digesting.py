from __future__ import annotations

import pytest
from hypothesis import given

from lading.compaction import Arrival
from lading.compaction.admission import admit
from lading.compaction.digesting import DIGEST_SHARE, DIGEST_TOKENS, digest
from lading.history.view import View, rebuild
from lading.messages import Image, Message, Text, ToolCall, ToolResult, user_text
from tests.compaction.hostile import HOSTILE
from tests.histories import answered, called, histories, said
from tests.views import address, admitted, count, entries_of, pairing_faults, pressure

OUTPUT = "\n".join(f"src/part_{number}.py:{number}: found" for number in range(300))


def shown(*messages: Message) -> View:
    return rebuild(entries_of(messages), [])


def test_a_digest_says_what_it_was_and_where_and_names_its_values() -> None:
    history = admitted([user_text("hi"), called("a"), answered("a", OUTPUT), said("ok")])
    before = count(history.view.messages[2])
    (draft,) = digest(history.view, history.view.items, reason="test", pressure=pressure())
    assert (draft.kind, draft.first, draft.last, draft.pointers) == ("digested", 2, 2, (address("2"),))
    (result,) = draft.replacement[0].results
    note, *lines = result.text.splitlines()
    assert note.startswith("[Excerpt of a result of read (")
    assert note.endswith(f" tokens, 300 lines). Original: {address('2')}]")
    assert any("src/part_" in line for line in lines)
    assert count(draft.replacement[0]) <= before * DIGEST_SHARE + DIGEST_TOKENS
    assert result.call_id == "a"


def test_a_digest_is_made_once() -> None:
    history = admitted([user_text("hi"), called("a"), answered("a", OUTPUT), said("ok")])
    (draft,) = digest(history.view, history.view.items, reason="test", pressure=pressure())
    history.apply(draft, call=2, room_tokens=10_000)
    assert digest(history.view, history.view.items, reason="test", pressure=pressure()) == []


def test_what_was_restored_is_not_taken_away_again() -> None:
    restored = Message("assistant", (ToolCall("a", "restore", "{}"),))
    view = shown(user_text("hi"), restored, answered("a", OUTPUT[:6_000]), said("ok"))
    assert digest(view, view.items, reason="test", pressure=pressure()) == []
    view = shown(user_text("hi"), called("a"), answered("a", OUTPUT[:6_000]), said("ok"))
    assert len(digest(view, view.items, reason="test", pressure=pressure())) == 1


def test_an_id_that_restored_once_does_not_keep_later_results() -> None:
    restored = Message("assistant", (ToolCall("a", "restore", "{}"),))
    view = shown(restored, answered("a", OUTPUT[:6_000]), called("a"), answered("a", OUTPUT[:6_000]), said("ok"))
    assert [draft.first for draft in digest(view, view.items, reason="test", pressure=pressure())] == [3]


def test_small_results_and_plain_messages_stay() -> None:
    view = shown(answered("a", "short"), said("x" * 9_000), user_text(OUTPUT))
    assert digest(view, view.items, reason="test", pressure=pressure()) == []


def test_a_small_result_beside_a_large_one_stays() -> None:
    parts = (ToolResult("a", (Text("3 failed: test_login"),)), ToolResult("b", (Text(OUTPUT),)))
    view = shown(called("a"), called("b"), Message("user", parts), said("ok"))
    (draft,) = digest(view, view.items, reason="test", pressure=pressure())
    small, large = draft.replacement[0].results
    assert small is parts[0]
    assert large.text.startswith("[Excerpt of a result")


def test_what_stands_beside_the_result_stays() -> None:
    parts = (ToolResult("a", (Text(OUTPUT), Image(url="u")), name="n" * 99, is_error=True), Text("go on"))
    view = shown(called("a"), Message("user", parts, origin="anthropic", template={"k": 1}), said("ok"))
    (draft,) = digest(view, view.items, reason="test", pressure=pressure())
    (message,) = draft.replacement
    assert message.parts[1] is parts[1]
    assert (message.origin, message.template) == ("anthropic", {"k": 1})
    assert message.results[0].is_error
    assert "n" * 41 not in message.results[0].text


@pytest.mark.parametrize("name", [*HOSTILE])
def test_hostile_results_become_short_digests(name: str) -> None:
    view = shown(called("a"), answered("a", HOSTILE[name][:40_000]), said("ok"))
    for draft in digest(view, view.items, reason="test", pressure=pressure()):
        assert count(draft.replacement[0]) <= view.items[1].tokens * DIGEST_SHARE + DIGEST_TOKENS


@given(histories())
def test_digests_keep_the_pairs_and_shorten(raw: list[Message]) -> None:
    history = admitted(raw)
    view = history.view
    tokens, roles = view.tokens, [message.role for message in view.messages]
    used = view.items[: view.find_consumed_end()]
    drafts = digest(view, used, reason="test", pressure=pressure())
    for draft in drafts:
        history.apply(draft, call=2, room_tokens=10_000)
    assert pairing_faults(view.messages) == []
    assert [message.role for message in view.messages] == roles
    assert view.tokens < tokens or not drafts


def test_a_digest_holds_the_lines_that_were_asked_for_and_that_the_model_named_after_it() -> None:
    rows = [f"R{number:03} {number * 7919 % 10_007} nothing special" for number in range(400)]
    loop = [
        user_text("What is R123?"),
        called("a"),
        answered("a", "\n".join(rows)),
        said("It is fine; R234 is odd."),
    ]
    more = [
        Message("assistant", (ToolCall("b", "look", '{"key": "R345"}'),)),
        answered("b"),
        user_text("And R111?"),
    ]
    view = shown(*loop, *more)
    (draft,) = digest(view, view.items[:3], reason="test", pressure=pressure())
    lines = draft.replacement[0].results[0].text.splitlines()
    assert {rows[123], rows[234], rows[345], rows[111]} <= {*lines}
    assert rows[200] not in lines


def test_a_digest_is_drawn_from_what_the_tool_said() -> None:
    rows = "\n".join(f"{number},row,{number * 7919 % 10_007}" for number in range(3_000))
    history = admitted([user_text("Find 1,777."), called("a"), answered("a", rows), said("I look at 1777.")])
    draft = admit(Arrival(history.view.items[2], history.view), pressure(3_000))
    assert draft is not None
    history.apply(draft, call=1, room_tokens=3_000)
    (draft,) = digest(history.view, history.view.items, reason="test", pressure=pressure())
    assert "1777,row," in draft.replacement[0].results[0].text
    assert " 3,000 lines)" in draft.replacement[0].results[0].text
    assert count(draft.replacement[0]) < 2_400 * DIGEST_SHARE + DIGEST_TOKENS
