"""Small recordings for the tests of evaluation, and a counter whose figures can be checked by eye."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from lading.messages import Message, Text, ToolCall, ToolResult
from lading.sources import Recording

WORDS_COUNTER = "tests.evaluate.sessions:WORDS"


class Words(Struct, frozen=True):
    """One token a word."""

    name: str = "words"

    def count(self, text: str) -> int:
        return len(text.split())


WORDS = Words()


def said(role: Any, text: str) -> Message:
    return Message(role, (Text(text),))


def asks(*calls: tuple[str, str, str]) -> Message:
    return Message("assistant", tuple(ToolCall(*call) for call in calls))


def gives(call_id: str, text: str, *, is_error: bool = False, name: str = "") -> Message:
    parts = (Text(text),) if text else ()
    return Message("tool", (ToolResult(call_id, parts, is_error=is_error, name=name),))


def recorded(*messages: Message, **fields: Any) -> Recording:
    facts = {"id": "s", "model": "gpt-4o", **fields}
    return Recording(messages=messages, raw_indices=tuple(range(len(messages))), **facts)
