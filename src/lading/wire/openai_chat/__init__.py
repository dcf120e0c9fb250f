"""OpenAI's Chat Completions."""

from __future__ import annotations

from lading.models.card import Card
from lading.validity import Invariant
from lading.wire import Wire
from lading.wire.openai_chat.decoding import NAME, decode
from lading.wire.openai_chat.encoding import encode_group, envelope
from lading.wire.openai_chat.grouping import joins, leading
from lading.wire.openai_chat.rules import RULES, walk


def invariants(card: Card) -> tuple[Invariant, ...]:
    """None beyond those of every wire: reasoning stands on the message it belongs to and leaves with it."""
    del card
    return ()


WIRE = Wire(
    name=NAME,
    decode=decode,
    envelope=envelope,
    leading=leading,
    joins=joins,
    encode_group=encode_group,
    walk=walk,
    rules=RULES,
    invariants=invariants,
)
