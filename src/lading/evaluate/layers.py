"""Tokens of a message by layer: words, arguments, reasoning, results, pictures, framing."""

from __future__ import annotations

from msgspec import Struct

from lading.messages import File, Image, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
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
"""The layers of a recorded history. ``tool_calls``: names and arguments. ``images``: pictures and documents,
those inside results too. ``other``: parts of types unknown here. ``framing``: what providers add around each
message, and its name."""

_LAYER_NAMES = {"tools": "tool schemas", "tool_calls": "tool calls, with arguments", "images": "images, documents"}
"""What tables call the layers whose names do not say enough."""


class Mass(Struct, frozen=True):
    """How much of something there is, and how much of it is sent."""

    items: int = 0
    tokens: int = 0
    sent_tokens: int = 0
    """Its tokens once for each model call whose append-only request holds it."""

    def __add__(self, other: Mass) -> Mass:
        return Mass(self.items + other.items, self.tokens + other.tokens, self.sent_tokens + other.sent_tokens)


class Weight(Struct, frozen=True):
    """The tokens of one message."""

    tokens: int
    """As the session's meter counts the whole message."""
    parts: tuple[int, ...]
    """Tokens of each part, in order; with ``framing`` they add up to ``tokens``."""
    framing: int
    layers: tuple[tuple[str, int], ...]
    """Layer and tokens of each part, then of the pictures inside results; adds up to ``sum(parts)``."""


def name_layer(layer: str) -> str:
    """Name a layer as tables do."""
    return _LAYER_NAMES.get(layer, layer.replace("_", " "))


def weigh(message: Message, meter: Meter) -> Weight:
    """The tokens of a message and of its parts. Rounding between parts and whole falls to the largest part."""
    total = meter.count_message(message)
    framing = min(meter.count_message(message.with_parts(())), total)
    parts = [total - framing] if len(message.parts) == 1 else [_alone(part, meter) for part in message.parts]
    if parts:
        largest = parts.index(max(parts))
        parts[largest] += total - framing - sum(parts)
    layers: list[tuple[str, int]] = []
    pictures: list[tuple[str, int]] = []
    for part, tokens in zip(message.parts, parts, strict=True):
        inside = [_alone(item, meter) for item in _pictures(part)]
        layers.append((_layer(part, message), tokens - sum(inside)))
        pictures += [("images", item) for item in inside]
    return Weight(total, tuple(parts), framing, (*layers, *pictures))


def _alone(part: Part, meter: Meter) -> int:
    return meter.count_message(Message("user", (part,))) - MESSAGE_TOKENS


def _pictures(part: Part) -> list[Image | File]:
    if not isinstance(part, ToolResult):
        return []
    return [item for item in part.parts if isinstance(item, Image | File)]


def _layer(part: Part, message: Message) -> str:
    match part:
        case ToolCall():
            return "tool_calls"
        case ToolResult():
            return "tool_results"
        case Reasoning():
            return "reasoning"
        case Image() | File():
            return "images"
        case Opaque():
            return "other"
        case Text() if message.role in ("system", "user", "assistant"):
            return "system" if message.role == "system" else f"{message.role}_text"
        case _:
            return "other"
