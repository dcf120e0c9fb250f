"""What the Messages API answers, to our values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from lading.history.log import Reported
from lading.messages import Part, ToolCall
from lading.wire.anthropic.decoding import decode
from lading.wire.anthropic.streaming import BlockEdits, Collected
from lading.wire.replies import Replies, Reply, counted, text_or_empty
from lading.wire.shapes import as_list, as_object, expected
from lading.wire.streams import Passage, PassingStream, object_at

_ORDER = ("type", "id", "name", "input", "text", "thinking", "signature", "data")
"""The fields of a block as the API writes them; SDKs sort them otherwise."""

_ANSWER_ONLY = frozenset({"parsed_output", "index"})
"""Fields of a block that the SDK or a server adds, and the API does not take back."""


def read(body: Mapping[str, Any]) -> Reply:
    """The reply that a response body holds. Raises WireError."""
    if not isinstance(body, Mapping):
        raise expected("body", "an object", found=body)
    sources = [
        as_object(block, f"content.{index}") for index, block in enumerate(as_list(body.get("content"), "content"))
    ]
    blocks = [_sent_back(block) for block in sources]
    message = decode({"messages": [{"role": "assistant", "content": blocks}]}).messages[0]
    parts = tuple(_as_written(part, block) for part, block in zip(message.parts, sources, strict=True))
    return Reply(
        message.with_parts(parts),
        usage=_usage(body),
        id=text_or_empty(body, "id"),
        model=text_or_empty(body, "model"),
    )


def without(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The response body without the calls of the tool of that name."""
    content = body.get("content")
    blocks = content if isinstance(content, list) else []
    kept = [block for block in blocks if not _is_call(block, name)]
    left = dict(body)
    if len(kept) < len(blocks):
        left["content"] = kept
        if body.get("stop_reason") == "tool_use" and not any(_is_call(block) for block in kept):
            left["stop_reason"] = "end_turn"
    return left


def stream(name: str) -> PassingStream:
    """A new stream; calls of the tool of that name are held back."""
    return PassingStream(Passage(partial(BlockEdits, name), Collected, read))


REPLIES = Replies(read, without, stream)


def _sent_back(block: dict[str, Any]) -> dict[str, Any]:
    """The block as a request may hold it."""
    fields = {key: block[key] for key in _ORDER if key in block} | block
    kept = {key: item for key, item in fields.items() if item is not None and key not in _ANSWER_ONLY}
    if kept.get("caller") == {"type": "direct"}:
        # The default. Hosts that do not know the field refuse it.
        del kept["caller"]
    if kept.get("type") == "text" and isinstance(kept.get("citations"), list):
        kept["citations"] = [_citation(item) for item in kept["citations"]]
    if "input" in kept and not isinstance(kept["input"], dict):
        kept["input"] = {"raw_arguments": kept["input"]} if kept["type"] != "tool_use" else {}
    return kept


def _citation(item: Any) -> Any:
    """A citation without the one field that a request may not have."""
    return {key: value for key, value in item.items() if key != "file_id"} if isinstance(item, dict) else item


def _as_written(part: Part, block: Mapping[str, Any]) -> Part:
    """A call whose input is text (a stream cut short) keeps it as its arguments."""
    if isinstance(part, ToolCall) and isinstance(block.get("input"), str):
        return replace(part, arguments=block["input"])
    return part


def _usage(body: Mapping[str, Any]) -> Reported | None:
    """All input counts as input, the cached part of it too."""
    fields = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    counts = counted(object_at(body, "usage"), fields)
    if counts is None:
        return None
    fresh, read_tokens, written_tokens, output = counts
    total = fresh + read_tokens + written_tokens
    return Reported(total, output, read_tokens=read_tokens, written_tokens=written_tokens) if total else None


def _is_call(block: Any, name: str | None = None) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "tool_use" and name in (None, block.get("name"))
