"""Decode replies of Chat Completions: whole, and as chunks that are edited on their way to the caller.

Servers number the calls of a message differently: most number them, some omit the number, and some send whole calls
that all have the number 0. ``CallSlots`` numbers them for all other code.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from lading import jsonbytes
from lading.history.log import Reported
from lading.messages import Message
from lading.wire.openai_chat.decoding import CALL_FIELDS, decode
from lading.wire.replies import Replies, Reply, read_counts, text_or_empty
from lading.wire.streams import EditedStream, StreamFormat, Value, object_at, objects_at, read_index
from lading.wire.templates import as_list, as_object, shape_error

_WHOLE = frozenset({"index", "type", "role", "id", "format", "signature"})
"""Fields of a delta that come in one piece."""

_IDENTITY = ("id", "created", "model")

_DEEPEST = 6
"""Levels of nesting at which pieces are merged; deeper, the last piece replaces earlier ones."""


class CallSlots:
    """Numbers the calls of one choice."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.begun: set[int] = set()
        """The slots whose arguments have begun; their names are complete."""
        self._ids: dict[int, str] = {}
        self._by_index: dict[int, int] = {}

    def number(self, call: Value) -> Value:
        """Return a piece of a call with its slot as index, and without an id or name that it only repeats."""
        call_id, name = text_or_empty(call, "id"), read_name(call)
        slot = self._slot(read_index(call), call_id, name)
        known = self.names.setdefault(slot, "")
        numbered = call | {"index": slot}
        if call_id and slot in self._ids:
            del numbered["id"]
        elif call_id:
            self._ids[slot] = call_id
        if slot in self.begun or name == known:
            for kind in CALL_FIELDS.keys() & numbered.keys():
                numbered[kind] = {key: item for key, item in object_at(call, kind).items() if key != "name"}
        else:
            self.names[slot] += name
        if read_arguments(call):
            self.begun.add(slot)
        return numbered

    def _slot(self, index: int | None, call_id: str, name: str) -> int:
        newest = max(self.names, default=-1)
        if index is None:
            known = [slot for slot, found in self._ids.items() if call_id and found == call_id]
            if known:
                return known[0]
            return newest + 1 if call_id or name or newest < 0 else newest
        slot = self._by_index.get(index, index)
        other = bool(call_id and name and self._ids.get(slot)) and self._ids[slot] != call_id
        if other or (slot in self.names and index not in self._by_index):
            slot = newest + 1
        self._by_index[index] = slot
        return slot


class ChunkCollector:
    """Collects chunks into the body of the response."""

    def __init__(self) -> None:
        self.failed = False
        self._head: Value = {}
        self._choices: dict[int, Value] = {}

    @property
    def finished(self) -> bool:
        """Whether every choice has a reason for its end, and there is one."""
        return bool(self._choices) and all(choice["finish_reason"] for choice in self._choices.values())

    @property
    def usage(self) -> Value:
        """The usage reported so far."""
        return object_at(self._head, "usage")

    def add(self, value: Value) -> None:
        """Add the next chunk, whose calls are numbered."""
        self.failed = self.failed or bool(value.get("error"))
        for key, item in value.items():
            if key != "choices" and item is not None:
                self._head[key] = item
        for piece in objects_at(value, "choices"):
            index = read_index(piece) or 0
            choice = self._choices.setdefault(index, {"index": index, "message": {}, "finish_reason": None})
            choice["message"] = _append_piece(choice["message"], object_at(piece, "delta"))
            choice["finish_reason"] = piece.get("finish_reason") or choice["finish_reason"]

    def body(self) -> Value:
        """Return the response body so far, with at least one choice."""
        choices = [self._choices[index] for index in sorted(self._choices)]
        return self._head | {"choices": choices or [{"index": 0, "message": {}, "finish_reason": None}]}


class CallEdits:
    """Edits that remove calls of held tools and renumber those after them and those of a later stream; all
    streams of an answer get the id, time and model of the first."""

    def __init__(self, names: AbstractSet[str], before: Value) -> None:
        self._names = names
        self._slots: dict[int, CallSlots] = {}
        self._identity = {key: before[key] for key in _IDENTITY if key in before}
        shown = {read_index(choice) or 0: object_at(choice, "message") for choice in objects_at(before, "choices")}
        self._before = {index: len(objects_at(message, "tool_calls")) for index, message in shown.items()}
        """Number of calls that the caller received by earlier streams of the answer, by choice."""
        self._have_role = {index for index, message in shown.items() if "role" in message}

    def number(self, value: Value) -> Value:
        """Return the chunk with every piece of a call numbered."""
        choices = [self._number(choice) for choice in objects_at(value, "choices")]
        return value | {"choices": choices} if choices else value

    def split(self, value: Value) -> tuple[Value | None, Value | None]:
        """Hold back everything from the first call on that may be one of a held tool; pass on the rest."""
        now, later = [], []
        for choice in objects_at(value, "choices"):
            delta, calls = object_at(choice, "delta"), _list_calls(choice)
            begins = next((at for at, call in enumerate(calls) if self._may_hold(choice, call)), None)
            if begins is None:
                now.append(choice)
                continue
            passed = {key: item for key, item in delta.items() if key != "tool_calls"}
            passed |= {"tool_calls": calls[:begins]} if begins else {}
            if passed:
                now.append(choice | {"delta": passed, "finish_reason": None})
            later.append(choice | {"delta": {"tool_calls": calls[begins:]}, "logprobs": None})
        if not later:
            return value, None
        rest = value | {"choices": later}
        if not now:
            return None, rest
        return {key: item for key, item in value.items() if key != "usage"} | {"choices": now}, rest

    def edit(self, value: Value) -> Value | None:
        """Return the chunk for the caller; None if nothing of it remains."""
        edited = value | {key: item for key, item in self._identity.items() if key in value}
        choices = objects_at(value, "choices")
        if not choices:
            return edited
        left = [kept for choice in choices if (kept := self._edit_choice(choice)) is not None]
        return edited | {"choices": left} if left or value.get("usage") else None

    def _number(self, choice: Value) -> Value:
        calls = _list_calls(choice)
        if not calls:
            return choice
        slots = self._slots.setdefault(read_index(choice) or 0, CallSlots())
        return choice | {"delta": choice["delta"] | {"tool_calls": [slots.number(call) for call in calls]}}

    def _may_hold(self, choice: Value, call: Value) -> bool:
        """Whether a call is of a held tool, or its incomplete name may become that of one."""
        if not self._names:
            return False
        slots = self._slots[read_index(choice) or 0]
        name = slots.names[call["index"]]
        is_begun = call["index"] in slots.begun
        return name in self._names or (not is_begun and any(held.startswith(name) for held in self._names))

    def _edit_choice(self, choice: Value) -> Value | None:
        index, delta = read_index(choice) or 0, object_at(choice, "delta")
        held, before = self._find_held(index), self._before.get(index, 0)
        edited = {key: item for key, item in delta.items() if key != "role" or index not in self._have_role}
        if calls := _list_calls(choice):
            kept = [call for call in calls if call["index"] not in held]
            places = [before + call["index"] - sum(slot < call["index"] for slot in held) for call in kept]
            edited["tool_calls"] = [call | {"index": place} for call, place in zip(kept, places, strict=True)]
            if not kept:
                del edited["tool_calls"]
        reason = choice.get("finish_reason")
        if not edited and delta and not reason:
            return None
        if reason == "tool_calls" and held and not before and len(held) == len(self._slots[index].names):
            return choice | {"delta": edited, "finish_reason": "stop"}
        return choice if edited == delta else choice | {"delta": edited}

    def _find_held(self, choice: int) -> list[int]:
        slots = self._slots.get(choice)
        return [slot for slot, name in slots.names.items() if name in self._names] if slots else []


def read_name(call: Mapping[str, Any]) -> str:
    """Return the tool name in a call or a piece of one."""
    return next((found for kind in CALL_FIELDS if (found := text_or_empty(object_at(call, kind), "name"))), "")


def read_arguments(call: Mapping[str, Any]) -> str:
    """Return the arguments in a call or a piece of one."""
    return next(
        (found for kind, key in CALL_FIELDS.items() if (found := text_or_empty(object_at(call, kind), key))), ""
    )


def _list_calls(choice: Value) -> list[Value]:
    return objects_at(object_at(choice, "delta"), "tool_calls")


def _append_piece(before: Any, piece: Any, *, key: str = "", levels: int = _DEEPEST) -> Any:
    """Append the next piece to a value: strings are joined, objects merged, lists merged by ``index``."""
    if piece is None:
        return before
    if isinstance(before, str) and isinstance(piece, str):
        return (before or piece) if key in _WHOLE else before + piece
    if isinstance(before, dict) and isinstance(piece, dict) and levels:
        merged = {
            name: _append_piece(before.get(name), item, key=name, levels=levels - 1) for name, item in piece.items()
        }
        return before | merged
    if isinstance(piece, list) and isinstance(before, list | None) and levels:
        items: list[Any] = list(before or ())
        for item in piece:
            _merge_item(items, item, levels=levels - 1)
        return items
    return piece


def _merge_item(items: list[Any], item: Any, *, levels: int) -> None:
    place = read_index(item) if isinstance(item, dict) else None
    for at, known in enumerate(items if place is not None else ()):
        if isinstance(known, dict) and read_index(known) == place:
            items[at] = _append_piece(known, item, levels=levels)
            return
    items.append(item)


SENT_BACK: Final = ("refusal", "reasoning_content", "reasoning_details", "extra_content")
"""Fields of a message that are sent back unchanged: the text of a refusal, DeepSeek's and OpenRouter's reasoning,
Google's signatures. Strict servers refuse all other fields of their replies, which go back as the caller echoes
them."""


def read(body: Mapping[str, Any]) -> Reply:
    """Read the reply in a response body. Raises WireError."""
    if not isinstance(body, Mapping):
        raise shape_error("body", "an object", found=body)
    choices = as_list(body.get("choices"), "choices")
    if not choices:
        raise shape_error("choices", "at least one choice", found=choices)
    message, *others = (_read_choice(choice, f"choices.{at}") for at, choice in enumerate(choices))
    return Reply(
        message,
        usage=_read_usage(body),
        id=text_or_empty(body, "id"),
        model=text_or_empty(body, "model"),
        choices=len(choices),
        others=tuple(others),
    )


def _read_choice(choice: Any, where: str) -> Message:
    source = as_object(as_object(choice, where).get("message"), f"{where}.message")
    message = decode({"messages": [_make_sendable(source)]}).messages[0]
    # Known as reasoning, but sent only if the caller echoes it: some servers refuse the field that they reply with.
    kept = {key: code for key, code in (message.template or {}).items() if key != "reasoning"}
    return message if message.template == kept else replace(message, template=kept)


def without(body: Mapping[str, Any], names: AbstractSet[str]) -> dict[str, Any]:
    """Return the response body without the calls of the tools of these names."""
    left = dict(body)
    if isinstance(body.get("choices"), list):
        left["choices"] = [_remove_calls(choice, names) for choice in body["choices"]]
    return left


def stream(names: AbstractSet[str]) -> EditedStream:
    """Return a new stream that holds back calls of the tools of these names."""
    return EditedStream(StreamFormat(partial(CallEdits, names), ChunkCollector, read))


REPLIES = Replies(
    read,
    without,
    stream,
    asks_usage={"stream_options": {"include_usage": True}},
    answer_only=frozenset({"annotations"}),
)


def _make_sendable(source: dict[str, Any]) -> dict[str, Any]:
    """Return the message in a form that requests may contain."""
    message: dict[str, Any] = {"role": "assistant", "content": source.get("content")}
    message |= {key: source[key] for key in (*SENT_BACK, "reasoning") if source.get(key) is not None}
    calls = list(map(_make_call, objects_at(source, "tool_calls")))
    if calls:
        message["tool_calls"] = calls
    if isinstance(source.get("function_call"), dict):
        message["function_call"] = source["function_call"]
    if isinstance((audio := object_at(source, "audio")).get("id"), str):
        message["audio"] = {"id": audio["id"]}
    if message["content"] is None and message.keys().isdisjoint(
        {"tool_calls", "function_call", "audio", "refusal"}
    ):
        message["content"] = ""
    return message


def _make_call(source: dict[str, Any]) -> dict[str, Any]:
    """Return a call with all fields that requests require. A missing id stays empty: the result has none either,
    and both are repaired together."""
    kind = next((kind for kind in CALL_FIELDS if isinstance(source.get(kind), dict)), "function")
    inner, written = object_at(source, kind), CALL_FIELDS[kind]
    words = inner.get(written)
    if not isinstance(words, str):
        words = "" if words is None else jsonbytes.dump(words).decode()
    named = {"name": inner.get("name") or "", written: words}
    call = {"id": source.get("id") or "", "type": kind, kind: named | _copy_other_fields(inner, named)}
    return call | _copy_other_fields(source, call)


def _copy_other_fields(source: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in source.items() if key not in known and key != "index" and item is not None}


def _remove_calls(choice: Any, names: AbstractSet[str]) -> Any:
    message = object_at(choice, "message") if isinstance(choice, Mapping) else {}
    calls = objects_at(message, "tool_calls")
    kept = [call for call in calls if read_name(call) not in names]
    if len(kept) == len(calls):
        return choice
    if kept:
        return {**choice, "message": message | {"tool_calls": kept}}
    left = {key: item for key, item in message.items() if key != "tool_calls"}
    # A message without calls must have content.
    left["content"] = left.get("content") or ""
    reason = choice.get("finish_reason")
    return {**choice, "message": left, "finish_reason": "stop" if reason == "tool_calls" else reason}


def _read_usage(body: Mapping[str, Any]) -> Reported | None:
    """Return the usage; input tokens include cached ones, which DeepSeek reports in a field of its own. None if
    there are no valid counts."""
    usage = object_at(body, "usage")
    counts = read_counts(usage, ("prompt_tokens", "completion_tokens", "prompt_cache_hit_tokens"))
    cached = read_counts(object_at(usage, "prompt_tokens_details"), ("cached_tokens", "cache_write_tokens"))
    if counts is None or cached is None:
        return None
    prompt, output, hits = counts
    read_tokens, written_tokens = cached[0] or hits, cached[1]
    if not prompt or read_tokens + written_tokens > prompt:
        return None
    return Reported(prompt, output, read_tokens=read_tokens, written_tokens=written_tokens)
