"""Answers that are passed in twice, and servers that name all their answers alike."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import Session, Tool, tool_result
from lading.errors import InputError
from lading.wire import WIRES
from tests.replies import chat_reply, messages_reply

TOOLS = [Tool("read", "Read.", {"type": "object", "properties": {}})]
ANSWERS: dict[str, dict[str, Any]] = {
    "anthropic": messages_reply({"type": "tool_use", "id": "toolu_1", "name": "read", "input": "INPUT"}),
    "gemini": {
        "candidates": [
            {"content": {"role": "model", "parts": [{"functionCall": {"name": "read", "args": "INPUT"}}]}}
        ]
    },
    "openai_chat": {
        "id": "r1",
        "choices": [
            {
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "TEXT"}}
                    ],
                },
            }
        ],
    },
    "openai_responses": {
        "id": "r1",
        "object": "response",
        "status": "completed",
        "output": [{"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "read", "arguments": "TEXT"}],
    },
}
MODELS = ("gpt-4o", "claude-sonnet-4-5")


def reply(model: str, text: str, *, name: str) -> dict[str, Any]:
    """An answer with this text and id, in the format of the model's provider."""
    answer = messages_reply({"type": "text", "text": text}) if model.startswith("claude") else chat_reply(text)
    return {**answer, "id": name}


@pytest.mark.parametrize("model", MODELS)
@given(
    answers=st.lists(
        st.tuples(st.sampled_from(["OK", "Done."]), st.sampled_from(["1", "2"]), st.integers(1, 3)), max_size=8
    )
)
def test_each_request_gets_its_answer_whatever_the_id_and_however_often_it_is_given(
    model: str, answers: list[tuple[str, str, int]]
) -> None:
    with Session(model) as line:
        for number, (text, name, times) in enumerate(answers):
            line.add(f"Do step {number}.")
            line.pack()
            for _ in range(times):
                assert line.reply(reply(model, text, name=name)).complete
        roles = [entry.message.role for entry in line.entries]
        said = [entry.message.text for entry in line.entries if entry.message.role == "assistant"]
        assert roles == ["user", "assistant"] * len(answers)
        assert said == [text for text, _, _ in answers]


class Locked(dict[str, Any]):
    """A dict that cannot be copied."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self.lock = threading.Lock()


@pytest.mark.parametrize("before", [0, 2])
def test_of_messages_that_cannot_be_copied_none_is_stored(before: int) -> None:
    history: list[dict[str, Any]] = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Yes?"}]
    with Session("gpt-4o") as line:
        line.add(history[:before])
        with pytest.raises(InputError, match="cannot be copied"):
            line.add([*history[:before], Locked(role="user", content="Go."), *history[before:]])
        assert len(line.entries) == before
        line.add([*history, {"role": "user", "content": "Go."}])
        assert len(line.entries) == 3


INPUTS = ('{"a": 1e400}', '{"a": [{"b": -1e999}]}', '{"a": NaN}', '{"Infinity": Infinity}')


@pytest.mark.parametrize("written", INPUTS)
@pytest.mark.parametrize("wire", sorted(WIRES))
@pytest.mark.parametrize("form", ["bytes", "dict"])
def test_a_number_that_no_request_can_carry_is_null_in_the_answer(wire: str, written: str, form: str) -> None:
    given = json.dumps(ANSWERS[wire]).replace('"INPUT"', written).replace("TEXT", written.replace('"', r"\""))
    with Session("a-model", wire=wire, window=32_000, output_reserve=1_000) as line:
        line.add("Read it.").pack(TOOLS)
        answered = line.reply(given.encode() if form == "bytes" else json.loads(given))
        (call,) = answered.message.calls
        line.add(tool_result(call.id, "done"))
        pack = line.pack(TOOLS)
    assert pack.violations == ()
    # Arguments that are a text in this format are sent as the model wrote them.
    shown = json.loads(call.arguments)
    assert (call.arguments == written) or json.dumps(shown, allow_nan=False)


@pytest.mark.parametrize("written", INPUTS)
def test_such_a_number_in_a_stream_is_null_too(written: str) -> None:
    delta = {"type": "input_json_delta", "partial_json": written}
    block = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
    start = messages_reply(input_tokens=9)
    events = [
        {"type": "message_start", "message": {**start, "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    with Session("claude-sonnet-4-5") as line:
        line.add("Read it.").pack(TOOLS)
        answered = line.reply(iter(events))
        (call,) = answered.message.calls
        assert answered.complete
        assert json.dumps(json.loads(call.arguments), allow_nan=False)
        line.add(tool_result(call.id, "done"))
        assert line.pack(TOOLS).violations == ()
