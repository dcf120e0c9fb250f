from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from typing import Any
from unittest.mock import patch

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import jsonbytes
from lading.clients.transport import Transport
from lading.compaction import DEFAULT
from lading.exchange import bodies
from lading.exchange.bodies import Bodies, GivenMessages, read_body
from lading.exchange.conversations import Conversations
from lading.exchange.wrapping import WrapOptions
from lading.session.matching import fingerprint
from lading.session.options import SessionOptions
from lading.wire import find_wire
from lading.wire.layout import Layout
from tests.counting import count_calls
from tests.examples import share_of_examples

LAYOUT = find_wire("anthropic").layout
UNITING = find_wire("openai_responses").layout

MARK = {"cache_control": {"type": "ephemeral"}}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
MESSAGES = st.sampled_from(
    [
        {"role": "user", "content": "Find the key."},
        {"role": "user", "content": [{"type": "text", "text": "And now?"} | MARK]},
        {"role": "user", "content": [{"type": "text", "text": "And now?"}]},
        {"role": "assistant", "content": 'I look under "messages":[ and \\.'},
        {"role": "assistant", "content": "\ud83d\ude00"},
        {"at": 1.5},
        1,
        12,
        "messages that were read before",
        None,
    ]
)
FRAGMENTS = [*b',]}[{"1. \\', b'"messages":[', b'"messages": [1]', b'"model":"m",', b"\xff", b"NaN", b'"\\ud83d"']


@st.composite
def series(draw: st.DrawFn) -> list[bytes]:
    """Bodies, most of them an earlier one with more messages, fewer or others, some with any bytes changed."""
    found: list[bytes] = []
    said: list[list[Any]] = [[]]
    for _ in range(draw(st.integers(2, 6))):
        messages = list(draw(st.sampled_from(said)))
        at = draw(st.integers(0, len(messages)))
        if draw(st.booleans()):
            at = len(messages)
        messages[at : at + draw(st.integers(0, 1))] = draw(st.lists(MESSAGES, max_size=3))
        said.append(messages)
        body: dict[str, Any] = {"messages": messages}
        if draw(st.booleans()):
            fields = {"model": draw(st.sampled_from("ab")), "tools": [{"messages": messages[:1]}]}
            body = {**fields, **body} if draw(st.booleans()) else {**body, **fields}
        data = json.dumps(body, separators=draw(st.sampled_from([(",", ":"), (", ", ": ")]))).encode()
        if draw(st.integers(0, 3)) == 0:
            place, fragment = draw(st.integers(0, len(data))), draw(st.sampled_from(FRAGMENTS))
            written = bytes([fragment]) if isinstance(fragment, int) else fragment
            data = data[:place] + written + data[place + draw(st.integers(0, 3)) :]
        found.append(data)
    return found


def seen(messages: GivenMessages) -> list[object]:
    """All that is asked of the messages of a body, with what cannot be read."""
    found: list[object] = [len(messages)]
    for asked in (lambda: messages.digests, lambda: dict(messages.unmarked), lambda: list(messages)):
        try:
            found.append(repr(asked()))
        except ValueError as error:
            found.append(type(error))
    return found


def outcome(read: Any, data: bytes, layout: Layout) -> tuple[object, Any]:
    """What a reading gives, and the messages in it."""
    try:
        body = read(data, layout)
    except ValueError as error:
        return type(error), None
    field = layout.items.field
    if not isinstance(body, dict) or not isinstance(given_ := body.get(field), GivenMessages):
        return repr(body), None
    return repr({**body, field: seen(given_)}), given_


@given(series(), st.sampled_from([1, 7, 64, 1 << 16]), st.sampled_from([LAYOUT, UNITING]))
def test_a_body_is_read_the_same_after_others(data: list[bytes], block: int, layout: Layout) -> None:
    client = Bodies()
    with patch.object(bodies, "_BLOCK_BYTES", block):
        for one in data:
            one = one.replace(b'"messages":', b'"%s":' % layout.items.field.encode())
            found, messages = outcome(client.read, one, layout)
            assert found == outcome(read_body, one, layout)[0]
            if messages is not None:
                # What cannot be read is not remembered.
                with suppress(ValueError):
                    client.remember(messages)


def bodied(*texts: str, model: str = "m") -> bytes:
    return jsonbytes.dump({"messages": [{"role": "user", "content": text} for text in texts], "model": model})


def known(client: Bodies, data: bytes) -> int:
    """How many messages of a body are known from an earlier one. It is remembered then."""
    messages = client.read(data, LAYOUT)["messages"]
    client.remember(messages)
    count: int = messages.known
    return count


def test_of_a_body_that_goes_on_only_what_is_new_is_read() -> None:
    client = Bodies()
    assert known(client, bodied("a")) == 0
    assert known(client, bodied("a", "b" * 200_000, "c")) == 1
    assert known(client, bodied("a", "b" * 200_000, "c", "d")) == 3
    assert known(client, bodied("a", "b" * 200_000, "other", "d")) == 2
    assert known(client, bodied("a")) == 1
    assert known(client, bodied("a", "b" * 200_000, "c", "d", "e", model="n")) == 4
    assert known(client, bodied("other")) == 0


def test_of_items_that_unite_only_the_last_message_and_what_is_new_are_read() -> None:
    user, model = ({"role": role, "content": "a"} for role in ("user", "assistant"))
    client, items, counted = Bodies(), list[Any](), list[tuple[int, int]]()
    for new in ([user], [model, model], [model, user], [model], [user], [user, user]):
        items += new
        messages = client.read(jsonbytes.dump({"input": items, "model": "m"}), UNITING)["input"]
        counted.append((messages.known, len(messages)))
        client.remember(messages)
    assert counted == [(0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 7)]
    assert len(client._earlier) == 1
    other = [*items[:2], user]
    assert client.read(jsonbytes.dump({"input": other, "model": "m"}), UNITING)["input"].known == 0
    other = [*items[:6], model]
    messages = client.read(jsonbytes.dump({"input": other, "model": "m"}), UNITING)["input"]
    assert (messages.known, list(messages)) == (3, [[user], [model] * 3, [user], [model] * 2])


CALLS: dict[str, tuple[str, str, Any, Any]] = {
    "openai_responses": (
        "/v1/responses",
        "input",
        lambda text: {"role": "user", "content": text},
        lambda text: {
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        },
    ),
    "gemini": (
        "/v1beta/models/gemini-2.5-pro:generateContent",
        "contents",
        lambda text: {"role": "user", "parts": [{"text": text}]},
        lambda text: {"role": "model", "parts": [{"text": text}]},
    ),
}
"""The endpoint of a format, its list of messages, an item of the user and one of the model."""


@pytest.mark.parametrize("own", [0, 1], ids=["", "with replies of the caller's own"])
@pytest.mark.parametrize("wire", CALLS)
def test_what_a_call_decodes_does_not_grow_with_the_rounds(wire: str, own: int) -> None:
    path, field, user, model = CALLS[wire]
    items = [user("Count.")]

    def answer(_: httpx2.Request) -> httpx2.Response:
        said = model(f"{len(items)}.")
        reply = {"output": [said], "status": "completed", "id": f"r{len(items)}"}
        return httpx2.Response(200, json=reply if field == "input" else {"candidates": [{"content": said}]})

    conversations = Conversations(
        None, WrapOptions(None, DEFAULT, None, SessionOptions(), False), clock=lambda: 0.0
    )
    counted = []
    with Transport(httpx2.Client(transport=httpx2.MockTransport(answer)), httpx2, conversations) as transport:
        for _ in range(9):
            body = {"model": "gpt-5", field: items}
            request = httpx2.Request("POST", f"http://provider{path}", content=json.dumps(body).encode())
            send = partial(transport.handle_request, request)
            counted.append(count_calls(send, jsonbytes.load, fingerprint))
            for _ in range(1 + own):
                items += [model(f"{len(items)}."), user(f"And {len(items)}?")]
        (session,) = conversations.sessions
    assert len(session.known) == 18 + 16 * own
    assert counted[-1] == counted[3]


def test_bodies_with_no_whole_message_count_towards_the_limit() -> None:
    client = Bodies()
    with patch.object(bodies, "_MOST_BYTES", 1_000):
        for name in "abc":
            data = jsonbytes.dump({"input": [{"role": "user", "content": name * 400}], "model": "m"})
            client.remember(client.read(data, UNITING)["input"])
    assert len(client._earlier) == 2


def test_conversations_may_go_on_in_turns() -> None:
    client = Bodies()
    for said in range(1, 4):
        for name in ("x", "y", "z"):
            assert known(client, bodied(*[f"{name}{number}" for number in range(said)])) == said - 1


def test_what_a_client_remembers_has_a_limit() -> None:
    client = Bodies()
    with patch.object(bodies, "_MOST_BYTES", 1_000):
        assert known(client, bodied("a" * 400)) == known(client, bodied("b" * 400)) == 0
        assert known(client, bodied("b" * 400, "c" * 100)) == 1
        assert known(client, bodied("a" * 400, "d")) == 0
        assert known(client, bodied("e" * 2_000)) == known(client, bodied("e" * 2_000)) == 0
    with patch.object(bodies, "_MOST_EARLIER", 2):
        assert [known(client, bodied(name)) for name in "fgfhg"] == [0, 0, 1, 0, 0]


def test_a_list_that_is_not_the_one_that_counts_is_no_list_of_messages() -> None:
    twice = b'{"messages":[1,2],"messages":[1]}'
    client = Bodies()
    assert [known(client, twice), known(client, twice)] == [0, 0]
    assert known(client, b'{"messages":[1,2,3]}') == 1
    inner = b'{"tools":{"messages":[1]},"messages":[1,2]}'
    assert [known(client, inner), known(client, inner)] == [0, 0]
    spelled = b'{"messages":[1],"messages":["messages that were read before",2]}'
    assert list(client.read(spelled, LAYOUT)["messages"]) == ["messages that were read before", 2]


def sent(histories: list[tuple[str, list[dict[str, Any]]]], *, most: int) -> list[bytes]:
    """The requests that are sent for these, where bodies of so many bytes are remembered."""
    requests: list[bytes] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        requests.append(request.content)
        return httpx2.Response(529, json={"error": {"message": "Overloaded."}})

    options = WrapOptions(None, DEFAULT, None, SessionOptions(), False)
    conversations = Conversations(None, options, clock=lambda: 0.0)
    client = httpx2.Client(transport=httpx2.MockTransport(answer))
    with patch.object(bodies, "_MOST_BYTES", most), Transport(client, httpx2, conversations) as transport:
        for path, messages in histories:
            body = {
                "model": "gpt-4o" if "chat" in path else "claude-sonnet-5",
                "max_tokens": 9,
                "messages": messages,
            }
            request = httpx2.Request("POST", f"http://provider{path}", content=json.dumps(body).encode())
            transport.handle_request(request).read()
    return requests


@share_of_examples(0.5)
@given(st.data())
def test_requests_are_the_same_with_and_without_what_is_remembered(data: st.DataObject) -> None:
    said = [{"role": "user", "content": [{"type": "text", "text": "Find the key."}]}]
    talks: list[list[dict[str, Any]]] = [said, [{"role": "user", "content": "Count."}]]
    histories = []
    for number in range(data.draw(st.integers(2, 8))):
        messages = data.draw(st.sampled_from(talks))
        messages = messages[: data.draw(st.sampled_from([len(messages), 1, 3]))]
        histories.append((data.draw(st.sampled_from(["/v1/messages", "/v1/chat/completions"])), messages))
        if data.draw(st.booleans()):
            messages = [{"role": one["role"], "content": one["content"]} for one in messages]
            blocks = messages[-1]["content"]
            if isinstance(blocks, list):
                messages[-1]["content"] = [blocks[0] | MARK]
            histories.append(("/v1/messages", messages))
        asked = {"role": "user", "content": [{"type": "text", "text": f"And {number % 3}?"}]}
        talks.append([*messages, {"role": "assistant", "content": f"Step {number % 2}."}, asked])
    assert sent(histories, most=10**9) == sent(histories, most=0)


@given(VALUES | st.fixed_dictionaries({"messages": VALUES | st.lists(VALUES)}, optional={"model": VALUES}))
def test_a_body_is_read_as_its_json_is(value: Any) -> None:
    data = json.dumps(value).encode()
    body, whole = read_body(data, LAYOUT), jsonbytes.load(data)
    if isinstance(body, dict) and isinstance(body.get("messages"), GivenMessages):
        body |= {"messages": list(body["messages"])}
    assert body == whole


def test_messages_with_numbers_and_characters_that_json_has_not_are_read_too() -> None:
    body = read_body(b'{"messages": [{"content": "\\ud83d"}, {"at": NaN}]}', LAYOUT)
    assert body["messages"][0] == {"content": "\ud83d"}
    assert str(body["messages"][1]) == "{'at': nan}"
