"""Counting messages and tools: everything a provider bills as input is counted, nothing twice.

Texts, reasoning, call names and arguments, result texts, names, opaque parts as compact JSON, and tool
schemas go through the counter and its multiplier. Framing, pictures and documents are added as they are:
the provider's own figures. Identifiers, cache marks and other fields of a provider's object are not counted.
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
from lading.tokens.images import UNKNOWN_IMAGE_TOKENS, document_tokens, image_tokens

MESSAGE_TOKENS = 4
RESULT_TOKENS = 4
"""Framing of a message, and of each tool result in it."""

_CHARS_PER_HIDDEN_TOKEN = 16 / 3
"""Signed or encrypted reasoning is base64 of the reasoning: 4 characters are 3 bytes, 4 bytes one token."""

COUNTED_CHARS = 1_000_000
"""A longer text is not counted but estimated, from samples at even distances."""
_SAMPLES, _SAMPLE_CHARS = 256, 2_048

_json = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), skipkeys=True, default=lambda value: type(value).__name__
)


class Meter(Struct, frozen=True):
    """A counter and the factor from its figure to the provider's. Keeps nothing: callers keep the figures."""

    counter: Counter
    multiplier: float = 1.0
    call_tokens: int = 0
    plain_arguments: bool = False
    """Both as in ``TokenFacts``."""

    def count_message(self, message: Message) -> int:
        """Tokens of a message with its framing, rounded up. A message with one more part counts no less."""
        counted, fixed = self._together(message.name, message.parts)
        return self._scaled(counted) + MESSAGE_TOKENS + fixed

    def count_tools(self, tools: Sequence[Tool]) -> int:
        """Tokens of the array of tool definitions as compact JSON, rounded up: OpenAI's function form, the
        largest of the usual ones; a provider's own tool as the provider's object. No tools: 0."""
        if not tools:
            return 0
        return self._scaled(self._count(_json.encode([_definition(tool) for tool in tools])))

    def _count(self, text: str) -> int:
        """Tokens of a text; of one above ``COUNTED_CHARS`` an estimate, which takes no longer for a longer one."""
        if len(text) <= COUNTED_CHARS:
            return self.counter.count(text)
        step = (len(text) - _SAMPLE_CHARS) // (_SAMPLES - 1)
        starts = range(0, step * _SAMPLES, step)
        sampled = sum(self.counter.count(text[start : start + _SAMPLE_CHARS]) for start in starts)
        return -(-sampled * len(text) // (_SAMPLES * _SAMPLE_CHARS))

    def _scaled(self, counted: int) -> int:
        return math.ceil(counted * self.multiplier)

    def _part(self, part: Part) -> tuple[int, int]:
        match part:
            case Text():
                return self._count(part.text), 0
            case ToolResult():
                return self._result(part)
            case ToolCall():
                arguments = _plain(part.arguments) if self.plain_arguments else part.arguments
                return self._count(part.name) + self._count(arguments), self.call_tokens
            case Reasoning():
                return self._reasoning(part), 0
            case Image():
                return 0, _image(part)
            case File():
                return self._file(part)
            case Opaque():
                return self._count(_json.encode(part.value)), 0

    def _result(self, result: ToolResult) -> tuple[int, int]:
        counted, fixed = self._together(result.name, result.parts)
        return counted, RESULT_TOKENS + self.call_tokens + fixed

    def _together(self, name: str, parts: Sequence[Part]) -> tuple[int, int]:
        counted, fixed = self._count(name) if name else 0, 0
        for part in parts:
            of_text, of_other = self._part(part)
            counted += of_text
            fixed += of_other
        return counted, fixed

    def _reasoning(self, part: Reasoning) -> int:
        hidden = max(len(part.signature or ""), len(part.data or ""))
        return max(self._count(part.text), math.ceil(hidden / _CHARS_PER_HIDDEN_TOKEN))

    def _file(self, part: File) -> tuple[int, int]:
        name = self._count(part.name) if part.name else 0
        if part.media_type == "text/plain" and part.data:
            return name + self._count(part.data), 0
        return name, document_tokens(part.data)


def meter(facts: TokenFacts) -> Meter:
    """The meter a model card asks for. Raises UnknownName for a counter that does not exist, ModelError for
    a multiplier that is not a positive number."""
    if not (math.isfinite(facts.multiplier) and facts.multiplier > 0):
        raise ModelError(f"The multiplier {facts.multiplier} is not a positive number; use 1.0 for none.")
    return Meter(counter(facts.counter), facts.multiplier, facts.call_tokens, facts.plain_arguments)


def _plain(arguments: str) -> str:
    """The names and values of arguments, strings as they read; what is no object, as it is."""
    try:
        fields = jsonbytes.load(arguments)
    except ValueError:
        return arguments
    if not isinstance(fields, dict):
        return arguments
    values = (value if isinstance(value, str) else _json.encode(value) for value in fields.values())
    return "\n".join(chain.from_iterable(zip(fields, values, strict=True)))


def _image(part: Image) -> int:
    inline = part.data or (part.url if part.url.startswith("data:") else "")
    return image_tokens(inline) if inline else UNKNOWN_IMAGE_TOKENS


def _definition(tool: Tool) -> dict[str, Any]:
    if tool.schema is None:
        return tool.template or {"name": tool.name, "description": tool.description}
    function = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": function}
