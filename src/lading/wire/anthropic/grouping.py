"""Which messages share one wire message of the Messages wire."""

from __future__ import annotations

from collections.abc import Sequence

from lading.messages import Message
from lading.models.card import Card
from lading.wire.anthropic.decoding import NAME


def is_native(message: Message) -> bool:
    """Whether the message was decoded from this wire."""
    return message.origin == NAME


def in_list(message: Message) -> bool:
    """Whether it is a system message that was decoded from within the list of messages."""
    return message.role == "system" and is_native(message) and "role" in (message.template or ())


def leading(messages: Sequence[Message]) -> int:
    """How many of the first messages are written to the body's ``system``."""
    for index, message in enumerate(messages):
        if message.role != "system" or in_list(message):
            return index
    return len(messages)


def joins(before: Message, after: Message, *, card: Card) -> bool:
    """Whether two neighbours are written together.

    Both must speak for the same side: results and system messages from elsewhere belong to the user's.
    Messages decoded here keep their borders, unless the endpoint wants the roles to alternate. A system
    message of the list is joined by what a user from elsewhere says after it: only the assistant may
    follow one that stands alone (rule A4).
    """
    if _side(before) != _side(after):
        return False
    if card.conduct.dialect in ("bedrock", "strict"):
        return True
    if in_list(before):
        return not in_list(after) and (card.conduct.mid_system or not is_native(after))
    return not in_list(after) and not (is_native(before) and is_native(after))


def _side(message: Message) -> str:
    return "assistant" if message.role == "assistant" else "user"
