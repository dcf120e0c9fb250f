"""The vocabulary of a conversation: messages, their parts, tools, and the whole.

Every wire decodes into these values and encodes from them. A value that came from a wire keeps a
``template``: the provider's own object in its key order, unknown fields included, with the fields
that live in the value cut out. Encoding to the same wire fills the template, so that decode followed
by encode gives the same body; encoding to another wire ignores it.

Words: a *block* is an assistant message with its tool calls and all their results (any other message
is a block of its own); a *round* is one model call: an assistant message and what follows up to the
next one; a *turn* reaches from one user message to the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from lading.frozen import FrozenDict, freeze

OWN = "lading"
"""The origin of Lading's own messages."""

UNNAMED = "unnamed_"
"""Start of the id that a provider format gives to a call that came without one. Such ids repeat in a history."""

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]

Template: TypeAlias = dict[str, Any]
"""How a provider wrote an object (``wire/templates.py``). Those of messages, parts and tools are frozen."""


def _freeze_template(value: Any) -> None:
    # Templates with codes alone, which most messages have, are made frozen.
    if value.template is not None and type(value.template) is not FrozenDict:
        force_setattr(value, "template", freeze(value.template))


class Text(Struct, frozen=True, gc=False, tag="text", tag_field="kind", omit_defaults=True):
    """Text that the model reads or wrote. May contain lone surrogates (real shells print them)."""

    text: str
    template: Template | None = None

    def __post_init__(self) -> None:
        _freeze_template(self)


class Image(Struct, frozen=True, gc=False, tag="image", tag_field="kind", omit_defaults=True):
    """An image, by URL or inline."""

    url: str = ""
    """An http(s) URL, or empty when the image is inline."""
    data: str = ""
    """Base64 of the image, or empty when it is given by URL."""
    media_type: str = ""
    template: Template | None = None

    def __post_init__(self) -> None:
        _freeze_template(self)


class File(Struct, frozen=True, gc=False, tag="file", tag_field="kind", omit_defaults=True):
    """A document (PDF and the like), by URL, by provider id or inline."""

    url: str = ""
    data: str = ""
    """Base64, or the text itself when ``media_type`` is text/plain."""
    file_id: str = ""
    media_type: str = ""
    name: str = ""
    template: Template | None = None

    def __post_init__(self) -> None:
        _freeze_template(self)


class ToolCall(Struct, frozen=True, gc=False, tag="tool_call", tag_field="kind", omit_defaults=True):
    """A tool call of the model. ``arguments`` is the original string, even if it is invalid JSON."""

    id: str
    name: str
    arguments: str
    template: Template | None = None

    def __post_init__(self) -> None:
        _freeze_template(self)


class Reasoning(Struct, frozen=True, gc=False, tag="reasoning", tag_field="kind", omit_defaults=True):
    """The model's reasoning. Providers check ``signature`` and ``data``: both are sent back exactly as issued."""

    text: str = ""
    signature: str | None = None
    data: str | None = None
    """Encrypted reasoning (Anthropic ``redacted_thinking``), unreadable and never altered."""
    template: Template | None = None
    provenance: str = ""
    """Who issued it: an adapter of ``lading.wire.reasoning``. Set only where a provider's own field is read, never
    for text; empty: not known."""
    is_shown: bool = False
    """Whether ``text`` is sent as text of the message, because the model does not take the reasoning back."""

    def __post_init__(self) -> None:
        _freeze_template(self)


class Opaque(Struct, frozen=True, tag="opaque", tag_field="kind", omit_defaults=True):
    """A part of a type this version does not know, kept unchanged."""

    value: Any
    is_summary: bool = False
    """Whether it is the provider's own summary of everything before it."""

    def __post_init__(self) -> None:
        force_setattr(self, "value", freeze(self.value))


ResultPart: TypeAlias = Text | Image | File | Opaque


class ToolResult(Struct, frozen=True, gc=False, tag="tool_result", tag_field="kind", omit_defaults=True):
    """The result of the tool call with the same id."""

    call_id: str
    parts: tuple[ResultPart, ...] = ()
    is_error: bool = False
    name: str = ""
    template: Template | None = None

    def __post_init__(self) -> None:
        _freeze_template(self)

    @property
    def text(self) -> str:
        """All text of the result, parts joined by newlines."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))


Part: TypeAlias = Text | Image | File | ToolCall | ToolResult | Reasoning | Opaque


class Message(Struct, frozen=True, gc=False, omit_defaults=True):
    """One message: a role and an ordered list of parts."""

    role: Role
    parts: tuple[Part, ...] = ()
    name: str = ""
    origin: str = ""
    """The provider format this was decoded from, the only one its templates apply to. Empty: made here. ``OWN``: a
    message of Lading itself; no provider format encodes this value, and no text can set it."""
    template: Template | None = None

    def __post_init__(self) -> None:
        _freeze_template(self)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of this message, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The tool results of this message, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolResult))

    @property
    def text(self) -> str:
        """The plain text of this message (neither reasoning nor results), parts joined by newlines."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    def with_parts(self, parts: tuple[Part, ...]) -> Message:
        """Copy the message with other parts; everything else, its template included, stays."""
        return replace(self, parts=parts)


class Tool(Struct, frozen=True, omit_defaults=True):
    """A tool the model may call. ``schema`` is None for a provider's own tool, kept whole in ``template``."""

    name: str
    description: str = ""
    schema: dict[str, Any] | None = None
    """JSON Schema of the arguments."""
    synthetic: bool = False
    """True for an open schema made here because the session recorded none."""
    origin: str = ""
    template: Template | None = None
    max_output_chars: int | None = None
    """open-multi-agent's limit of a result in characters, for its strategies; no provider is sent it."""
    deferred: Literal["", "waiting", "found"] = ""
    """Not empty: the provider leaves it out of the prompt until a result refers to it; ``found``: one has."""

    def __post_init__(self) -> None:
        force_setattr(self, "schema", freeze(self.schema))
        _freeze_template(self)


MessageLike: TypeAlias = Message | Mapping[str, Any]
"""A message, or a dict of any provider's format."""


class Conversation(Struct, frozen=True, omit_defaults=True):
    """The content of one request: messages (system first), tools, and every other field of the body."""

    messages: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()
    origin: str = ""
    template: Template | None = None
    """The body in its key order: model, temperature and all other fields, with messages, system and tools cut out.
    """


def user_text(text: str) -> Message:
    """Build a user message from a text."""
    return Message("user", (Text(text),))


def own_words(text: str) -> Message:
    """Build a message of Lading itself. It has the user's role, as wires have no other; ``is_own`` recognizes
    it."""
    return replace(user_text(text), origin=OWN)


def is_own(message: Message) -> bool:
    """Whether Lading itself wrote the message, and no user."""
    return message.origin == OWN


def is_spoken(message: Message) -> bool:
    """Whether the user wrote the message, which starts a turn. Words beside tool results belong to the running
    turn: agents add reminders there."""
    return message.role == "user" and not message.results and not is_own(message)


def extract_words(message: Message) -> Message | None:
    """Return what the user says in a message of its own or beside tool results, without blank texts; None without
    words."""
    if message.role != "user" or is_own(message) or not message.text.strip():
        return None
    kinds = (Text, Image, File) if message.results else object
    kept = tuple(part for part in message.parts if isinstance(part, kinds) and not _is_blank(part))
    return message.with_parts(kept) if len(kept) < len(message.parts) else message


def _is_blank(part: Part) -> bool:
    return isinstance(part, Text) and not part.text.strip()


def is_summary(part: Part) -> bool:
    """Whether the part is a provider's own summary of everything before it."""
    return isinstance(part, Opaque) and part.is_summary


def has_summary(message: Message) -> bool:
    """Whether the message has a provider's own summary."""
    return any(map(is_summary, message.parts))


def tool_result(call_id: str, text: str, *, is_error: bool = False) -> Message:
    """Build the message that answers a tool call."""
    return Message("tool", (ToolResult(call_id, (Text(text),), is_error=is_error),))


def is_named(call_id: str) -> bool:
    """Whether a call or result came with an id."""
    return bool(call_id) and not call_id.startswith(UNNAMED)


def take_answered(results: Iterable[ToolResult], waiting: list[ToolCall]) -> list[ToolCall | None]:
    """Return for each result the call that it answers, None without one, and remove these from the ``waiting``
    calls. A result without an id answers the first of its name."""
    answered: list[ToolCall | None] = []
    for result in results:
        call = next((one for one in waiting if one.id == result.call_id), None)
        if call is None and not is_named(result.call_id):
            call = next((one for one in waiting if one.name == result.name), None)
        if call is not None:
            waiting.remove(call)
        answered.append(call)
    return answered
