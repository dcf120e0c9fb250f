"""Calls that the session answered itself beside the caller's, in the forms in which callers give the reply back."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from lading import jsonbytes
from lading.addresses import RESTORE
from lading.compaction import DEFAULT
from lading.events import Event, Forked, PackingFailed, RuleBroken
from lading.exchange.call import begin
from lading.exchange.conversations import Conversations
from lading.exchange.wrapping import WrapOptions
from lading.session.options import SessionOptions
from lading.stores.memory import MemoryStore
from lading.wire import find_wire
from tests.exchange.told import Told, path_of, request_body, write

USER = [Told("user", "Go.")]


class Caller:
    """A caller of one format."""

    def __init__(self, wire: str) -> None:
        self.wire, self.events = wire, list[Event]()
        self.store = MemoryStore()
        self.reopen()

    def reopen(self) -> None:
        """Go on in another process."""
        wrapping = WrapOptions(200_000, DEFAULT, None, SessionOptions(), fail_open=False)
        self.conversations = Conversations(self.store, wrapping, clock=lambda: 0.0, on_event=self.events.append)

    def ask(self, answer: dict[str, Any] | None, *items: dict[str, Any]) -> list[Any]:
        """Send the user's message and these items, take this answer (None: the call failed); return the items that
        were sent."""
        body, field = jsonbytes.load(request_body(USER, self.wire)), find_wire(self.wire).layout.items.field
        body[field] += items
        begun = begin(
            self.conversations,
            jsonbytes.dump(body),
            wire=find_wire(self.wire),
            name="work",
            path=path_of(self.wire),
        )
        assert begun is not None
        if answer:
            begun.take(jsonbytes.dump(answer))
        begun.release()
        assert not [one for one in self.events if isinstance(one, Forked | PackingFailed | RuleBroken)]
        sent: list[Any] = jsonbytes.load(begun.body)[field]
        return sent


def function(name: str, **fields: str) -> dict[str, Any]:
    given = '{"address": "#0"}' if name == RESTORE else "{}"
    return {"type": "function_call", "call_id": f"call_{name}", "name": name, "arguments": given, **fields}


REASONING: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc"}
SAID: dict[str, Any] = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
}
DONE = {"id": "resp_2", "object": "response", "status": "completed", "output": []}


@pytest.mark.parametrize("keeps_all", [True, False])
@pytest.mark.parametrize("says", [False, True])
@pytest.mark.parametrize("order", [*permutations([RESTORE, "read", "look"])])
def test_without_the_reasoning_no_item_of_a_response_has_an_id(
    order: tuple[str, ...], says: bool, keeps_all: bool
) -> None:
    caller = Caller("openai_responses")
    made = [REASONING, *([SAID] if says else []), *(function(name, id=f"fc_{name}") for name in order)]
    caller.ask({"id": "resp_1", "object": "response", "status": "completed", "output": made})
    echoed = [item for item in made if item.get("name") != RESTORE]
    if not keeps_all:
        echoed.remove(REASONING)
        echoed = [{key: value for key, value in item.items() if key != "id"} for item in echoed]
    results = [
        {"type": "function_call_output", "call_id": f"call_{name}", "output": "x"}
        for name in order
        if name != RESTORE
    ]
    sent = caller.ask(DONE, *echoed, *results)
    calls = [item for item in sent if item.get("type") == "function_call"]
    assert [item["name"] for item in calls] == [*order]
    ids = {item.get("id") for item in sent if item.get("type") != "reasoning"} - {None}
    assert bool(ids) == any(item.get("type") == "reasoning" for item in sent) == keeps_all


@pytest.mark.parametrize("has_ids", [True, False])
@pytest.mark.parametrize("order", [*permutations([RESTORE, "read", "look"])])
def test_each_call_stays_behind_its_own_reasoning(order: tuple[str, ...], has_ids: bool) -> None:
    """Some callers give reasoning back as it was, and calls without their ids."""
    caller = Caller("openai_responses")
    made = [item for name in order for item in (REASONING | {"id": f"rs_{name}"}, function(name, id=f"fc_{name}"))]
    caller.ask({"id": "resp_1", "object": "response", "status": "completed", "output": made})
    echoed = [item for item in made if item.get("name") != RESTORE]
    if not has_ids:
        echoed = [
            {key: value for key, value in item.items() if key != "id" or item["type"] == "reasoning"}
            for item in echoed
        ]
    results = [
        {"type": "function_call_output", "call_id": f"call_{name}", "output": "x"}
        for name in order
        if name != RESTORE
    ]
    sent = caller.ask(DONE, *echoed, *results)[1 : 1 + len(made)]
    assert [item.get("name") or item["id"] for item in sent] == [
        one for name in order for one in (f"rs_{name}", name)
    ]
    assert [item["id"] for item in sent if item.get("name") == RESTORE] == [f"fc_{RESTORE}"]


@pytest.mark.parametrize("pieces", [["I look.", ""], ["I ", "look.", ""], ["I look."]])
@pytest.mark.parametrize("before", [True, False])
def test_an_empty_text_in_place_of_a_hidden_call_is_not_sent(pieces: list[str], before: bool) -> None:
    caller = Caller("gemini")
    calls = [{"functionCall": {"id": f"call_{name}", "name": name, "args": {}}} for name in (RESTORE, "read")]
    made = [{"text": "I look."}, *(calls if before else reversed(calls))]
    answer = {"candidates": [{"content": {"role": "model", "parts": made}, "finishReason": "STOP"}]}
    caller.ask(answer)
    result = {"functionResponse": {"id": "call_read", "name": "read", "response": {"output": "x"}}}
    sent = caller.ask(
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "Done."}]}, "finishReason": "STOP"}]},
        {"role": "model", "parts": [*({"text": piece} for piece in pieces), calls[1]]},
        {"role": "user", "parts": [result]},
    )
    assert {"text": ""} not in [part for item in sent for part in item["parts"]]
    assert [part["functionCall"]["name"] for part in sent[1]["parts"] if "functionCall" in part] == [
        part["functionCall"]["name"] for part in made if "functionCall" in part
    ]


def thinking(name: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": name, "signature": f"signature of {name}"}


@pytest.mark.parametrize("reopens", [False, True])
@pytest.mark.parametrize("fallback", ["anthropic", "openai_chat", "openai_responses", "gemini"])
@pytest.mark.parametrize("in_front", [False, True])
def test_thinking_is_sent_as_issued_after_a_call_without_it(in_front: bool, fallback: str, reopens: bool) -> None:
    """A call of another model fails, and the caller goes on with the first one, with all that it said."""
    caller = Caller("anthropic")
    text, call = (
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "one", "name": "read", "input": {"path": "file-one"}},
    )
    first, second = thinking("a"), thinking("b")
    made = [first, second, text, call] if in_front else [first, text, second, call]
    usage = {"input_tokens": 90, "output_tokens": 20}
    caller.ask(
        {
            "type": "message",
            "id": "m",
            "role": "assistant",
            "content": made,
            "stop_reason": "tool_use",
            "usage": usage,
        }
    )
    if reopens:
        caller.reopen()
    caller.wire = fallback
    caller.ask(
        None, *write(Told("a", "I look.", ("one",)), fallback), *write(Told("results", "", ("one",)), fallback)
    )
    caller.wire = "anthropic"
    dumped = [{key: block[key] for key in reversed(block)} for block in made]
    (result,) = write(Told("results", "", ("one",)), "anthropic")
    sent = caller.ask(None, {"role": "assistant", "content": dumped}, result)
    assert sent[1]["content"] == made
