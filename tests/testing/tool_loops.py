"""An agent's loop on each real SDK, as small as it gets, and what it may do to the history before each call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anthropic import Anthropic
from openai import OpenAI

from lading.testing import NeedleTask, StrictProvider
from tests.waiting import PATIENCE_S

GPT = "gpt-5"
CLAUDE = "claude-sonnet-4-6"
MAX_TOKENS = 4_000

Messages = list[dict[str, Any]]
Trim = Callable[[Messages], Messages]
"""What is sent of a history."""


def openai_client(provider: StrictProvider) -> OpenAI:
    return OpenAI(base_url=f"{provider.url}/v1", api_key="local", timeout=PATIENCE_S)


def anthropic_client(provider: StrictProvider) -> Anthropic:
    return Anthropic(base_url=provider.url, api_key="local", timeout=PATIENCE_S)


def whole(messages: Messages) -> Messages:
    return messages


def run_openai(provider: StrictProvider, task: NeedleTask, *, stream: bool = False, trim: Trim = whole) -> str:
    """What the model says at the end of the task."""
    messages: Messages = [{"role": "system", "content": task.system}, {"role": "user", "content": task.prompt}]
    tools = task.tools("openai_chat")
    with openai_client(provider) as client:
        while True:
            request: Any = {"model": GPT, "messages": trim(messages), "tools": tools}
            if stream:
                with client.chat.completions.stream(**request) as events:
                    message: Any = events.get_final_completion().choices[0].message
            else:
                message = client.chat.completions.create(**request).choices[0].message
            if not message.tool_calls:
                return str(message.content)
            messages.append(message.to_dict())
            for call in message.tool_calls:
                result = task.run_tool(call.function.name, call.function.arguments)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def run_anthropic(provider: StrictProvider, task: NeedleTask, *, stream: bool = False, trim: Trim = whole) -> str:
    """What the model says at the end of the task; it thinks."""
    messages: Messages = [{"role": "user", "content": task.prompt}]
    fixed: Any = {
        "model": CLAUDE,
        "max_tokens": MAX_TOKENS,
        "system": task.system,
        "thinking": {"type": "adaptive"},
    }
    fixed |= {"tools": task.tools("anthropic"), "cache_control": {"type": "ephemeral"}}
    with anthropic_client(provider) as client:
        while True:
            request: Any = fixed | {"messages": trim(messages)}
            if stream:
                with client.messages.stream(**request) as events:
                    message: Any = events.get_final_message()
            else:
                message = client.messages.create(**request)
            if message.stop_reason != "tool_use":
                return str(message.content[-1].text)
            messages.append({"role": "assistant", "content": [_sent(block) for block in message.content]})
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": task.run_tool(block.name, block.input)}
                for block in message.content
                if block.type == "tool_use"
            ]
            messages.append({"role": "user", "content": results})


def _sent(block: Any) -> dict[str, Any]:
    """A block as it came over the wire; the stream helper adds fields of its own."""
    fields = {"thinking": ("type", "thinking", "signature"), "tool_use": ("type", "id", "name", "input")}
    return {field: getattr(block, field) for field in fields.get(block.type, ("type", "text"))}
