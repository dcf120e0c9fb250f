"""What the provider issued must come back as issued."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from lading.jsonbytes import dump, load
from lading.testing import FakeModel, Request, Say, StrictProvider, Use
from tests.testing.tool_loops import CLAUDE, GPT, MAX_TOKENS

SAYS = [Say("I look.", (Use("read", {"path": "a", "n": 1}), Use("read", {"path": "b"})), thinking="Hm.")]
TOOL = {"name": "read", "input_schema": {"type": "object"}}
Change = Callable[[list[dict[str, Any]]], None]
"""What is done to the blocks, or to the calls, that were issued."""


class Talk:
    """One conversation with a provider, without HTTP: an issued loop, and what its next request is answered."""

    def __init__(self, wire: str, *, foreign: bool = False) -> None:
        self.wire = wire
        self.provider = StrictProvider(FakeModel(SAYS), foreign=foreign)
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
        if wire == "anthropic":
            self.issued = self.send()["content"]
            self.messages.append({"role": "assistant", "content": self.issued})
            calls = [block["id"] for block in self.issued if block["type"] == "tool_use"]
            results = [{"type": "tool_result", "tool_use_id": call, "content": "ok"} for call in calls]
            self.messages.append({"role": "user", "content": results})
        else:
            message = self.send()["choices"][0]["message"]
            self.issued = message["tool_calls"]
            self.messages.append(message)
            self.messages += [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in self.issued]

    def send(self, **fields: Any) -> Any:
        """The body of the answer to the messages as they stand."""
        path = "/v1/messages" if self.wire == "anthropic" else "/v1/chat/completions"
        body: dict[str, Any] = {"model": GPT, "messages": self.messages}
        if self.wire == "anthropic":
            body = {"model": CLAUDE, "max_tokens": MAX_TOKENS, "thinking": {"type": "adaptive"}, "tools": [TOOL]}
            body |= {"messages": self.messages, **fields}
        headers = {"authorization": "Bearer k", "x-api-key": "k"}
        return load(self.provider.answer(Request("POST", path, headers, dump(body))).raw)

    def broken(self, **fields: Any) -> set[str]:
        """The rules that the next request breaks."""
        self.send(**fields)
        return {violation.rule for violation in self.provider.violations}

    def say_more(self) -> None:
        """The user speaks, which closes the loop."""
        self.messages += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "more"}]


def rename(calls: list[dict[str, Any]]) -> None:
    """Another tool than was called."""
    for call in calls:
        if "id" in call:
            call.get("function", call)["name"] = "write"


def shorten(calls: list[dict[str, Any]]) -> None:
    """Other arguments than were given."""
    for call in calls:
        if "function" in call:
            call["function"]["arguments"] = "{}"
        elif "input" in call:
            call["input"] = {}


def think_again(blocks: list[dict[str, Any]]) -> None:
    """Other words above the same signature."""
    blocks[0]["thinking"] = "Ha."


def sign_again(blocks: list[dict[str, Any]]) -> None:
    """Another signature."""
    blocks[0]["signature"] = "A" + blocks[0]["signature"][1:]


def think_no_more(blocks: list[dict[str, Any]]) -> None:
    """The thinking left out."""
    del blocks[0]


def think_twice(blocks: list[dict[str, Any]]) -> None:
    """The same thinking two times."""
    blocks.insert(0, copy.deepcopy(blocks[0]))


def test_thinking_of_two_responses_is_not_one_message() -> None:
    talk = Talk("anthropic")
    first, second = (talk.send()["content"][:2] for _ in range(2))
    talk.messages += [{"role": "assistant", "content": [*first, *second]}, {"role": "user", "content": "more"}]
    assert talk.broken() == {"A15"}
    talk.say_more()
    assert len(talk.provider.violations) == 1
    talk.send()
    assert len(talk.provider.violations) == 1


@pytest.mark.parametrize("wire", ["openai_chat", "anthropic"])
def test_what_comes_back_as_issued_is_answered(wire: str) -> None:
    talk = Talk(wire)
    assert talk.broken() == set()
    talk.say_more()
    assert talk.broken() == set()


@pytest.mark.parametrize(
    ("wire", "change", "open_loop", "closed_loop"),
    [
        ("openai_chat", rename, {"issued"}, {"issued"}),
        ("openai_chat", shorten, set(), set()),
        ("anthropic", rename, {"issued"}, {"issued"}),
        ("anthropic", shorten, set(), set()),
        ("anthropic", think_again, {"A15", "A16"}, {"A16"}),
        ("anthropic", sign_again, {"A15", "A16"}, {"A16"}),
        ("anthropic", think_no_more, {"A15"}, set()),
        ("anthropic", think_twice, {"A15"}, set()),
    ],
)
def test_what_comes_back_otherwise_is_refused(
    wire: str, change: Change, open_loop: set[str], closed_loop: set[str]
) -> None:
    during, after = Talk(wire), Talk(wire)
    change(during.issued)
    assert during.broken() == open_loop
    change(after.issued)
    after.say_more()
    assert after.broken() == closed_loop


@pytest.mark.parametrize("wire", ["openai_chat", "anthropic"])
def test_calls_of_others_are_refused_unless_history_may_be_foreign(wire: str) -> None:
    elsewhere = Talk(wire)
    here, anywhere = Talk(wire), Talk(wire, foreign=True)
    renamed = load(dump(elsewhere.messages).replace(b'"call_', b'"call_z').replace(b'"toolu_01', b'"toolu_02'))
    here.messages = anywhere.messages = renamed
    assert here.broken() == {"issued"}
    assert anywhere.broken() == set()


def test_thinking_may_leave_an_open_loop_once_it_is_switched_off() -> None:
    talk = Talk("anthropic")
    del talk.issued[0]
    assert talk.broken(thinking={"type": "disabled"}) == set()
