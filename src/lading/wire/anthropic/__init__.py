"""Anthropic's Messages."""

from __future__ import annotations

from msgspec.structs import replace

from lading.models.card import Card
from lading.repair import Needs
from lading.validity import Invariant, OpenLoopWhole
from lading.wire import Wire, alternation
from lading.wire.anthropic.decoding import NAME, decode
from lading.wire.anthropic.encoding import encode_group, envelope
from lading.wire.anthropic.grouping import joins, leading
from lading.wire.anthropic.rules import RULES, walk


def invariants(card: Card) -> tuple[Invariant, ...]:
    """A running tool loop with signed reasoning stays whole."""
    del card
    return (OpenLoopWhole(),)


def needs(card: Card) -> Needs:
    """Alternation where the dialect demands it; an empty text is illegal anywhere."""
    return replace(alternation(card), no_empty_texts=True)


WIRE = Wire(
    name=NAME,
    decode=decode,
    envelope=envelope,
    leading=leading,
    joins=joins,
    encode_group=encode_group,
    walk=walk,
    rules=RULES,
    needs=needs,
    invariants=invariants,
)
