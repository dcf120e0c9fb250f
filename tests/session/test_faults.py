"""What providers, stores and callers do wrong, and that a session stands it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from lading import Session, SessionOptions
from lading.addresses import RESTORE
from lading.audit.replay import verify
from lading.compaction import Compaction, Pressure, Strategy
from lading.errors import IllegalRequest, InputError, LadingError, PastChanged, StoreError, WindowExceeded
from lading.exchange.wrapping import SharedSession
from lading.history.view import View
from lading.messages import Message, Text, user_text
from lading.stores.memory import MemoryStore
from tests.replies import CHAT_TOOLS, chat_reply, chat_result

HEAD: list[dict[str, Any]] = [
    {"role": "system", "content": "You are a careful agent."},
    {"role": "user", "content": "Find the key."},
]


def session(model: str = "gpt-4o", **settings: Any) -> Session:
    return Session(model, **{"window": 4_000, "output_reserve": 200, **settings})


def stepped(line: Session, number: int, *, words: int = 300, input_tokens: int | None = None) -> None:
    """One round of a tool loop."""
    line.pack(CHAT_TOOLS)
    call = (f"c{number}", "read", {"path": f"file-{number}"})
    line.reply(chat_reply(None, call, number=number, input_tokens=input_tokens))
    line.add(chat_result(f"c{number}", f"content-{number} " + "word " * words))


def roles(line: Session) -> str:
    return "".join(entry.message.role[0] for entry in line.entries)


def test_replies_are_told_apart_where_a_server_uses_its_ids_again() -> None:
    with session() as line:
        line.add(HEAD)
        for number in range(3):
            line.pack(CHAT_TOOLS)
            line.reply({**chat_reply(None, (f"c{number}", "read", {"path": f"{number}"})), "id": "chatcmpl-7"})
            line.add(chat_result(f"c{number}", f"content {number}"))
        assert roles(line) == "su" + "at" * 3


def test_equal_results_of_calls_with_equal_ids_are_all_kept() -> None:
    with session() as line:
        line.add(HEAD)
        for number in range(3):
            line.pack(CHAT_TOOLS)
            line.reply(chat_reply(f"step {number}", ("call_0", "read", {"path": f"{number}"}), number=number))
            line.add(chat_result("call_0", "ok"))
            line.add(chat_result("call_0", "ok"))
        assert roles(line) == "su" + "at" * 3
        assert "No result was recorded" not in line.pack().body.decode()


def test_what_a_store_refused_is_stored_with_the_next_attempt() -> None:
    class Full(MemoryStore):
        is_full = False

        def append(self, tenant: str, session: str, **rows: Any) -> None:
            if self.is_full:
                raise StoreError("The disk is full.")
            super().append(tenant, session, **rows)

    store = Full()
    more = [*HEAD, {"role": "assistant", "content": "Yes?"}, {"role": "user", "content": "Go on."}]
    with session(store=store) as line:
        line.add(HEAD)
        store.is_full = True
        with pytest.raises(StoreError):
            line.add(more)
        store.is_full = False
        line.add(more)
        assert len(line.entries) == len(store.load("default", "session").entries) == 4


def test_a_message_that_cannot_be_taken_in_leaves_those_before_it_known() -> None:
    said = Message("assistant", (Text("a"),))
    with session() as line:
        line.add(HEAD)
        with pytest.raises(IllegalRequest):
            line.add([said, Message("user", (Text("b"),), template={"x": float("nan")})])
        line.add([said, Message("user", (Text("b"),))])
        assert roles(line) == "suau"


def test_a_system_message_may_be_restated_as_a_text_and_nothing_else_may() -> None:
    with session() as line:
        line.add(HEAD)
        line.instruct("Today is Monday.")
        assert line.pack().request["messages"][0] == {"role": "system", "content": "Today is Monday."}
        with pytest.raises(InputError, match="system"):
            line.instruct({"role": "user", "content": "Today is Tuesday."})


def test_an_instruction_needs_a_system_message_to_replace() -> None:
    with session() as line:
        line.add(user_text("hi"))
        with pytest.raises(PastChanged, match="begins with 0 system messages, and 1 were given"):
            line.instruct("Today is Monday.")


def test_a_system_message_restated_before_the_session_was_closed_is_sent() -> None:
    store = MemoryStore()
    with session(store=store) as line:
        line.add(HEAD)
        line.pack(CHAT_TOOLS)
        line.instruct("Today is Monday.")
    with session(store=store) as line:
        assert line.pack().request["messages"][0]["content"] == "Today is Monday."
    assert [outcome.problem for outcome in verify(store, tenant="default", session="session")] == ["", ""]


def test_what_was_asked_for_before_the_session_was_closed_is_restored() -> None:
    store = MemoryStore()
    with session(store=store) as line:
        line.add(HEAD)
        line.pack(CHAT_TOOLS)
        reply = line.reply(chat_reply(None, ("r", RESTORE, {"address": "artifact://default/session/log/1"})))
    with session(store=store) as line:
        (result,) = line.handle(reply)
        assert "Find the key." in result.results[0].text


def test_what_is_restored_at_once_fits_a_small_window() -> None:
    with session() as line:
        line.add(HEAD)
        for number in range(4):
            stepped(line, number, words=3_000)
        line.pack()
        asked = [(f"r{at}", RESTORE, {"address": "artifact://default/session/log/3"}) for at in range(3)]
        results = line.handle(line.reply(chat_reply(None, *asked, number=9)))
        line.add(results)
        body = line.pack().body.decode()
        assert all(message.results[0].text.splitlines()[-1] in body for message in results)


@pytest.mark.parametrize("tokens", [600, 900_000])
def test_a_refusal_after_which_nothing_can_be_sent_leaves_the_session_as_it_was(tokens: int) -> None:
    bodies = []
    for is_refused in (False, True):
        store = MemoryStore()
        with session(store=store) as line:
            line.add(HEAD)
            line.pack(CHAT_TOOLS)
            if is_refused:
                with pytest.raises(WindowExceeded):
                    line.retry(f"prompt is too long: {tokens} tokens > 100 maximum")
            line.reply(chat_reply(None, ("c", "read", {"path": "a"}), input_tokens=130))
            line.add(chat_result("c", "word " * 3_000))
            bodies.append(line.pack().body)
    assert bodies[0] == bodies[1]


def test_usage_of_more_than_the_window_teaches_nothing() -> None:
    with session() as line:
        line.add(HEAD)
        for number in range(8):
            stepped(line, number, input_tokens=40_000)
        assert line.pack().manifest.sent.expected is None


def test_counts_that_made_a_request_too_long_are_forgotten() -> None:
    with session("mistral-large", strategy="basic") as line:
        line.add(HEAD)
        for number in range(14):
            tokens = line.pack(CHAT_TOOLS).tokens
            stepped(line, number, input_tokens=tokens * 2 // 3)
        assert line.pack().tokens > 4_000
        line.retry("prompt is too long")
        stepped(line, 14)
        assert line.pack().tokens <= 3_800


def test_a_newest_result_that_made_the_request_too_long_is_clipped() -> None:
    with session(strategy="basic") as line:
        line.add(HEAD)
        stepped(line, 0, words=3_000)
        assert line.pack().tokens > 3_000
        smaller = line.retry("prompt is too long: 4500 tokens > 4000 maximum")
        assert smaller.tokens < 2_800
        assert "artifact://log/3" in smaller.body.decode()
        assert smaller.violations == ()


def test_nothing_is_withdrawn_out_of_what_one_edit_shows() -> None:
    with Session("gpt-4o", window=1_500, output_reserve=200) as line:
        history: list[Any] = [{"role": "user", "content": "Go."}]
        for number in range(8):
            reply = chat_reply(None, (f"c{number}", "read", {}), number=number)
            history += [reply["choices"][0]["message"], chat_result(f"c{number}", "word " * 200)]
        line.add(history)
        assert line.pack(CHAT_TOOLS).manifest.decisions
        assert not line.withdraw(2)
        line.add("Do it otherwise.")
        assert line.pack().violations == ()
        assert line.withdraw(len(line.known) - 1)
        assert line.pack().violations == ()


def test_one_report_of_almost_the_window_does_not_end_a_session() -> None:
    window = 8_000
    with Session("gpt-4o", window=window, output_reserve=200) as line:
        line.add([{"role": "system", "content": "S"}, {"role": "user", "content": "Go."}])
        for number in range(30):
            tokens = line.pack(CHAT_TOOLS).tokens
            reported = window - 1 if number == 0 else tokens
            calls = (f"c{number}", "read", {"path": f"file-{number}"})
            line.reply(chat_reply(None, calls, number=number, input_tokens=reported))
            line.add(chat_result(f"c{number}", f"content {number} " + "word " * (100 + 37 * number % 700)))


def test_a_pack_that_fails_leaves_the_calls_open_for_their_results() -> None:
    class Refusing(MemoryStore):
        refuses = False

        def append(self, tenant: str, session: str, **rows: Any) -> None:
            if self.refuses and rows.get("manifest"):
                raise StoreError("The disk is full.")
            super().append(tenant, session, **rows)

    bodies = []
    for fails in (False, True):
        store = Refusing()
        with session(store=store) as line:
            line.add(HEAD)
            line.pack(CHAT_TOOLS)
            line.reply(chat_reply(None, ("c", "read", {"path": "a"}), ("d", "read", {"path": "b"})))
            store.refuses = fails
            for _ in range(2 if fails else 0):
                with pytest.raises(StoreError):
                    line.pack()
            store.refuses = False
            line.add([chat_result("c", "one"), chat_result("d", "two")])
            pack = line.pack()
            assert pack.events == ()
            bodies.append(pack.body)
        assert [outcome.problem for outcome in verify(store, tenant="default", session="session")] == ["", ""]
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize(
    "failing",
    [
        {"fields": {"max_tokens": 10**6}},
        {"fields": {"temperature": math.nan}},
        {"tools": [], "fields": {"temperature": 0.5}, "at_s": math.inf},
    ],
)
def test_a_pack_that_fails_leaves_tools_and_fields_as_they_were(failing: dict[str, Any]) -> None:
    with session() as line, session() as twin:
        for one in (line, twin):
            one.add(HEAD)
            one.pack(CHAT_TOOLS, fields={"temperature": 0.1})
        with pytest.raises(LadingError):
            line.pack(**failing)
        for one in (line, twin):
            one.add("Go on.")
        assert line.pack().body == twin.pack().body


def test_a_retry_that_a_strategy_s_own_error_ends_leaves_the_window_as_it_was() -> None:
    failing: list[bool] = []

    def fail(_view: View, _pressure: Pressure) -> Compaction:
        if failing:
            raise KeyError("a bug of the strategy")
        return Compaction()

    options = SessionOptions(strict=True)
    with Session("gpt-4o", strategy=Strategy("failing", fail), options=options) as line:
        line.add(HEAD)
        line.pack()
        window = line.settings.budget.window_tokens
        failing.append(True)
        with pytest.raises(KeyError):
            line.retry("This model's maximum context length is 9000 tokens, however you requested 9999 tokens")
        assert line.settings.budget.window_tokens == window


def test_a_reply_that_a_failed_pack_would_have_closed_is_gone_on_with() -> None:
    with session() as line:
        line.add("Find the key.")
        line.reply(chat_reply("Here."))
        with pytest.raises(WindowExceeded):
            line.request(most_tokens=1)
        line.add("Thanks.")
        assert [message["content"] for message in line.pack().request["messages"]] == [
            "Find the key.",
            "Here.",
            "Thanks.",
        ]


@pytest.mark.parametrize("reopened", [False, True])
def test_a_request_made_again_is_the_same_and_costs_no_rent(reopened: bool) -> None:
    store = MemoryStore()
    line = session(store=store, window=2_600)
    line.add(HEAD)
    for number in range(4):
        stepped(line, number, words=200)
    first = line.pack(CHAT_TOOLS)
    assert first.manifest.account != 0, "the rent of this request is on the account"
    for _ in range(30):
        if reopened:
            line.close()
            line = session(store=store, window=2_600)
        again = line.pack(at_s=1e9)
        assert again.body == first.body
        assert again.manifest.account == first.manifest.account
    line.reply(chat_reply("Done."))
    line.add("Go on.")
    again = line.pack()
    assert again.manifest.account != first.manifest.account or again.manifest.decisions
    line.close()
    assert {outcome.problem for outcome in verify(store, tenant="default", session="session")} == {""}


def test_a_request_made_again_that_was_found_too_long_is_smaller() -> None:
    with session(window=20_000) as line:
        line.add(HEAD)
        for number in range(6):
            stepped(line, number, words=200)
        first = line.pack(CHAT_TOOLS)
        assert line.retry("prompt is too long").tokens < first.tokens * 0.81


def test_how_many_messages_were_shown_is_known_after_a_turn_too() -> None:
    with SharedSession("gpt-4o", window=100_000) as line:
        line.add(HEAD)
        for number in range(3):
            stepped(line, number)
        told = len(line.known)
        assert line.shown == told - 2
        line.withdraw(told - 2)
        assert (line.shown, len(line.known)) == (told - 2, told - 2)
        line.add("Something else.")
        line.pack()
        assert line.shown == len(line.known) == told - 1


@pytest.mark.parametrize("fields", [{}, {"max_tokens": 300}])
def test_the_window_that_a_provider_names_holds_for_what_follows(fields: dict[str, Any]) -> None:
    served, refused = 2_000, 0
    with session(output_reserve=None, strategy="basic") as line:
        line.add(HEAD)
        for number in range(40):
            pack = line.pack(CHAT_TOOLS, fields=fields)
            if pack.tokens > served:
                refused += 1
                pack = line.retry(f"prompt is too long: {pack.tokens} tokens > {served} maximum")
            assert pack.tokens <= served
            stepped(line, number, words=200)
        assert line.settings.budget.window_tokens == served
    assert refused == 1


@pytest.mark.parametrize("limit", [9_000, 10**9, 4_000])
def test_a_limit_above_the_window_does_not_raise_it(limit: int) -> None:
    with session() as line:
        line.add(HEAD)
        for number in range(3):
            stepped(line, number)
        line.pack()
        line.retry(f"This model's maximum context length is {limit} tokens.")
        assert line.settings.budget.window_tokens == 4_000
