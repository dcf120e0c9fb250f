from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lading import AsyncSession, Session, SessionOptions
from lading.addresses import RESTORE
from lading.errors import (
    ContextOverflow,
    InputError,
    PastChanged,
    SessionBusy,
    StoreError,
    WindowExceeded,
    WireError,
)
from lading.events import Forked
from lading.messages import Message, Text, ToolResult, user_text
from lading.request.pack import Pack
from lading.stores.memory import MemoryStore
from tests.replies import CHAT_TOOLS, chat_reply, chat_result, messages_reply
from tests.waiting import Clock, finished

HEAD: list[dict[str, Any]] = [
    {"role": "system", "content": "You are a careful agent."},
    {"role": "user", "content": "Find the key."},
]
TOO_LONG = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."


def session(**settings: Any) -> Session:
    return Session("gpt-4o", **{"window": 4_000, "output_reserve": 200, **settings})


def step(number: int, words: int = 300) -> tuple[dict[str, Any], dict[str, Any]]:
    """A reply with a call, and the call's result."""
    reply = chat_reply(None, (f"c{number}", "read", {"path": f"file-{number}"}), number=number)
    return reply, chat_result(f"c{number}", f"content-{number} " + "word " * words)


def played(session: Session, steps: int, first: int = 0) -> list[Pack]:
    """The session after so many steps of a tool loop, the whole history handed in at each."""
    history = list(HEAD)
    for number in range(first):
        reply, result = step(number)
        history += [reply["choices"][0]["message"], result]
    packs: list[Pack] = []
    session.add(history)
    for number in range(first, first + steps):
        packs.append(session.pack(CHAT_TOOLS))
        reply, result = step(number)
        session.reply(reply)
        history += [reply["choices"][0]["message"], result]
        session.add(history)
    return packs


def test_the_whole_history_may_be_handed_in_at_each_call() -> None:
    with session(window=100_000) as whole, session(window=100_000) as parts:
        played(whole, 4)
        parts.add(HEAD)
        for number in range(4):
            reply, result = step(number)
            parts.reply(reply)
            parts.add(result)
        assert [entry.digest for entry in whole.entries] == [entry.digest for entry in parts.entries]
        assert whole.pack(CHAT_TOOLS).body == parts.pack(CHAT_TOOLS).body


def test_an_sdk_s_objects_are_taken_like_dicts() -> None:
    chat = pytest.importorskip("openai.types.chat")
    reply, _ = step(0)
    with session() as plain, session() as typed:
        plain.add(HEAD)
        typed.add(HEAD)
        completion = chat.ChatCompletion.model_validate({**reply, "created": 0})
        assert typed.reply(completion) == plain.reply(reply)
        plain.add([*HEAD, reply["choices"][0]["message"]])
        typed.add([*HEAD, completion.choices[0].message])
        assert len(plain.entries) == len(typed.entries) == 3


def test_an_answer_handed_in_twice_is_taken_once() -> None:
    with session() as line:
        line.add(HEAD)
        reply, result = step(0)
        line.reply(reply)
        line.reply(reply)
        line.add(result)
        line.reply(reply)
        line.add(result)
        assert len(line.entries) == 4


def test_a_changed_past_is_an_error_or_a_fork() -> None:
    with session() as line:
        played(line, 2)
        changed = [HEAD[0], {"role": "user", "content": "Find the other key."}]
        with pytest.raises(PastChanged, match="message 1"):
            line.add(changed)
        assert len(line.entries) == 6
        fork = line.add(changed, changed="fork")
        assert (fork.name, len(fork.entries)) == ("session~2", 2)
        assert fork.events[-1] == Forked("session", "session~2")
        assert len(line.entries) == 6
        fork.close()


def test_while_nothing_presses_a_request_is_the_raw_history_and_the_schema() -> None:
    with session(window=100_000) as line:
        played(line, 3)
        request = line.pack(CHAT_TOOLS).request
        assert [tool["function"]["name"] for tool in request["tools"]] == ["read", RESTORE]
        assert request["messages"][:2] == HEAD
        assert request["messages"][3] == step(0)[1]
        request["messages"].clear()
        assert line.pack(CHAT_TOOLS).request["messages"][:2] == HEAD


@pytest.mark.parametrize(
    ("strategy", "tools", "restore", "offered"),
    [
        ("basic", CHAT_TOOLS, True, True),
        ("basic", CHAT_TOOLS, False, False),
        ("basic", [], True, False),
        ("append-only", CHAT_TOOLS, True, False),
    ],
)
def test_restore_is_offered_where_something_can_leave_and_tools_are_given(
    strategy: str, tools: list[Any], restore: bool, offered: bool
) -> None:
    with session(strategy=strategy, options=SessionOptions(restore=restore)) as line:
        line.add(HEAD)
        names = [tool["function"]["name"] for tool in line.pack(tools).request.get("tools", [])]
        assert (RESTORE in names) is offered


def test_a_caller_s_own_tool_named_restore_stays_the_caller_s() -> None:
    own = [{"type": "function", "function": {"name": RESTORE, "parameters": {"type": "object"}}}]
    with session() as line:
        line.add(HEAD)
        assert len(line.pack(own).request["tools"]) == 1
        reply = line.reply(chat_reply(None, ("r", RESTORE, {"address": "artifact://default/session/log/0"})))
        assert line.handle(reply) == []


def test_what_left_is_restored_and_stays() -> None:
    with session() as line:
        packs = played(line, 12)
        assert any(pack.manifest.decisions for pack in packs)
        body = line.pack(CHAT_TOOLS).body.decode()
        assert "content-0 " not in body
        address = line.why("content-0 ").places[0].removal.pointers[0]  # type: ignore[union-attr]
        asked = chat_reply(None, ("r", RESTORE, {"address": address, "query": "content-0"}), number=99)
        (result,) = line.handle(line.reply(asked))
        assert "content-0 " in result.results[0].text
        line.add([result])
        assert "content-0 " in line.pack().body.decode()


def test_no_pointer_leads_into_another_session() -> None:
    store = MemoryStore()
    with session(store=store, name="one") as one, session(store=store, name="two") as two:
        played(one, 1)
        played(two, 1)
        two.pack(CHAT_TOOLS)
        asked = chat_reply(None, ("r", RESTORE, {"address": "artifact://default/one/log/3"}), number=9)
        (result,) = two.handle(two.reply(asked))
        assert result.results[0].is_error
        assert "content" not in result.results[0].text


def test_reopened_it_goes_on_with_the_same_bytes(tmp_path: Path) -> None:
    with session(store=tmp_path / "a") as undisturbed:
        played(undisturbed, 9)
        expected = [pack.body for pack in played(undisturbed, 6, first=9)]
    bodies: list[bytes] = []
    with session(store=tmp_path / "b") as line:
        played(line, 9)
    for number in range(6):
        with session(store=tmp_path / "b") as line:
            bodies += [pack.body for pack in played(line, 1, first=9 + number)]
    assert bodies == expected


def test_what_was_offered_last_is_offered_again(tmp_path: Path) -> None:
    with session(store=tmp_path) as line:
        line.add(HEAD)
        first = line.pack(CHAT_TOOLS, fields={"temperature": 0.5})
    with session(store=tmp_path) as line:
        assert line.pack().body == first.body


def test_counts_learn_from_what_was_billed(tmp_path: Path) -> None:
    with session(window=50_000, store=tmp_path) as line:
        line.add(HEAD)
        for number in range(12):
            tokens = line.pack(CHAT_TOOLS).tokens
            reply, result = step(number)
            line.reply(reply | {"usage": {"prompt_tokens": int(tokens * 1.2) + 40, "completion_tokens": 5}})
            line.add(result)
    with session(window=50_000, store=tmp_path) as line:
        pack = line.pack()
        expected = pack.manifest.sent.expected
        assert expected is not None
        truth = int(pack.tokens * 1.2) + 40
        assert abs(expected.tokens - truth) <= truth * 0.02
        assert abs(expected.calibration.factors.per_token - 1.2) < 0.1


def test_a_prompt_found_too_long_is_made_smaller_once() -> None:
    with session(window=20_000) as line:
        played(line, 12)
        first = line.pack(CHAT_TOOLS)
        smaller = line.retry(TOO_LONG)
        assert smaller.tokens < first.tokens
        assert smaller.manifest.place.cause == "retry"
        with pytest.raises(ContextOverflow):
            line.retry(TOO_LONG)
        line.reply(step(12)[0])
        line.add(step(12)[1])
        next_one = line.pack()
        assert line.retry(TOO_LONG).tokens < next_one.tokens


def test_what_cannot_be_made_smaller_is_a_typed_error() -> None:
    with session(strategy="append-only", window=20_000) as line:
        played(line, 3)
        line.pack()
        with pytest.raises(WindowExceeded):
            line.retry(TOO_LONG)


def test_another_error_is_raised_again() -> None:
    with session() as line:
        line.add(HEAD)
        line.pack()
        error = ValueError("rate limit reached for tokens per min")
        with pytest.raises(ValueError, match="rate limit"):
            line.retry(error)
        with pytest.raises(InputError, match="too long"):
            line.retry("rate limit reached")


def test_other_system_messages_take_the_place_of_those_at_the_start(tmp_path: Path) -> None:
    with session(store=tmp_path) as line:
        played(line, 2)
        line.pack(CHAT_TOOLS)
        line.instruct({"role": "system", "content": "Today is Monday."})
        pack = line.pack()
        assert pack.request["messages"][0]["content"] == "Today is Monday."
        assert (
            pack.manifest.prefix.first_changed == "envelope" or pack.manifest.prefix.first_changed == "messages.0"
        )
        assert "the caller changed the message" in pack.manifest.prefix.why
        told = [{"role": "system", "content": "Today is Monday."}, HEAD[1]]
        assert line.add([*told, *[step(0)[0]["choices"][0]["message"], step(0)[1]], *_rest()]) is line
    with session(store=tmp_path) as line:
        assert line.pack().request["messages"][0]["content"] == "Today is Monday."
        assert line.entries[0].message.text == HEAD[0]["content"]


def _rest() -> list[dict[str, Any]]:
    reply, result = step(1)
    return [reply["choices"][0]["message"], result]


def test_a_second_writer_is_refused_or_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = session(store=tmp_path)
    with pytest.raises(SessionBusy):
        session(store=tmp_path)
    monkeypatch.setattr("lading.stores.leases.time", Clock(asleep=first.close))
    with session(store=tmp_path, options=SessionOptions(wait_s=20.0)) as second:
        second.add(HEAD)


def test_a_stream_of_an_sdk_is_a_reply() -> None:
    chunks = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "He"}}], "id": "x"},
        {"choices": [{"index": 0, "delta": {"content": "llo"}}], "id": "x"},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "id": "x"},
        {"choices": [], "id": "x", "usage": {"prompt_tokens": 30, "completion_tokens": 2}},
    ]
    with session() as line:
        line.add(HEAD)
        line.pack()
        reply = line.reply(iter(chunks))
        assert (reply.message.text, reply.complete) == ("Hello", True)
        assert line.entries[-1].usage is not None
    with session() as line:
        line.add(HEAD)
        assert not line.reply(iter(chunks[:2])).complete
        assert len(line.entries) == 2


def test_both_wires_are_taken_in_one_session() -> None:
    with Session("claude-sonnet-5", window=50_000) as line:
        line.add([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Go."}])
        line.pack([{"name": "read", "input_schema": {"type": "object"}}])
        use = {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}}
        reply = line.reply(messages_reply({"type": "thinking", "thinking": "hm", "signature": "s"}, use))
        assert [call.name for call in reply.message.calls] == ["read"]
        line.add(Message("tool", (ToolResult("t1", (Text("content"),)),)))
        line.add(
            {"role": "user", "content": [{"type": "text", "text": "and?", "cache_control": {"type": "ephemeral"}}]}
        )
        pack = line.pack()
        assert pack.violations == ()
        assert pack.request["cache_control"] == {"type": "ephemeral"}
        assert pack.body.count(b"cache_control") == 1
        assert pack.request["messages"][1]["content"][0]["signature"] == "s"


@pytest.mark.parametrize("response", [b"no json", "[]", 7, None, {"choices": []}, iter([7])])
def test_what_is_no_reply_says_so(response: object) -> None:
    with session() as line:
        line.add(HEAD)
        with pytest.raises((WireError, InputError)):
            line.reply(response)
        assert len(line.entries) == 2


@pytest.mark.parametrize("messages", [7, [7], {"role": "wizard", "content": "x"}, [{"content": "x"}], object()])
def test_what_is_no_message_says_so(messages: object) -> None:
    with session() as line, pytest.raises(InputError):
        line.add(messages)


def test_a_failed_opening_lets_go(tmp_path: Path) -> None:
    (tmp_path / "lading.db").write_bytes(b"something else")
    with pytest.raises(StoreError):
        session(store=tmp_path)


def test_threads_and_tasks_share_a_session() -> None:
    store = MemoryStore()
    with session(store=store, window=500_000) as line:
        line.add(HEAD)

        def work(name: str) -> None:
            for number in range(40):
                line.add([user_text(f"{name}-{number}")])
                line.pack()

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        finished(threads, "the writers")
        texts = [entry.message.text for entry in line.entries[2:]]
        assert len(texts) == 160
        for name in "abcd":
            own = [text for text in texts if text.startswith(f"{name}-")]
            assert own == [f"{name}-{number}" for number in range(40)]
        assert store.load("default", "session").calls == 160


def test_every_method_can_be_awaited(tmp_path: Path) -> None:
    async def stream() -> Any:
        yield {"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}], "id": "x"}

    async def talk() -> None:
        async with AsyncSession(session(store=tmp_path)) as line:
            assert await line.add(HEAD) is line
            pack = await line.pack(CHAT_TOOLS)
            assert pack.request["messages"] == HEAD
            reply = await line.reply(stream())
            assert await line.handle(reply) == []
            assert (await line.why("careful agent")).verdict == "present"
            assert await line.add([{"role": "user", "content": "other"}, *HEAD], changed="fork") is line

    asyncio.run(talk())


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert threading.active_count() < 20


def test_what_was_handed_in_and_changed_since_is_a_changed_past() -> None:
    with session(window=100_000) as line:
        history = [*HEAD, step(0)[0]["choices"][0]["message"], step(0)[1]]
        line.add(history)
        line.add(history)
        assert len(line.entries) == 4
        history[1] = {"role": "user", "content": "Find the other key."}
        with pytest.raises(PastChanged, match="message 1"):
            line.add(history)
    with session(window=100_000) as line:
        history = [dict(message) for message in HEAD]
        line.add(history)
        history[1]["content"] = "Find the other key."
        with pytest.raises(PastChanged, match="message 1"):
            line.add([*history, step(0)[0]["choices"][0]["message"]])
