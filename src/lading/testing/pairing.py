"""Calls and results are paired: the rule checked a second time, in plain words.

``lading.wire`` has its own check of this. This one shares no line with it, so that one mistake cannot hide in
both. It says only what every provider says: each call is answered once, right after it, and nothing else is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lading.errors import Violation


def unpaired(wire: str, body: Mapping[str, Any]) -> list[Violation]:
    """The places of a body where a call and its result do not stand together."""
    messages = body.get("messages")
    listed = [item for item in messages if isinstance(item, dict)] if isinstance(messages, list) else []
    return list(_chat(listed) if wire == "openai_chat" else _turns(listed))


def _chat(messages: list[dict[str, Any]]) -> Iterator[Violation]:
    open_calls: list[Any] = []
    for index, message in enumerate(messages):
        if message.get("role") == "tool":
            call = message.get("tool_call_id")
            if call in open_calls:
                open_calls.remove(call)
            else:
                yield Violation("C2", "E", f"messages.{index}.role", f"{call!r} is not being waited for here")
            continue
        if open_calls:
            yield Violation("C1", "E", f"messages.{index - 1}", f"not answered: {open_calls}")
        open_calls = [call.get("id") for call in message.get("tool_calls") or () if isinstance(call, dict)]
    if open_calls:
        yield Violation("C1", "E", f"messages.{len(messages) - 1}", f"not answered at the end: {open_calls}")


def _turns(messages: list[dict[str, Any]]) -> Iterator[Violation]:
    turns: list[tuple[str, int, list[Any]]] = []
    for index, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        held = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        if turns and turns[-1][0] == role:
            turns[-1][2].extend(held)
        elif role in ("user", "assistant"):
            turns.append((str(role), index, held))
    asked: list[Any] = []
    for role, index, held in turns:
        results = [block.get("tool_use_id") for block in held if block.get("type") == "tool_result"]
        if role == "assistant":
            asked = [block.get("id") for block in held if block.get("type") == "tool_use"]
            continue
        missing = [call for call in asked if call not in results]
        extra = [call for call in results if call not in asked]
        if missing:
            yield Violation("A5", "E", f"messages.{index - 1}", f"not answered: {missing}")
        if extra or len(results) != len({str(call) for call in results}):
            yield Violation("A6", "E", f"messages.{index}", f"not asked for, or answered twice: {extra or results}")
        asked = []
    if asked:
        yield Violation("A5", "E", f"messages.{len(messages) - 1}", f"not answered at the end: {asked}")
