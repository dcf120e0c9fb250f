"""Read request bodies and message lists of Anthropic Messages, with replies, as JSON or JSON lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from lading.sources.conversations import parse_call, read_bodies
from lading.sources.recording import Source
from lading.wire import find_wire

_OWN_FIELDS = frozenset({"system", "anthropic_version", "thinking", "stop_sequences", "top_k", "mcp_servers"})
_OWN_BLOCKS = ("tool_use", "tool_result", "thinking", "redacted_thinking", "document", "server_tool_use", "image")
_CHAT_ROLES = ("tool", "developer", "function")


def recognises(values: Sequence[Any]) -> bool:
    """Whether one of the values has parts of this API only, or names a Claude model without OpenAI's fields."""
    return any(_is_anthropic(value) for value in values)


def _is_anthropic(value: Any) -> bool:
    found = parse_call(value, find_wire("anthropic"))
    if found is None:
        return False
    messages = [message for message in found.messages if isinstance(message, Mapping)]
    if any(message.get("role") in _CHAT_ROLES or "tool_calls" in message for message in messages):
        return False
    tools = found.body.get("tools")
    return (
        not _OWN_FIELDS.isdisjoint(found.body)
        or found.reply.get("type") == "message"
        or any("input_schema" in tool for tool in _list_objects(tools))
        or any(
            block.get("type") in _OWN_BLOCKS
            for message in messages
            for block in _list_objects(message.get("content"))
        )
        or _is_plain_claude(found.body, messages)
    )


def _is_plain_claude(body: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the body names a Claude model and is not in OpenAI's format, in which Claude is served too."""
    model = body.get("model")
    return (
        isinstance(model, str)
        and "claude" in model
        and "max_tokens" in body
        and not any(message.get("role") == "system" for message in messages)
        and not any("function" in tool for tool in _list_objects(body.get("tools")))
    )


def _list_objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


SOURCE = Source("anthropic", recognises, partial(read_bodies, wire_name="anthropic"))
