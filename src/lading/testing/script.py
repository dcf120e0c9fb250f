"""The scripted model: what it sees of a request, and what it says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from lading.messages import Conversation, Text, ToolCall, ToolResult


class Passage(Struct, frozen=True):
    """A text of the request, and where it stands."""

    role: str
    text: str
    message: int
    """The index of its message in the conversation."""
    call: ToolCall | None = None
    """The call that a tool's answer belongs to, where the request still shows it."""


class Seen(Struct, frozen=True):
    """All that a model sees: one request, the same on every wire."""

    wire: str
    conversation: Conversation
    body: Mapping[str, Any]
    """As it was sent, for what one wire alone has."""

    @property
    def tools(self) -> frozenset[str]:
        """The names of the tools offered."""
        return frozenset(tool.name for tool in self.conversation.tools)

    def passages(self) -> Iterator[Passage]:
        """The texts of the request in order: what was said, and what tools answered."""
        calls: dict[str, ToolCall] = {}
        for index, message in enumerate(self.conversation.messages):
            calls |= {call.id: call for call in message.calls}
            for part in message.parts:
                if isinstance(part, Text):
                    yield Passage(message.role, part.text, index)
                elif isinstance(part, ToolResult):
                    yield Passage("tool", part.text, index, calls.get(part.call_id))


class Use(Struct, frozen=True):
    """A tool as the model calls it. The provider gives the call its id."""

    name: str
    arguments: dict[str, Any] = {}

    @property
    def written(self) -> str:
        """The arguments as JSON."""
        return json.dumps(self.arguments)


class Say(Struct, frozen=True):
    """One reply: thinking, text and calls, in that order."""

    text: str = ""
    calls: tuple[Use, ...] = ()
    """Several are calls in parallel."""
    thinking: str = ""
    """Said only where the request turns thinking on, and signed."""
    stop: str = ""
    """The wire's own word for why it ends. Empty: that of calls, or of an ordinary end."""


Script: TypeAlias = Callable[[Seen], Say]
"""A model: from what it sees to what it says. It is called for one request at a time."""


class FakeModel:
    """Says the next of a list at each request, whatever it sees, and the last one again when it is through."""

    def __init__(self, says: Sequence[Say]) -> None:
        """Takes at least one."""
        self._says = list(says)
        self._next = 0

    def __call__(self, _: Seen, /) -> Say:
        """The next thing to say."""
        say = self._says[min(self._next, len(self._says) - 1)]
        self._next += 1
        return say
