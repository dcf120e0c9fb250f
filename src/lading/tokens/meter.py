"""Count messages and tools: everything that a provider bills as input, once.

Texts, reasoning, call names and arguments, result texts, names, opaque parts as compact JSON, and tool schemas go
through the counter and its multiplier. Framing, pictures and documents are added unscaled, as the provider's own
figures. Identifiers, cache marks and other fields of a provider's object are not counted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

from msgspec import Struct

from lading import jsonbytes
from lading.errors import ModelError
from lading.messages import File, Image, Message, Opaque, Part, Reasoning, Text, Tool, ToolCall, ToolResult
from lading.models.card import TokenFacts
from lading.tokens import Counter, counter
from lading.tokens.images import UNKNOWN_IMAGE_TOKENS, count_document_tokens, count_image_tokens

MESSAGE_TOKENS = 4
RESULT_TOKENS = 4
"""Framing of a message, and of each tool result in it."""

_CHARS_PER_HIDDEN_TOKEN = 16 / 3
"""Signed or encrypted reasoning is base64 of the reasoning: 4 characters are 3 bytes, 4 bytes one token."""

COUNTED_CHARS = 1_000_000
"""A longer text is estimated from evenly spaced samples."""
_SAMPLES, _SAMPLE_CHARS = 256, 2_048

_json = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), skipkeys=True, default=lambda value: type(value).__name__
)


class Meter(Struct, frozen=True):
    """A counter and the factor from its figure to the provider's. Stateless: callers keep the figures."""

    counter: Counter
    multiplier: float = 1.0
    call_tokens: int = 0
    plain_arguments: bool = False
    """Both as in ``TokenFacts``."""

    def count_message(self, message: Message) -> int:
        """Count a message with its framing, rounded up. An added part never lowers the count."""
        counted, fixed = self._count_parts(message.name, message.parts)
        return math.ceil(counted * self.multiplier) + MESSAGE_TOKENS + fixed

    def count_tools(self, tools: Sequence[Tool]) -> int:
        """Count the array of tool definitions as compact JSON, rounded up: in OpenAI's function form, the
        largest of the usual ones, or as the provider's object for a provider's own tool. 0 without tools. Those
        that wait for a result to refer to them are no part of the prompt."""
        tools = [tool for tool in tools if tool.deferred != "waiting"]
        if not tools:
            return 0
        counted = self._count(_json.encode([_build_definition(tool) for tool in tools]))
        return math.ceil(counted * self.multiplier)

    def _count(self, text: str) -> int:
        """Count a text; estimate one above ``COUNTED_CHARS`` in constant time."""
        if len(text) <= COUNTED_CHARS:
            return self.counter.count(text)
        step = (len(text) - _SAMPLE_CHARS) // (_SAMPLES - 1)
        starts = range(0, step * _SAMPLES, step)
        sampled = sum(self.counter.count(text[start : start + _SAMPLE_CHARS]) for start in starts)
        return -(-sampled * len(text) // (_SAMPLES * _SAMPLE_CHARS))

    def _count_part(self, part: Part) -> tuple[int, int]:
        match part:
            case Text():
                return self._count(part.text), 0
            case ToolResult():
                counted, fixed = self._count_parts(part.name, part.parts)
                return counted, RESULT_TOKENS + self.call_tokens + fixed
            case ToolCall():
                arguments = _flatten_arguments(part.arguments) if self.plain_arguments else part.arguments
                return self._count(part.name) + self._count(arguments), self.call_tokens
            case Reasoning():
                return self._count_reasoning(part), 0
            case Image():
                return 0, _count_image(part)
            case File():
                return self._count_file(part)
            case Opaque():
                return self._count(_json.encode(part.value)), 0

    def _count_parts(self, name: str, parts: Sequence[Part]) -> tuple[int, int]:
        counted, fixed = self._count(name) if name else 0, 0
        for part in parts:
            of_text, of_other = self._count_part(part)
            counted += of_text
            fixed += of_other
        return counted, fixed

    def _count_reasoning(self, part: Reasoning) -> int:
        hidden = max(len(part.signature or ""), len(part.data or ""))
        return max(self._count(part.text), math.ceil(hidden / _CHARS_PER_HIDDEN_TOKEN))

    def _count_file(self, part: File) -> tuple[int, int]:
        name = self._count(part.name) if part.name else 0
        if part.media_type == "text/plain" and part.data:
            return name + self._count(part.data), 0
        return name, count_document_tokens(part.data)


def meter(facts: TokenFacts) -> Meter:
    """Build the meter for a model card. Raises UnknownName for the counter, ModelError for the multiplier."""
    if not (math.isfinite(facts.multiplier) and facts.multiplier > 0):
        raise ModelError(f"The multiplier {facts.multiplier} is not a positive number; use 1.0 for none.")
    return Meter(counter(facts.counter), facts.multiplier, facts.call_tokens, facts.plain_arguments)


def _flatten_arguments(arguments: str) -> str:
    """Return names and values on lines of their own, strings unquoted; no JSON object: the text itself."""
    try:
        fields = jsonbytes.load(arguments)
    except ValueError:
        return arguments
    if not isinstance(fields, dict):
        return arguments
    values = (value if isinstance(value, str) else _json.encode(value) for value in fields.values())
    return "\n".join(chain.from_iterable(zip(fields, values, strict=True)))


def _count_image(part: Image) -> int:
    inline = part.data or (part.url if part.url.startswith("data:") else "")
    return count_image_tokens(inline) if inline else UNKNOWN_IMAGE_TOKENS


def _build_definition(tool: Tool) -> dict[str, Any]:
    if tool.schema is None:
        return tool.template or {"name": tool.name, "description": tool.description}
    function = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": function}
