"""What both wires need to carry a conversation that came from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from lading.messages import Opaque, Template
from lading.wire.shapes import copied

_DATA_URL = re.compile(r"data:([A-Za-z0-9.+-]+/[A-Za-z0-9.+-]+);base64,(.+)", re.DOTALL)


def stand_in_id(call_id: str) -> str:
    """A legal tool-call id (37 characters) in place of one the wire refuses; equal ids give equal ones."""
    return "call_" + sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def left_out(what: str) -> str:
    """The words in place of something that the wire cannot carry."""
    return f"[{what} left out]"


def system_words(text: str) -> str:
    """A system message as words of a user message, for a wire that takes it no other way there."""
    return f"<system>\n{text}\n</system>"


def type_of(part: Opaque) -> str:
    """The provider's word for an unknown part, shortened."""
    kind = part.value.get("type") if isinstance(part.value, dict) else None
    return kind[:40] if isinstance(kind, str) and kind else "part"


def data_url(media_type: str, data: str) -> str:
    """Inline content as a ``data:`` address."""
    return f"data:{media_type};base64,{data}"


def split_data_url(url: str) -> tuple[str, str] | None:
    """Media type and base64 of a ``data:`` address; None for any other address."""
    match = _DATA_URL.fullmatch(url)
    return (match[1], match[2]) if match else None


def translated(template: Template | None, names: Mapping[str, str]) -> dict[str, Any]:
    """The request fields that mean the same on both wires, under the names given; null ones left out."""
    fields = {}
    for key, value in (template or {}).items():
        if key in names and value is not None:
            fields[names[key]] = copied(value, key)
    return fields
