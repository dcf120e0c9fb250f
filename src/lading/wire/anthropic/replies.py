"""Decode replies of the Messages API: whole, and as events that are edited on their way to the caller."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

from msgspec.structs import replace

from lading import jsonbytes
from lading.history.log import Reported
from lading.messages import Part, ToolCall
from lading.wire.anthropic.decoding import decode
from lading.wire.anthropic.state import SERVER_CALLS, is_server_result
from lading.wire.replies import Replies, Reply, read_counts, text_or_empty
from lading.wire.streams import EditedStream, StreamFormat, Value, object_at, objects_at, read_index
from lading.wire.templates import as_list, as_object, shape_error

_APPENDED = ("text", "thinking", "content")
"""Fields of a delta that are appended to the block's. A signature comes whole."""


class EventCollector:
    """Collects events into the body of the response."""

    def __init__(self) -> None:
        self.finished = False
        self.failed = False
        self._message: Value = {}
        self._blocks: dict[int, Value] = {}
        self._inputs: dict[int, list[str]] = {}
        """The streamed pieces of a call's input, by block."""

    @property
    def usage(self) -> Value:
        """The usage reported so far."""
        return object_at(self._message, "usage")

    def add(self, value: Value) -> None:
        """Add the next event."""
        index = read_index(value)
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
        """Return the response body so far. The input of a call is text if it does not parse to an object."""
        blocks = []
        for index, block in self._blocks.items():
            text = "".join(self._inputs.get(index, ()))
            blocks.append(block | {"input": _parse_input(text)} if text else block)
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
        """Replace earlier values: counts are totals so far."""
        usage = self.usage
        news = {key: count for key, count in object_at(value, "usage").items() if count is not None}
        self._message |= object_at(value, "delta") | {"usage": usage | news}
        self.finished = self.finished or self._message.get("stop_reason") is not None


class BlockEdits:
    """Edits that remove blocks of held tools and renumber those after them and those of a later stream."""

    def __init__(self, names: AbstractSet[str], before: Value) -> None:
        blocks = objects_at(before, "content")
        self._names = names
        self._before = len(blocks)
        """Number of blocks that the caller received by earlier streams of the answer."""
        self._started = "id" in before
        self._called = any(block.get("type") == "tool_use" for block in blocks)
        """Whether the caller received a call of one of its tools."""
        self._held: set[int] = set()

    def number(self, value: Value) -> Value:
        """Return the event unchanged: this wire always numbers blocks."""
        return value

    def split(self, value: Value) -> tuple[Value | None, Value | None]:
        """Hold back the start of a block of a held tool, after which everything is held."""
        return (None, value) if self._is_held_tool(value) else (value, None)

    def edit(self, value: Value) -> Value | None:
        """Return the event for the caller; None if nothing of it remains."""
        kind = value.get("type")
        if kind == "message_start" and self._started:
            return None
        if kind == "message_delta":
            return self._edit_ending(value)
        index = read_index(value)
        if index is None:
            return value
        if self._is_held_tool(value):
            self._held.add(index)
        if index in self._held:
            return None
        place = self._before + index - sum(held < index for held in self._held)
        self._called = self._called or object_at(value, "content_block").get("type") == "tool_use"
        return value if place == index else value | {"index": place}

    def _is_held_tool(self, value: Value) -> bool:
        block = object_at(value, "content_block")
        return _is_call(block, self._names)

    def _edit_ending(self, value: Value) -> Value:
        delta = object_at(value, "delta")
        if delta.get("stop_reason") != "tool_use" or not self._held or self._called:
            return value
        return value | {"delta": delta | {"stop_reason": "end_turn"}}


def _parse_input(text: str) -> Any:
    """Return the input that was streamed as text; the text if it is not a JSON object (a reply cut short)."""
    try:
        value = jsonbytes.load(text, read=jsonbytes.read_finite)
    except ValueError:
        return text
    return value if isinstance(value, dict) else text


_ORDER = ("type", "id", "name", "input", "text", "thinking", "signature", "data")
"""The fields of a block in the API's order; SDKs sort them otherwise."""

_ANSWER_ONLY = frozenset({"parsed_output", "index"})
"""Fields of a block that the SDK or a server adds and the API refuses in requests."""


def read(body: Mapping[str, Any]) -> Reply:
    """Read the reply in a response body. Raises WireError."""
    if not isinstance(body, Mapping):
        raise shape_error("body", "an object", found=body)
    sources = [
        as_object(block, f"content.{index}") for index, block in enumerate(as_list(body.get("content"), "content"))
    ]
    blocks = [_make_sendable(block) for block in sources]
    message = decode({"messages": [{"role": "assistant", "content": blocks}]}).messages[0]
    parts = tuple(_restore_input(part, block) for part, block in zip(message.parts, sources, strict=True))
    return Reply(
        message.with_parts(parts),
        usage=_read_usage(body),
        id=text_or_empty(body, "id"),
        model=text_or_empty(body, "model"),
    )


def without(body: Mapping[str, Any], names: AbstractSet[str]) -> dict[str, Any]:
    """Return the response body without the calls of the tools of these names."""
    content = body.get("content")
    blocks = content if isinstance(content, list) else []
    kept = [block for block in blocks if not _is_call(block, names)]
    left = dict(body)
    if len(kept) < len(blocks):
        left["content"] = kept
        if body.get("stop_reason") == "tool_use" and not any(_is_call(block) for block in kept):
            left["stop_reason"] = "end_turn"
    return left


def go_on(before: Mapping[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """Return a response body, behind the blocks of the one before if that has a call of a server tool without its
    result, or the result of a call before it (A9)."""
    blocks = objects_at(before, "content")
    called = {str(block.get("id")) for block in blocks if block.get("type") in SERVER_CALLS}
    ended = {str(block.get("tool_use_id")) for block in blocks if is_server_result(str(block.get("type")))}
    return body | {"content": [*blocks, *objects_at(body, "content")]} if called != ended else body


def stream(names: AbstractSet[str]) -> EditedStream:
    """Return a new stream that holds back calls of the tools of these names."""
    return EditedStream(StreamFormat(partial(BlockEdits, names), EventCollector, read))


REPLIES = Replies(read, without, stream, go_on=go_on)


def _make_sendable(block: dict[str, Any]) -> dict[str, Any]:
    """Return the block in a form that requests may contain."""
    fields = {key: block[key] for key in _ORDER if key in block} | block
    kept = {key: item for key, item in fields.items() if item is not None and key not in _ANSWER_ONLY}
    if kept.get("caller") == {"type": "direct"}:
        # The default; hosts that do not know the field refuse it.
        del kept["caller"]
    if kept.get("type") == "text" and isinstance(kept.get("citations"), list):
        kept["citations"] = [_strip_citation(item) for item in kept["citations"]]
    if "input" in kept and not isinstance(kept["input"], dict):
        kept["input"] = {"raw_arguments": kept["input"]} if kept["type"] != "tool_use" else {}
    return kept


def _strip_citation(item: Any) -> Any:
    """Return a citation without the field that requests may not contain."""
    return {key: value for key, value in item.items() if key != "file_id"} if isinstance(item, dict) else item


def _restore_input(part: Part, block: Mapping[str, Any]) -> Part:
    """Return a call with its input as arguments if that is text (a stream cut short); else the part unchanged."""
    if isinstance(part, ToolCall) and isinstance(block.get("input"), str):
        return replace(part, arguments=block["input"])
    return part


def _read_usage(body: Mapping[str, Any]) -> Reported | None:
    """Return the usage; input tokens include cached ones. None if there are no valid counts."""
    fields = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    counts = read_counts(object_at(body, "usage"), fields)
    if counts is None:
        return None
    fresh, read_tokens, written_tokens, output = counts
    total = fresh + read_tokens + written_tokens
    return Reported(total, output, read_tokens=read_tokens, written_tokens=written_tokens) if total else None


def _is_call(block: Any, names: AbstractSet[str] | None = None) -> bool:
    is_call = isinstance(block, Mapping) and block.get("type") == "tool_use"
    return is_call and (names is None or text_or_empty(block, "name") in names)
