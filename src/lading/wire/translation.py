"""What both wires need to carry a conversation that came from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from msgspec import Struct

from lading.messages import Opaque, Part, Template
from lading.wire.shapes import copied

_DATA_URL = re.compile(r"data:([A-Za-z0-9.+-]+/[A-Za-z0-9.+-]+);base64,(.+)", re.DOTALL)


def stand_in_id(call_id: str) -> str:
    """A legal tool-call id (37 characters) in place of one the wire refuses; equal ids give equal ones."""
    return "call_" + sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class PartTypes(Struct, frozen=True):
    """The parts that a wire takes."""

    words: Mapping[str, str]
    """The wire's word for each kind of part, by its tag."""
    takes: Mapping[str, frozenset[str]]
    """The types of parts that may stand in a message of each role, in its words, and in a tool ``result``."""
    carries: Callable[..., bool]
    """Whether a part of a fitting type can be written: ``carries(part, card, native=...)``."""
    read: Callable[[Any, str], Part]
    """A provider's part to ours; an ``Opaque`` part for an unknown type. Raises WireError."""
    moves: frozenset[str] = frozenset()
    """The types that a tool result cannot hold and a user message after it can."""

    def word(self, part: Part) -> str:
        """The wire's word for a part; of an ``Opaque`` one the provider's own."""
        return type_of(part) if isinstance(part, Opaque) else self.words[str(part.__struct_config__.tag)]


def left_out(what: str, pointer: str = "") -> str:
    """The words in place of something that the wire cannot carry."""
    return f"[{what} left out. Original: {pointer}]" if pointer else f"[{what} left out]"


def system_words(text: str) -> str:
    """A system message as words of a user message, for a wire that takes it no other way there."""
    return f"<system>\n{text}\n</system>"


def type_of(part: Opaque) -> str:
    """The provider's word for an unknown part, shortened."""
    value = part.value if isinstance(part.value, dict) else {}
    kind = value["type"] if "type" in value else next(iter(value), None)
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
