"""Agents for tests: the loop that everybody writes, over the clients of the two SDKs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncOpenAI, OpenAI

from lading.testing import NeedleTask, StrictProvider
from tests.waiting import PATIENCE_S

MODELS = {"openai_chat": "gpt-4o", "anthropic": "claude-sonnet-5", "openai_responses": "gpt-5"}


def openai_client(provider: StrictProvider, kind: type[Any] = OpenAI) -> Any:
    """A client of the local provider that does not try again by itself."""
    return kind(base_url=f"{provider.url}/v1", api_key="test", max_retries=0, timeout=PATIENCE_S)


def anthropic_client(provider: StrictProvider, kind: type[Any] = Anthropic) -> Any:
    """A client of the local provider that does not try again by itself."""
    return kind(base_url=provider.url, api_key="test", max_retries=0, timeout=PATIENCE_S)


CLIENTS: dict[str, tuple[Callable[[StrictProvider], Any], str]] = {
    "OpenAI": (openai_client, "openai_chat"),
    "AsyncOpenAI": (lambda provider: openai_client(provider, AsyncOpenAI), "openai_chat"),
    "Anthropic": (anthropic_client, "anthropic"),
    "AsyncAnthropic": (lambda provider: anthropic_client(provider, AsyncAnthropic), "anthropic"),
}
RESPONSES: dict[str, tuple[Callable[[StrictProvider], Any], str]] = {
    "Responses": (openai_client, "openai_responses"),
    "AsyncResponses": (lambda provider: openai_client(provider, AsyncOpenAI), "openai_responses"),
}


async def run(client: Any, task: NeedleTask, *, wire: str, stream: bool = False, most_calls: int = 200) -> str:
    """The agent loop: ask, run the tools, hand the whole history in again, until the model is done."""
    step = {"openai_chat": _openai_step, "anthropic": _anthropic_step, "openai_responses": _responses_step}[wire]
    messages: list[Any] = [{"role": "user", "content": task.prompt}]
    for _ in range(most_calls):
        said, results = await step(client, task, messages, stream)
        messages += [*(said if isinstance(said, list) else [said]), *results]
        if not results:
            return _text(said)
    raise AssertionError("the agent never came to an end")


async def _openai_step(client: Any, task: NeedleTask, messages: list[Any], stream: bool) -> tuple[Any, list[Any]]:
    history = [{"role": "system", "content": task.system}, *messages]
    fields: dict[str, Any] = {"model": MODELS["openai_chat"], "tools": task.tools("openai_chat")}
    if stream:
        async with Entered(client.chat.completions.stream(messages=history, **fields)) as events:
            async for _ in each(events):
                pass
            completion = await awaited(events.get_final_completion())
    else:
        completion = await awaited(client.chat.completions.create(messages=history, **fields))
    said = completion.choices[0].message
    results = [
        {
            "role": "tool",
            "tool_call_id": call.id,
            "content": task.run_tool(call.function.name, call.function.arguments),
        }
        for call in said.tool_calls or ()
    ]
    return said.to_dict(), results


async def _anthropic_step(
    client: Any, task: NeedleTask, messages: list[Any], stream: bool
) -> tuple[Any, list[Any]]:
    fields: dict[str, Any] = {
        "model": MODELS["anthropic"],
        "max_tokens": 1_000,
        "system": task.system,
        "tools": task.tools("anthropic"),
    }
    if stream:
        async with Entered(client.messages.stream(messages=messages, **fields)) as events:
            async for _ in each(events):
                pass
            said = await awaited(events.get_final_message())
    else:
        said = await awaited(client.messages.create(messages=messages, **fields))
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": task.run_tool(block.name, block.input)}
        for block in said.content
        if block.type == "tool_use"
    ]
    turn = [{"role": "user", "content": results}] if results else []
    return {"role": "assistant", "content": said.content}, turn


async def _responses_step(
    client: Any, task: NeedleTask, messages: list[Any], stream: bool
) -> tuple[Any, list[Any]]:
    fields: dict[str, Any] = {
        "model": MODELS["openai_responses"],
        "instructions": task.system,
        "tools": task.tools("openai_responses"),
        "reasoning": {"effort": "low"},
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    if stream:
        async with Entered(client.responses.stream(input=messages, **fields)) as events:
            async for _ in each(events):
                pass
            said = await awaited(events.get_final_response())
    else:
        said = await awaited(client.responses.create(input=messages, **fields))
    results = [
        {
            "type": "function_call_output",
            "call_id": item.call_id,
            "output": task.run_tool(item.name, item.arguments),
        }
        for item in said.output
        if item.type == "function_call"
    ]
    # A list, as its items are elements of the next input.
    return list(said.output), results


def _text(said: Any) -> str:
    if isinstance(said, list):
        return "".join(block.text for item in said if item.type == "message" for block in item.content)
    content = said["content"]
    if isinstance(content, str):
        return content
    return "".join(block.text for block in content if block.type == "text")


async def awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


class Entered:
    """A manager of either kind, entered."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager
        self._is_async = hasattr(manager, "__aenter__")

    async def __aenter__(self) -> Any:
        return await self._manager.__aenter__() if self._is_async else self._manager.__enter__()

    async def __aexit__(self, *error: Any) -> None:
        if self._is_async:
            await self._manager.__aexit__(*error)
        else:
            self._manager.__exit__(*error)


async def each(events: Any) -> Any:
    if hasattr(events, "__aiter__"):
        async for event in events:
            yield event
    else:
        for event in events:
            yield event
