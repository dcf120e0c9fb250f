"""Encode our values as a Messages request: the groups of messages, the blocks of their parts, the body."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from lading.messages import (
    Conversation,
    File,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Template,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from lading.models.card import Card
from lading.wire.anthropic.decoding import NAME, read_part, write_document, write_image
from lading.wire.arguments import write_arguments
from lading.wire.templates import ABSENT, Piece, copy_json, fill, merge, write_content, write_empty, write_text
from lading.wire.translation import PartTypes, left_out_note, make_legal_id, mark_system, translate_fields, type_of


def is_native(message: Message) -> bool:
    """Whether the message was decoded from this wire."""
    return message.origin == NAME


def is_in_list(message: Message) -> bool:
    """Whether the message is a system message that was decoded from among the messages."""
    return message.role == "system" and is_native(message) and "role" in (message.template or ())


def count_leading(messages: Sequence[Message]) -> int:
    """Count the first messages that are written to the body's ``system``."""
    for index, message in enumerate(messages):
        if message.role != "system" or is_in_list(message):
            return index
    return len(messages)


def joins(group: Sequence[Message], after: Message, *, card: Card) -> bool:
    """Whether a group and the message after it are written as one message.

    Both must be on the same side: results and system messages of other formats are on the user's. Messages of this
    format stay separate, unless the endpoint requires alternating roles. A system message among the messages is
    joined with a user message of another format after it, because otherwise only the assistant may follow it (rule
    A4).
    """
    before = group[-1]
    if _find_side(before) != _find_side(after):
        return False
    if card.conduct.dialect in ("bedrock", "strict"):
        return True
    if is_in_list(before):
        return not is_in_list(after) and (card.conduct.mid_system or not is_native(after))
    return not is_in_list(after) and not (is_native(before) and is_native(after))


def _find_side(message: Message) -> str:
    return "assistant" if message.role == "assistant" else "user"


_ID = re.compile(r"[a-zA-Z0-9_-]+")
_SHOWN = ("text", "image", "document", "search_result")
_SERVER_TOOLS = ("web_search", "web_fetch", "code_execution", "bash_code_execution", "text_editor_code_execution")
_SERVER_RESULTS = (f"{tool}_tool_result" for tool in (*_SERVER_TOOLS, "tool_search", "advisor", "mcp"))
_ISSUERS = (NAME, "bedrock")
"""Whose reasoning goes back, if it is signed: nobody else's signatures can be verified."""
_SAID = ("text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use")


def is_signed(reasoning: Reasoning, *, native: bool) -> bool:
    """Whether reasoning has the signature, or the encryption, of this provider. Where its issuer is not known, that
    of another format with a template of its own is another's."""
    if not (reasoning.signature or reasoning.data):
        return False
    return reasoning.provenance in _ISSUERS if reasoning.provenance else native or reasoning.template is None


def carries(part: Part, card: Card, *, native: bool) -> bool:
    """Whether a part can be written as a block."""
    del card
    match part:
        case Reasoning():
            return is_signed(part, native=native)
        case Image() if not native:
            return bool(part.data or part.url)
        case File() if not native:
            return bool(part.url or (part.data and part.media_type in ("text/plain", "application/pdf", "")))
        case _:
            return True


PARTS = PartTypes(
    words={
        "text": "text",
        "image": "image",
        "file": "document",
        "tool_call": "tool_use",
        "tool_result": "tool_result",
        "reasoning": "thinking",
    },
    takes={
        "system": frozenset({"text", "tool_addition", "tool_removal"}),
        "user": frozenset({*_SHOWN, "tool_result", "container_upload"}),
        "assistant": frozenset({*_SAID, *_SERVER_RESULTS, "container_upload", "compaction"}),
        "tool": frozenset({"tool_result"}),
        "result": frozenset({*_SHOWN, "tool_reference"}),
    },
    carries=carries,
    read=read_part,
)


def drop_blank_texts(part: Part) -> Part | None:
    """Return the part without blank texts inside, which this wire refuses; None for a blank text."""
    match part:
        case Text():
            return part if part.text.strip() else None
        case ToolResult():
            kept = tuple(found for inner in part.parts if (found := drop_blank_texts(inner)) is not None)
            return part if kept == part.parts else replace(part, parts=kept)
        case Opaque() if type_of(part) == "search_result" and isinstance(blocks := part.value.get("content"), list):
            texts = [block for block in blocks if not _is_blank(block)]
            filled = {"content": texts or [{"type": "text", "text": EMPTY}]}
            return part if len(texts) == len(blocks) else replace(part, value=part.value | filled)
        case _:
            return part


def _is_blank(block: Any) -> bool:
    text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
    return isinstance(text, str) and not text.strip()


def write_part(part: Part, *, native: bool) -> Piece:
    """Encode a part; ``native`` if its template is of this wire. Plain text stays a string."""
    match part:
        case Text():
            return fill(part.template, {"text": part.text}) if native and part.template else part.text
        case Image():
            return write_image(part, native=native)
        case File():
            return write_document(part, native=native)
        case ToolCall():
            return _write_call(part, native=native)
        case ToolResult():
            return _write_result(part, native=native)
        case Reasoning():
            return _write_reasoning(part, native=native)
        case _:
            return dict(copy_json(part.value, "part")) if native else left_out_note(type_of(part))


def write_foreign(part: Part, *, media: bool) -> Piece | None:
    """Encode a part of another format; None for blank text and reasoning without a signature of this
    provider, which it refuses. ``media``: whether the message may contain images and documents."""
    match part:
        case Text() if not part.text.strip():
            return None
        case Reasoning() if not is_signed(part, native=False):
            return None
    piece = write_part(part, native=False)
    if isinstance(part, Image | File) and not media and not isinstance(piece, str):
        return left_out_note("image" if isinstance(part, Image) else "document")
    return piece


def _write_call(call: ToolCall, *, native: bool) -> dict[str, Any]:
    template = call.template if native else None
    written = write_arguments(call.arguments, (template or {}).get("input"))
    fields = {"id": _write_id(call.id, native), "name": call.name, "input": written}
    return fill(template or {"type": "tool_use"}, fields)


def _write_result(result: ToolResult, *, native: bool) -> dict[str, Any]:
    template = (result.template if native else None) or {"type": "tool_result"}
    if native:
        kept = map(drop_blank_texts, result.parts)
        pieces = [write_part(part, native=True) for part in kept if part is not None]
    else:
        found = (write_foreign(part, media=True) for part in result.parts)
        pieces = [piece for piece in found if piece is not None]
    is_error: Any = {"bool": False, "null": None}.get(template.get("is_error", ""), ABSENT)
    fields = {
        "tool_use_id": _write_id(result.call_id, native),
        "content": write_content(pieces, template.get("content"), otherwise=ABSENT),
        "is_error": result.is_error or is_error,
    }
    return fill(template, fields)


def _write_reasoning(part: Reasoning, *, native: bool) -> dict[str, Any]:
    template = part.template if native else None
    if part.data is not None:
        return fill(template or {"type": "redacted_thinking"}, {"data": part.data})
    signature: Any = part.signature
    if signature is None:
        signature = write_empty((template or {}).get("signature"), otherwise=ABSENT)
    return fill(template or {"type": "thinking"}, {"thinking": part.text, "signature": signature})


def _write_id(call_id: str, native: bool) -> str:
    return call_id if native or _ID.fullmatch(call_id) else make_legal_id(call_id)


PARAMETERS = {
    name: name for name in ("model", "max_tokens", "temperature", "top_p", "stop_sequences", "stream")
} | {"max_completion_tokens": "max_tokens", "stop": "stop_sequences"}
"""The fields of a foreign request that are carried over, and their names here."""

EMPTY = "[empty message]"
"""Text of a message without content, because this wire accepts no empty message."""


def envelope(conversation: Conversation) -> dict[str, Any]:
    """Encode the body with its ``system`` and an empty list of messages."""
    template = conversation.template or {}
    if conversation.origin != NAME:
        template = translate_fields(template, PARAMETERS)
        if isinstance(template.get("stop_sequences"), str):
            template["stop_sequences"] = [template["stop_sequences"]]
    tools = [item for tool in conversation.tools if (item := _write_tool(tool)) is not None]
    values = {
        "tools": tools or write_empty(template.get("tools"), otherwise=ABSENT),
        "system": _write_system(
            conversation.messages[: count_leading(conversation.messages)], template.get("system")
        ),
        "messages": [],
    }
    return fill(template, values)


def encode_group(messages: Sequence[Message], card: Card) -> list[dict[str, Any]]:
    """Encode a group: one wire message, and a system message after it if the model accepts it."""
    role = messages[0].role
    if role == "assistant" or (is_in_list(messages[0]) and len(messages) == 1):
        return [_write_message(role, messages)]
    start = _find_closing_systems(messages) if card.conduct.mid_system else len(messages)
    items = [_write_message("user", messages[:start])]
    if start < len(messages):
        items.append(_write_message("system", messages[start:]))
    return items


def extend(item: dict[str, Any], text: str, *, card: Card) -> dict[str, Any]:
    """Append a text to a message of the user, after its results."""
    del card
    content = item["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {**item, "content": [*blocks, {"type": "text", "text": text}]}


def _find_closing_systems(messages: Sequence[Message]) -> int:
    """Return the index of the first system message at the end, if a user message is before it (rule A4); else the
    number of messages."""
    start = len(messages)
    while start and messages[start - 1].role == "system":
        start -= 1
    return start or len(messages)


def _write_system(messages: Sequence[Message], code: Any) -> Any:
    if not messages:
        return write_empty(code, otherwise=ABSENT)
    alone = messages[0] if len(messages) == 1 and is_native(messages[0]) else None
    pieces = [piece for message in messages for piece in _write_pieces(message, "system")]
    template = (alone.template if alone else None) or {}
    return write_content(pieces, template.get("system"), otherwise=ABSENT)


def _write_message(role: str, messages: Sequence[Message]) -> dict[str, Any]:
    pieces = [piece for message in messages for piece in _write_pieces(message, role)]
    alone = len(messages) == 1 and is_native(messages[0])
    if role == "user" and not alone:
        pieces.sort(key=lambda piece: not (isinstance(piece, dict) and piece.get("type") == "tool_result"))
    template = merge(_find_template(message) for message in messages)
    otherwise: Any = EMPTY
    if alone and template and "content" not in template:
        otherwise = ABSENT
    content = write_content(pieces, template.get("content") if alone else None, otherwise=otherwise)
    return fill(template, {"role": role, "content": content})


def _find_template(message: Message) -> Template:
    """Return the template of a message that was decoded from among the messages; an empty one for any other."""
    template = message.template if is_native(message) and message.template else {}
    return template if "role" in template else {}


def _write_pieces(message: Message, role: str) -> Iterator[Piece]:
    """Encode the message's parts for a wire message of that role."""
    for part in message.parts:
        piece: Piece | None
        if is_native(message):
            kept = drop_blank_texts(part)
            piece = None if kept is None else write_part(kept, native=True)
        else:
            # Before provenances were stored, what came in another format says so alone.
            is_foreign = isinstance(part, Reasoning) and bool(message.origin)
            piece = None if is_foreign else write_foreign(part, media=message.role not in ("assistant", "system"))
        if message.role == "system" and role == "user":
            piece = _mark_piece_as_system(piece)
        if piece is not None:
            yield piece


def _mark_piece_as_system(piece: Piece | None) -> Piece | None:
    """Return a piece of a system message for a user message: text is marked, other blocks are unchanged."""
    if isinstance(piece, dict):
        return piece | {"text": mark_system(piece["text"])} if isinstance(piece.get("text"), str) else piece
    return None if piece is None else mark_system(piece)


def _write_tool(tool: Tool) -> dict[str, Any] | None:
    """Encode the tool's declaration; None for another provider's own tool."""
    template = tool.template if tool.origin == NAME else None
    if tool.schema is None:
        return None if template is None else fill(template, {})
    values = {
        "name": tool.name,
        "description": write_text(tool.description, (template or {}).get("description")),
        "input_schema": copy_json(tool.schema, "input_schema"),
    }
    return fill(template, values) | ({"defer_loading": True} if tool.deferred else {})
