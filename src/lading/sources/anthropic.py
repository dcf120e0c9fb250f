"""Anthropic Messages: request bodies and message lists, as JSON or JSON lines, reply included."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from lading.sources.bodies import exchange
from lading.sources.conversations import read_bodies
from lading.sources.recording import Source

_OWN_FIELDS = frozenset({"system", "anthropic_version", "thinking", "stop_sequences", "top_k", "mcp_servers"})
_OWN_BLOCKS = ("tool_use", "tool_result", "thinking", "redacted_thinking", "document", "server_tool_use", "image")
_CHAT_ROLES = ("tool", "developer", "function")


def recognises(values: Sequence[Any]) -> bool:
    """Whether one of the values holds what only this API has: its fields, blocks or tools, or a Claude model
    in a body without anything of OpenAI's."""
    return any(_is_anthropic(value) for value in values)


def _is_anthropic(value: Any) -> bool:
    found = exchange(value)
    if found is None:
        return False
    messages = [message for message in found.body["messages"] if isinstance(message, Mapping)]
    if any(message.get("role") in _CHAT_ROLES or "tool_calls" in message for message in messages):
        return False
    tools = found.body.get("tools")
    return (
        not _OWN_FIELDS.isdisjoint(found.body)
        or found.reply.get("type") == "message"
        or any("input_schema" in tool for tool in _objects(tools))
        or any(block.get("type") in _OWN_BLOCKS for message in messages for block in _blocks(message))
        or _is_plain_claude(found.body, messages)
    )


def _is_plain_claude(body: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> bool:
    """Claude is served over OpenAI's form too, where the system text is a message."""
    model = body.get("model")
    return (
        isinstance(model, str)
        and "claude" in model
        and "max_tokens" in body
        and not any(message.get("role") == "system" for message in messages)
        and not any("function" in tool for tool in _objects(body.get("tools")))
    )


def _blocks(message: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return _objects(message.get("content"))


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


SOURCE = Source("anthropic", recognises, partial(read_bodies, wire_name="anthropic"))
