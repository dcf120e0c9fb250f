"""Rewrite the turns of other agents in one conversation as user text.

An assistant message may carry an agent's name. When all of them carry the same name, or none, that is the
session's own agent. When names differ (no name counts as one), the session's own agent is the one without a name,
and every named message comes from another agent: it becomes user text, ``NAME: text``, as do user messages with a
name. A message that calls tools stays unchanged, because its results refer to it.

The set of names is the one fact taken from the whole session before its first message is read.
"""

from __future__ import annotations

from collections.abc import Sequence

from lading.messages import File, Image, Message, Text


def rewrite_other_agents(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages with the turns of other agents as user text; other messages stay the same objects."""
    if len({message.name for message in messages if message.role == "assistant"}) < 2:
        return tuple(messages)
    return tuple(_convert_to_user(message) if _is_named_turn(message) else message for message in messages)


def _is_named_turn(message: Message) -> bool:
    return bool(message.name) and message.role in ("assistant", "user") and not message.calls


def _convert_to_user(message: Message) -> Message:
    """Convert the message to user text, without its author's reasoning."""
    pictures = (part for part in message.parts if isinstance(part, Image | File))
    return Message("user", (Text(f"{message.name}: {message.text}"), *pictures))
