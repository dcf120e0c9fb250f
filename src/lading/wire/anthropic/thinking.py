"""The fields with which a running tool loop breaks rule A14."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lading.messages import Message, Template
from lading.models.card import Card
from lading.wire.anthropic.decoding import NAME
from lading.wire.anthropic.encoding import encode_group
from lading.wire.anthropic.state import THINKING, read_message
from lading.wire.reasoning import write_shown


def find_unsuited(fields: Template, newest_first: Iterable[Message], *, card: Card) -> Mapping[str, str]:
    """Return enabled thinking, and the clearing of thinking, for a running tool loop that did not start with it."""
    thinking = fields.get("thinking")
    if not isinstance(thinking, dict) or thinking.get("type") != "enabled":
        return {}
    replies = _list_replies_of_loop(newest_first)
    if not any(message.calls for message in replies) or _starts_with_thinking(replies[-1], card):
        return {}
    why = "the running tool loop began without thinking"
    clears = "clear_thinking" in str(fields.get("context_management"))
    return {"thinking": why} | ({"context_management": why} if clears else {})


def _list_replies_of_loop(newest_first: Iterable[Message]) -> list[Message]:
    """List the replies since the last turn of the user without tool results, newest first."""
    replies: list[Message] = []
    turn: list[Message] = []
    for message in newest_first:
        if message.role == "assistant":
            if turn and not any(said.results for said in turn):
                break
            replies.append(message)
            turn = []
        elif message.role != "system":
            turn.append(message)
    return replies


def _starts_with_thinking(reply: Message, card: Card) -> bool:
    blocks = read_message("reply", encode_group([write_shown(reply, NAME)], card)[0]).blocks
    return bool(blocks) and blocks[0].kind in THINKING
