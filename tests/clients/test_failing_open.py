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
from lading.errors import StoreError
from lading.events import Event, ReplyLost
from lading.exchange.streamed import StreamedAnswer
from lading.stores.memory import MemoryStore
from lading.testing import FakeModel, Request, Say, StrictProvider, Use
from tests.clients.agents import MODELS
from tests.examples import share_of_examples
from tests.injecting import Faults, Injected
from tests.replies import CHAT_TOOLS

NATIVE_TOOLS: list[dict[str, Any]] = [{"name": "read", "input_schema": {"type": "object"}}]
RESPONSES_TOOLS: list[dict[str, Any]] = [{"type": "function", "name": "read", "parameters": {"type": "object"}}]

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
    "twice": [Say("Wait.", (FIRST,)), Say("Once more.", (FIRST,)), Say("It is plum.")],
}


class Answered:
    """One call of a wrapped client, with a fault after the provider has answered, and one call more."""

    def __init__(
        self,
        wire: str,
        talk: str,
        *,
        stream: bool,
        at: int = -1,
        error: type[BaseException] = Injected,
        splits: bool = False,
    ) -> None:
        """``splits``: whether each event of a stream arrives alone."""
        self.faults, self.events = Faults(is_rim, at, error=error), list[Event]()
        self.provider = StrictProvider(FakeModel([*TALKS[talk], Say("Done.")]))
        http = httpx2.Client(transport=httpx2.MockTransport(self._answered))
        settings: dict[str, Any] = {
            "base_url": "http://here/v1",
            "api_key": "t",
            "http_client": http,
            "max_retries": 0,
        }
        self.wire, self.stream, self._splits = wire, stream, splits
        self.is_watched = True
        if wire == "anthropic":
            client: Any = anthropic.Anthropic(**settings | {"base_url": "http://here"})
        else:
            client = openai.OpenAI(**settings)
        self.client: Any = wrap(client, on_event=self.events.append).lading.session("work")
        first = [{"role": "user", "content": "the secret is plum"}]
        try:
            with self.faults.on():
                self.told, self.text, self.calls = self._asked(first)
        except KeyboardInterrupt:
            self.is_watched = False
            self.told, self.text, self.calls = self._asked(first)
        self.issues = list(self.provider.issues)
        self.is_watched = False

    def _answered(self, request: httpx2.Request) -> httpx2.Response:
        sys.setprofile(None)
        headers = dict(request.headers)
        answer = self.provider.answer(Request("POST", request.url.path, headers, request.read()))
        kind = "application/json" if answer.events is None else "text/event-stream"
        content = iter(answer.events) if self._splits and answer.events else answer.raw
        response = httpx2.Response(answer.status, headers={"content-type": kind}, content=content)
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
            told = [{"role": "assistant", "content": said.content}]
        elif self.wire == "openai_responses":
            fields |= {"input": fields.pop("messages"), "tools": RESPONSES_TOOLS, "store": False}
            fields["include"] = ["reasoning.encrypted_content"]
            if self.stream:
                with self.client.responses.stream(**fields) as events:
                    said = events.get_final_response()
            else:
                said = self.client.responses.create(**fields)
            functions = [item for item in said.output if item.type == "function_call"]
            uses = [(item.call_id, item.name, item.arguments) for item in functions]
            text, told = said.output_text, [item.to_dict() for item in said.output]
        else:
            fields["tools"] = CHAT_TOOLS
            if self.stream:
                with self.client.chat.completions.stream(**fields) as events:
                    said = events.get_final_completion().choices[0].message
            else:
                said = self.client.chat.completions.create(**fields).choices[0].message
            uses = [(call.id, call.function.name, call.function.arguments) for call in said.tool_calls or ()]
            text, told = said.content or "", [said.to_dict()]
        return [*messages, *told], text, uses

    def go_on(self) -> str:
        """The text of the next call's answer."""
        results: list[Any]
        if self.wire == "anthropic":
            blocks = [{"type": "tool_result", "tool_use_id": id_, "content": "seen"} for id_, _, _ in self.calls]
            results = [{"role": "user", "content": [*blocks, {"type": "text", "text": "go on"}]}]
        else:
            form = {"type": "function_call_output", "output": "seen"}, {"role": "tool", "content": "seen"}
            kind, key = (form[0], "call_id") if self.wire == "openai_responses" else (form[1], "tool_call_id")
            results = [kind | {key: id_} for id_, _, _ in self.calls]
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
@share_of_examples(0.25, thorough=0.5)
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


@pytest.mark.fuzz
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("talk", TALKS)
@pytest.mark.parametrize("wire", MODELS)
@share_of_examples(0.25, thorough=0.5)
@given(share=st.floats(0, 1))
def test_an_interrupted_call_can_be_made_again(wire: str, talk: str, stream: bool, share: float) -> None:
    entered = whole_path(wire, talk, stream)
    at = min(int(share * len(entered)), len(entered) - 1)
    one = Answered(wire, talk, stream=stream, at=at, error=KeyboardInterrupt)
    assert one.go_on()
    assert one.provider.violations == []


@pytest.mark.parametrize("wire", MODELS)
def test_a_failure_while_events_are_held_back_keeps_their_order(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: StreamedAnswer) -> None:
        if self._stream.held:
            raise RuntimeError

    reads = [Use("read", {"path": path}) for path in "ab"]
    monkeypatch.setitem(TALKS, "between", [Say("It is plum.", (reads[0], FIRST, reads[1]))])
    monkeypatch.setattr(StreamedAnswer, "_finish_at_mark", fail)
    one = Answered(wire, "between", stream=True, splits=True)
    told = [(name, arguments) for _, name, arguments in one.calls if name == "read"]
    assert (one.text, told) == ("It is plum.", [("read", use.written) for use in reads])
    assert one.go_on() == "Done."
    assert one.provider.violations == []


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("talk", "requests"), [("restored", 1), ("twice", 2)])
@pytest.mark.parametrize("wire", MODELS)
def test_a_full_disk_behind_a_hidden_reply_loses_and_repeats_nothing(
    wire: str, talk: str, requests: int, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, recorded = MemoryStore.append, 0

    def fill(self: MemoryStore, *names: str, manifest: bytes | None = None, **new: Any) -> None:
        nonlocal recorded
        if recorded == requests:
            raise StoreError("the disk is full")
        append(self, *names, manifest=manifest, **new)
        recorded += manifest is not None

    monkeypatch.setattr(MemoryStore, "append", fill)
    one = Answered(wire, talk, stream=stream)
    says = [say.text for say in TALKS[talk][:requests]]
    assert one.text == ("".join(says) if stream else says[-1])
    assert (one.calls, len(one.issues)) == ([], requests)
    monkeypatch.undo()
    assert "It is plum." in one.go_on()
    assert one.provider.violations == []
    sent = json.dumps(one.provider.requests[-1].body)
    assert [sent.count(text) for text in says] == [1] * requests


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", MODELS)
def test_an_answer_behind_a_hidden_reply_may_be_changed(wire: str, stream: bool) -> None:
    one = Answered(wire, "restored", stream=stream)
    changed = (
        json.dumps([*map(_to_json, one.told)]).replace("plum", "PLUM").replace("secret is PLUM", "secret is plum")
    )
    one.told = json.loads(changed)
    assert one.go_on() == "Done."
    sent = json.dumps(one.provider.requests[-1].body)
    assert (one.provider.violations, sent.count("It is PLUM."), sent.count("Wait.")) == ([], 1, 1)
    # Streamed, the text of the hidden reply is a part of the answer; whole, the hidden reply stays as it is.
    assert ("[Lines 1 to 1 of 1.]" in sent.partition("It is PLUM.")[0]) is not stream


def _to_json(message: Any) -> Any:
    """Return a message of an SDK, or with objects of one, as JSON."""
    if isinstance(message, dict):
        return {key: _to_json(value) for key, value in message.items()}
    if isinstance(message, list):
        return [*map(_to_json, message)]
    return message.to_dict() if hasattr(message, "to_dict") else message


@cache
def whole_path(wire: str, talk: str, stream: bool) -> list[str]:
    """The functions that are entered where nothing fails."""
    Answered(wire, talk, stream=stream)
    # What is looked up once is known by now.
    one = Answered(wire, talk, stream=stream)
    assert [type(event) for event in one.events if isinstance(event, ReplyLost)] == []
    return one.faults.entered
