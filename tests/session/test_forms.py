"""What the caller gives is what is sent, also where a message it gave before is only formed another way."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any, TypeAlias

import anthropic
import httpx2
import openai
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import lading
from lading.audit.replay import verify
from lading.errors import LadingError, PastChanged
from lading.stores.memory import MemoryStore
from tests.clients.agents import MODELS
from tests.leaves import CONVERSATIONS, HELLO, MORE, OK, Change, Conversation, list_changes
from tests.replies import chat_reply, messages_reply

Sent: TypeAlias = list[Any]
FIELDS: dict[str, dict[str, Any]] = {"anthropic": {"max_tokens": 99}, "openai_chat": {}}
CASES = [
    (wire, conversation, change)
    for wire, conversations in CONVERSATIONS.items()
    for conversation in conversations
    for change in list_changes(conversation.message)
]


def pack(session: lading.Session) -> Sent:
    request = session.pack(fields=FIELDS[session.wire.name]).request
    return [request.get("system"), *request["messages"]]


def by_session(wire: str, *histories: list[Any]) -> Sent:
    """What a session sends that is given these histories, one after the other."""
    session = lading.Session(MODELS[wire], window=100_000)
    for history in histories:
        sent = pack(session.add(history))
    return sent


def by_wrap(wire: str, *histories: list[Any]) -> Sent:
    """What a wrapped client sends for the last of these histories."""
    bodies: list[Any] = []
    replies = {"anthropic": messages_reply({"type": "text", "text": "ok"}), "openai_chat": chat_reply("ok")}

    def answer(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(request.read()))
        return httpx2.Response(200, json=replies[wire])

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    make = anthropic.Anthropic if wire == "anthropic" else openai.OpenAI
    client: Any = lading.wrap(make(base_url="http://here", api_key="test", http_client=http), fail_open=False)
    create = client.messages.create if wire == "anthropic" else client.chat.completions.create
    for history in histories:
        create(model=MODELS[wire], messages=history, **FIELDS[wire])
    return [bodies[-1].get("system"), *bodies[-1]["messages"]]


def is_no_change(how: str, path: tuple[str | int, ...], message: dict[str, Any]) -> bool:
    """The whole list of what is no change, for replies alone: SDKs parse and write them again."""
    if message["role"] != "assistant":
        return False
    is_argument = "arguments" in path and how.startswith("blanks")
    is_empty = path == ("content",) and message["content"] is None
    return is_argument or is_empty or how in ("null", "type")


def exact(sent: Sent, wire: str) -> str:
    """JSON, in which 1 and true differ, and 1 and 1.0, which are one number, do not. For Anthropic a text is a list
    of one block, because it is one while it has a cache mark."""
    system, *messages = sent
    if wire == "anthropic":
        messages = [
            {**one, "content": [{"type": "text", "text": one["content"]}]}
            if isinstance(one["content"], str)
            else one
            for one in messages
        ]
    return json.dumps(unite_numbers([system, *messages]), sort_keys=True)


def unite_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: unite_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [unite_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@pytest.mark.fuzz
@pytest.mark.parametrize("entrance", [by_session, by_wrap])
@given(case=st.sampled_from(CASES), is_last=st.booleans())
def test_any_change_of_a_message_is_sent(
    entrance: Callable[..., Sent], case: tuple[str, Conversation, Change], is_last: bool
) -> None:
    wire, (before, message, after), (how, path, changed) = case
    assume(not is_no_change(how, path, message))
    # A list given again as a list is compared with ==, where 1, 1.0 and true are equal.
    assume(how != "type" or entrance is by_wrap)
    upto = after[:-1] if message["role"] in ("system", "developer", "assistant") else []
    first, again = [*before, message, *upto], [*before, changed, *(upto if is_last else after)]
    try:
        expected = entrance(wire, again)
        sent = entrance(wire, first, again)
    except PastChanged:
        return  # Reported.
    except (LadingError, openai.OpenAIError, anthropic.AnthropicError):
        assume(False)
    if entrance is by_session and len(sent) > len(expected):
        sent = [sent[0], *sent[-len(expected) + 1 :]]  # It may also have been taken for a new message.
    assert exact(sent, wire) == exact(expected, wire)


THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
REASONED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "anthropic": (messages_reply(THINKING, {"type": "text", "text": "ok"}), {"content": [THINKING]}),
    "openai_chat": (chat_reply("ok"), {"reasoning_content": "Hm."}),
}
REASONED["openai_chat"][0]["choices"][0]["message"]["reasoning_content"] = "Hm."


@pytest.mark.parametrize("wire", REASONED)
def test_the_first_echo_decides_whether_reasoning_is_sent_and_a_later_one_changes_it(wire: str) -> None:
    reply, reasoning = REASONED[wire]
    text = {"type": "text", "text": "ok"}
    short: dict[str, Any] = {"role": "assistant", "content": [text] if wire == "anthropic" else "ok"}
    full = short | ({"content": [THINKING, text]} if wire == "anthropic" else reasoning)
    store = MemoryStore()
    with lading.Session(MODELS[wire], store=store) as session:
        pack(session.add([HELLO]))
        session.reply(reply)
        for echo, name in itertools.product([short, full], ["first", "again"]):
            history = [HELLO, echo, MORE | {"content": "more"}]
            assert pack(session.add(history))[2] == echo, name
        assert sum(edit.kind == "restated" for edit in session._engine.history.edits) == 2
    with lading.Session(MODELS[wire], store=store) as session:
        assert pack(session.add([HELLO, full, MORE]))[2] == full
        assert sum(edit.kind == "restated" for edit in session._engine.history.edits) == 2
    assert not [outcome for outcome in verify(store, tenant="default", session="session") if outcome.problem]


def test_an_echo_beside_new_messages_alone_decides_too() -> None:
    with lading.Session("gpt-4o") as session:
        pack(session.add([HELLO]))
        session.reply(REASONED["openai_chat"][0])
        assert pack(session.add([OK, MORE]))[1:] == [HELLO, OK, MORE]


def test_another_form_keeps_the_repairs_and_the_edits_of_its_neighbours() -> None:
    use = {"type": "tool_use", "id": "u1", "name": "read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "u1", "content": "found"}
    text = {"type": "text", "text": "See:"}
    used: list[Any] = [HELLO, {"role": "assistant", "content": [use]}]
    # The second use of the id is renamed in both messages, and results go first.
    history = [*used, {"role": "user", "content": [result]}, used[1], {"role": "user", "content": [text, result]}]
    with lading.Session("claude-sonnet-5", options=lading.SessionOptions(strict=True)) as session:
        before = pack(session.add(history))
        history[-1] = {"role": "user", "content": [{**text, "text": "  See:"}, result | {"is_error": False}]}
        sent = pack(session.add(history))
    assert sent[:-1] == before[:-1]
    renamed = sent[4]["content"][0]["id"]
    assert sent[-1]["content"] == [
        result | {"tool_use_id": renamed, "is_error": False},
        {"type": "text", "text": "  See:"},
    ]


def test_a_changed_form_of_what_was_pinned_is_pinned() -> None:
    with lading.Session("gpt-4o") as session:
        session.add([HELLO]).add([OK | {"role": "assistant"}])
        session.add({"role": "user", "content": "keep this"}, pin=True)
        changed = {"role": "user", "content": " keep this"}
        assert pack(session.add([HELLO, OK, changed]))[3] == changed
        assert session._engine.history.view.items[2].kind == "pinned"


def test_an_instruction_in_another_form_is_sent() -> None:
    with lading.Session("claude-sonnet-5") as session:
        session.add({"system": [{"type": "text", "text": "Be brief."}], "messages": [HELLO]})
        before = pack(session)[0]
        session.instruct("Be brief.")
        assert (before, pack(session)[0]) == ([{"type": "text", "text": "Be brief."}], "Be brief.")
