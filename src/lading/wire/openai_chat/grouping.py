"""Which messages are written together on the Chat Completions wire."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lading.messages import File, Image, Message, user_text
from lading.models.card import Card
from lading.wire.openai_chat.decoding import NAME
from lading.wire.translation import system_words


def is_native(message: Message) -> bool:
    """Whether the message was decoded from this wire."""
    return message.origin == NAME


def flat(card: Card) -> bool:
    """Whether the model's chat template takes content as one string, and roles only in turn (rule C11)."""
    return card.conduct.dialect in ("chat_template", "strict")


def movable(part: object) -> bool:
    """Whether it is something that a user message can hold and a tool message cannot."""
    inline_file = isinstance(part, File) and bool(part.data) and part.media_type != "text/plain"
    return isinstance(part, Image) or inline_file


def moved(message: Message) -> Iterator[Image | File]:
    """What of the message's results is shown in a user message after them."""
    if not is_native(message):
        for result in message.results:
            yield from (part for part in result.parts if isinstance(part, Image | File) and movable(part))


def leading(messages: Sequence[Message]) -> int:
    """None: the system message stands in the list of messages."""
    del messages
    return 0


def joins(before: Message, after: Message, *, card: Card) -> bool:
    """Whether two messages are written together.

    Results of one assistant message that were not all decoded here are, so that pictures in them can follow
    the last of them. Toward a chat template so are neighbours of one role, a user's words and the results
    before them, and a system message with whatever stands beside it: ``runs`` tells whether it is in front.
    """
    if flat(card) and "system" in (before.role, after.role):
        return True
    return _one_message(before, after, card)


def runs(messages: Sequence[Message], card: Card) -> list[list[Message]]:
    """The messages of a group by the wire message that they end up in."""
    found: list[list[Message]] = []
    for message in _in_turn(messages) if flat(card) else messages:
        if found and _one_message(found[-1][-1], message, card):
            found[-1].append(message)
        else:
            found.append([message])
    return found


def _one_message(before: Message, after: Message, card: Card) -> bool:
    if before.results and after.results:
        return not (is_native(before) and is_native(after))
    if not flat(card) or before.calls or after.results:
        return False
    return after.role == ("user" if before.results else before.role)


def _in_turn(messages: Sequence[Message]) -> list[Message]:
    """The messages with every system message but those in front as a user's words, never before results."""
    front = next((index for index, message in enumerate(messages) if message.role != "system"), len(messages))
    settled, notes = list(messages[:front]), []
    for message in messages[front:]:
        if message.role == "system":
            notes.append(user_text(system_words(message.text)))
            continue
        if not message.results:
            settled, notes = settled + notes, []
        settled.append(message)
    return settled + notes
