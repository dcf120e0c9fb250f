"""A tool loop on Anthropic's SDK, wrapped. Without ANTHROPIC_API_KEY a script is the model. Argument: a store."""

import os
import sys
from contextlib import ExitStack
from typing import Any

from anthropic import Anthropic

import lading
from lading.testing import NeedleTask, StrictProvider

TASK = NeedleTask()


def main(store: str = "agent-store") -> str:
    """Runs the agent until it calls no more tools; returns what it said last."""
    with ExitStack() as stack:
        if os.environ.get("ANTHROPIC_API_KEY"):
            anthropic = stack.enter_context(Anthropic())
        else:
            provider = stack.enter_context(StrictProvider(TASK.script, window_tokens=32_000))
            anthropic = stack.enter_context(Anthropic(base_url=provider.url, api_key="local"))
        client = lading.wrap(anthropic, store=store, window=32_000)
        fixed: Any = {"model": "claude-sonnet-5", "max_tokens": 4_000, "cache_control": {"type": "ephemeral"}}
        fixed |= {"system": TASK.system, "tools": TASK.tools("anthropic"), "thinking": {"type": "adaptive"}}
        messages: list[Any] = [{"role": "user", "content": TASK.prompt}]
        while True:
            message = client.messages.create(**fixed, messages=messages)
            messages.append({"role": "assistant", "content": message.content})
            calls = [block for block in message.content if block.type == "tool_use"]
            if not calls:
                return "".join(block.text for block in message.content if block.type == "text")
            results = [(call.id, TASK.run_tool(call.name, call.input)) for call in calls]
            content = [{"type": "tool_result", "tool_use_id": id_, "content": text} for id_, text in results]
            messages.append({"role": "user", "content": content})


if __name__ == "__main__":
    print(main(*sys.argv[1:2]))
