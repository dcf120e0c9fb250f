"""A streamed reply of Chat Completions passing by; held against what OpenAI's own client makes of it."""

from __future__ import annotations

from contextlib import suppress

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lading.addresses import RESTORE
from lading.errors import WireError
from lading.messages import Message, ToolCall
from lading.wire.openai_chat import WIRE
from lading.wire.replies import Reply, make_event, read_object
from tests.replies import released
from tests.wire.made_replies import (
    CHAT_USAGE,
    Body,
    Tape,
    chat_bodies,
    chat_body,
    chat_streams,
    chunk,
    cut,
    events_of,
    feed,
    streamed,
)

REPLIES = WIRE.replies
TAPE = Tape()
CLIENT = openai.OpenAI(api_key="x", base_url="http://127.0.0.1/v1", http_client=TAPE.client)
EMPTY = {"role": "assistant", "content": "empty"}


def heard(data: bytes) -> Body:
    """What OpenAI's client makes of a stream."""
    TAPE.data = data
    with CLIENT.chat.completions.stream(model="gpt-x", messages=[]) as stream:
        return stream.get_final_completion().model_dump()


def chunks(data: bytes) -> list[Body]:
    """The chunks of a stream."""
    return [value for event in events_of(data) if (value := read_object(event)) is not None]


def piece(index: int | None, arguments: str = "", *, name: str = "", call_id: str = "") -> Body:
    """A delta with a piece of a call."""
    call: Body = {} if index is None else {"index": index}
    call |= {"id": call_id, "type": "function"} if call_id else {}
    return {"tool_calls": [call | {"function": {"arguments": arguments} | ({"name": name} if name else {})}]}


@given(st.data())
def test_a_streamed_reply_reads_as_the_whole_one(data: st.DataObject) -> None:
    body = data.draw(chat_bodies())
    raw = data.draw(chat_streams(body))
    stream = REPLIES.stream(frozenset())
    assert feed(stream, raw) == raw
    assert stream.reply() == REPLIES.read(body)
    assert stream.shown_message() == stream.reply().message
    assert released(stream) == []


@given(st.data())
def test_any_chunking_passes_the_same_on(data: st.DataObject) -> None:
    raw = data.draw(chat_bodies().flatmap(chat_streams))
    at_once, bitwise = REPLIES.stream({RESTORE}), REPLIES.stream({RESTORE})
    shown = feed(at_once, raw)
    places = data.draw(st.lists(st.integers(0, len(raw)), max_size=20))
    events = events_of(raw)
    assert [event.raw for event in events] == [event.raw for event in events_of(b"".join(cut(raw, places)))]
    assert b"".join(piece for event in events for piece in bitwise.feed(event)) == shown


@given(st.data())
def test_the_caller_hears_the_reply_without_the_held_tool(data: st.DataObject) -> None:
    body = data.draw(chat_bodies())
    stream = REPLIES.stream({RESTORE})
    passed = feed(stream, data.draw(chat_streams(body)))
    before = stream.shown_message()
    assert REPLIES.read(heard_chunks(passed)).message == before
    passed += b"".join(released(stream))
    assert f'"{RESTORE}"'.encode() not in passed
    completion = heard(passed)
    assert REPLIES.read(completion).message == stream.shown_message()
    expected = REPLIES.read(REPLIES.without(body, {RESTORE}))
    assert stream.shown_message().parts == expected.message.parts
    assert completion["choices"][0]["finish_reason"] == ("tool_calls" if expected.message.calls else "stop")
    assert completion["usage"]["prompt_tokens"] == 50
    assert stream.reply() == REPLIES.read(body)
    assert released(stream) == []


def heard_chunks(data: bytes) -> Body:
    """What OpenAI's client has of a stream that has not ended."""
    return heard(data) if data else chat_body("", None, calls=[])


@given(st.data())
def test_another_stream_goes_on_with_the_same_answer(data: st.DataObject) -> None:
    asked = data.draw(chat_bodies(st.just(RESTORE), min_calls=1))
    stream = REPLIES.stream({RESTORE})
    passed = feed(stream, data.draw(chat_streams(asked)))
    body = data.draw(chat_bodies())
    following = stream.continue_answer()
    passed += feed(following, data.draw(chat_streams(body, number=2)))
    passed += b"".join(released(following))
    completion = heard(passed)
    assert REPLIES.read(completion).message == following.shown_message()
    first, second = asked["choices"][0]["message"], body["choices"][0]["message"]
    assert following.shown_message().text == (first["content"] or "") + (second["content"] or "")
    assert completion["choices"][0]["message"]["role"] == "assistant"
    assert len({(value["id"], value["created"]) for value in chunks(passed)}) == 1
    assert following.reply() == replace(REPLIES.read(body), id="chatcmpl-2")


def test_a_chunk_with_words_and_a_held_call_is_split() -> None:
    both = {"content": "Let me see.", "tool_calls": piece(0, "{}", name="ls", call_id="a")["tool_calls"]}
    both["tool_calls"] += piece(1, '{"address":1}', name=RESTORE, call_id="b")["tool_calls"]
    both["tool_calls"] += piece(2, "{}", name="cat", call_id="c")["tool_calls"]
    stream = REPLIES.stream({RESTORE})
    value = chunk({"role": "assistant", **both}, reason="tool_calls") | {"usage": CHAT_USAGE}
    (passed,) = stream.feed(make_event(value))
    assert chunks(passed)[0]["choices"][0]["delta"] == {
        "role": "assistant",
        "content": "Let me see.",
        "tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}}],
    }
    assert "usage" not in chunks(passed)[0]
    (end,) = released(stream)
    (choice,) = chunks(end)[0]["choices"]
    assert [(call["index"], call["id"]) for call in choice["delta"]["tool_calls"]] == [(1, "c")]
    assert choice["finish_reason"] == "tool_calls"
    assert chunks(end)[0]["usage"] == CHAT_USAGE


def test_a_name_in_pieces_never_passes() -> None:
    stream = REPLIES.stream({RESTORE})
    raw = streamed(piece(0, name="res", call_id="a"), piece(0, name="tore"), piece(0, "{}"), reason="tool_calls")
    assert feed(stream, raw) == b""
    assert stream.reply().message.calls == (ToolCall("a", RESTORE, "{}"),)
    assert [value["choices"][0]["finish_reason"] for value in chunks(b"".join(released(stream)))] == ["stop"]


def test_another_tool_whose_name_begins_alike_is_released() -> None:
    stream = REPLIES.stream({RESTORE})
    raw = streamed(piece(0, name="rest", call_id="a"), piece(0, "{}"), reason="tool_calls")
    assert feed(stream, raw) == b""
    assert b"".join(released(stream)) == raw


QUIRKS = {
    "a name and an id in every piece": [
        piece(0, name="ls", call_id="a"),
        piece(0, '{"b"', name="ls", call_id="a"),
        piece(0, ":1}", name="ls", call_id="a"),
        piece(1, "{}", name="cat", call_id="b"),
    ],
    "no index": [
        piece(None, '{"b"', name="ls", call_id="a"),
        piece(None, ":1}"),
        piece(None, "{}", name="cat", call_id="b"),
    ],
    "no index, the id in every piece": [
        piece(None, '{"b"', name="ls", call_id="a"),
        piece(None, "{", name="cat", call_id="b"),
        piece(None, ":1}", call_id="a"),
        piece(None, "}", call_id="b"),
    ],
    "whole calls of the same index": [
        piece(0, '{"b":1}', name="ls", call_id="a"),
        piece(0, "{}", name="cat", call_id="b"),
    ],
    "whole calls in one chunk": [
        {
            "tool_calls": [
                *piece(0, '{"b":1}', name="ls", call_id="a")["tool_calls"],
                *piece(0, "{}", name="cat", call_id="b")["tool_calls"],
            ]
        }
    ],
    "a role in every piece": [
        {"role": "assistant", **piece(0, '{"b":1}', name="ls", call_id="a")},
        {"role": "assistant", **piece(1, "{}", name="cat", call_id="b")},
    ],
    "a first index of one": [
        piece(1, '{"b":1}', name="ls", call_id="a"),
        piece(2, "{}", name="cat", call_id="b"),
    ],
}


@pytest.mark.parametrize("quirk", QUIRKS)
def test_servers_that_number_calls_otherwise_are_understood(quirk: str) -> None:
    raw = streamed(*QUIRKS[quirk], reason="tool_calls")
    stream = REPLIES.stream({RESTORE})
    assert feed(stream, raw) == raw
    calls = (ToolCall("a", "ls", '{"b":1}'), ToolCall("b", "cat", "{}"))
    assert stream.reply().message.calls == stream.shown_message().calls == calls
    held = REPLIES.stream({"cat"})
    assert b"cat" not in feed(held, raw) + b"".join(released(held))
    assert held.shown_message().calls == calls[:1]
    assert held.reply().message.calls == calls


def test_reasoning_details_are_gathered() -> None:
    details = [
        [{"type": "reasoning.text", "text": "a", "index": 0, "format": "x"}],
        [{"type": "reasoning.text", "text": "b", "index": 0, "format": "x"}],
        [{"type": "reasoning.text", "signature": "s", "index": 0}],
    ]
    stream = REPLIES.stream({RESTORE})
    feed(stream, streamed(*({"reasoning_details": detail} for detail in details)))
    gathered = {"type": "reasoning.text", "text": "ab", "index": 0, "format": "x", "signature": "s"}
    assert (stream.reply().message.template or {})["reasoning_details"] == [gathered]


def test_several_choices_are_kept_apart() -> None:
    one, two = (chunk({"content": word}) for word in ("one", "two"))
    two["choices"][0]["index"] = 1
    stream = REPLIES.stream({RESTORE})
    raw = make_event(one).raw + make_event(two).raw + make_event(chunk({}, reason="stop")).raw
    assert feed(stream, raw) == raw
    reply = stream.reply()
    assert (reply.message.text, reply.choices, reply.complete) == ("one", 2, False)


def test_a_stream_cut_in_the_middle_is_incomplete() -> None:
    raw = streamed({"content": "a"}, piece(0, '{"address": "art', name=RESTORE, call_id="a"))
    stream = REPLIES.stream({RESTORE})
    feed(stream, raw[: raw.index(b'"finish_reason":"stop"')])
    reply = stream.reply()
    assert not reply.complete
    assert reply.message.calls == (ToolCall("a", RESTORE, '{"address": "art'),)
    assert REPLIES.stream(frozenset()).reply() == Reply(
        Message("assistant", origin="openai_chat", template=EMPTY), complete=False
    )


def test_an_error_in_the_stream_passes_and_leaves_the_reply_incomplete() -> None:
    error = b'data: {"error":{"message":"overloaded","code":502}}\n\n'
    raw = make_event(chunk({"content": "a"})).raw + error + b"data: [DONE]\n\n"
    stream = REPLIES.stream({RESTORE})
    assert feed(stream, raw) == raw
    assert not stream.reply().complete


def test_a_server_that_gives_no_reason_is_done_when_it_says_so() -> None:
    stream = REPLIES.stream({RESTORE})
    feed(stream, make_event(chunk({"content": "a"})).raw + b": ping\n\ndata: [DONE]\n\n")
    assert stream.reply().complete


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["", "a", RESTORE]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "delta", "index", "tool_calls", "function", "name", "arguments", "content", "id"]
            ),
            inner,
        )
    ),
)


@pytest.mark.parametrize("delta", [{}, {"delta": None}, {"delta": {}}, {"delta": {"content": "a"}}, {"delta": 0}])
@pytest.mark.parametrize("held", ["", RESTORE])
def test_a_chunk_that_nothing_is_taken_from_passes_byte_for_byte(delta: Body, held: str) -> None:
    offsets = {"index": 0, "finish_reason": None, "content_filter_offsets": {"check_offset": 44}}
    raw = make_event({"id": "x", "choices": [offsets | delta]}).raw
    assert feed(REPLIES.stream({held} - {""}), raw) == raw


@given(st.lists(st.builds(lambda *items: {"choices": list(items)}, ANYTHING, ANYTHING), max_size=4), st.booleans())
def test_nonsense_passes_by(values: list[Body], again: bool) -> None:
    stream = REPLIES.stream({RESTORE})
    stream = stream.continue_answer() if again else stream
    for value in values:
        stream.feed(make_event(value))
    released(stream)
    with suppress(WireError):
        stream.reply()
    with suppress(WireError):
        stream.shown_message()
