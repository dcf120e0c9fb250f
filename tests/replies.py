"""Replies of providers for tests, as their APIs write them."""

from __future__ import annotations

import json
from typing import Any

from lading.wire.replies import ReplyStream

CHAT_TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "read",
            "description": "Read a file.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        },
    }
]


def chat_reply(
    text: str | None = None,
    *calls: tuple[str, str, dict[str, Any]],
    number: int = 0,
    input_tokens: int | None = None,
) -> dict[str, Any]:
    """A Chat Completions response; calls are (id, name, arguments)."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for call_id, name, arguments in calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    usage = {} if input_tokens is None else {"usage": {"prompt_tokens": input_tokens, "completion_tokens": 9}}
    return {
        "id": f"reply-{number}-{text}",
        "object": "chat.completion",
        "model": "gpt-4o",
        "choices": [choice],
        **usage,
    }


def chat_result(call_id: str, text: str) -> dict[str, Any]:
    """The message with a tool's result."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def messages_reply(*content: dict[str, Any], input_tokens: int | None = None) -> dict[str, Any]:
    """A response of Anthropic's Messages."""
    usage = {} if input_tokens is None else {"usage": {"input_tokens": input_tokens, "output_tokens": 9}}
    stop = "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn"
    said = {"id": f"msg-{len(content)}", "type": "message", "role": "assistant", "model": "claude-sonnet-5"}
    return {**said, "content": list(content), "stop_reason": stop, "stop_sequence": None, **usage}


def released(stream: ReplyStream) -> list[bytes]:
    """What a stream held back, as the caller gets it at the end of the answer."""
    held, stream.held = stream.held, []
    return [piece for one in held for piece in stream.release(one)]
