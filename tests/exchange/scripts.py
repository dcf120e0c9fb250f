"""Scripts of what a provider answers, for one call of a client, and what comes of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from lading import jsonbytes
from lading.addresses import RESTORE

PLACE = "artifact://default/work/log/0"
TOO_LONG = "This model's maximum context length is 1000 tokens. However, your messages resulted in 2000 tokens."


class Answer(NamedTuple):
    """One response: its content, in pieces where it is a stream."""

    status: int
    pieces: tuple[bytes, ...]
    is_stream: bool = False
    is_cut: bool = False
    """Whether the connection breaks after the pieces."""

    @property
    def content(self) -> bytes:
        return b"".join(self.pieces)


def whole(*texts: str, calls: Sequence[str] = (), status: int = 200) -> Answer:
    """A reply that says these words and calls these tools."""
    functions = [{"id": f"c{at}", "type": "function", "function": _function(name)} for at, name in enumerate(calls)]
    message = {"role": "assistant", "content": " ".join(texts)} | ({"tool_calls": functions} if calls else {})
    choice = {"index": 0, "finish_reason": "tool_calls" if calls else "stop", "message": message}
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
    return Answer(status, (jsonbytes.dump({"id": "x", "choices": [choice], "usage": usage}),))


def streamed(*texts: str, calls: Sequence[str] = (), size: int = 0, is_cut: bool = False) -> Answer:
    """The same as events, each a piece, or all of them in pieces of ``size`` bytes. Of one that is cut the end is
    missing."""
    deltas: list[Any] = [{"content": text} for text in texts]
    for at, name in enumerate(calls):
        call = {"index": at, "id": f"c{at}", "type": "function", "function": _function(name)}
        deltas.append({"tool_calls": [call]})
    choices = [{"index": 0, "delta": delta} for delta in deltas]
    if not is_cut:
        choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"})
    events = [f"data: {json.dumps({'id': 'x', 'choices': [choice]})}\n\n".encode() for choice in choices]
    events += [] if is_cut else [b"data: [DONE]\n\n"]
    if size:
        data = b"".join(events)
        events = [data[at : at + size] for at in range(0, len(data), size)]
    return Answer(200, tuple(events), is_stream=True, is_cut=is_cut)


def refused(status: int = 400, text: str = TOO_LONG) -> Answer:
    """An error; by default one that the request is too long."""
    code = "context_length_exceeded" if text == TOO_LONG and status == 400 else "other"
    return Answer(status, (jsonbytes.dump({"error": {"message": text, "code": code}}),))


def long_history(rounds: int = 12) -> list[dict[str, Any]]:
    """A history from which results can be taken out."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for number in range(rounds):
        call = {"id": f"h{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        messages.append({"role": "assistant", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"h{number}", "content": f"{number} " * 400})
    return messages


def request_body(*, stream: bool, messages: Sequence[dict[str, Any]] = ()) -> bytes:
    """The body of a call with a tool, so that ``restore`` is offered."""
    tool = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}
    told = list(messages) or [{"role": "user", "content": "the secret is plum"}]
    return jsonbytes.dump({"model": "gpt-4o", "messages": told, "tools": [tool], "stream": stream})


def _function(name: str) -> dict[str, str]:
    return {"name": name, "arguments": json.dumps({"address": PLACE} if name == RESTORE else {"path": "a"})}
