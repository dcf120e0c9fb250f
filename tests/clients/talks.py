"""Conversations for tests: callers that tell the whole history at each call."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

from lading.testing import Say, Seen, StrictProvider, Use

TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]
NUMBERS = itertools.count()


def stepping(seen: Seen) -> Say:
    """Calls a tool at each step and says whose conversation it is; no two replies are alike."""
    first = next(passage.text for passage in seen.passages() if passage.role == "user")
    name = first.split()[0]
    number = next(NUMBERS)
    return Say(f"{name} goes on ({number}).", (Use("read", {"path": f"{name}/{number}", "share": 1.0}),))


class Talk:
    """One conversation of a caller that tells its whole history at each call."""

    def __init__(self, client: Any, first: str, system: str = "", model: str = "gpt-4o") -> None:
        self.client, self.model = client, model
        self.fields: dict[str, Any] = {}
        self.messages: list[Any] = [{"role": "system", "content": system}] if system else []
        self.messages.append({"role": "user", "content": first})

    @property
    def said(self) -> list[Any]:
        """What the messages say."""
        return [message["content"] for message in self.messages]

    def ask(self) -> Any:
        """The message of the model's reply."""
        fields = {"model": self.model, "messages": self.messages, "tools": TOOLS}
        made = self.client.chat.completions.create(**fields, **self.fields)
        return made.choices[0].message

    def step(self, size: int = 5, told: Callable[[Any], Any] = lambda said: said.to_dict()) -> None:
        """One call, its reply as the caller tells it again, and the results of its tools."""
        self.heard(self.ask(), size, told)

    def heard(self, said: Any, size: int = 5, told: Callable[[Any], Any] = lambda said: said.to_dict()) -> None:
        """Go on from a reply."""
        self.messages.append(told(said))
        for call in said.tool_calls:
            path = json.loads(call.function.arguments)["path"]
            self.messages.append({"role": "tool", "tool_call_id": call.id, "content": f"{path} " * size})


def shown(provider: StrictProvider) -> list[Any]:
    """What the messages of the last request say."""
    return [message["content"] for message in provider.requests[-1].body["messages"]]
