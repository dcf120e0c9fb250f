"""Provider formats (wires): decode a provider's body to our values, encode them, and check whether a body is legal.

Each format has a folder and one ``Wire``: plain functions over plain values. Its ``Layout`` names the fields of a
body for all other rooms, which never name one themselves (``scripts/check_limits.py``). To add a format, write a
folder with a ``Wire`` and one line in ``WIRES``, or an entry point of the group ``lading.wire`` under the wire's
name. Knows no budget, strategy or session. Start with ``Wire`` below and ``layout.py``, then ``openai_chat/``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Protocol

from msgspec import Struct

from lading.errors import Violation
from lading.history.repair_rules import Needs, RepairStep
from lading.history.validity import Invariant
from lading.messages import Conversation, Message, Template, Tool
from lading.models.card import Card
from lading.registry import entry_names, lookup
from lading.wire.checking import Checker, CheckState, Rule
from lading.wire.layout import Layout
from lading.wire.reasoning import write_shown
from lading.wire.replies import Replies
from lading.wire.translation import PartTypes

WIRES: dict[str, str] = {
    "anthropic": "lading.wire.anthropic:WIRE",
    "openai_chat": "lading.wire.openai_chat:WIRE",
    "openai_responses": "lading.wire.openai_responses:WIRE",
    "gemini": "lading.wire.gemini:WIRE",
}

COMMON = "openai_chat"
"""The format of messages in which no feature of another format is found."""

Body = dict[str, Any]


def alternation(card: Card) -> Needs:
    """Return the repairs that the card's dialect needs: alternating roles that begin with the user's, or none."""
    alternates = card.conduct.dialect != "first_party"
    return Needs(alternation=alternates, may_open=lambda _first: not alternates)


class Joins(Protocol):
    """Return whether a group of messages, which share items of the body, goes on with the message after it."""

    def __call__(self, group: Sequence[Message], after: Message, /, *, card: Card) -> bool: ...


class Wire(Struct, frozen=True):
    """One provider format, as functions."""

    name: str
    decode: Callable[[Mapping[str, Any]], Conversation]
    """Decode a request body to our values without loss. Raises WireError for a body of another shape."""
    envelope: Callable[[Conversation], Body]
    """Encode the body without its items (with the system messages if the format has them beside the items)."""
    layout: Layout
    """The fields and items of a body."""
    joins: Joins
    """Whether a message shares items of the body with the group before it."""
    encode_group: Callable[[Sequence[Message], Card], list[Body]]
    """Encode a group of joined messages to items of the body."""
    start_check: Callable[[Body, Card], CheckState]
    """Return the initial state of a check of a body."""
    rules: tuple[Rule, ...]
    """The rules that a body is checked by."""
    replies: Replies
    """Functions for replies and streams."""
    invariants: Callable[[Card], tuple[Invariant, ...]] = lambda _card: ()
    """Invariants that a cut of the history must keep, in addition to the general ones."""
    needs: Callable[[Card], Needs] = alternation
    """The repairs that messages need in this format, in addition to the general ones."""
    parts: PartTypes | None = None
    """The types of parts that messages may contain; None: no restriction."""

    def write(self, group: Sequence[Message], card: Card) -> list[Body]:
        """Encode a group of joined messages to items of the body, shown reasoning as text."""
        return self.encode_group([write_shown(message, self.name) for message in group], card)

    def find_unsuited(self, fields: Template, newest_first: Iterable[Message], *, card: Card) -> Mapping[str, str]:
        """Return the fields that rules refuse beside these messages, each with the reason."""
        finders = [rule.unsuited for rule in self.rules if rule.unsuited]
        return {key: why for find in finders for key, why in find(fields, newest_first, card=card).items()}

    def find_repair(self, fields: Template) -> RepairStep | None:
        """Return the repair that messages need beside these fields; None: they need none."""
        repairs = (rule.repair(fields) for rule in self.rules if rule.repair)
        return next(filter(None, repairs), None)

    @property
    def allows_media_in_results(self) -> bool:
        """Whether a tool result may contain images and documents."""
        return self.parts is not None and self.parts.words["image"] in self.parts.takes["result"]

    def read_items(self, items: Iterable[Any]) -> tuple[Message, ...]:
        """Decode the items of a body. Raises WireError."""
        return self.decode({self.layout.items.field: list(items)}).messages

    def read_system(self, body: Mapping[str, Any], *, marked: bool = True) -> tuple[Message, ...]:
        """Decode the system messages beside the items; without cache marks unless ``marked``. Raises WireError."""
        layout = self.layout
        if not layout.system or (value := body.get(layout.system)) is None:
            return ()
        value = value if marked else layout.strip({"content": value})["content"]
        return self.decode({layout.items.field: [], layout.system: value}).messages

    def read_tools(self, tools: Any) -> tuple[Tool, ...]:
        """Decode the declarations of tools. Raises WireError."""
        return self.decode({self.layout.items.field: [], self.layout.tools.field: tools or []}).tools

    def read_fields(self, body: Mapping[str, Any]) -> Body:
        """Read the other fields of a body, as the template of a conversation. Raises WireError."""
        emptied: Body = {self.layout.tools.field: []} if body.get(self.layout.tools.field) else {}
        return dict(self.decode({**body, self.layout.items.field: [], **emptied}).template or {})


def find_wire(name: str) -> Wire:
    """Look up a provider format by name or dotted path. Raises UnknownName."""
    return lookup(WIRES, name, kind="wire", type_=Wire)


@cache
def list_wires() -> tuple[Wire, ...]:
    """Return the formats of ``WIRES``, loaded once; the common one is first."""
    return tuple(find_wire(name) for name in sorted(WIRES, key=COMMON.__ne__))


def list_plugged_wires() -> tuple[Wire, ...]:
    """Load the formats of entry points. Raises UnknownName if one cannot be loaded."""
    return tuple(find_wire(name) for name in entry_names("wire") if name not in WIRES)


def find_default_wire(provider: str) -> str:
    """Return the name of the format that a provider's API uses."""
    return provider if provider in WIRES else COMMON


def group_messages(messages: Sequence[Message], wire: Wire, *, card: Card) -> list[list[Message]]:
    """Split the messages into groups that share items of the body."""
    groups: list[list[Message]] = []
    for message in messages:
        if groups and wire.joins(groups[-1], message, card=card):
            groups[-1].append(message)
        else:
            groups.append([message])
    return groups


def encode(conversation: Conversation, wire: Wire, *, card: Card) -> Body:
    """Encode a conversation as a body; one decoded from a legal body of this format gives the same body."""
    body = wire.envelope(conversation)
    rest = conversation.messages[wire.layout.leading(conversation.messages) :]
    items = [item for group in group_messages(rest, wire, card=card) for item in wire.write(group, card)]
    body[wire.layout.items.field] = wire.layout.items.join(items, conversation.template)
    return body


def check(body: Body, wire: Wire, *, card: Card, strict: bool = False) -> list[Violation]:
    """Return the violations in a body. ``strict``: also of rules not yet verified, and of level L, as in tests."""
    checker = Checker(wire.rules, wire.start_check(body, card), card, strict=strict)
    items = body.get(wire.layout.items.field)
    for item in items if isinstance(items, list) else ():
        checker.feed(item)
    return checker.violations()
