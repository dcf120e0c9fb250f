"""Replies of generateContent: whole, and streamed in pieces of any size."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.errors import WireError
from lading.history.log import Reported
from lading.session.matching import fingerprint
from lading.wire import find_wire
from lading.wire.given_replies import reply_from
from lading.wire.replies import SseReader
from tests.wire.gemini_cases import call, content, text
from tests.wire.made_replies import cut

WIRE = find_wire("gemini")
REPLIES = WIRE.replies
USAGE = {
    "promptTokenCount": 100,
    "cachedContentTokenCount": 60,
    "candidatesTokenCount": 7,
    "thoughtsTokenCount": 3,
    "toolUsePromptTokenCount": 5,
}
RESTORE = call("restore", signature="cw==")


def response(*parts: Any, stop: str = "STOP", **more: Any) -> dict[str, Any]:
    candidate = {"content": content("model", *parts)} | ({"finishReason": stop} if stop else {})
    return {"candidates": [candidate], "responseId": "r", "modelVersion": "gemini-3-pro", **more}


def chunks(*found: dict[str, Any]) -> bytes:
    return "".join(f"data: {json.dumps(one)}\r\n\r\n" for one in found).encode()


def passed(stream: Any, data: bytes, places: Sequence[int] = ()) -> bytes:
    """What a stream passes on of these bytes, in pieces."""
    reader, out = SseReader(), b""
    for piece in cut(data, places):
        out += b"".join(made for event in reader.feed(piece) for made in stream.feed(event))
    return out + b"".join(made for event in reader.end() for made in stream.feed(event))


def values(data: bytes) -> list[Any]:
    return [json.loads(event.data) for event in SseReader().feed(data)]


def test_a_reply_is_read_with_its_usage() -> None:
    reply = REPLIES.read(response(text("Yes."), call(id="c"), usageMetadata=USAGE))
    assert reply.usage == Reported(105, 10, read_tokens=60)
    assert (reply.id, reply.model, reply.message.text) == ("r", "gemini-3-pro", "Yes.")
    assert [one.id for one in reply.message.calls] == ["c"]


@pytest.mark.parametrize(
    "usage",
    [
        {},
        None,
        {"promptTokenCount": 0},
        {"promptTokenCount": "9"},
        {"promptTokenCount": 1, "cachedContentTokenCount": 2},
    ],
)
def test_usage_that_is_none_is_none(usage: Any) -> None:
    assert REPLIES.read(response(text(), usageMetadata=usage)).usage is None


def test_an_object_of_the_sdk_is_read_in_its_own_spelling() -> None:
    said = {"role": "model", "parts": [{"text": "Yes.", "thought": None}, {"function_call": {"name": "look"}}]}
    made = {"candidates": [{"content": said}], "response_id": "r", "usage_metadata": {"prompt_token_count": 9}}
    reply = reply_from(made, wire=WIRE)
    assert (reply.id, reply.message.text, reply.message.calls[0].name) == ("r", "Yes.", "look")
    assert reply.usage == Reported(9, 0)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"candidates": []},
        {"promptFeedback": {"safetyRatings": []}},
        {"promptFeedback": {"blockReason": "SAFETY"}, "candidates": 1},
        {"candidates": [{}]},
        {"candidates": [{"finishReason": "SAFETY", "content": 1}]},
        {"candidates": [1]},
        [],
    ],
)
def test_no_answer_is_an_error(wrong: Any) -> None:
    with pytest.raises(WireError):
        REPLIES.read(wrong)


NO_TEXT = (
    {"promptFeedback": {"blockReason": "SAFETY"}},
    {"promptFeedback": {"blockReason": "OTHER"}, "candidates": []},
    {"promptFeedback": {"blockReason": "OTHER"}, "candidates": None},
    {"candidates": [{"finishReason": "SAFETY"}]},
    {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "content": None, "index": 0}]},
)


@pytest.mark.parametrize("found", NO_TEXT)
def test_a_refusal_is_a_whole_answer_without_text(found: dict[str, Any]) -> None:
    body = found | {"responseId": "r", "usageMetadata": {"promptTokenCount": 100, "totalTokenCount": 100}}
    stream = REPLIES.stream({"restore"})
    assert passed(stream, chunks(body)) == chunks(body)
    for reply in (REPLIES.read(body), stream.reply()):
        assert reply.complete
        assert (reply.message.role, reply.message.parts, reply.choices) == ("assistant", (), 1)
        assert (reply.usage, reply.id) == (Reported(100, 0), "r")
    assert stream.shown_message().parts == ()


def test_a_refusal_is_read_as_the_sdk_has_it() -> None:
    blocked = {"prompt_feedback": {"block_reason": "SAFETY"}, "usage_metadata": {"prompt_token_count": 9}}
    assert reply_from(blocked, wire=WIRE).usage == Reported(9, 0)
    stopped = {"candidates": [{"finish_reason": "SAFETY", "content": None}]}
    assert reply_from(stopped, wire=WIRE).message.parts == ()


def test_a_call_of_restore_is_taken_out_of_a_reply() -> None:
    kept = REPLIES.without(response(text("Look."), RESTORE, call("ls")), {"restore"})
    assert kept == response(text("Look."), call("ls"))
    assert REPLIES.without(response(text()), {"restore"}) == response(text())
    for odd in ({}, {"candidates": 1}, {"candidates": [1, {}]}):
        assert REPLIES.without(odd, {"restore"}) == odd


WORDS = st.text(max_size=9)
STREAMS = st.lists(
    st.builds(text, WORDS) | st.just(call("ls", id="c")) | st.just(text("hm", thought=True)), max_size=5
)


@given(STREAMS, st.lists(st.integers(0, 5_000), max_size=6))
def test_a_stream_without_restore_is_passed_on_byte_for_byte(parts: list[Any], places: list[int]) -> None:
    found = [response(part, stop="", unknown=[1]) for part in parts]
    data = chunks(*found, response(text(""), usageMetadata=USAGE, other=None))
    stream = REPLIES.stream({"restore"})
    assert passed(stream, data, places) == data
    reply = stream.reply()
    whole = REPLIES.read(response(*parts, text("")))
    assert reply.complete
    assert reply.usage == Reported(105, 10, read_tokens=60)
    assert fingerprint(reply.message) == fingerprint(whole.message)
    assert stream.shown_message() == reply.message


def test_a_cut_stream_is_not_complete() -> None:
    stream = REPLIES.stream({"restore"})
    data = chunks(response(text("Ye"), stop=""), response(text("s.")))
    assert passed(stream, data[:-40]) == data[:-40]
    assert not stream.reply().complete
    failing = REPLIES.stream(frozenset())
    passed(failing, chunks(response(text("Ye")), {"error": {"code": 503, "status": "UNAVAILABLE"}}))
    assert not failing.reply().complete


def test_a_call_of_restore_is_held_back_and_the_answer_continues() -> None:
    stream = REPLIES.stream({"restore"})
    first = response(text("Look."), RESTORE, call("ls"), stop="")
    shown = values(passed(stream, chunks(first, response(text(""), usageMetadata=USAGE))))
    assert shown == [response(text("Look."), stop="")]
    assert [one.name for one in stream.reply().message.calls] == ["restore", "ls"]
    rest = values(b"".join(piece for held in stream.held for piece in stream.release(held)))
    assert rest == [response(call("ls"), stop=""), response(text(""), usageMetadata=USAGE)]
    again = stream.continue_answer()
    more = values(passed(again, chunks(response(text("Done."), usageMetadata=USAGE, responseId="other"))))
    assert more[0]["responseId"] == "r"
    assert more[0]["usageMetadata"]["promptTokenCount"] == 200


def test_an_error_is_reported_within_a_stream_as_the_api_does() -> None:
    error = {"error": {"code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED"}}
    assert values(REPLIES.error_event(json.dumps(error).encode())) == [error]
    (made,) = values(REPLIES.error_event(b"<html>"))
    assert made["error"] == {"code": 500, "message": "<html>", "status": "INTERNAL"}
