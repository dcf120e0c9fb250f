"""Provider formats (wires): decode a provider's body to our values and encode them, and check whether a body is
legal.

One folder per format. Each has a ``Wire``: plain functions over plain values. To add a format, write a module with
such a value and one line in ``WIRES``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from lading.errors import Violation
from lading.history.repair import Needs
from lading.history.validity import Invariant
from lading.messages import Conversation, Message
from lading.models.card import Card
from lading.registry import lookup
from lading.wire.checking import Checker, Rule, Walk
from lading.wire.replies import Replies
from lading.wire.translation import PartTypes

WIRES: dict[str, str] = {
    "anthropic": "lading.wire.anthropic:WIRE",
    "openai_chat": "lading.wire.openai_chat:WIRE",
}

Body = dict[str, Any]


def alternation(card: Card) -> Needs:
    """Whether the card's dialect requires alternating roles."""
    return Needs(alternation=card.conduct.dialect != "first_party")


class Joins(Protocol):
    """Whether two consecutive messages share one message of the body."""

    def __call__(self, before: Message, after: Message, *, card: Card) -> bool: ...


class Wire(Struct, frozen=True):
    """One provider format, as functions."""

    name: str
    decode: Callable[[Mapping[str, Any]], Conversation]
    """Decode a request body to our values, lossless. Raises WireError when it does not have the shape of this
    format."""
    envelope: Callable[[Conversation], Body]
    """Everything of the body but its messages (system included where the format keeps it outside)."""
    leading: Callable[[Sequence[Message]], int]
    """How many of the first messages belong to the envelope."""
    joins: Joins
    """Whether two consecutive messages share one message of the body."""
    encode_group: Callable[[Sequence[Message], Card], list[Body]]
    """Encode a run of messages that join to messages of the body."""
    walk: Callable[[Body, Card], Walk]
    """The initial state of a check of a body with this envelope."""
    rules: tuple[Rule, ...]
    """The rules of this format, by id."""
    invariants: Callable[[Card], tuple[Invariant, ...]]
    """Additional cut invariants of this format."""
    replies: Replies
    """Functions for the replies of this format."""
    needs: Callable[[Card], Needs] = alternation
    """Additional repairs that messages need in this format."""
    parts: PartTypes | None = None
    """The part types that messages may hold; None: no restriction."""

    @property
    def shows_in_results(self) -> bool:
        """Whether a tool result may hold images and documents."""
        return self.parts is not None and self.parts.words["image"] in self.parts.takes["result"]


def find_wire(name: str) -> Wire:
    """Look up a provider format by name or dotted path. Raises UnknownName."""
    return lookup(WIRES, name, kind="wire", type_=Wire)


def groups(messages: Sequence[Message], wire: Wire, *, card: Card) -> list[list[Message]]:
    """The messages in runs that share one message of the body."""
    runs: list[list[Message]] = []
    for message in messages:
        if runs and wire.joins(runs[-1][-1], message, card=card):
            runs[-1].append(message)
        else:
            runs.append([message])
    return runs


def encode(conversation: Conversation, wire: Wire, *, card: Card) -> Body:
    """Encode the provider's body. A conversation decoded from a legal body of this format gives that same body."""
    body = wire.envelope(conversation)
    rest = conversation.messages[wire.leading(conversation.messages) :]
    body["messages"] = [item for run in groups(rest, wire, card=card) for item in wire.encode_group(run, card)]
    return body


def check(body: Body, wire: Wire, *, card: Card, strict: bool = False) -> list[Violation]:
    """Check a body against the provider's rules. ``strict`` applies rules not yet verified as well, as tests do."""
    checker = Checker(wire.rules, wire.walk(body, card), card, strict=strict)
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else ():
        checker.feed(message)
    return checker.violations()
