"""A tool loop on OpenAI's SDK, wrapped. Without OPENAI_API_KEY a script is the model. Argument: a store."""

import os
import sys
from contextlib import ExitStack
from typing import Any

from openai import OpenAI

import lading
from lading.testing import NeedleTask, StrictProvider

TASK = NeedleTask()


def main(store: str = "agent-store") -> str:
    """Runs the agent until it calls no more tools; returns what it said last."""
    with ExitStack() as stack:
        if os.environ.get("OPENAI_API_KEY"):
            openai = stack.enter_context(OpenAI())
        else:
            provider = stack.enter_context(StrictProvider(TASK.script, window_tokens=32_000))
            openai = stack.enter_context(OpenAI(base_url=f"{provider.url}/v1", api_key="local"))
        client = lading.wrap(openai, store=store, window=32_000)
        tools: Any = TASK.tools("openai_chat")
        messages: list[Any] = [{"role": "system", "content": TASK.system}, {"role": "user", "content": TASK.prompt}]
        while True:
            completion = client.chat.completions.create(model="gpt-5-mini", messages=messages, tools=tools)
            message = completion.choices[0].message
            messages.append(message)
            for call in message.tool_calls or ():
                if call.type == "function":
                    result = TASK.run_tool(call.function.name, call.function.arguments)
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
            if not message.tool_calls:
                return message.content or ""


if __name__ == "__main__":
    print(main(*sys.argv[1:2]))
