"""Our values to a Messages request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lading.messages import Conversation, Message, Template, Tool
from lading.models.card import Card
from lading.wire.anthropic.decoding import NAME
from lading.wire.anthropic.grouping import in_list, is_native, leading
from lading.wire.anthropic.parts import write_foreign, write_part
from lading.wire.shapes import copied
from lading.wire.templates import ABSENT, Piece, empty, fill, merged, write_content, written
from lading.wire.translation import system_words, translated

PARAMETERS = {
    "model": "model",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "stop": "stop_sequences",
    "stop_sequences": "stop_sequences",
    "stream": "stream",
}
"""The fields of a foreign request that are carried over, and their names here."""

EMPTY = "[empty message]"
"""What a message says that has nothing left to say: this wire takes no empty one."""


def envelope(conversation: Conversation) -> dict[str, Any]:
    """The body with its ``system``, and with an empty list of messages in its place."""
    template = conversation.template or {}
    if conversation.origin != NAME:
        template = translated(template, PARAMETERS)
        if isinstance(template.get("stop_sequences"), str):
            template["stop_sequences"] = [template["stop_sequences"]]
    tools = [item for tool in conversation.tools if (item := _tool(tool)) is not None]
    values = {
        "tools": tools or empty(template.get("tools"), otherwise=ABSENT),
        "system": _system(conversation.messages[: leading(conversation.messages)], template.get("system")),
        "messages": [],
    }
    return fill(template, values)


def encode_group(messages: Sequence[Message], card: Card) -> list[dict[str, Any]]:
    """The wire messages of a run that joins: one, and maybe a system message of the list after it."""
    role = messages[0].role
    if role == "assistant" or (in_list(messages[0]) and len(messages) == 1):
        return [_message(role, messages)]
    start = _closing_systems(messages) if card.conduct.mid_system else len(messages)
    items = [_message("user", messages[:start])]
    if start < len(messages):
        items.append(_message("system", messages[start:]))
    return items


def _closing_systems(messages: Sequence[Message]) -> int:
    """Where the system messages at the end start that may stand in the list: after a user's (rule A4)."""
    start = len(messages)
    while start and messages[start - 1].role == "system":
        start -= 1
    return start or len(messages)


def _system(messages: Sequence[Message], code: Any) -> Any:
    if not messages:
        return empty(code, otherwise=ABSENT)
    alone = messages[0] if len(messages) == 1 and is_native(messages[0]) else None
    pieces = [piece for message in messages for piece in _pieces(message, "system")]
    template = (alone.template if alone else None) or {}
    return write_content(pieces, template.get("system"), otherwise=ABSENT)


def _message(role: str, messages: Sequence[Message]) -> dict[str, Any]:
    pieces = [piece for message in messages for piece in _pieces(message, role)]
    alone = len(messages) == 1 and is_native(messages[0])
    if role == "user" and not alone:
        pieces.sort(key=lambda piece: not _is_result(piece))
    template = merged(_template(message) for message in messages)
    otherwise: Any = EMPTY
    if alone and template and "content" not in template:
        otherwise = ABSENT
    content = write_content(pieces, template.get("content") if alone else None, otherwise=otherwise)
    return fill(template, {"role": role, "content": content})


def _template(message: Message) -> Template:
    """The template of a message of the list that was decoded here; an empty one for any other."""
    template = message.template if is_native(message) and message.template else {}
    return template if "role" in template else {}


def _is_result(piece: Piece) -> bool:
    return isinstance(piece, dict) and piece.get("type") == "tool_result"


def _pieces(message: Message, role: str) -> Iterator[Piece]:
    """The message's parts in this wire's form, for a wire message of that role."""
    for part in message.parts:
        piece: Piece | None
        if is_native(message):
            piece = write_part(part, native=True)
        else:
            piece = write_foreign(part, media=message.role not in ("assistant", "system"))
        if message.role == "system" and role == "user":
            piece = _as_words(piece)
        if piece is not None:
            yield piece


def _as_words(piece: Piece | None) -> Piece | None:
    """A piece of a system message as a user may say it; only its texts are words."""
    if isinstance(piece, dict):
        return piece | {"text": system_words(piece["text"])} if isinstance(piece.get("text"), str) else piece
    return None if piece is None else system_words(piece)


def _tool(tool: Tool) -> dict[str, Any] | None:
    """The tool's declaration; None for another provider's own tool."""
    template = tool.template if tool.origin == NAME else None
    if tool.schema is None:
        return None if template is None else fill(template, {})
    values = {
        "name": tool.name,
        "description": written(tool.description, (template or {}).get("description")),
        "input_schema": copied(tool.schema, "input_schema"),
    }
    return fill(template, values)
