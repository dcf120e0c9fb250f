"""Decode replies of the Responses API: whole, and as events that are edited on their way to the caller."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

from lading.errors import WireError
from lading.history.log import Reported
from lading.wire.openai_responses.decoding import decode
from lading.wire.openai_responses.items import CALL_FIELDS, REASONING, read_role, read_type
from lading.wire.replies import Replies, Reply, read_counts, text_or_empty
from lading.wire.streams import EditedStream, StreamFormat, Value, object_at, objects_at
from lading.wire.templates import as_list, shape_error

_ENDED = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_FAILED = ("failed", "cancelled")
_RUNNING = ("queued", "in_progress")
_STARTING = ("response.created", "response.in_progress", "response.queued")
_DELTAS = {
    "response.output_text.delta": ("content", "text"),
    "response.refusal.delta": ("content", "refusal"),
    "response.reasoning_text.delta": ("content", "text"),
    "response.reasoning_summary_text.delta": ("summary", "text"),
    "response.function_call_arguments.delta": ("", "arguments"),
    "response.custom_tool_call_input.delta": ("", "input"),
}
"""The events that append to an item: the list that has the block, if one does, and the field."""
_PARTS = {"response.content_part.added": "content", "response.reasoning_summary_part.added": "summary"}
"""The events that begin a block, with the list that it is in."""
_ANSWER_ONLY = frozenset({"created_by", "parsed", "parsed_arguments"})
"""Fields of replies, or that SDKs add to them, which requests may not contain."""


class ItemCollector:
    """Collects events into the body of the response."""

    def __init__(self) -> None:
        self.finished = self.failed = False
        self._head: Value = {}
        self._items: dict[int, Value] = {}

    @property
    def usage(self) -> Value:
        """The usage reported so far."""
        return object_at(self._head, "usage")

    def add(self, value: Value) -> None:
        """Add the next event."""
        kind, index = value.get("type"), read_place(value)
        if kind in _STARTING or kind in _ENDED:
            self._head = dict(object_at(value, "response"))
            self.finished = kind in _ENDED
            self.failed = self.failed or self._head.get("status") in _FAILED
        elif kind == "error" or "error" in value:
            self.failed = True
        elif kind in ("response.output_item.added", "response.output_item.done"):
            # The item is whole in the last of them.
            place = max(self._items, default=-1) + 1 if index is None else index
            self._items[place] = dict(object_at(value, "item"))
        elif index in self._items and isinstance(kind, str):
            self._grow(self._items[index], kind, value)

    def body(self) -> Value:
        """Return the response body so far."""
        items = [self._items[index] for index in sorted(self._items)]
        # Some servers leave the output of the last event empty.
        return self._head | {"output": objects_at(self._head, "output") or items}

    def _grow(self, item: Value, kind: str, value: Value) -> None:
        if kind in _PARTS:
            item[_PARTS[kind]] = [*objects_at(item, _PARTS[kind]), dict(object_at(value, "part"))]
        elif kind in _DELTAS:
            listed, field = _DELTAS[kind]
            blocks = objects_at(item, listed)
            if listed and not blocks:
                return
            holder = blocks[-1] if listed else item
            holder[field] = text_or_empty(holder, field) + text_or_empty(value, "delta")


class ItemEdits:
    """Edits that remove items of held tools and renumber those after them and those of a later stream."""

    def __init__(self, names: AbstractSet[str], before: Value) -> None:
        self._names = names
        self._items = objects_at(before, "output")
        """The items that the caller received by earlier streams of the answer."""
        self._identity = {key: before[key] for key in ("id", "created_at") if key in before}
        self._held: set[int] = set()
        self._dropped = 0
        """Number of events that the caller did not receive."""

    def number(self, value: Value) -> Value:
        """Return the event unchanged: this wire always numbers items."""
        return value

    def split(self, value: Value) -> tuple[Value | None, Value | None]:
        """Hold back the start of an item of a held tool, after which everything is held."""
        return (None, value) if self._is_held_tool(object_at(value, "item")) else (value, None)

    def edit(self, value: Value) -> Value | None:
        """Return the event for the caller; None if nothing of it remains."""
        kind, index = value.get("type"), read_place(value)
        if self._is_held_tool(object_at(value, "item")) and index is not None:
            self._held.add(index)
        if index in self._held or (kind in _STARTING and self._identity):
            self._dropped += 1
            return None
        edited = dict(value)
        number = value.get("sequence_number")
        if self._dropped and type(number) is int:
            edited["sequence_number"] = number - self._dropped
        if index is not None:
            edited["output_index"] = len(self._items) + index - sum(held < index for held in self._held)
        if kind in _ENDED and (response := object_at(value, "response")):
            shown = without(response, self._names) if self._held else response
            output = {"output": [*self._items, *objects_at(shown, "output")]} if self._items else {}
            edited["response"] = shown | self._identity | output
        return edited

    def _is_held_tool(self, item: Value) -> bool:
        return _is_call(item, self._names)


def read_place(value: Mapping[str, Any]) -> int | None:
    """Return the index of the item that an event is about; None for other events."""
    index = value.get("output_index")
    return index if type(index) is int else None


def read(body: Mapping[str, Any]) -> Reply:
    """Read the reply in a response body. Raises WireError, also for one that failed or still runs."""
    if not isinstance(body, Mapping):
        raise shape_error("body", "an object", found=body)
    status = body.get("status")
    if status in _FAILED:
        raise WireError(f"The response {status}: {text_or_empty(object_at(body, 'error'), 'message')[:200]}")
    if status in _RUNNING and body.get("background"):
        raise WireError(f"The response is {status}; read it once it is completed.")
    items = [
        _make_sendable(item) for item in objects_at({"output": as_list(body.get("output"), "output")}, "output")
    ]
    others = next((item for item in items if read_role(item) != "assistant"), None)
    if others is not None:
        raise shape_error("output", "items of the model", found=others)
    message = decode({"input": items or [{"role": "assistant", "content": ""}]}).messages[0]
    return Reply(message, usage=_read_usage(body), id=text_or_empty(body, "id"), model=text_or_empty(body, "model"))


def without(body: Mapping[str, Any], names: AbstractSet[str]) -> dict[str, Any]:
    """Return the response body without the calls of the tools of these names."""
    output = body.get("output")
    if not isinstance(output, list):
        return dict(body)
    return {**body, "output": [item for item in output if not _is_call(item, names)]}


def stream(names: AbstractSet[str]) -> EditedStream:
    """Return a new stream that holds back calls of the tools of these names."""
    return EditedStream(StreamFormat(partial(ItemEdits, names), ItemCollector, read, usage=("response", "usage")))


REPLIES = Replies(read, without, stream)


def _is_call(item: Any, names: AbstractSet[str]) -> bool:
    return read_type(item) in CALL_FIELDS and text_or_empty(item, "name") in names


def _make_sendable(item: dict[str, Any]) -> dict[str, Any]:
    """Return the item in a form that requests may contain."""
    kept = {key: inner for key, inner in item.items() if inner is not None and key not in _ANSWER_ONLY}
    if isinstance(kept.get("content"), list) and kept.get("type") != REASONING:
        kept["content"] = [_make_sendable(block) if isinstance(block, dict) else block for block in kept["content"]]
    return kept


def _read_usage(body: Mapping[str, Any]) -> Reported | None:
    """Return the usage; input tokens include cached ones, output tokens those of reasoning. None if there are no
    valid counts."""
    usage = object_at(body, "usage")
    counts = read_counts(usage, ("input_tokens", "output_tokens"))
    cached = read_counts(object_at(usage, "input_tokens_details"), ("cached_tokens", "cache_write_tokens"))
    if counts is None or cached is None or not counts[0] or sum(cached) > counts[0]:
        return None
    return Reported(counts[0], counts[1], read_tokens=cached[0], written_tokens=cached[1])
