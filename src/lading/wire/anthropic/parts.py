"""Our parts as blocks of the Messages wire."""

from __future__ import annotations

import re
from typing import Any

from lading.messages import File, Image, Part, Reasoning, Text, ToolCall, ToolResult
from lading.wire.anthropic.inputs import write_input
from lading.wire.anthropic.media import write_document, write_image
from lading.wire.shapes import copied
from lading.wire.templates import ABSENT, Piece, empty, fill, write_content
from lading.wire.translation import left_out, stand_in_id, type_of

_ID = re.compile(r"[a-zA-Z0-9_-]+")


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
