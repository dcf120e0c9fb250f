"""What a strict check of a Chat Completions request remembers from one wire message to the next.

Bodies are hostile: reading never raises. What cannot be read is left out here, and a rule reports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from lading.models.card import Card
from lading.wire.checking import WireMessage

SYSTEM_ROLES = ("system", "developer")
TOOL_ROLES = ("tool", "function")


class ChatWalk(Struct):
    """The state of a check: what the rules need of the envelope and of the messages walked so far."""

    envelope: Mapping[str, Any]
    card: Card
    position: int = 0
    """The index of the next message."""
    run: int | None = None
    """The index of the assistant message whose calls are being answered; None where a tool message is out of
    place."""
    calls: set[str] = set()
    """The ids of that message's calls."""
    waiting: dict[str, None] = {}
    """Those of them without an answer so far, in order."""
    answers: dict[str, int] = {}
    """The ids answered so far in this run, and the index of the message that did it."""
    speaker: str = ""
    """The last role among user, assistant and tool; system messages do not count."""

    @property
    def here(self) -> str:
        """The path of the next message."""
        return f"messages.{self.position}"

    def advance(self, message: WireMessage) -> None:
        """Take in the next wire message."""
        role = role_of(message)
        if role == "tool":
            call = message.get("tool_call_id")
            if isinstance(call, str):
                self.waiting.pop(call, None)
                self.answers.setdefault(call, self.position)
        else:
            self._start_run(message, role)
        if role in TOOL_ROLES:
            self.speaker = "tool"
        elif role in ("user", "assistant"):
            self.speaker = role
        self.position += 1

    def _start_run(self, message: WireMessage, role: str) -> None:
        calls = calls_of(message) if role == "assistant" else []
        self.run = self.position if calls else None
        ids = [call["id"] for call in calls if isinstance(call, dict) and isinstance(call.get("id"), str)]
        self.calls, self.waiting, self.answers = set(ids), dict.fromkeys(ids), {}


def walk(body: Mapping[str, Any], card: Card) -> ChatWalk:
    """The state before the first message of a body with this envelope."""
    return ChatWalk(body, card)


def role_of(message: object) -> str:
    """The role, or an empty string where there is none to read."""
    role = message.get("role") if isinstance(message, dict) else None
    return role if isinstance(role, str) else ""


def calls_of(message: object) -> list[Any]:
    """The entries of ``tool_calls``, whatever they are; none where it is no list."""
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    return calls if isinstance(calls, list) else []
