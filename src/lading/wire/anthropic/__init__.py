"""Anthropic's Messages."""

from __future__ import annotations

from lading.models.card import Card
from lading.validity import Invariant, OpenLoopWhole
from lading.wire import Wire
from lading.wire.anthropic.decoding import NAME, decode
from lading.wire.anthropic.encoding import encode_group, envelope
from lading.wire.anthropic.grouping import joins, leading
from lading.wire.anthropic.rules import RULES, walk


def invariants(card: Card) -> tuple[Invariant, ...]:
    """A running tool loop with signed reasoning stays whole."""
    del card
    return (OpenLoopWhole(),)


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
