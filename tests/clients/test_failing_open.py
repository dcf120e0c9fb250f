"""Whatever fails after the provider has answered, the caller gets that answer."""

from __future__ import annotations

import json
import sys
from functools import cache
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.addresses import RESTORE
from lading.clients import wrap
from lading.events import Event, ReplyLost
from lading.testing import FakeModel, Request, Say, StrictProvider, Use
from tests.clients.agents import MODELS
from tests.examples import share_of_examples
from tests.injecting import Faults
from tests.replies import CHAT_TOOLS

NATIVE_TOOLS: list[dict[str, Any]] = [{"name": "read", "input_schema": {"type": "object"}}]

RIM = {
    "exchange/call.py": ("take", "retry", "lose", "guard", "release"),
    "exchange/streamed.py": ("feed", "end", "leave", "_read", "_pass", "_release", "_release_raw"),
    "exchange/conversations.py": ("drop", "tell"),
    "exchange/endings.py": ("add", "finish", "_work"),
}
"""The functions that guard the others."""
FIRST = Use(RESTORE, {"address": "artifact://default/work/log/0"})
TALKS = {
    "plain": [Say("It is plum.", (Use("read", {"path": "a"}),))],
    "restored": [Say("Wait.", (FIRST,)), Say("It is plum.", (FIRST, Use("read", {"path": "b"})))],
}


class Answered:
    """One call of a wrapped client, with a fault after the provider has answered, and one call more."""

    def __init__(self, wire: str, talk: str, *, stream: bool, at: int = -1) -> None:
        self.faults, self.events = Faults(is_rim, at), list[Event]()
        self.provider = StrictProvider(FakeModel([*TALKS[talk], Say("Done.")]))
        http = httpx2.Client(transport=httpx2.MockTransport(self._answered))
        settings: dict[str, Any] = {
            "base_url": "http://here/v1",
            "api_key": "t",
            "http_client": http,
            "max_retries": 0,
        }
        self.wire, self.stream = wire, stream
        self.is_watched = True
        if wire == "anthropic":
            client: Any = anthropic.Anthropic(**settings | {"base_url": "http://here"})
        else:
            client = openai.OpenAI(**settings)
        self.client: Any = wrap(client, on_event=self.events.append).lading.session("work")
        with self.faults.on():
            self.told, self.text, self.calls = self._asked([{"role": "user", "content": "the secret is plum"}])
        self.issues = list(self.provider.issues)
        self.is_watched = False

    def _answered(self, request: httpx2.Request) -> httpx2.Response:
        sys.setprofile(None)
        headers = dict(request.headers)
        answer = self.provider.answer(Request("POST", request.url.path, headers, request.read()))
        kind = "application/json" if answer.events is None else "text/event-stream"
        response = httpx2.Response(answer.status, headers={"content-type": kind}, content=answer.raw)
        # The second stream of an answer is renumbered: what is half renumbered no SDK can read.
        if self.is_watched and not (self.stream and len(self.provider.issues) > 1):
            self.faults.start()
        return response

    def _asked(self, messages: list[Any]) -> tuple[list[Any], str, list[Any]]:
        fields: dict[str, Any] = {"model": MODELS[self.wire], "messages": messages}
        if self.wire == "anthropic":
            fields |= {"max_tokens": 900, "tools": NATIVE_TOOLS}
            calls = self.client.messages
            if self.stream:
                with calls.stream(**fields) as events:
                    said = events.get_final_message()
            else:
                said = calls.create(**fields)
            uses = [
                (block.id, block.name, json.dumps(block.input))
                for block in said.content
                if block.type == "tool_use"
            ]
            text = "".join(block.text for block in said.content if block.type == "text")
            told = {"role": "assistant", "content": said.content}
        else:
            fields["tools"] = CHAT_TOOLS
            if self.stream:
                with self.client.chat.completions.stream(**fields) as events:
                    said = events.get_final_completion().choices[0].message
            else:
                said = self.client.chat.completions.create(**fields).choices[0].message
            functions = [(call.id, call.function) for call in said.tool_calls or ()]
            uses = [(id_, function.name, function.arguments) for id_, function in functions]
            text, told = said.content or "", said.to_dict()
        return [*messages, told], text, uses

    def go_on(self) -> str:
        """The text of the next call's answer."""
        results: list[Any]
        if self.wire == "anthropic":
            blocks = [{"type": "tool_result", "tool_use_id": id_, "content": "seen"} for id_, _, _ in self.calls]
            results = [{"role": "user", "content": [*blocks, {"type": "text", "text": "go on"}]}]
        else:
            results = [{"role": "tool", "tool_call_id": id_, "content": "seen"} for id_, _, _ in self.calls]
            results.append({"role": "user", "content": "go on"})
        return self._asked([*self.told, *results])[1]


def is_rim(file: str, name: str) -> bool:
    """Whether a function guards the others or is the transport, which has to have the answer."""
    guards = RIM.get(file, ())
    return file in ("clients/transport.py", "exchange/exchange.py", "exchange/wrapping.py") or any(
        part in guards for part in name.split(".")
    )


@pytest.mark.fuzz
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("talk", TALKS)
@pytest.mark.parametrize("wire", MODELS)
@share_of_examples(1, thorough=0.5)
@given(share=st.floats(0, 1))
def test_the_caller_gets_the_answer_whatever_fails(wire: str, talk: str, stream: bool, share: float) -> None:
    entered = whole_path(wire, talk, stream)
    at = min(int(share * len(entered)), len(entered) - 1)
    one = Answered(wire, talk, stream=stream, at=at)
    says = [issue.say for issue in one.issues]
    assert one.text.endswith(says[-1].text)
    wanted = [(use.name, use.written) for use in says[-1].calls if use.name == "read"]
    assert [(name, arguments) for _, name, arguments in one.calls if name == "read"] == wanted
    assert one.go_on() == "Done." or len(one.issues) < len(TALKS[talk])
    assert one.provider.violations == []


@cache
def whole_path(wire: str, talk: str, stream: bool) -> list[str]:
    """The functions that are entered where nothing fails."""
    Answered(wire, talk, stream=stream)
    # What is looked up once is known by now.
    one = Answered(wire, talk, stream=stream)
    assert [type(event) for event in one.events if isinstance(event, ReplyLost)] == []
    return one.faults.entered
