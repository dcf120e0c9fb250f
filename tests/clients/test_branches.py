"""Callers that go back, branch, or change what they said last: what it costs, and which conversation it is."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from openai import OpenAIError

from lading import ContextProvider, Message, SessionOptions, ToolCall, verify
from lading.addresses import RESTORE
from lading.clients import wrap
from lading.economics import Rates
from lading.events import CompactionApplied, Event
from lading.testing import Fault, Say, Seen, StrictProvider, Use
from tests.clients.agents import MODELS, anthropic_client, openai_client
from tests.examples import share_of_examples

CLIENTS: dict[str, Callable[[StrictProvider], Any]] = {"openai_chat": openai_client, "anthropic": anthropic_client}
TOOLS: dict[str, Any] = {
    "openai_chat": {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}},
    "anthropic": {"name": "read", "input_schema": {"type": "object"}},
}
CLEARED = "[cleared]"
MARK = {"cache_control": {"type": "ephemeral"}}


class Caller:
    """A caller of one format that sends its whole history."""

    def __init__(self, client: Any, wire: str, *, rewrites: bool = False, reminds: str = "") -> None:
        """``rewrites``: arguments of calls in its own spacing and order of keys. ``reminds``: with a text at the
        end of each request that the next one does not have: in the newest message, or after it."""
        self.client, self.wire, self.rewrites, self.reminds = client, wire, rewrites, reminds
        self.messages: list[dict[str, Any]] = []
        self.asked = 0
        self.say("Find the fault. " * 100)

    def say(self, text: str) -> None:
        """Add a message of the user, or a text to it where results are the newest."""
        if self.wire == "anthropic" and self.messages and self.messages[-1]["role"] == "user":
            self.messages[-1]["content"].append({"type": "text", "text": text})
        else:
            self.messages.append({"role": "user", "content": [{"type": "text", "text": text}]})

    def go_back(self, rounds: int, text: str) -> None:
        """Drop the newest rounds, and go on with another text."""
        replies = [at for at, message in enumerate(self.messages) if message["role"] == "assistant"]
        if len(replies) > rounds:
            # Where results and a text are one message, both are the newest.
            del self.messages[replies[-rounds] :]
            self.say(text)

    def clear(self) -> None:
        """Replace the oldest result that is not cleared yet, as callers do that shorten their own history."""
        if self.wire == "anthropic":
            blocks = [block for message in self.messages for block in message["content"]]
            results = [block for block in blocks if block["type"] == "tool_result"]
        else:
            results = [message for message in self.messages if message["role"] == "tool"]
        for result in [one for one in results if one["content"] != CLEARED][:1]:
            result["content"] = CLEARED

    def step(self, size: int = 150) -> None:
        """Ask, and add the reply and the results of its calls."""
        self.asked += 1
        fields: dict[str, Any] = {"model": MODELS[self.wire], "tools": [TOOLS[self.wire]]}
        if self.wire == "anthropic":
            said = self.client.messages.create(messages=self._list_sent(), max_tokens=500, **fields)
            blocks = [self._rewrite(block.model_dump(exclude_none=True)) for block in said.content]
            self.messages.append({"role": "assistant", "content": blocks})
            results = [
                {"type": "tool_result", "tool_use_id": one["id"], "content": self._result(size)}
                for one in blocks
                if one["type"] == "tool_use"
            ]
            self.messages.append({"role": "user", "content": results})
            return
        message = self.client.chat.completions.create(messages=self._list_sent(), **fields).choices[0].message
        self.messages.append(self._rewrite(message.model_dump(exclude_none=True)))
        for call in message.tool_calls:
            self.messages.append({"role": "tool", "tool_call_id": call.id, "content": self._result(size)})

    def _result(self, size: int) -> str:
        return f"line {self.asked} of the file\n" * size

    def _list_sent(self) -> list[dict[str, Any]]:
        sent = copy.deepcopy(self.messages)
        if self.wire == "anthropic":
            sent[-1]["content"][-1] |= MARK
        reminder = {"type": "text", "text": f"It is {self.asked} o'clock."}
        if self.reminds == "inside" and isinstance(sent[-1]["content"], list):
            sent[-1]["content"].append(reminder)
        elif self.reminds:
            sent.append({"role": "user", "content": [reminder]})
        return sent

    def _rewrite(self, said: dict[str, Any]) -> dict[str, Any]:
        if self.rewrites and "input" in said:
            said["input"] = dict(sorted(said["input"].items()))
        for call in said.get("tool_calls", ()) if self.rewrites else ():
            arguments = json.loads(call["function"]["arguments"])
            call["function"]["arguments"] = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
        return said


class Reader:
    """A model that reads another file at each step, and once asks for what it has read before."""

    def __init__(self, restores_at: int = 0) -> None:
        self.calls, self.restores_at = 0, restores_at

    def __call__(self, _: Seen, /) -> Say:
        self.calls += 1
        if self.calls == self.restores_at:
            return Say("", (Use(RESTORE, {"address": "#2"}),))
        return Say(f"Look {self.calls}.", (Use("read", {"path": f"a{self.calls}", "first": self.calls}),))


def bill(provider: StrictProvider) -> float:
    return sum(issue.usage.cost(Rates(read=0.1, write=1.25)) for issue in provider.issues)


@pytest.mark.fuzz
@share_of_examples(1, thorough=0.1)
@given(
    wire=st.sampled_from([*CLIENTS]),
    moves=st.lists(st.integers(0, 4), min_size=4, max_size=14),
    clears=st.sampled_from([0, 0, 3, 5]),
    rewrites=st.booleans(),
    reminds=st.sampled_from(["", "inside", "after"]),
)
@example("openai_chat", [0] * 12 + [3, 0, 0, 2, 0], 0, True, "")
@example("anthropic", [0] * 12 + [3, 0, 0, 2, 0], 0, True, "")
@example("openai_chat", [0] * 12, 0, False, "after")
@example("anthropic", [0] * 12, 0, False, "inside")
@example("anthropic", [0] * 14, 3, False, "after")
def test_no_way_to_go_on_costs_more_than_with_the_callers_own_client(
    wire: str, moves: list[int], clears: int, rewrites: bool, reminds: str
) -> None:
    bills: list[float] = []
    for wraps in (False, True):
        with StrictProvider(Reader(), foreign=True) as provider:
            plain = CLIENTS[wire](provider)
            client = (
                wrap(plain, when="full", options=SessionOptions(restore=False), fail_open=False) if wraps else plain
            )
            caller = Caller(client, wire, rewrites=rewrites, reminds=reminds)
            for number, rounds in enumerate(moves):
                if rounds:
                    caller.go_back(rounds, f"No, otherwise ({number}).")
                if clears and number % clears == clears - 1:
                    caller.clear()
                caller.step()
            bills.append(bill(provider))
            assert provider.violations == []
            if wraps:
                client.close()
    own, ours = bills
    assert ours <= 1.03 * own + 50


@pytest.mark.parametrize("reminds", ["inside", "after"])
@pytest.mark.parametrize("wire", [*CLIENTS])
def test_text_for_one_request_alone_stays_in_its_conversation(wire: str, reminds: str, tmp_path: Path) -> None:
    with StrictProvider(Reader(), foreign=True) as provider:
        client = wrap(CLIENTS[wire](provider), store=tmp_path / "store")
        caller = Caller(client, wire, reminds=reminds)
        for _ in range(20):
            caller.step(20)
        # The first question is what a conversation is known by.
        assert len(client.lading.sessions) <= 2
        assert provider.violations == []
        reminders = json.dumps(provider.requests[-1].body).count("o'clock")
        assert reminders == 1
        (session,) = [one for one in client.lading.sessions if len(one.entries) > 10]
        assert not [one for one in verify(session.store, tenant="default", session=session.name) if one.problem]
        client.close()


def test_a_request_that_fails_again_and_again_may_change_its_reminder() -> None:
    faults = {call: Fault(status=500) for call in range(3, 9)}
    with StrictProvider(Reader(), faults=faults, foreign=True) as provider:
        client = wrap(openai_client(provider))
        caller = Caller(client, "openai_chat", reminds="after")
        for _ in range(10):
            with suppress(OpenAIError):
                caller.step(20)
        assert [answer.status for answer in provider.answers] == [200] * 2 + [500] * 6 + [200] * 2
        assert len(client.lading.sessions) <= 2
        client.close()


@pytest.mark.parametrize("restores_at", [0, 4])
@pytest.mark.parametrize("wire", [*CLIENTS])
def test_a_branch_begins_with_the_requests_of_the_conversation_it_parts_from(
    wire: str, restores_at: int, tmp_path: Path
) -> None:
    """Also with what was compacted, and with calls that the caller never saw."""
    events: list[Event] = []
    with StrictProvider(Reader(restores_at), foreign=True) as provider:
        client = wrap(CLIENTS[wire](provider), store=tmp_path / "store", window=12_000, on_event=events.append)
        caller = Caller(client, wire)
        for _ in range(16):
            caller.step()
        assert any(isinstance(event, CompactionApplied) for event in events)
        before: Sequence[Any] = provider.requests[-1].body["messages"]
        events.clear()
        caller.go_back(2, "No, otherwise.")
        caller.step()
        after = provider.requests[-1].body["messages"]
        shared = sum(1 for one, other in zip(before, after, strict=False) if one == other)
        assert shared >= len(before) - 6
        assert shared > 1
        assert not any(isinstance(event, CompactionApplied) for event in events)
        assert len(client.lading.sessions) == 2
        assert provider.violations == []
        for session in client.lading.sessions:
            assert not [one for one in verify(session.store, tenant="default", session=session.name) if one.problem]
            pointers = [pointer for edit in session.edits for pointer in edit.pointers]
            assert all(f"/{session.name}/" in pointer for pointer in pointers)
        # What was compacted before the branch can be read in it.
        branch = client.lading.sessions[-1]
        cut = next(edit for edit in branch.edits if edit.pointers)
        call = ToolCall("r1", RESTORE, json.dumps({"address": cut.pointers[0]}))
        (answer,) = branch.handle(Message("assistant", (call,)))
        assert "of the file" in answer.results[0].text
        client.close()


@pytest.mark.parametrize(("first", "second"), [("anna", "ben"), ("anna", ""), ("", "ben")])
def test_what_a_conversation_did_not_show_is_in_no_other_one(first: str, second: str) -> None:
    """Two users whose histories begin alike, on one client: what providers say to one stays there."""
    secrets = iter(["Anna's number is 17.", "Ben's number is 42."])
    said = {name: next(secrets) for name in (first, second)}
    asking = [first]
    provide = ContextProvider(lambda _: said[asking[0]], "stable")
    with StrictProvider(lambda _: Say("Hello."), foreign=True) as provider:
        client = wrap(openai_client(provider), providers=[provide])
        of = {name: client.lading.session(name) if name else client for name in (first, second)}
        hello = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hello."}]
        asked = [*hello, {"role": "user", "content": "My number?"}]
        of[first].chat.completions.create(model=MODELS["openai_chat"], messages=hello[:1])
        of[first].chat.completions.create(model=MODELS["openai_chat"], messages=asked)
        asking[0] = second
        other = [*hello, {"role": "user", "content": "And mine?"}]
        of[second].chat.completions.create(model=MODELS["openai_chat"], messages=other)
        sent = [json.dumps(request.body) for request in provider.requests]
        assert "17" in sent[1]
        assert ("17" in sent[2], "42" in sent[2]) == (False, True)
        client.close()
