"""Anthropic's Messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lading.messages import Message
from lading.models.card import Card
from lading.repair import Needs
from lading.validity import Invariant, OpenLoopWhole
from lading.wire import Wire, alternation
from lading.wire.anthropic.decoding import NAME, decode
from lading.wire.anthropic.encoding import encode_group, envelope
from lading.wire.anthropic.grouping import in_list, joins, leading
from lading.wire.anthropic.replies import REPLIES
from lading.wire.anthropic.rules import RULES, walk


class SystemFollowsItsTurn(Struct, frozen=True):
    """A system message of the list leaves with the turn it follows (rule A4)."""

    name: str = "system_follows_its_turn"

    def forbidden(self, messages: Sequence[Message]) -> Iterator[int]:
        """Every position at which such a message stands."""
        yield from (position for position, message in enumerate(messages) if in_list(message))


def invariants(card: Card) -> tuple[Invariant, ...]:
    """A running tool loop with signed reasoning stays whole, and so do a turn and the system message after it."""
    del card
    return (OpenLoopWhole(), SystemFollowsItsTurn())


def needs(card: Card) -> Needs:
    """Alternation where the dialect demands it; no empty text anywhere (A11), plain ids and names (A10)."""
    plain = r"[A-Za-z0-9_-]+"
    return replace(alternation(card), no_empty_texts=True, call_id=plain, tool_name=plain)


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
    replies=REPLIES,
    shows_in_results=True,
)
