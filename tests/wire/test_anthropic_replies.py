"""What the Messages API answers, whole and streamed; held against Anthropic's own client."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import anthropic
import pytest
from anthropic.types import Message as AnthropicMessage
from hypothesis import given
from hypothesis import strategies as st

from lading.addresses import RESTORE
from lading.errors import WireError
from lading.history.log import Reported
from lading.messages import Conversation, Message, Opaque, Reasoning, Text, ToolCall
from lading.wire import encode
from lading.wire.anthropic import WIRE
from lading.wire.replies import make_event, read_object
from tests.replies import released
from tests.wire.codec_cards import PLAIN
from tests.wire.made_replies import (
    CITATION,
    FOUND,
    SEARCH,
    Body,
    Tape,
    events_of,
    feed,
    messages_bodies,
    messages_body,
    messages_streams,
    use,
)

REPLIES = WIRE.replies
TAPE = Tape()
CLIENT = anthropic.Anthropic(api_key="x", base_url="http://127.0.0.1", http_client=TAPE.client)


def sent_back(message: Message) -> Any:
    """The content as the next request has it."""
    (found,) = encode(Conversation((message,)), WIRE, card=PLAIN)["messages"]
    assert found["role"] == "assistant"
    return found["content"]


def heard(data: bytes) -> Body:
    """What Anthropic's client makes of a stream."""
    TAPE.data = data
    with CLIENT.messages.stream(model="claude-x", max_tokens=9, messages=[]) as stream:
        return stream.get_final_message().model_dump()


def values(data: bytes) -> list[Body]:
    """The events of a stream."""
    return [value for event in events_of(data) if (value := read_object(event)) is not None]


def opened(data: bytes) -> list[int]:
    """Where the blocks of a stream stand, in the order in which they start."""
    return [value["index"] for value in values(data) if value["type"] == "content_block_start"]


def event(kind: str, **fields: Any) -> bytes:
    """One event."""
    return make_event({"type": kind, **fields}, name=kind).raw


# Whole replies


def test_what_only_answers_have_is_not_sent_back() -> None:
    location = {"type": "char_location", "cited_text": "x", "document_title": None, "file_id": None}
    body = messages_body(
        [
            {"type": "text", "text": "a", "citations": None, "parsed_output": None},
            {"type": "text", "text": "b", "citations": [location]},
            use("ls", {}) | {"caller": {"type": "direct"}, "toolset_name": None},
            use("ls", {}) | {"caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}},
        ]
    )
    assert sent_back(REPLIES.read(body).message) == [
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b", "citations": [{k: v for k, v in location.items() if k != "file_id"}]},
        {"type": "tool_use", "id": "toolu_2", "name": "ls", "input": {}},
        use("ls", {}) | {"id": "toolu_3", "caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}},
    ]


def test_every_kind_of_block_goes_back_as_it_was_issued() -> None:
    blocks: list[Body] = [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "thinking", "thinking": "", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "ZGF0YQ=="},
        SEARCH,
        FOUND,
        {"type": "text", "text": "so", "citations": [CITATION]},
        use("ls", {"path": "/", "deep": [1.5, None]}),
        {"type": "from_tomorrow", "data": {"x": None}},
    ]
    body = messages_body(blocks)
    reply = REPLIES.read(body)
    assert sent_back(reply.message) == body["content"]
    assert [type(part) for part in reply.message.parts] == [
        *(Reasoning, Reasoning, Reasoning, Opaque, Opaque, Text, ToolCall, Opaque)
    ]
    assert (reply.id, reply.model, reply.choices, reply.complete) == ("msg_1", "claude-x", 1, True)
    assert reply.usage == Reported(55, 9, read_tokens=20, written_tokens=5)


@given(messages_bodies())
def test_a_dump_of_the_sdk_reads_as_the_body_does(body: Body) -> None:
    parsed = AnthropicMessage.model_validate(body)
    assert REPLIES.read(parsed.model_dump()) == REPLIES.read(parsed.to_dict()) == REPLIES.read(body)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ([], None),
        ({"input_tokens": 0, "output_tokens": 3}, None),
        ({"input_tokens": "5"}, None),
        ({"input_tokens": 5, "cache_read_input_tokens": -1}, None),
        ({"input_tokens": 5, "output_tokens": 2.5}, None),
        ({"input_tokens": 5, "cache_read_input_tokens": None, "output_tokens": 1}, Reported(5, 1)),
        ({"input_tokens": 0, "cache_read_input_tokens": 7}, Reported(7, read_tokens=7)),
    ],
)
def test_usage_is_believed_when_it_can_be(usage: Any, expected: Reported | None) -> None:
    assert REPLIES.read(messages_body([]) | {"usage": usage}).usage == expected


@pytest.mark.parametrize(
    "body", [{}, {"content": None}, {"content": ["x"]}, {"content": [{}]}, {"type": "error"}, None]
)
def test_what_is_no_reply_is_an_error(body: Any) -> None:
    with pytest.raises(WireError):
        REPLIES.read(body)


@given(messages_bodies())
def test_without_leaves_all_but_the_calls_of_that_name(body: Body) -> None:
    before = json.dumps(body)
    left = REPLIES.without(body, {RESTORE})
    assert json.dumps(body) == before
    assert left["content"] == [block for block in body["content"] if block.get("name") != RESTORE]
    calls = any(block["type"] == "tool_use" for block in left["content"])
    assert left["stop_reason"] == ("tool_use" if calls else "end_turn")


def test_without_keeps_another_reason_for_the_end() -> None:
    body = messages_body([use(RESTORE, {})]) | {"stop_reason": "max_tokens"}
    assert REPLIES.without(body, {RESTORE})["stop_reason"] == "max_tokens"
    assert REPLIES.without({"type": "error"}, {RESTORE}) == {"type": "error"}


# Streams


@given(st.data())
def test_a_streamed_reply_reads_as_the_whole_one(data: st.DataObject) -> None:
    body = data.draw(messages_bodies())
    raw = data.draw(messages_streams(body))
    stream = REPLIES.stream(frozenset())
    assert feed(stream, raw) == raw
    assert stream.reply() == REPLIES.read(body)
    assert stream.shown_message() == stream.reply().message
    assert released(stream) == []


@given(st.data())
def test_the_caller_hears_the_reply_without_the_held_tool(data: st.DataObject) -> None:
    body = data.draw(messages_bodies())
    stream = REPLIES.stream({RESTORE})
    passed = feed(stream, data.draw(messages_streams(body)))
    assert REPLIES.read(heard(passed)).message == stream.shown_message()
    passed += b"".join(released(stream))
    assert f'"{RESTORE}"'.encode() not in passed
    final = heard(passed)
    left = REPLIES.without(body, {RESTORE})
    assert REPLIES.read(final).message == stream.shown_message() == REPLIES.read(left).message
    assert final["stop_reason"] == left["stop_reason"]
    assert opened(passed) == list(range(len(left["content"])))
    assert stream.reply() == REPLIES.read(body)
    assert released(stream) == []


@given(st.data())
def test_another_stream_goes_on_with_the_same_answer(data: st.DataObject) -> None:
    stream = REPLIES.stream({RESTORE})
    passed, shown = b"", 0
    for _ in range(data.draw(st.integers(1, 2))):
        asked = data.draw(messages_bodies(st.just(RESTORE), min_calls=1))
        passed += feed(stream, data.draw(messages_streams(asked)))
        names = [block.get("name") for block in asked["content"]]
        shown += names.index(RESTORE)
        assert len(stream.shown_message().parts) == shown
        stream = stream.continue_answer()
    body = data.draw(messages_bodies())
    passed += feed(stream, data.draw(messages_streams(body)))
    passed += b"".join(released(stream))
    final = heard(passed)
    left = REPLIES.without(body, {RESTORE})
    assert REPLIES.read(final).message == stream.shown_message()
    assert final["content"][shown:] == AnthropicMessage.model_validate(left).model_dump()["content"]
    assert final["stop_reason"] == left["stop_reason"]
    assert opened(passed) == list(range(shown + len(left["content"])))
    assert [value["type"] for value in values(passed)].count("message_start") == 1
    assert stream.reply() == REPLIES.read(body)


def test_what_an_earlier_stream_showed_stays_what_it_was() -> None:
    stream = REPLIES.stream({RESTORE})
    feed(stream, event("content_block_start", index=0, content_block={"type": "text", "text": "a"}))
    following = stream.continue_answer()
    feed(following, event("content_block_start", index=0, content_block={"type": "text", "text": "b"}))
    assert (stream.shown_message().text, following.shown_message().text) == ("a", "a\nb")


def test_totals_of_the_end_replace_those_of_the_start() -> None:
    start = {"id": "msg_1", "model": "claude-x", "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}
    usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 20}
    ending = {"stop_reason": "end_turn"}
    stream = REPLIES.stream({RESTORE})
    feed(stream, event("message_start", message=start) + event("message_delta", delta=ending, usage=usage))
    assert stream.reply().usage == Reported(15, 20, read_tokens=5)
    assert stream.reply().complete


START = event("message_start", message=messages_body([]) | {"stop_reason": None})
CALL = START + event("content_block_start", index=0, content_block=use(RESTORE, {}) | {"id": "a"})


def test_a_stream_cut_in_the_middle_is_incomplete() -> None:
    delta = {"type": "input_json_delta", "partial_json": '{"address": "art'}
    stream = REPLIES.stream({RESTORE})
    assert feed(stream, CALL + event("content_block_delta", index=0, delta=delta)) == START
    reply = stream.reply()
    assert not reply.complete
    assert reply.message.calls == (ToolCall("a", RESTORE, '{"address": "art'),)
    (block,) = sent_back(reply.message)
    assert block["input"] == {"raw_arguments": '{"address": "art'}
    assert REPLIES.stream(frozenset()).reply().message.parts == ()


@pytest.mark.parametrize("text", ['"words"', "[1]", "7", "{"])
def test_an_input_that_is_no_object_is_kept_as_written(text: str) -> None:
    delta = {"type": "input_json_delta", "partial_json": text}
    search = event("content_block_start", index=1, content_block=SEARCH | {"input": {}})
    stream = REPLIES.stream(frozenset())
    feed(stream, CALL + event("content_block_delta", index=0, delta=delta) + search)
    feed(stream, event("content_block_delta", index=1, delta=delta))
    assert stream.reply().message.calls[0].arguments == text
    assert [block["input"] for block in sent_back(stream.reply().message)] == [{"raw_arguments": text}] * 2


def test_an_error_in_the_stream_leaves_the_reply_incomplete() -> None:
    error = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
    stream = REPLIES.stream({RESTORE})
    assert feed(stream, CALL + error + event("message_stop")) == START
    assert not stream.reply().complete
    assert b"".join(released(stream)) == error + event("message_stop")


def test_what_is_held_keeps_its_pings_and_comments() -> None:
    stream = REPLIES.stream({RESTORE})
    feed(stream, CALL)
    assert feed(stream, event("ping") + b": still there\n\n") == b""
    assert b"".join(released(stream)) == event("ping") + b": still there\n\n"


def test_deltas_of_tomorrow_are_kept() -> None:
    block = {"type": "compaction", "content": "a"}
    delta = {"type": "compaction_delta", "content": "b", "extra": 1}
    stream = REPLIES.stream({RESTORE})
    feed(stream, START + event("content_block_start", index=0, content_block=block))
    feed(stream, event("content_block_delta", index=0, delta=delta))
    assert sent_back(stream.reply().message) == [{"type": "compaction", "content": "ab", "extra": 1}]


KINDS = ["message_start", "content_block_start", "content_block_delta", "message_delta", "error", RESTORE]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["", "a", "tool_use", "text", *KINDS]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["type", "name", "input", "text", "partial_json", "citation", "citations", "usage", "id"]
            ),
            inner,
        )
    ),
    max_leaves=8,
)
FIELDS = st.sampled_from(["index", "message", "content_block", "delta", "usage"])


@given(
    st.lists(st.tuples(st.sampled_from(KINDS), st.dictionaries(FIELDS, ANYTHING, max_size=2)), max_size=5),
    st.booleans(),
)
def test_nonsense_passes_by(events: list[tuple[str, Body]], again: bool) -> None:
    stream = REPLIES.stream({RESTORE})
    stream = stream.continue_answer() if again else stream
    for kind, fields in events:
        feed(stream, event(kind, **fields))
    released(stream)
    with suppress(WireError):
        stream.reply()
    with suppress(WireError):
        stream.shown_message()
