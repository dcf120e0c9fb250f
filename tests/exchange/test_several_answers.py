"""Calls for several answers: the log has what they took, and the caller never sees a call of ``restore``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lading import jsonbytes
from lading.addresses import RESTORE
from lading.audit.replay import verify
from lading.compaction import DEFAULT
from lading.evaluate.monitoring import SessionMonitor
from lading.events import Event, Forked, ReplyLost
from lading.exchange.call import PackedCall, begin
from lading.exchange.conversations import Conversations
from lading.exchange.streamed import StreamedAnswer
from lading.exchange.wrapping import WrapOptions
from lading.history.log import Reported
from lading.session.options import SessionOptions
from lading.stores.memory import MemoryStore
from lading.wire import find_wire
from tests.exchange.told import Told, list_said, path_of, request_body, response_body

RESTORES = Told("a", calls=("hidden-1",))
INPUT_TOKENS, OUTPUT_TOKENS = 200, 30
WIRES = pytest.mark.parametrize("wire", ["openai_chat", "gemini"])
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


class Caller:
    """A caller that asks for several answers and goes on with one of them."""

    def __init__(self, wire: str, *, stream: bool) -> None:
        self.wire, self.stream, self.store = wire, stream, MemoryStore()
        self.events, self.history, self.bodies = list[Event](), [Told("user", "Go.")], list[Any]()
        wrapping = WrapOptions(200_000, DEFAULT, None, SessionOptions(), fail_open=False)
        self.conversations = Conversations(self.store, wrapping, clock=lambda: 0.0, on_event=self.events.append)

    def ask(self, *rounds: list[Told]) -> list[Any]:
        """Ask for as many answers as each response has, and return those that the caller receives."""
        body, several = jsonbytes.load(request_body(self.history, self.wire)), len(rounds[0])
        path = path_of(self.wire)
        if self.wire == "gemini":
            body["generationConfig"] = {"candidateCount": several}
            path = path.replace(":generate", ":streamGenerate") if self.stream else path
        else:
            body |= {"n": several, "stream": self.stream}
        begun = begin(self.conversations, jsonbytes.dump(body), wire=find_wire(self.wire), name="work", path=path)
        assert begun is not None
        self.bodies.append(jsonbytes.load(begun.body))
        received = self._receive(begun, [*rounds])
        begun.release()
        return received

    def _receive(self, begun: PackedCall, rounds: list[list[Told]]) -> list[Any]:
        is_stream = self.stream and len(rounds[0]) > 1
        if is_stream:
            stream = StreamedAnswer(begun)
            data = b"".join(map(stream.feed, self._write_events(rounds[0])))
            rest, again = stream.end()
            assert again is None
            return [json.loads(line[6:]) for line in (data + rest).split(b"\n\n") if line.startswith(b"data: {")]
        for answers in rounds:
            data, again = begun.take(self._write(answers))
            if again is not None:
                self.bodies.append(jsonbytes.load(again))
        return [jsonbytes.load(data)]

    def _write(self, answers: list[Told]) -> bytes:
        body = jsonbytes.load(response_body(answers[0], self.wire))
        field = "candidates" if self.wire == "gemini" else "choices"
        made = [jsonbytes.load(response_body(one, self.wire))[field][0] for one in answers]
        usage: dict[str, Any] = {"prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS * len(answers)}
        if self.wire == "gemini":
            usage = {"promptTokenCount": INPUT_TOKENS, "candidatesTokenCount": OUTPUT_TOKENS * len(answers)}
        body |= {field: [one | {"index": at} for at, one in enumerate(made)]}
        return jsonbytes.dump(body | {"usageMetadata" if self.wire == "gemini" else "usage": usage})

    def _write_events(self, answers: list[Told]) -> list[bytes]:
        """One event for each answer, then the usage."""
        body = jsonbytes.load(self._write(answers))
        if self.wire == "gemini":
            pieces = [{"candidates": [one]} for one in body["candidates"]]
            pieces[-1]["usageMetadata"] = body["usageMetadata"]
            return [b"data: %s\n\n" % jsonbytes.dump(one) for one in pieces]
        deltas = [(one["index"], one["message"]) for one in body["choices"]]
        for _, delta in deltas:
            for at, call in enumerate(delta.get("tool_calls", [])):
                call["index"] = at
        pieces = [{"choices": [{"index": at, "delta": delta, "finish_reason": None}]} for at, delta in deltas]
        pieces += [{"choices": [{"index": at, "delta": {}, "finish_reason": "stop"}]} for at, _ in deltas]
        pieces += [{"choices": [], "usage": body["usage"]}]
        return [*(b"data: %s\n\n" % jsonbytes.dump(one) for one in pieces), b"data: [DONE]\n\n"]

    def go_on(self, answer: Told) -> None:
        self.history += [answer, Told("user", f"More than {len(self.history)}.")]

    @property
    def usage(self) -> list[Reported | None]:
        entries = self.store.entries("default", "work")
        return [entry.usage for entry in entries if entry.message.role == "assistant"]


@WIRES
@STREAMED
@pytest.mark.parametrize("chosen", [0, 1, 2])
def test_the_usage_of_several_answers_is_in_the_log(wire: str, stream: bool, chosen: int) -> None:
    caller = Caller(wire, stream=stream)
    for turn in range(3):
        answers = [Told("a", f"Answer {turn} of {at}.") for at in range(3)]
        received = caller.ask(answers)
        assert all(one.text in json.dumps(received) for one in answers)
        caller.go_on(answers[chosen])
    caller.ask([Told("a", "Last.")])
    given = jsonbytes.load(request_body(caller.history, wire))
    assert list_said(caller.bodies[-1], wire) == list_said(given, wire)
    assert [one for one in caller.usage if one] == [Reported(INPUT_TOKENS, 3 * OUTPUT_TOKENS)] * 3 + [
        Reported(INPUT_TOKENS, OUTPUT_TOKENS)
    ]
    monitor = SessionMonitor(caller.store, tenant="default", session="work")
    monitor.update()
    costs = monitor.seen.costs
    assert (costs.reported_calls, costs.reported.tokens) == (4, 4 * INPUT_TOKENS)
    assert costs.output_tokens == 10 * OUTPUT_TOKENS
    assert not [event for event in caller.events if isinstance(event, Forked | ReplyLost)]
    assert {outcome.problem for outcome in verify(caller.store, tenant="default", session="work")} == {""}


@WIRES
@STREAMED
@pytest.mark.parametrize("at", [0, 1])
def test_no_answer_of_several_has_a_call_of_restore(wire: str, stream: bool, at: int) -> None:
    """The model has called it before, unseen, and calls it again where it is not offered."""
    caller = Caller(wire, stream=stream)
    caller.stream = False
    caller.ask([RESTORES], [Told("a", "Fine.")])
    caller.stream = stream
    caller.go_on(Told("a", "Fine."))
    answers = [Told("a", "Other.")] * 2
    answers[at] = RESTORES
    received = caller.ask(answers, *([] if stream else [[Told("a", "One."), Told("a", "Two.")]]))
    said = json.dumps(received)
    assert RESTORE not in said
    assert [word in said for word in ("Other.", "One.", "Two.")] == (
        [True, False, False] if stream else [False, True, True]
    )
    assert sum(one.output_tokens for one in caller.usage if one) == (4 if stream else 6) * OUTPUT_TOKENS
