"""What is said in a conversation, and how each provider format writes it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from lading import jsonbytes
from lading.addresses import RESTORE
from lading.wire import find_wire

MODELS = {
    "openai_chat": "gpt-4o",
    "openai_responses": "gpt-4.1",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-flash",
}
HIDDEN = "hidden"
"""Start of the ids of calls that the session answers itself; their caller does not see them."""
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


class Told(NamedTuple):
    """A message of the user, a reply, or the results of its calls, with words beside them."""

    role: str
    text: str = ""
    calls: tuple[str, ...] = ()
    """The ids of the calls that it makes, or answers."""
    found: str = "content"

    @property
    def shown(self) -> Told:
        """What the caller sees of it."""
        return self._replace(calls=tuple(one for one in self.calls if not one.startswith(HIDDEN)))

    @property
    def functions(self) -> list[tuple[str, str, dict[str, str]]]:
        """The id, name and arguments of each call."""
        return [
            (one, RESTORE, {"address": "#0"}) if one.startswith(HIDDEN) else (one, "read", {"path": f"file-{one}"})
            for one in self.calls
        ]


def write(told: Told, wire: str) -> list[Any]:
    """The items of a message."""
    if told.role == "results":
        return _write_results(told, wire)
    if told.role == "user":
        parts = [{"text": told.text}]
        return [{"role": "user", "parts": parts} if wire == "gemini" else {"role": "user", "content": told.text}]
    if wire == "anthropic":
        said: list[Any] = [{"type": "text", "text": told.text}] if told.text else []
        said += [
            {"type": "tool_use", "id": one, "name": name, "input": given} for one, name, given in told.functions
        ]
        return [{"role": "assistant", "content": said}]
    if wire == "gemini":
        said = [{"text": told.text}] if told.text else []
        calls = [{"id": one, "name": name, "args": given} for one, name, given in told.functions]
        return [{"role": "model", "parts": [*said, *({"functionCall": one} for one in calls)]}]
    functions = [(one, {"name": name, "arguments": json.dumps(given)}) for one, name, given in told.functions]
    if wire == "openai_responses":
        said = [{"role": "assistant", "content": told.text}] if told.text else []
        return [*said, *({"type": "function_call", "call_id": one, **called} for one, called in functions)]
    message: dict[str, Any] = {"role": "assistant", "content": told.text or None}
    asked = [{"id": one, "type": "function", "function": called} for one, called in functions]
    return [message | ({"tool_calls": asked} if asked else {})]


def _write_results(told: Told, wire: str) -> list[Any]:
    found = [(one, f"{told.found} of {one}") for one in told.calls]
    beside = [Told("user", told.text)] if told.text else []
    if wire == "anthropic":
        blocks: list[Any] = [{"type": "tool_result", "tool_use_id": one, "content": text} for one, text in found]
        return [{"role": "user", "content": [*blocks, *({"type": "text", "text": one.text} for one in beside)]}]
    if wire == "gemini":
        answers = [{"id": one, "name": "read", "response": {"output": text}} for one, text in found]
        parts = [{"functionResponse": one} for one in answers]
        return [{"role": "user", "parts": [*parts, *({"text": one.text} for one in beside)]}]
    after = [item for one in beside for item in write(one, wire)]
    if wire == "openai_responses":
        return [*({"type": "function_call_output", "call_id": one, "output": text} for one, text in found), *after]
    return [*({"role": "tool", "tool_call_id": one, "content": text} for one, text in found), *after]


def request_body(history: Sequence[Told], wire: str) -> bytes:
    """The body of a request that gives the whole history."""
    items = [item for told in history for item in write(told, wire)]
    system = "You are careful."
    read = {"name": "read", "description": "Read a file."}
    if wire == "gemini":
        declared = {"functionDeclarations": [{**read, "parameters": SCHEMA}]}
        fields: dict[str, Any] = {"systemInstruction": {"parts": [{"text": system}]}, "tools": [declared]}
        return jsonbytes.dump({"contents": items, **fields})
    if wire == "anthropic":
        fields = {"max_tokens": 500, "system": system, "tools": [{**read, "input_schema": SCHEMA}]}
        return jsonbytes.dump({"model": MODELS[wire], "messages": items, **fields})
    if wire == "openai_responses":
        fields = {"instructions": system, "store": False}
        fields["tools"] = [{"type": "function", **read, "parameters": SCHEMA, "strict": False}]
        return jsonbytes.dump({"model": MODELS[wire], "input": items, **fields})
    tools = [{"type": "function", "function": {**read, "parameters": SCHEMA}}]
    items = [{"role": "system", "content": system}, *items]
    return jsonbytes.dump({"model": MODELS[wire], "messages": items, "tools": tools})


def path_of(wire: str) -> str:
    """The path of the endpoint."""
    ends = {"anthropic": "/v1/messages", "openai_responses": "/v1/responses", "openai_chat": "/v1/chat/completions"}
    return ends.get(wire, f"/v1beta/models/{MODELS[wire]}:generateContent")


def response_body(reply: Told, wire: str) -> bytes:
    """The body of the provider's response."""
    items = write(reply, wire)
    if wire == "anthropic":
        usage = {"input_tokens": 9, "output_tokens": 2}
        stop = "tool_use" if reply.calls else "end_turn"
        return jsonbytes.dump({"type": "message", "id": "m", **items[0], "stop_reason": stop, "usage": usage})
    if wire == "gemini":
        return jsonbytes.dump({"candidates": [{"content": items[0], "finishReason": "STOP"}]})
    if wire == "openai_chat":
        return jsonbytes.dump({"id": "x", "choices": [{"index": 0, "message": items[0], "finish_reason": "stop"}]})
    made = [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": item["content"]}]}
        if "content" in item
        else item
        for item in items
    ]
    return jsonbytes.dump({"id": "r", "object": "response", "status": "completed", "output": made})


def list_said(body: Any, wire: str) -> list[tuple[str, ...]]:
    """List what a request says, in order, wherever one message ends and the next begins."""
    said: list[tuple[str, ...]] = []
    for message in find_wire(wire).decode(body).messages:
        said += [("result", one.call_id, one.text) for one in message.results]
        said += [(message.role, message.text)] if message.text else []
        said += [("call", one.id, str(jsonbytes.load(one.arguments))) for one in message.calls]
    return said
