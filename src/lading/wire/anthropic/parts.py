"""Our parts as blocks of the Messages wire."""

from __future__ import annotations

import re
from typing import Any

from lading.messages import File, Image, Part, Reasoning, Text, ToolCall, ToolResult
from lading.models.card import Card
from lading.wire.anthropic.decoding import read_part
from lading.wire.anthropic.inputs import write_input
from lading.wire.anthropic.media import write_document, write_image
from lading.wire.shapes import copied
from lading.wire.templates import ABSENT, Piece, empty, fill, write_content
from lading.wire.translation import PartTypes, left_out, stand_in_id, type_of

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_SHOWN = ("text", "image", "document", "search_result")
_SERVER_TOOLS = ("web_search", "web_fetch", "code_execution", "bash_code_execution", "text_editor_code_execution")
_SERVER_RESULTS = (f"{tool}_tool_result" for tool in (*_SERVER_TOOLS, "tool_search", "advisor", "mcp"))
_SAID = ("text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use")


def carries(part: Part, card: Card, *, native: bool) -> bool:
    """Whether a part of ours can be written as a block."""
    del card
    match part:
        case Reasoning():
            return bool(part.signature or part.data)
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


def write_part(part: Part, *, native: bool) -> Piece:
    """The block of a part; ``native`` when its template is this wire's. Plain words stay a string."""
    match part:
        case Text():
            return fill(part.template, {"text": part.text}) if native and part.template else part.text
        case Image():
            return write_image(part, native=native)
        case File():
            return write_document(part, native=native)
        case ToolCall():
            return _call(part, native=native)
        case ToolResult():
            return _result(part, native=native)
        case Reasoning():
            return _reasoning(part, native=native)
        case _:
            return dict(copied(part.value, "part")) if native else left_out(type_of(part))


def write_foreign(part: Part, *, media: bool) -> Piece | None:
    """The block of a part from elsewhere; None where nothing of it can be said here.

    Blank text is refused by this wire, and so is reasoning without a signature. ``media`` says whether
    the message may hold pictures and documents.
    """
    match part:
        case Text() if not part.text.strip():
            return None
        case Reasoning() if part.signature is None and part.data is None:
            return None
    piece = write_part(part, native=False)
    if isinstance(part, Image | File) and not media and not isinstance(piece, str):
        return left_out("image" if isinstance(part, Image) else "document")
    return piece


def _call(call: ToolCall, *, native: bool) -> dict[str, Any]:
    template = call.template if native else None
    fields = {"id": _id(call.id, native), "name": call.name, "input": write_input(call, native=native)}
    return fill(template or {"type": "tool_use"}, fields)


def _result(result: ToolResult, *, native: bool) -> dict[str, Any]:
    template = (result.template if native else None) or {"type": "tool_result"}
    if native:
        pieces = [write_part(part, native=True) for part in result.parts]
    else:
        found = (write_foreign(part, media=True) for part in result.parts)
        pieces = [piece for piece in found if piece is not None]
    is_error: Any = {"bool": False, "null": None}.get(template.get("is_error", ""), ABSENT)
    fields = {
        "tool_use_id": _id(result.call_id, native),
        "content": write_content(pieces, template.get("content"), otherwise=ABSENT),
        "is_error": result.is_error or is_error,
    }
    return fill(template, fields)


def _reasoning(part: Reasoning, *, native: bool) -> dict[str, Any]:
    template = part.template if native else None
    if part.data is not None:
        return fill(template or {"type": "redacted_thinking"}, {"data": part.data})
    signature: Any = part.signature
    if signature is None:
        signature = empty((template or {}).get("signature"), otherwise=ABSENT)
    return fill(template or {"type": "thinking"}, {"thinking": part.text, "signature": signature})


def _id(call_id: str, native: bool) -> str:
    return call_id if native or _ID.fullmatch(call_id) else stand_in_id(call_id)
