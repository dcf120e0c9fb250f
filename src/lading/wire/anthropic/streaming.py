"""The events of a streamed Messages response: gathered into its body, edited on their way to the caller."""

from __future__ import annotations

from typing import Any

from lading import jsonbytes
from lading.wire.streams import Value, index_of, object_at, objects_at

_APPENDED = ("text", "thinking", "content")
"""Fields of a delta that go on with what the block says. A signature comes whole."""


class Collected:
    """Gathers events into the body of the response."""

    def __init__(self) -> None:
        self.finished = False
        self.failed = False
        self._message: Value = {}
        self._blocks: dict[int, Value] = {}
        self._inputs: dict[int, list[str]] = {}
        """What was streamed of the input of a call, by block."""

    @property
    def usage(self) -> Value:
        """What the request took, as far as it was told."""
        return object_at(self._message, "usage")

    def add(self, value: Value) -> None:
        """Take in the next event."""
        index = index_of(value)
        match value.get("type"):
            case "message_start":
                self._message = dict(object_at(value, "message"))
            case "content_block_start" if index is not None:
                self._blocks.setdefault(index, dict(object_at(value, "content_block")))
            case "content_block_delta" if index in self._blocks:
                self._grow(index, object_at(value, "delta"))
            case "message_delta":
                self._close(value)
            case "message_stop":
                self.finished = True
            case "error":
                self.failed = True

    def body(self) -> Value:
        """The response body so far. A call whose input is no object has the text in its place."""
        blocks = []
        for index, block in self._blocks.items():
            text = "".join(self._inputs.get(index, ()))
            blocks.append(block | {"input": _input_of(text)} if text else block)
        return {"type": "message", "role": "assistant"} | self._message | {"content": blocks}

    def _grow(self, index: int, delta: Value) -> None:
        block = self._blocks[index]
        for key, item in delta.items():
            if key == "partial_json" and isinstance(item, str):
                self._inputs.setdefault(index, []).append(item)
            elif key == "citation":
                block["citations"] = [*objects_at(block, "citations"), item]
            elif key in _APPENDED and isinstance(item, str) and isinstance(block.get(key), str):
                block[key] += item
            elif key != "type":
                block[key] = item

    def _close(self, value: Value) -> None:
        """What was said at the start or before is overwritten: counts are totals so far."""
        usage = self.usage
        news = {key: count for key, count in object_at(value, "usage").items() if count is not None}
        self._message |= object_at(value, "delta") | {"usage": usage | news}
        self.finished = self.finished or self._message.get("stop_reason") is not None


class BlockEdits:
    """Blocks of the held tool are cut out, those after them and those of a later stream renumbered."""

    def __init__(self, name: str, before: Value) -> None:
        blocks = objects_at(before, "content")
        self._name = name
        self._before = len(blocks)
        """Blocks that earlier streams of the answer showed."""
        self._started = "id" in before
        self._called = any(block.get("type") == "tool_use" for block in blocks)
        """Whether the caller was shown a call of its own."""
        self._held: set[int] = set()

    def numbered(self, value: Value) -> Value:
        """The event: this wire always says where a block stands."""
        return value

    def split(self, value: Value) -> tuple[Value | None, Value | None]:
        """Everything from where a block of the held tool starts is held back."""
        return (None, value) if self._holds(value) else (value, None)

    def edited(self, value: Value) -> Value | None:
        """The event as the caller gets it."""
        kind = value.get("type")
        if kind == "message_start" and self._started:
            return None
        if kind == "message_delta":
            return self._ending(value)
        index = index_of(value)
        if index is None:
            return value
        if self._holds(value):
            self._held.add(index)
        if index in self._held:
            return None
        place = self._before + index - sum(held < index for held in self._held)
        self._called = self._called or object_at(value, "content_block").get("type") == "tool_use"
        return value if place == index else value | {"index": place}

    def _holds(self, value: Value) -> bool:
        block = object_at(value, "content_block")
        return bool(self._name) and block.get("type") == "tool_use" and block.get("name") == self._name

    def _ending(self, value: Value) -> Value:
        delta = object_at(value, "delta")
        if delta.get("stop_reason") != "tool_use" or not self._held or self._called:
            return value
        return value | {"delta": delta | {"stop_reason": "end_turn"}}


def _input_of(text: str) -> Any:
    """The input that was streamed as text; the text itself where that spells no object (a reply cut short)."""
    try:
        value = jsonbytes.load(text)
    except ValueError:
        return text
    return value if isinstance(value, dict) else text
