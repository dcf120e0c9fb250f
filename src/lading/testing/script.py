"""Scripted models: functions from the request they see to a reply."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from lading.messages import Conversation, Text, ToolCall, ToolResult


class Passage(Struct, frozen=True):
    """A text of the request, with its position."""

    role: str
    text: str
    message: int
    """The index of its message in the conversation."""
    call: ToolCall | None = None
    """The call of a tool result, if the request still shows it."""


class Seen(Struct, frozen=True):
    """The request that a model sees, decoded from any provider format."""

    wire: str
    conversation: Conversation
    body: Mapping[str, Any]
    """The body as sent, for fields of one provider format."""

    @property
    def tools(self) -> frozenset[str]:
        """The names of the tools offered."""
        return frozenset(tool.name for tool in self.conversation.tools)

    def passages(self) -> Iterator[Passage]:
        """Yield the texts of messages and tool results, in order."""
        calls: dict[str, ToolCall] = {}
        for index, message in enumerate(self.conversation.messages):
            calls |= {call.id: call for call in message.calls}
            for part in message.parts:
                if isinstance(part, Text):
                    yield Passage(message.role, part.text, index)
                elif isinstance(part, ToolResult):
                    yield Passage("tool", part.text, index, calls.get(part.call_id))


class Use(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call of the model. The provider gives the call its id."""

    name: str
    arguments: dict[str, Any] = {}

    @property
    def written(self) -> str:
        """The arguments as JSON."""
        return json.dumps(self.arguments)


class Say(Struct, frozen=True, forbid_unknown_fields=True):
    """One reply: thinking, text and calls, in that order."""

    text: str = ""
    calls: tuple[Use, ...] = ()
    """Several calls are parallel."""
    thinking: str = ""
    """Sent only if the request enables thinking, and signed."""
    stop: str = ""
    """The provider's stop reason. Empty: the one of tool calls, or of a normal end."""


Script: TypeAlias = Callable[[Seen], Say]
"""A model: a function from the request it sees to its reply. It is called for one request at a time."""


class FakeModel:
    """A script that replies with the items of a list in order, ignoring the request, then repeats the last item."""

    def __init__(self, says: Sequence[Say]) -> None:
        """``says``: at least one reply."""
        self._says = list(says)
        self._next = 0

    def __call__(self, _: Seen, /) -> Say:
        """Return the next reply."""
        say = self._says[min(self._next, len(self._says) - 1)]
        self._next += 1
        return say
