"""An agent with rules alone, and with summaries by its own model: the same answer, and the cost of both."""

from typing import Any

from openai import OpenAI

import lading
from lading.testing import NeedleTask, Say, Seen, StrictProvider

TASK, MODEL = NeedleTask(), lading.find_card("gpt-5-mini")[0]


def model(seen: Seen) -> Say:
    """Replies as the agent's model; asked for a summary, it names what the instruction lists at its end."""
    last = [passage.text for passage in seen.passages()][-1]
    listed = " ".join(last.rpartition("<<<")[2].splitlines()[1:-1])
    return Say(f"Goal: report a key\nDone: found {listed}") if "ummari" in last else TASK.script(seen)


def main(summarizer: str | None) -> tuple[str, float]:
    """Runs the agent until it calls no more tools; returns what it said last, and its cost in input tokens."""
    with StrictProvider(model, window_tokens=32_000) as provider:
        with OpenAI(base_url=f"{provider.url}/v1", api_key="local") as openai:
            client = lading.wrap(openai, window=32_000, summarizer=summarizer)
            tools: Any = TASK.tools("openai_chat")
            messages: list[Any] = [{"role": "user", "content": TASK.prompt}]
            while messages[-1]["role"] != "assistant":
                completion = client.chat.completions.create(model=MODEL.name, messages=messages, tools=tools)
                messages.append(completion.choices[0].message.to_dict())
                for call in messages[-1].get("tool_calls", ()):
                    result = TASK.run_tool(call["function"]["name"], call["function"]["arguments"])
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        price = MODEL.prices
        bills = [(issue.usage, issue.output_tokens * price.output) for issue in provider.issues]
    return messages[-1]["content"], sum(use.tokens + use.read_tokens * (price.read - 1) + out for use, out in bills)


if __name__ == "__main__":
    for summarizer in (None, "self"):
        print(summarizer, *main(summarizer))
