"""What a wrapped client adds to a call: the same call with and without it, the provider answering at once."""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx2

from bench.figures import Figure, below, plain
from bench.histories import head, rounds
from lading import jsonbytes
from lading.clients.transport import Transport
from lading.compaction import DEFAULT
from lading.exchange.conversations import Conversations
from lading.exchange.wrapping import WrapOptions
from lading.messages import Conversation, Message, Tool
from lading.models.catalog import find_card
from lading.session.options import SessionOptions
from lading.stores.sqlite import open_sqlite
from lading.tokens import counter
from lading.tokens.meter import Meter
from lading.wire import encode, find_wire

HISTORY_TOKENS = 100_000
CALLS = 40


def run() -> list[Figure]:
    """Milliseconds that a call takes more, for both SDKs, by the store's durability."""
    figures: list[Figure] = []
    for wire in ("openai_chat", "anthropic"):
        for durability in ("normal", "full"):
            added = _added(wire, durability)
            name = f"{wire}, 100k tokens of history, store {durability}"
            figures.append(below(f"wrap overhead, {name}: p50", added[len(added) // 2], 5, unit="ms"))
            figures.append(plain(f"wrap overhead, {name}: p90", f"{added[int(0.9 * len(added))]:.2f} ms"))
    return figures


def _added(wire: str, durability: Any) -> list[float]:
    """The SDK's own work (tens of milliseconds for such a history) is left out: requests go straight to the
    transport, and what the client under it takes is taken off."""
    inner = httpx2.Client(transport=httpx2.MockTransport(_answer))
    with tempfile.TemporaryDirectory() as folder, open_sqlite(folder, durability=durability) as store:
        conversations = Conversations(
            store, WrapOptions(1_000_000, DEFAULT, None, SessionOptions(), False), clock=time.time
        )
        transport = Transport(inner, httpx2, conversations)
        added: list[float] = []
        for number, request in zip(range(CALLS + 1), map(_request, _histories(wire)), strict=False):
            gc.collect()
            plainly = min(_timed(lambda sent: inner.send(sent, stream=True), request) for _ in range(3))
            taken = _timed(transport.handle_request, request)
            # The first call takes in the whole history.
            added += [taken - plainly] if number else []
        transport.close()
    return sorted(added)


def _timed(send: Callable[[Any], Any], request: Any) -> float:
    started = time.perf_counter()
    send(request).read()
    return (time.perf_counter() - started) * 1000


def _request(body: dict[str, Any]) -> Any:
    path = "/v1/messages" if body["model"].startswith("claude") else "/v1/chat/completions"
    return httpx2.Request("POST", f"http://bench{path}", content=jsonbytes.dump(body))


def _histories(wire: str) -> Iterator[dict[str, Any]]:
    """Request bodies of the wire, each one round longer than the last, from a given length on."""
    card, _ = find_card("gpt-4o")
    meter = Meter(counter("o200k"))
    model = "claude-sonnet-5" if wire == "anthropic" else "gpt-4o"
    tool = Tool("read", "Read a file.", {"type": "object", "properties": {}})
    messages: list[Message] = head()
    tokens = 0
    for call, result in rounds(lines=40):
        if tokens > HISTORY_TOKENS:
            fields = {"model": model, "max_tokens": 100}
            yield encode(Conversation(tuple(messages), (tool,), wire, fields), find_wire(wire), card=card)
        messages += [call, result]
        tokens += meter.count_message(call) + meter.count_message(result)


def _answer(request: Any) -> Any:
    """The reply that the next history has: the same call again."""
    body = jsonbytes.load(request.content)
    number = sum(message["role"] == "assistant" for message in body["messages"])
    call, _ = next(rounds(number, lines=40))
    (asked,) = call.calls
    text = call.text
    if "system" in body:
        content = [
            {"type": "text", "text": text},
            {"type": "tool_use", "id": asked.id, "name": asked.name, "input": jsonbytes.load(asked.arguments)},
        ]
        usage = {"input_tokens": 100, "output_tokens": 20}
        said = {"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-5", "content": content}
        return httpx2.Response(200, json=said | {"stop_reason": "tool_use", "stop_sequence": None, "usage": usage})
    function = {"name": asked.name, "arguments": asked.arguments}
    calls = [{"id": asked.id, "type": "function", "function": function}]
    message = {"role": "assistant", "content": text, "tool_calls": calls}
    choices: list[dict[str, Any]] = [{"index": 0, "message": message, "finish_reason": "tool_calls"}]
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    completion = {"id": "c", "object": "chat.completion", "created": 0, "model": "gpt-4o", "usage": usage}
    return httpx2.Response(200, json={**completion, "choices": choices})
