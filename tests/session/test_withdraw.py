"""Going on from an earlier message: the log keeps what came after, and no request shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import Session
from lading.addresses import RESTORE
from lading.audit.replay import verify
from lading.audit.restore import WITHDRAWN
from lading.messages import Message, Text, user_text
from lading.stores import open_store
from lading.stores.memory import MemoryStore
from tests.examples import share_of_examples
from tests.replies import CHAT_TOOLS, chat_reply, chat_result

HEAD: list[dict[str, Any]] = [
    {"role": "system", "content": "You are a careful agent."},
    {"role": "user", "content": "Find the key."},
]


def line(store: Any = None) -> Session:
    return Session("gpt-4o", store=store, window=6_000, output_reserve=200)


def steps(session: Session, first: int, last: int, *, words: int = 100) -> None:
    for number in range(first, last):
        session.pack(CHAT_TOOLS)
        session.reply(chat_reply(f"step {number}", (f"c{number}", "read", {"n": number}), number=number))
        session.add(chat_result(f"c{number}", f"content-{number} " + "word " * words))


def test_what_is_withdrawn_leaves_the_request_and_stays_in_the_log(tmp_path: Path) -> None:
    with line(tmp_path) as session:
        session.add(HEAD)
        steps(session, 0, 3)
        before = session.pack(CHAT_TOOLS)
        session.withdraw(len(session.known) - 2)
        pack = session.pack(CHAT_TOOLS)
        assert b"content-2" in before.body
        assert b"content-2" not in pack.body
        assert pack.violations == ()
        assert "went on from before it" in pack.manifest.prefix.why
        assert "content-2" in session.entries[-1].message.results[0].text
        (place,) = session.why("content-2 ").places
        assert place.removal is not None
        # The same ids come again, as they do when a reply is told in other words.
        steps(session, 2, 4)
        assert not any(part.call_id.endswith("_2") for entry in session.entries for part in entry.message.results)
        expected = session.pack(CHAT_TOOLS).body
        known = len(session.known)
    with line(tmp_path) as session:
        assert len(session.known) == known
        assert session.pack(CHAT_TOOLS).body == expected
    with open_store("sqlite", str(tmp_path)) as store:
        assert not [item for item in verify(store, tenant="default", session="session") if item.problem]


def test_restore_does_not_show_what_was_withdrawn_or_replaced() -> None:
    with line() as session:
        session.add([{"role": "system", "content": "the old rules"}, *HEAD[1:]])
        steps(session, 0, 2)
        session.add("my password is hunter2").pack(CHAT_TOOLS)
        session.withdraw(len(session.known) - 1)
        session.instruct("the new rules")
        session.add("Go on.").pack(CHAT_TOOLS)
        last = len(session.entries) - 1
        for number, (address, expected) in enumerate(
            [
                (
                    f"artifact://log/0-{last}",
                    ["--- 0 system\nthe new rules", WITHDRAWN, "content-1"],
                ),
                ("artifact://log/0", ["the new rules"]),
                (f"artifact://log/{last - 1}", [WITHDRAWN]),
                (f"artifact://log/{last - 1}.0", [WITHDRAWN]),
            ]
        ):
            reply = chat_reply(None, (f"r{number}", RESTORE, {"address": address}), number=100 + number)
            (answer,) = session.handle(session.reply(reply))
            text = answer.results[0].text
            assert [words for words in expected if words not in text] == []
            assert "hunter2" not in text
            assert "old rules" not in text
            session.add(answer).pack(CHAT_TOOLS)
        assert session.why("hunter2").places[0].removal is not None
        assert "hunter2" in session.entries[last - 1].message.text


def turned(store: Any, turns: list[tuple[int, int]]) -> Session:
    """A session that went back and forth so many messages and steps."""
    session = line(store)
    session.add(HEAD)
    number = 0
    for back, forth in turns:
        session.withdraw(max(len(session.known) - back, 2))
        steps(session, number, number + forth, words=400)
        number += forth
    return session


@share_of_examples(0.3)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4)), min_size=1, max_size=6))
def test_any_number_of_turns_leaves_a_legal_request_that_is_the_same_after_reopening(
    turns: list[tuple[int, int]],
) -> None:
    expected = turned(None, turns).pack(CHAT_TOOLS)
    assert expected.violations == ()
    store = open_store("memory", "")
    turned(store, turns).close()
    again = line(store)
    assert again.pack(CHAT_TOOLS).body == expected.body
    assert not [item for item in verify(store, tenant="default", session="session") if item.problem]


def test_results_told_twice_and_out_of_order_are_taken_once_and_pair() -> None:
    reply = chat_reply(None, ("c0", "read", {"n": 0}), ("c1", "read", {"n": 1}))
    with line() as session:
        session.add(HEAD)
        session.pack(CHAT_TOOLS)
        session.reply(reply)
        session.add([chat_result("c1", "second"), chat_result("c0", "first")])
        session.add(chat_result("c0", "first"))
        session.reply(reply)
        pack = session.pack(CHAT_TOOLS)
        assert pack.violations == ()
        assert [message.get("content") for message in pack.request["messages"][3:]] == ["second", "first"]


def test_a_result_that_comes_before_its_call_is_shown_and_legal() -> None:
    with line() as session:
        session.add(HEAD)
        session.pack(CHAT_TOOLS)
        session.add(chat_result("c0", "too early"))
        session.reply(chat_reply(None, ("c0", "read", {"n": 0})))
        session.add({"role": "user", "content": "and now?"})
        pack = session.pack(CHAT_TOOLS)
        assert pack.violations == ()
        assert b"too early" in pack.body


@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5"])
def test_requests_after_the_first_reply_is_hidden_are_verified(model: str, position: int) -> None:
    """The opening messages, whose system messages lead the request, end at the first reply that is still shown."""
    store = MemoryStore()
    with Session(model, store=store) as session:
        session.extend([user_text("Find the key."), Message("assistant", (Text("Where?"),))], known_as=["a", "b"])
        session.withdraw(position)
        new = [Message("system", (Text("Be brief."),)), user_text("Now."), Message("assistant", (Text("Here."),))]
        session.extend([*new, user_text("Thanks.")], known_as=["c", "d", "e", "f"])
        session.pack(CHAT_TOOLS)
    assert {outcome.problem for outcome in verify(store, tenant="default", session="session")} == {""}
