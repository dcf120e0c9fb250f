"""Replies of the Responses API: whole, and as events that are edited on their way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import OpenAI

from lading.errors import WireError
from lading.history.log import Reported
from lading.messages import Opaque, Reasoning, Text, ToolCall
from lading.wire import find_wire
from lading.wire.openai_responses.replies import read, stream, without
from lading.wire.replies import ReplyStream, make_event
from tests.replies import released
from tests.wire.made_replies import COIN, NAMES, WORDS, Body, Tape, events_of, feed, pieces

USAGE: dict[str, Any] = {
    "input_tokens": 50,
    "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 5},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 57,
}


def response(*output: Body, number: int = 1, **fields: Any) -> Body:
    head = {"id": f"resp_{number}", "object": "response", "created_at": number, "model": "gpt-x", "error": None}
    settings = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "instructions": None}
    return {**head, **settings, "status": "completed", "output": list(output), "usage": USAGE, **fields}


def text(words: str, number: int = 0) -> Body:
    block = {"type": "output_text", "text": words, "annotations": [], "logprobs": []}
    return {
        "id": f"msg_{number}",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [block],
    }


def call(name: str, arguments: str = "{}", number: int = 0) -> Body:
    fields = {"id": f"fc_{number}", "type": "function_call", "status": "completed"}
    return fields | {"arguments": arguments, "call_id": f"call_{number}", "name": name}


def reasoning(words: str = "", number: int = 0) -> Body:
    summary = [{"type": "summary_text", "text": words}] if words else []
    return {"id": f"rs_{number}", "type": "reasoning", "summary": summary, "encrypted_content": f"gAAA{number}"}


def events(body: Body, draw: st.DrawFn | None = None) -> bytes:
    """The response as a stream, with pings and events that nobody knows."""
    numbers, found = count(), list[Body]()
    start = body | {"status": "in_progress", "output": [], "usage": None}
    found += [{"type": "response.created", "response": start}, {"type": "response.in_progress", "response": start}]
    for index, item in enumerate(body["output"]):
        where = {"output_index": index}
        begun = item | {"message": {"content": []}, "function_call": {"arguments": ""}}.get(item["type"], {})
        found.append({"type": "response.output_item.added", **where, "item": begun})
        found += [event | where | {"item_id": item.get("id")} for event in _growth(item, draw)]
        found.append({"type": "response.output_item.done", **where, "item": item})
        if draw and draw(COIN):
            found.append(draw(st.sampled_from([{"type": "keepalive"}, {"type": "response.new.thing", **where}])))
    found.append({"type": f"response.{body['status']}", "response": body})
    return b"".join(
        make_event(event | {"sequence_number": next(numbers)}, name=event["type"]).raw for event in found
    )


def _growth(item: Body, draw: st.DrawFn | None) -> list[Body]:
    def split(words: str) -> list[str]:
        return draw(pieces(words)) if draw else [words]

    if item["type"] == "function_call":
        return [
            {"type": "response.function_call_arguments.delta", "delta": one} for one in split(item["arguments"])
        ]
    if item["type"] != "message":
        return []
    (block,), at = item["content"], {"content_index": 0}
    deltas = [{"type": "response.output_text.delta", "delta": one, "logprobs": []} for one in split(block["text"])]
    return [{"type": "response.content_part.added", "part": block | {"text": ""}, **at}] + [
        delta | at for delta in deltas
    ]


OTHERS = st.one_of(
    WORDS.map(text),
    WORDS.map(reasoning),
    st.builds(lambda: {"id": "ws_0", "type": "web_search_call", "status": "completed"}),
    st.builds(lambda: {"id": "cmp_0", "type": "compaction", "encrypted_content": "gAAA"}),
)


@st.composite
def bodies(draw: st.DrawFn, *, number: int = 1) -> Body:
    items = draw(
        st.permutations([*draw(st.lists(NAMES.map(call), max_size=3)), *draw(st.lists(OTHERS, max_size=3))])
    )
    output = [
        item | {key: f"{item[key]}{at}" for key in ("id", "call_id") if key in item}
        for at, item in enumerate(items)
    ]
    return response(*output, number=number)


def whole(body: Body, names: frozenset[str] = frozenset()) -> tuple[ReplyStream, bytes]:
    one = stream(names)
    return one, feed(one, events(body))


@given(data=st.data(), body=bodies())
def test_a_stream_says_what_the_whole_response_says_and_is_passed_on_as_it_came(
    data: st.DataObject, body: Body
) -> None:
    raw, one = data.draw(st.composite(lambda draw: events(body, draw))()), stream(frozenset())
    assert feed(one, raw) == raw
    assert one.reply() == read(body)


@given(body=bodies(), end=st.integers(1, 4))
def test_a_stream_that_breaks_is_not_complete(body: Body, end: int) -> None:
    one = stream(frozenset())
    for event in events_of(events(body))[:-end]:
        one.feed(event)
    assert not one.reply().complete


def test_what_came_before_a_break_is_read() -> None:
    one = stream(frozenset())
    raw = [
        event
        for event in events_of(events(response(text("hello"), call("ls", '{"a": 1}'))))
        if b"done" not in event.raw
    ]
    for event in raw[:-1]:
        one.feed(event)
    said, asked = one.reply().message.parts
    assert isinstance(said, Text)
    assert isinstance(asked, ToolCall)
    assert (said.text, asked.arguments) == ("hello", '{"a": 1}')


def test_each_item_is_a_part() -> None:
    searched = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": None}
    reply = read(response(reasoning("Hm."), searched, text("I look."), call("ls", '{"a": 1}')))
    thought, hosted, said, asked = reply.message.parts
    assert isinstance(thought, Reasoning)
    assert (thought.text, thought.data) == ("Hm.", "gAAA0")
    assert isinstance(hosted, Opaque)
    assert hosted.value == {"id": "ws_1", "type": "web_search_call", "status": "completed"}
    assert isinstance(said, Text)
    assert isinstance(asked, ToolCall)
    assert (said.text, asked.id, asked.name) == ("I look.", "call_0", "ls")
    assert reply.usage == Reported(50, 7, read_tokens=20, written_tokens=5)
    assert (reply.id, reply.model) == ("resp_1", "gpt-x")


def test_a_reply_goes_back_as_it_came() -> None:
    wire, output = find_wire("openai_responses"), [reasoning("Hm."), text("I look."), call("ls")]
    assert wire.encode_group([read(response(*output)).message], None) == output  # type: ignore[arg-type]


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_response_that_failed_is_no_reply(status: str) -> None:
    error = {"code": "server_error", "message": "It broke."}
    with pytest.raises(WireError, match="It broke"):
        read(response(status=status, error=error))
    one = stream(frozenset())
    feed(one, make_event({"type": "response.failed", "response": response(status=status)}).raw)
    with pytest.raises(WireError):
        one.reply()


def test_an_answer_that_was_cut_short_is_one() -> None:
    one, _ = whole(response(text("hel"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}))
    assert one.reply().complete
    assert one.reply().message.text == "hel"


def test_an_error_in_a_stream_ends_it() -> None:
    one = stream(frozenset())
    feed(one, events(response(text("hello")))[:-400])
    feed(one, make_event({"type": "error", "code": "server_error", "message": "no"}, name="error").raw)
    assert not one.reply().complete


@given(body=bodies())
def test_calls_of_the_held_tool_are_held_and_not_shown(body: Body) -> None:
    one, passed = whole(body, frozenset({"restore"}))
    held = [at for at, item in enumerate(body["output"]) if item.get("name") == "restore"]
    passed += b"".join(released(one))
    shown = stream(frozenset())
    feed(shown, passed)
    assert one.reply() == read(body)
    assert shown.reply().message == read(without(body, {"restore"})).message == one.shown_message()
    values = [json.loads(event.data) for event in events_of(passed)]
    numbers = [value["sequence_number"] for value in values]
    assert numbers == list(range(len(numbers)))
    places = [value["output_index"] for value in values if value["type"] == "response.output_item.added"]
    assert places == list(range(len(body["output"]) - len(held)))


def test_an_answer_of_two_streams_is_one_to_the_sdk() -> None:
    first, second = stream({"restore"}), None
    begun = feed(first, events(response(reasoning(), call("restore", number=1))))
    first.held.clear()
    second = first.continue_answer()
    rest = feed(second, events(response(reasoning(number=2), text("Done.", 3), number=2)))
    tape = Tape()
    tape.data = begun + rest
    client = OpenAI(base_url="http://here", api_key="test", http_client=tape.client)
    with client.responses.stream(model="gpt-x", input="hi") as shown:
        final: Any = shown.get_final_response()
    assert [item.id for item in final.output] == ["rs_0", "rs_2", "msg_3"]
    assert final.id == "resp_1"
    assert final.output_text == "Done."
    assert final.usage.input_tokens == 2 * USAGE["input_tokens"]
    assert [type(part) for part in second.shown_message().parts] == [Reasoning, Reasoning, Text]
    assert [type(part) for part in second.reply().message.parts] == [Reasoning, Text]


@pytest.mark.parametrize(
    "usage",
    [None, {}, {"input_tokens": 0, "output_tokens": 1}, {"input_tokens": -1}, {"input_tokens": "x"},
     {"input_tokens": 5, "input_tokens_details": {"cached_tokens": 9}}],
)  # fmt: skip
def test_usage_that_is_none_is_not_read(usage: Any) -> None:
    assert read(response(text("a"), usage=usage)).usage is None


@pytest.mark.parametrize("body", [None, [], {}, {"output": None}, {"output": [{"role": "user", "content": "x"}]}])
def test_what_is_no_response_is_refused(body: Any) -> None:
    with pytest.raises(WireError):
        read(body)


HOSTILE: Sequence[Any] = [
    {"type": "response.completed", "response": 5},
    {"type": "response.output_item.added", "output_index": "x", "item": None},
    {"type": "response.output_text.delta", "output_index": 0, "delta": 5},
    {"type": ["x"]},
    {"type": "response.content_part.added", "output_index": 0, "part": []},
]


@given(st.lists(st.sampled_from(HOSTILE), max_size=4), bodies())
def test_events_of_another_shape_are_passed_on(odd: list[Any], body: Body) -> None:
    one = stream({"restore"})
    for event in [*events_of(events(body))[:2], *map(make_event, odd)]:
        assert one.feed(event) == [event.raw]
    with suppress(WireError):
        one.reply()
