"""A model that uses ``restore``, and callers of three formats that edit their conversation."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from lading.addresses import RESTORE
from lading.clients import wrap
from lading.events import UsageDoubted
from lading.testing import Request, Say, Seen, StrictProvider, Use
from tests.clients.agents import MODELS, anthropic_client, openai_client

READ = {"name": "read", "description": "Read a file."}
SCHEMA = {"type": "object", "properties": {}}
TOOLS: dict[str, Any] = {
    "openai_chat": [{"type": "function", "function": READ | {"parameters": SCHEMA}}],
    "anthropic": [READ | {"input_schema": SCHEMA}],
    "openai_responses": [{"type": "function", **READ, "parameters": SCHEMA}],
}


class Model:
    """Answers with the replies that a plan wants, each in other words: 0 a text, 1 a call, 2 ``restore`` before
    either, 3 ``restore`` beside a call, 4 none: the connection is closed."""

    def __init__(self, *, thinks: bool = True) -> None:
        self.plan: list[int] = []
        self.said, self.thinks = 0, thinks

    def __call__(self, _: Seen, /) -> Say:
        kind = self.plan.pop(0) if self.plan else 0
        if kind == 4:
            raise ConnectionResetError
        self.said += 1
        restore, read = Use(RESTORE, {"address": "#1"}), Use("read", {"path": f"f{self.said}"})
        calls = [(), (read,), (restore,), (restore, read)][kind]
        return Say(f"Answer {self.said}.", calls, thinking=f"Thought {self.said}." if self.thinks else "")


class Caller:
    """A caller of one format."""

    def __init__(self, client: Any, wire: str, *, is_named: bool) -> None:
        self.client, self.wire = client, wire
        self.asked = client.lading.session("tree") if is_named else client
        self.filler = ""
        """Text behind each result."""
        self.doubts: list[UsageDoubted] = []
        client.lading.subscribe(UsageDoubted, self.doubts.append)

    @classmethod
    def start(
        cls, provider: StrictProvider, wire: str, folder: Path, *, is_named: bool, window: int = 100_000
    ) -> Caller:
        """A caller with a client of its own."""
        make = anthropic_client if wire == "anthropic" else openai_client
        return cls(wrap(make(provider), store=folder, window=window), wire, is_named=is_named)

    def ask(self, items: list[Any]) -> list[Any]:
        """Return the items of the reply, and the results of its calls."""
        fields: dict[str, Any] = {"model": MODELS[self.wire], "tools": TOOLS[self.wire]}
        if self.wire == "openai_responses":
            fields |= {"store": False, "include": ["reasoning.encrypted_content"], "reasoning": {"effort": "low"}}
            said = self.asked.responses.create(input=items, **fields)
            calls = [item.call_id for item in said.output if item.type == "function_call"]
            results = [
                {"type": "function_call_output", "call_id": call, "output": f"{call}.{self.filler}"}
                for call in calls
            ]
            return [*(item.to_dict() for item in said.output), *results]
        if self.wire == "anthropic":
            fields |= {"max_tokens": 2_000, "thinking": {"type": "adaptive"}}
            said = self.asked.messages.create(messages=items, **fields)
            calls = [block.id for block in said.content if block.type == "tool_use"]
            blocks = [
                {"type": "tool_result", "tool_use_id": call, "content": f"{call}.{self.filler}"} for call in calls
            ]
            reply = {"role": "assistant", "content": [block.to_dict() for block in said.content]}
            return [reply, *([{"role": "user", "content": blocks}] if blocks else [])]
        message = self.asked.chat.completions.create(messages=items, **fields).choices[0].message
        calls = [call.id for call in message.tool_calls or ()]
        return [
            message.to_dict(),
            *({"role": "tool", "tool_call_id": call, "content": f"{call}.{self.filler}"} for call in calls),
        ]

    def ask_in_vain(self, items: list[Any]) -> None:
        """Ask for a reply that does not come."""
        with pytest.raises((anthropic.APIConnectionError, openai.APIConnectionError)):
            self.ask(items)


def find_restores(value: Any) -> set[str]:
    """The ids of the calls of ``restore`` in a value."""
    if isinstance(value, list):
        return {call for inner in value for call in find_restores(inner)}
    if not isinstance(value, dict):
        return set()
    named = value.get("function", value)
    if isinstance(named, dict) and named.get("name") == RESTORE and "parameters" not in named:
        return {value.get("call_id") or value["id"]}
    return {call for inner in value.values() for call in find_restores(inner)}


def sent_items(request: Request) -> Any:
    """The messages, or items, of a request."""
    return request.body.get("messages", request.body.get("input"))


def is_answered(items: list[Any]) -> bool:
    """Whether the caller has to say something before the model can go on."""
    newest = items[-1] if items else {"role": "assistant"}
    results = newest.get("role") == "tool" or newest.get("type") == "function_call_output"
    return not results and (newest.get("role") != "user" or isinstance(newest["content"], str))


def say(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def amend(answer: list[Any], number: int) -> list[Any]:
    """An answer in words of the caller, with the same calls for other files."""
    text = re.sub(r"Answer \d+\.", f"Amended {number}.", json.dumps(answer))
    amended: list[Any] = json.loads(re.sub(r"\bf\d+\b", f"g{number}", text))
    for item in amended:
        if item.get("type") == "message":
            del item["id"]
    return amended


def remind(items: list[Any], text: str) -> list[Any]:
    """Messages with a reminder at their end, for one request; without text none."""
    if not text:
        return items
    newest = items[-1]
    if newest.get("role") == "user" and isinstance(newest["content"], list):
        content = [*newest["content"], {"type": "text", "text": text}]
        return [*items[:-1], {"role": "user", "content": content}]
    return [*items, say(text)]
