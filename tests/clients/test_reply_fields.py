"""What a caller echoes of a reply of Chat Completions goes out as its own client would send it, field by field."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any, TypeAlias

import httpx2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import lading
from lading.history.repair import EMPTY
from lading.stores.memory import MemoryStore
from tests.clients.mocks import Answering, over

Value: TypeAlias = dict[str, Any]

CITED = [{"type": "url_citation", "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 2}}]
CALL = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
words = st.sampled_from(["why", " so\n", "str", "null", "empty"])
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "refusal": st.none() | words,
    "annotations": st.sampled_from([None, [], CITED]),
    "audio": st.none(),
    "function_call": st.none(),
    "tool_calls": st.sampled_from([None, [CALL]]),
    "reasoning": st.sampled_from([None, "", {"text": "why"}]) | words,
    "reasoning_content": st.sampled_from([None, ""]) | words,
    "reasoning_details": st.sampled_from([None, [], [{"type": "reasoning.encrypted", "data": "gAAA"}]]),
    "extra_content": st.sampled_from([None, {"google": {"thought_signature": "S"}}]),
    "vendor": st.sampled_from([None, "", [], {}, 0, False, 7, "x", ["y"], {"a": {"b": None}}, {"a": [1, "z"]}]),
}
replies = st.fixed_dictionaries({"content": st.none() | words}, optional=FIELDS).map(
    lambda said: said | {"role": "assistant"}
)
ECHOES: dict[str, Callable[[Any], Any]] = {
    "object": lambda said: said,
    "to_dict": lambda said: said.to_dict(),
    "model_dump": lambda said: said.model_dump(),
    "without nulls": lambda said: said.model_dump(exclude_none=True),
    "as it came": lambda said: said.model_dump(exclude_unset=True),
    "without reasoning": lambda said: {
        key: value for key, value in said.model_dump().items() if "reasoning" not in key
    },
    "content and calls": lambda said: {
        key: value for key, value in said.model_dump().items() if key in ("role", "content", "tool_calls")
    },
}

EXCEPTIONS: dict[str, Callable[[Value, Value], Value]] = {
    "empty fields": lambda sent, _: drop_empty(sent),
    "annotations are no input": lambda sent, _: {key: sent[key] for key in sent if key != "annotations"},
    "what the SDK adds": lambda sent, _: drop_added(sent),
    "an answer of nothing says so": lambda sent, _: {
        key: sent[key] for key in sent if (key, sent[key]) != ("content", EMPTY)
    },
    "reasoning that a model demands back": lambda sent, bare: {
        key: sent[key] for key in sent if key in bare or key != "reasoning_content"
    },
}
"""What may differ from the request of a client that is not wrapped: functions of an assistant message as it was
sent, and as the bare client sends it."""


def drop_empty(value: Any) -> Any:
    if isinstance(value, list):
        return [drop_empty(item) for item in value]
    if not isinstance(value, dict):
        return value
    left = {key: drop_empty(inner) for key, inner in value.items()}
    return {key: inner for key, inner in left.items() if inner not in (None, "", [], {}) or inner is False}


def drop_added(message: Value) -> Value:
    """The message without what the SDK's helpers add to it and to its calls."""
    left = {key: inner for key, inner in message.items() if key != "parsed"}
    if left.get("tool_calls"):
        own = CALL.keys()
        left["tool_calls"] = [{key: call[key] for key in call if key in own} for call in left["tool_calls"]]
        for call in left["tool_calls"]:
            call["function"] = {key: call["function"][key] for key in ("name", "arguments")}
    return left


def without_exceptions(sent: Value, bare: Value) -> Value:
    for leave_out in EXCEPTIONS.values():
        sent = leave_out(sent, bare)
    return sent


def events_of(message: Value) -> bytes:
    """The message as a stream, with each text in two pieces."""
    pieces: list[Value] = [{"role": "assistant"}]
    for key, value in message.items():
        if key == "tool_calls" and value:
            pieces.append({key: [call | {"index": at} for at, call in enumerate(value)]})
        elif key != "role" and isinstance(value, str):
            pieces += [{key: value[:1]}, {key: value[1:]}]
        elif key != "role":
            pieces.append({key: value})
    ends: list[Value] = [{"delta": {}, "finish_reason": "tool_calls" if message.get("tool_calls") else "stop"}]
    choices = [{"delta": piece, "finish_reason": None} for piece in pieces] + ends
    head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [head | {"choices": [{"index": 0, **choice}]} for choice in choices]
    return b"".join(b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in chunks) + b"data: [DONE]\n\n"


def answering(message: Value, bodies: list[Value]) -> Answering:
    def answer(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(request.read()))
        said = message | {
            "tool_calls": [
                call | {"id": f"c{len(bodies[-1]['messages'])}"} for call in message.get("tool_calls") or ()
            ]
        }
        if bodies[-1].get("stream"):
            return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=events_of(said))
        choice = {"index": 0, "finish_reason": "stop", "message": said}
        body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        return httpx2.Response(200, json=body)

    return answer


def talk(client: Any, model: str, echo: Callable[[Any], Any], history: list[Any], *, stream: bool) -> None:
    """Three calls, each with the whole history."""
    for _ in range(3):
        if stream:
            with client.chat.completions.stream(model=model, messages=history) as events:
                said = events.get_final_completion().choices[0].message
        else:
            said = client.chat.completions.create(model=model, messages=history).choices[0].message
        history.append(echo(said))
        history += [{"role": "tool", "tool_call_id": call.id, "content": "found"} for call in said.tool_calls or []]
        history.append({"role": "user", "content": "Go on."})


@pytest.mark.fuzz
@given(
    message=replies,
    echo=st.sampled_from(sorted(ECHOES)),
    model=st.sampled_from(["gpt-5", "x/unknown", "deepseek-v4-pro", "ollama/gpt-oss:20b"]),
    stream=st.booleans(),
)
@example(
    message={"role": "assistant", "content": "a", "reasoning": "why"}, echo="object", model="gpt-5", stream=True
)
def test_an_echo_is_sent_as_the_bare_client_sends_it(message: Value, echo: str, model: str, stream: bool) -> None:
    if stream and any(isinstance(value, bool | int) for value in message.values()):
        stream = False  # The SDK adds such pieces up.
    bare: list[Value] = []
    sent: list[Value] = []
    store = MemoryStore()
    history: list[Any] = [{"role": "user", "content": "hi"}]
    talk(over(answering(message, bare)), model, ECHOES[echo], [*history], stream=stream)
    wrapped = lading.wrap(over(answering(message, sent)), store=store, fail_open=False)
    talk(wrapped, model, ECHOES[echo], history, stream=stream)
    again = lading.wrap(over(answering(message, sent)), store=store, fail_open=False)
    again.chat.completions.create(model=model, messages=history)
    over(answering(message, bare)).chat.completions.create(model=model, messages=history)
    for body, expected in zip(sent, bare, strict=True):
        assert len(body["messages"]) == len(expected["messages"])
        for one, other in zip(body["messages"], expected["messages"], strict=True):
            assert without_exceptions(one, other) == without_exceptions(other, other)
    for body, later in itertools.pairwise(sent):
        assert later["messages"][: len(body["messages"])] == body["messages"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "message", [{"annotations": CITED}, {"refusal": None, "function_call": None, "audio": None}]
)
def test_what_only_answers_have_is_no_other_form(message: Value, stream: bool) -> None:
    bodies: list[Value] = []
    said = {"role": "assistant", "content": "a"}
    client = lading.wrap(over(answering(said | message, bodies)))
    talk(client, "gpt-5", ECHOES["to_dict"], [{"role": "user", "content": "hi"}], stream=stream)
    assert [one for one in bodies[-1]["messages"] if one["role"] == "assistant"] == [said] * 2
