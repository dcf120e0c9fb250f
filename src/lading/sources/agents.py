"""Several agents in one conversation: whose words are the session's own.

An assistant message may carry the name of an agent. When all of them carry the same name, or none, that is
the session's own agent. When names differ (having none counts as one), the session's own agent is the one
without a name, and every named message is another agent's: it becomes user text, ``NAME: text``. User
messages with a name are marked in the same way then. A message that calls tools stays as it is, for its
results refer to it.

Who takes part is the one thing that is taken from the whole session before its first message is read.
"""

from __future__ import annotations

from collections.abc import Sequence

from lading.messages import File, Image, Message, Text


def own_words(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with the turns of other agents as user text. What stays is the same object."""
    if len({message.name for message in messages if message.role == "assistant"}) < 2:
        return tuple(messages)
    return tuple(_told(message) if _is_named_turn(message) else message for message in messages)


def _is_named_turn(message: Message) -> bool:
    return bool(message.name) and message.role in ("assistant", "user") and not message.calls


def _told(message: Message) -> Message:
    """The message as words addressed to the session's agent. Reasoning is its author's own and left out."""
    pictures = (part for part in message.parts if isinstance(part, Image | File))
    return Message("user", (Text(f"{message.name}: {message.text}"), *pictures))
