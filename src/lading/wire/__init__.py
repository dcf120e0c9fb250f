"""Wire formats: a provider's body to our values and back, and whether a body is legal.

One folder per format. Each gives a ``Wire``: plain functions over plain values. To add a format, write
a module with such a value and one line in ``WIRES``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from lading.messages import Conversation, Message
from lading.models.card import Card
from lading.repair import Needs
from lading.tables import lookup
from lading.validity import Invariant
from lading.wire.checking import Checker, Rule, Violation, Walk
from lading.wire.replies import Replies
from lading.wire.translation import PartTypes

WIRES: dict[str, str] = {
    "anthropic": "lading.wire.anthropic:WIRE",
    "openai_chat": "lading.wire.openai_chat:WIRE",
}

Body = dict[str, Any]


def alternation(card: Card) -> Needs:
    """Roles must alternate where the card's dialect says so."""
    return Needs(alternation=card.conduct.dialect != "first_party")


class Joins(Protocol):
    """Whether two neighbouring messages share one wire message."""

    def __call__(self, before: Message, after: Message, *, card: Card) -> bool: ...


class Wire(Struct, frozen=True):
    """One wire format, as functions."""

    name: str
    decode: Callable[[Mapping[str, Any]], Conversation]
    """A request body to our values, lossless. Raises WireError when it is not of this wire's shape."""
    envelope: Callable[[Conversation], Body]
    """Everything of the body but its messages (system included where the wire keeps it outside)."""
    leading: Callable[[Sequence[Message]], int]
    """How many of the first messages belong to the envelope."""
    joins: Joins
    """Whether two neighbouring messages share one wire message."""
    encode_group: Callable[[Sequence[Message], Card], list[Body]]
    """The wire messages of a run of messages that join."""
    walk: Callable[[Body, Card], Walk]
    """The state in which a check of a body with this envelope starts."""
    rules: tuple[Rule, ...]
    """The rules of this wire, by id."""
    invariants: Callable[[Card], tuple[Invariant, ...]]
    """The legality this wire adds to where a history may be cut."""
    replies: Replies
    """How this wire answers, as functions."""
    needs: Callable[[Card], Needs] = alternation
    """What messages must be mended for on their way in, beside their parts."""
    parts: PartTypes | None = None
    """The parts that messages may hold; None: whatever they hold is written."""

    @property
    def shows_in_results(self) -> bool:
        """Whether a tool's result may hold pictures and documents."""
        return self.parts is not None and self.parts.words["image"] in self.parts.takes["result"]


def find_wire(name: str) -> Wire:
    """The wire of that name, or at that dotted path. Raises UnknownName."""
    found = lookup(WIRES, name, kind="wire", type_=Wire)
    assert isinstance(found, Wire)
    return found


def groups(messages: Sequence[Message], wire: Wire, *, card: Card) -> list[list[Message]]:
    """The messages in runs that share one wire message."""
    runs: list[list[Message]] = []
    for message in messages:
        if runs and wire.joins(runs[-1][-1], message, card=card):
            runs[-1].append(message)
        else:
            runs.append([message])
    return runs


def encode(conversation: Conversation, wire: Wire, *, card: Card) -> Body:
    """The provider's body. For a conversation decoded from a legal body of this wire: that same body."""
    body = wire.envelope(conversation)
    rest = conversation.messages[wire.leading(conversation.messages) :]
    body["messages"] = [item for run in groups(rest, wire, card=card) for item in wire.encode_group(run, card)]
    return body


def check(body: Body, wire: Wire, *, card: Card, strict: bool = False) -> list[Violation]:
    """What is wrong with a body. ``strict`` counts rules not yet verified as E, as tests do."""
    checker = Checker(wire.rules, wire.walk(body, card), card, strict=strict)
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else ():
        checker.feed(message)
    return checker.violations()
