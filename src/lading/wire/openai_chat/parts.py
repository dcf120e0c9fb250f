"""The parts that messages of the Chat Completions wire may hold."""

from __future__ import annotations

from lading.messages import File, Image, Part, Reasoning
from lading.models.card import Card
from lading.wire.openai_chat.decoding import read_part
from lading.wire.translation import PartTypes


def carries(part: Part, card: Card, *, native: bool) -> bool:
    """Whether a part of ours can be written in a message."""
    match part:
        case Reasoning() if not native:
            return bool(part.text) and card.conduct.reasoning_echo == "reasoning_content"
        case Image() if not native:
            return bool(part.data or part.url)
        case File() if not native:
            return bool(part.data)
        case _:
            return True


PARTS = PartTypes(
    words={
        "text": "text",
        "image": "image_url",
        "file": "file",
        "tool_call": "tool_calls",
        "tool_result": "tool message",
        "reasoning": "reasoning_content",
    },
    takes={
        "system": frozenset({"text"}),
        "user": frozenset({"text", "image_url", "file", "input_audio", "tool message"}),
        "assistant": frozenset({"text", "refusal", "audio", "tool_calls", "reasoning_content"}),
        "tool": frozenset({"tool message"}),
        "result": frozenset({"text"}),
    },
    carries=carries,
    read=read_part,
    moves=frozenset({"image_url", "file"}),
)
