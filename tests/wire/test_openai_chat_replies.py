"""What Chat Completions answers, held against the values of OpenAI's own client."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from openai.types.chat import ChatCompletion

from lading.addresses import RESTORE
from lading.errors import WireError
from lading.history.log import Reported
from lading.messages import Conversation, Message, Reasoning, Text
from lading.wire import check, encode
from lading.wire.openai_chat import WIRE
from tests.wire.codec_cards import PLAIN
from tests.wire.made_replies import (
    Body,
    chat_bodies,
    chat_body,
    feed,
    streamed,
)

REPLIES = WIRE.replies


def sent_back(message: Message) -> Body:
    """The message as the next request has it."""
    (found,) = encode(Conversation((message,)), WIRE, card=PLAIN)["messages"]
    assert isinstance(found, dict)
    return found


def test_what_only_answers_have_is_not_sent_back() -> None:
    body = chat_body("", None, calls=[("ls", "{}")])
    body["choices"][0]["message"] |= {"audio": None, "function_call": None}
    body["choices"][0]["message"]["tool_calls"][0]["index"] = 0
    reply = REPLIES.read(body)
    assert sent_back(reply.message) == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_0", "type": "function", "function": {"name": "ls", "arguments": "{}"}}],
    }
    assert (reply.id, reply.model, reply.choices, reply.complete) == ("chatcmpl-1", "gpt-x", 1, True)
    assert reply.usage == Reported(50, 7, read_tokens=20)


@given(chat_bodies())
def test_a_dump_of_the_sdk_reads_as_the_body_does(body: Body) -> None:
    reply = REPLIES.read(body)
    parsed = ChatCompletion.model_validate(body)
    assert REPLIES.read(parsed.model_dump()) == REPLIES.read(parsed.to_dict()) == reply
    legal = {"model": "m", "messages": [{"role": "user", "content": "u"}, sent_back(reply.message)]}
    assert {violation.rule for violation in check(legal, WIRE, card=PLAIN)} <= {"C1"}


def test_reasoning_goes_back_to_the_server_that_sent_it() -> None:
    body = chat_body("why", "so", calls=[])
    assert REPLIES.read(body).message.parts == (Reasoning("why", provenance="openai"), Text("so"))
    assert sent_back(REPLIES.read(body).message)["reasoning_content"] == "why"
    body["choices"][0]["message"] |= {"reasoning": "why", "reasoning_details": [{"type": "reasoning.text"}]}
    back = sent_back(REPLIES.read(body).message)
    assert "reasoning" not in back
    assert back["reasoning_details"] == [{"type": "reasoning.text"}]


def test_reasoning_beside_reasoning_content_is_known_and_waits_for_an_echo() -> None:
    body = chat_body("", "so", calls=[])
    body["choices"][0]["message"] |= {"reasoning": "why"}
    reply = REPLIES.read(body)
    assert reply.message.parts[0] == Reasoning("why", template={"reasoning": "str"}, provenance="openai")
    assert sent_back(reply.message) == {"role": "assistant", "content": "so"}
    stream = REPLIES.stream({RESTORE})
    pieces = [{"role": "assistant"}, {"reasoning": "wh"}, {"reasoning": "y"}, {"content": "so"}]
    feed(stream, streamed(*pieces))
    assert stream.reply().message == reply.message


def test_a_refusal_keeps_its_words() -> None:
    body = chat_body("", None, calls=[])
    body["choices"][0]["message"]["refusal"] = "No."
    reply = REPLIES.read(body)
    assert sent_back(reply.message) == {"role": "assistant", "content": None, "refusal": "No."}
    stream = REPLIES.stream({RESTORE})
    feed(stream, streamed({"role": "assistant", "refusal": "N"}, {"refusal": "o."}))
    assert stream.reply().message == reply.message


def test_a_spoken_answer_goes_back_by_its_id() -> None:
    body = chat_body("", None, calls=[])
    body["choices"][0]["message"]["audio"] = {"id": "audio_1", "data": "AAAA", "expires_at": 1, "transcript": "hi"}
    assert sent_back(REPLIES.read(body).message) == {
        "role": "assistant",
        "content": None,
        "audio": {"id": "audio_1"},
    }


def test_calls_keep_what_a_server_needs_back_and_get_what_it_left_out() -> None:
    body = chat_body("", "", calls=[("f", "{}"), ("g", "{}")])
    first, second = body["choices"][0]["message"]["tool_calls"]
    first["extra_content"] = {"google": {"thought_signature": "s"}}
    second["function"]["arguments"] = {"a": 1}
    second["id"] = None
    del second["type"]
    back = sent_back(REPLIES.read(body).message)["tool_calls"]
    assert back[0]["extra_content"] == {"google": {"thought_signature": "s"}}
    assert back[1] == {"id": "", "type": "function", "function": {"name": "g", "arguments": '{"a":1}'}}


def test_old_style_and_custom_calls_are_calls() -> None:
    body = chat_body("", None, calls=[])
    body["choices"][0]["message"]["function_call"] = {"name": "f", "arguments": "{}"}
    assert [call.name for call in REPLIES.read(body).message.calls] == ["f"]
    custom = {"id": "c", "type": "custom", "custom": {"name": "sh", "input": "ls"}}
    body["choices"][0]["message"] |= {"function_call": None, "tool_calls": [custom]}
    assert sent_back(REPLIES.read(body).message)["tool_calls"] == [custom]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ("many", None),
        ({}, None),
        ({"prompt_tokens": 0, "completion_tokens": 3}, None),
        ({"prompt_tokens": -5}, None),
        ({"prompt_tokens": 5.5}, None),
        ({"prompt_tokens": True}, None),
        ({"prompt_tokens": 10**30}, None),
        ({"prompt_tokens": 5, "completion_tokens": -1}, None),
        ({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9}}, None),
        ({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": "2"}}, None),
        ({"prompt_tokens": 5, "prompt_tokens_details": None}, Reported(5)),
        (
            {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 3}},
            Reported(9, read_tokens=2, written_tokens=3),
        ),
        ({"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 4}, Reported(9, 1, read_tokens=4)),
    ],
)
def test_usage_is_believed_when_it_can_be(usage: Any, expected: Reported | None) -> None:
    assert REPLIES.read(chat_body("", "a", calls=[]) | {"usage": usage}).usage == expected


@pytest.mark.parametrize(
    "body",
    [{}, {"choices": []}, {"choices": [None]}, {"choices": [{}]}, {"error": {"message": "no"}}, [], None],
)
def test_what_is_no_reply_is_an_error(body: Any) -> None:
    with pytest.raises(WireError):
        REPLIES.read(body)


def test_the_first_of_several_choices_is_read() -> None:
    body = chat_body("", "one", calls=[])
    body["choices"].append({"index": 1, "message": {"role": "assistant", "content": "two"}})
    reply = REPLIES.read(body)
    assert (reply.message.text, reply.choices) == ("one", 2)


@given(chat_bodies())
def test_without_leaves_all_but_the_calls_of_that_name(body: Body) -> None:
    before = json.dumps(body)
    left = REPLIES.without(body, {RESTORE})
    assert json.dumps(body) == before
    calls, kept = (REPLIES.read(item).message.calls for item in (body, left))
    assert kept == tuple(call for call in calls if call.name != RESTORE)
    message = left["choices"][0]["message"]
    if len(kept) == len(calls):
        assert left == body
    elif not kept:
        assert "tool_calls" not in message
        assert isinstance(message["content"], str)
        assert left["choices"][0]["finish_reason"] == "stop"
    ChatCompletion.model_validate(left)
