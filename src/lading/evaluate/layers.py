"""Count the tokens of messages by layer: text, arguments, reasoning, results, images, framing."""

from __future__ import annotations

from msgspec import Struct

from lading.economics import add_fields
from lading.messages import File, Image, Message, Part, Reasoning, Text, ToolCall, ToolResult
from lading.tokens.meter import MESSAGE_TOKENS, Meter

LAYERS: tuple[str, ...] = (
    "system",
    "tools",
    "user_text",
    "assistant_text",
    "tool_calls",
    "reasoning",
    "tool_results",
    "images",
    "other",
    "framing",
)
"""Layers of a recorded history. ``tool_calls``: names and arguments. ``images``: images and documents, including
those in results. ``other``: parts of unknown types. ``framing``: tokens that providers add to each message, and its
name."""

_LAYER_NAMES = {"tools": "tool schemas", "tool_calls": "tool calls, with arguments", "images": "images, documents"}
"""Names of layers in tables, where they differ from the key."""
_LAYER_OF: dict[type[Part], str] = {ToolCall: "tool_calls", ToolResult: "tool_results", Reasoning: "reasoning"}
_LAYER_OF |= {Image: "images", File: "images"}


class TokenTotal(Struct, frozen=True):
    """Number and tokens of items, and the tokens sent for them over all calls."""

    items: int = 0
    tokens: int = 0
    sent_tokens: int = 0
    """Tokens of each item, times the model calls whose append-only request holds it."""

    def __add__(self, other: TokenTotal) -> TokenTotal:
        return add_fields(self, other)


class MessageTokens(Struct, frozen=True):
    """Tokens of one message and of its parts."""

    tokens: int
    """Tokens of the whole message, by the session's meter."""
    parts: tuple[int, ...]
    """Tokens of each part, in order; with ``framing`` they add up to ``tokens``."""
    framing: int
    layers: tuple[tuple[str, int], ...]
    """Layer and tokens of each part, then of the images in results; they add up to ``sum(parts)``."""


def name_layer(layer: str) -> str:
    """Return the name of a layer for tables."""
    return _LAYER_NAMES.get(layer, layer.replace("_", " "))


def count_layers(message: Message, meter: Meter) -> MessageTokens:
    """Count the tokens of a message and of its parts. Rounding differences are added to the largest part."""
    total = meter.count_message(message)
    framing = min(meter.count_message(message.with_parts(())), total)
    parts = [total - framing] if len(message.parts) == 1 else [_count_part(part, meter) for part in message.parts]
    if parts:
        largest = parts.index(max(parts))
        parts[largest] += total - framing - sum(parts)
    layers: list[tuple[str, int]] = []
    pictures: list[tuple[str, int]] = []
    for part, tokens in zip(message.parts, parts, strict=True):
        inside = [_count_part(item, meter) for item in _find_media(part)]
        layers.append((_classify_part(part, message), tokens - sum(inside)))
        pictures += [("images", item) for item in inside]
    return MessageTokens(total, tuple(parts), framing, (*layers, *pictures))


def _count_part(part: Part, meter: Meter) -> int:
    return meter.count_message(Message("user", (part,))) - MESSAGE_TOKENS


def _find_media(part: Part) -> list[Image | File]:
    if not isinstance(part, ToolResult):
        return []
    return [item for item in part.parts if isinstance(item, Image | File)]


def _classify_part(part: Part, message: Message) -> str:
    if isinstance(part, Text) and message.role in ("system", "user", "assistant"):
        return "system" if message.role == "system" else f"{message.role}_text"
    return _LAYER_OF.get(type(part), "other")
