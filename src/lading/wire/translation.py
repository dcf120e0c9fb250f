"""Translate conversations between wires: functions and values that all wires share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any

from msgspec import Struct

from lading.messages import Message, Opaque, Part, Template
from lading.validation import snake_case
from lading.wire.templates import copy_json

_IGNORED = frozenset(
    {
        "cache_control",
        "created_by",
        "index",
        "parsed",
        "parsed_arguments",
        "parsed_output",
        "prompt_cache_breakpoint",
    }
)
"""Fields of a provider's part without content: cache marks, and fields of replies alone, some added by SDKs."""
_BYTES = frozenset({"data", "thoughtSignature", "thought_signature"})
"""Fields with bytes in base64."""
_DEFAULTS = {"caller": {"type": "direct"}}
"""Fields that have no content if they have these values."""
_DATA_URL = re.compile(r"data:([A-Za-z0-9.+-]+/[A-Za-z0-9.+-]+);base64,(.+)", re.DOTALL)


def make_legal_id(call_id: str) -> str:
    """Return a legal tool-call id (37 characters) for one that the wire refuses; equal ids give equal results."""
    return "call_" + sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class PartTypes(Struct, frozen=True):
    """The types of parts that a wire accepts."""

    words: Mapping[str, str]
    """The wire's word for each kind of part, by its tag."""
    takes: Mapping[str, frozenset[str]]
    """The types of parts, in the wire's words, that a message of each role and a tool ``result`` may contain."""
    carries: Callable[..., bool]
    """Whether a part of a fitting type can be written: ``carries(part, card, native=...)``."""
    read: Callable[[Any, str], Part]
    """Decode a provider's part; an unknown type gives an ``Opaque`` part. Raises WireError."""
    moves: frozenset[str] = frozenset()
    """The types that a tool result cannot contain but a user message after it can."""

    def word(self, part: Part) -> str:
        """Return the wire's word for a part's type; for an ``Opaque`` part, the provider's own."""
        return type_of(part) if isinstance(part, Opaque) else self.words[str(part.__struct_config__.tag)]


def left_out_note(what: str, pointer: str = "") -> str:
    """Return the text that replaces a part which the wire cannot express."""
    return f"[{what} left out. Original: {pointer}]" if pointer else f"[{what} left out]"


def mark_system(text: str) -> str:
    """Return a system message's text for a user message, for a wire that accepts no system message there."""
    return f"<system>\n{text}\n</system>"


def type_of(part: Opaque) -> str:
    """Return the provider's type of an unknown part, at most 40 characters."""
    value = part.value if isinstance(part.value, dict) else {}
    fields = (key for key, inner in value.items() if inner is not None)
    kind = value["type"] if "type" in value else next(fields, None)
    return kind[:40] if isinstance(kind, str) and kind else "part"


def data_url(media_type: str, data: str) -> str:
    """Return inline content as a ``data:`` URL."""
    return f"data:{media_type};base64,{data}"


def split_data_url(url: str) -> tuple[str, str] | None:
    """Return media type and base64 of a ``data:`` URL; None for any other URL."""
    match = _DATA_URL.fullmatch(url)
    return (match[1], match[2]) if match else None


def translate_fields(template: Template | None, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the request fields in ``names`` under their names in the other wire, without null ones."""
    fields = {}
    for key, value in (template or {}).items():
        if key in names and value is not None:
            fields[names[key]] = copy_json(value, key)
    return fields


def has_unnamed_calls(message: Message) -> bool:
    """Whether the message is of OpenAI's old style, whose calls and results have ids only by position."""
    template = message.template or {}
    answers = template.get("role") == "function" and "tool_call_id" not in template
    return answers or template.get("function_call") == "call"


def same_alphabet(data: str) -> str:
    """Return base64 in its first alphabet: Google's SDK writes bytes in the one for URLs."""
    return data.replace("-", "+").replace("_", "/")


@lru_cache(maxsize=4096)
def _spell(key: str) -> str:
    return next(iter(snake_case({key: None})))


def strip_content(value: Any) -> Any:
    """Return the value without nulls, cache marks and defaults, which SDKs and callers add or omit, and with bytes
    in one alphabet."""
    if isinstance(value, list):
        return [strip_content(item) for item in value]
    if not isinstance(value, dict):
        return value
    if isinstance(audio := value.get("audio"), dict) and "id" in audio:
        # The provider stores the audio; its other fields are in replies only.
        value = {**value, "audio": {"id": audio["id"]}}
    value = {
        key: same_alphabet(inner) if key in _BYTES and isinstance(inner, str) else inner
        for key, inner in value.items()
    }
    # Python cannot have a field `from`: SDKs name it `from_`.
    # Google's API and SDK spell fields in two ways.
    fields = (
        (_spell(key.rstrip("_")), strip_content(inner)) for key, inner in value.items() if key not in _IGNORED
    )
    return {key: inner for key, inner in fields if inner is not None and inner != _DEFAULTS.get(key, _IGNORED)}
