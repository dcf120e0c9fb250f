"""Whatever a caller hands in, as messages: our values, dicts of any wire, objects of a provider's SDK.

Cache marks on messages are taken off: they say where a request is to be cached, not what was said, and move
from call to call. The facade that makes the request sets them anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from lading import jsonbytes
from lading.errors import InputError, WireError
from lading.messages import Message, Tool, user_text
from lading.wire import Wire, find_wire
from lading.wire.replies import Reply, SseEvent

MARK = "cache_control"
_DEEPEST = 32
_CHAT_ROLES = frozenset({"tool", "developer", "function"})
_CHAT_FIELDS = frozenset({"tool_calls", "function_call", "tool_call_id", "refusal", "audio"})
_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "document"})


def plain(value: Any, *, levels: int = _DEEPEST) -> Any:
    """The value as JSON has it: objects of an SDK (they have ``model_dump``) become dicts, at any depth."""
    if isinstance(value, str | int | float | bool | None) or levels == 0:
        return value
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json", exclude_unset=True, warnings=False)
    if isinstance(value, Mapping):
        return {key: plain(inner, levels=levels - 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, levels=levels - 1) for inner in value]
    return value


class Handed:
    """The list handed in last, as it was then: to find it at the start of the next costs a comparison."""

    def __init__(self) -> None:
        self._items: list[Any] = []

    def split(self, given: object) -> tuple[int, object]:
        """How many items at the start of a list are the whole of the last one, and what comes after them."""
        length = len(self._items)
        # One message alone may well be said twice.
        if length > 1 and isinstance(given, list) and given[:length] == self._items:
            return length, given[length:]
        return 0, given

    def keep(self, given: object) -> None:
        """Remember a list; what is new in it is copied, since callers may change what they handed in."""
        known, rest = self.split(given)
        self._items = [*self._items[:known], *deepcopy(rest)] if isinstance(rest, list) else []


def messages_from(given: object, *, wire: Wire, leads: bool = True) -> list[Message]:
    """The messages that were handed in: a text (said by the user), one message, a list of them, or a body.

    A dict is read as the wire whose marks it bears, else as ``wire``. ``leads``: nothing stands before them.
    Raises InputError, WireError.
    """
    if isinstance(given, str):
        return [user_text(given)]
    if isinstance(given, Mapping) and isinstance(given.get("messages"), list | tuple):
        body = plain(given)
        return list(_decoded(body["messages"], wire, {"system": body["system"]} if "system" in body else {}))
    items = list(given) if isinstance(given, list | tuple) else [given]
    messages: list[Message] = []
    for item in items:
        # No wire that keeps its system elsewhere takes one in front: there it is meant as everybody writes it.
        leads = leads and (not messages or messages[-1].role == "system")
        messages += [item] if isinstance(item, Message) else _decoded([_object(item)], wire, {}, leads=leads)
    return messages


def tools_from(given: Iterable[object], *, wire: Wire) -> tuple[Tool, ...]:
    """The tools that were handed in: our values, or dicts of any wire. Raises InputError, WireError."""
    tools: list[Tool] = []
    for item in given:
        if isinstance(item, Tool):
            tools.append(item)
            continue
        declaration = _object(item)
        name = "anthropic" if "input_schema" in declaration else wire.name
        chosen = find_wire("openai_chat" if "function" in declaration else name)
        tools += chosen.decode({"messages": [], "tools": [declaration]}).tools
    return tuple(tools)


def reply_from(response: object, *, wire: Wire) -> Reply:
    """The reply that was handed in: a response body as dict, JSON or object of an SDK, or the events of a
    stream, read to its end. Raises WireError, InputError."""
    if isinstance(response, Reply):
        return response
    value = _json(response) if isinstance(response, str | bytes) else plain(response)
    if isinstance(value, dict):
        return wire.replies.read(value)
    if not isinstance(response, Iterable):
        raise InputError(f"A {type(response).__name__} is no response of a provider, nor a stream of one.")
    stream = wire.replies.stream("")
    for item in response:
        stream.feed(_event(plain(item)))
    return stream.reply()


def is_stream(response: object) -> bool:
    """Whether a response that ``reply_from`` takes is the events of a stream."""
    return not isinstance(response, Reply | str | bytes) and not isinstance(plain(response), dict)


def error_text(error: object) -> str:
    """All that an error says: its text, and the body that an SDK's exception carries."""
    bodies = [holder for holder in (getattr(error, "body", None), error) if isinstance(holder, dict)]
    return "\n".join([str(error), *(json.dumps(body, default=str) for body in bodies)])


def unmarked(messages: Sequence[Any]) -> tuple[list[Any], Any]:
    """The messages without cache marks on their blocks, and the last mark there was; unmarked ones stay the
    same objects."""
    found: list[Any] = []
    return [_unmarked(message, found, 3) for message in messages], found[-1] if found else None


def _unmarked(value: Any, found: list[Any], levels: int) -> Any:
    if not isinstance(value, dict) or levels == 0:
        return value
    if MARK in value:
        found.append(value[MARK])
        value = {key: inner for key, inner in value.items() if key != MARK}
    content = value.get("content")
    if not isinstance(content, list):
        return value
    inner = [_unmarked(block, found, levels - 1) for block in content]
    changed = any(new is not old for new, old in zip(inner, content, strict=True))
    return {**value, "content": inner} if changed else value


def _json(response: str | bytes) -> Any:
    try:
        return jsonbytes.load(response)
    except ValueError as error:
        raise WireError(f"The response is no JSON ({error}). Hand in the whole body.") from error


def _event(value: Any) -> SseEvent:
    """An event of an SDK's stream as the provider sent it."""
    if not isinstance(value, dict):
        raise WireError(f"A stream gave a {type(value).__name__} where an event is expected.")
    return SseEvent(b"", str(value.get("type", "")), jsonbytes.dump(value).decode())


def _object(item: object) -> dict[str, Any]:
    value = plain(item)
    if not isinstance(value, dict):
        raise InputError(
            f"A {type(item).__name__} was handed in where a message or tool is expected. Give a dict in the form "
            "of a provider, an object of its SDK, or a value of lading."
        )
    return value


def _decoded(
    items: Sequence[Any], wire: Wire, more: Mapping[str, Any], *, leads: bool = False
) -> Sequence[Message]:
    chosen = wire
    leading_system = leads and items[0].get("role") == "system"
    if wire.name != "openai_chat" and (leading_system or any(map(_is_chat, items))):
        chosen = find_wire("openai_chat")
    elif wire.name != "anthropic" and any(map(_has_blocks, items)):
        chosen = find_wire("anthropic")
    return chosen.decode({"messages": unmarked(items)[0], **more}).messages


def _is_chat(item: Any) -> bool:
    return isinstance(item, dict) and (item.get("role") in _CHAT_ROLES or not _CHAT_FIELDS.isdisjoint(item))


def _has_blocks(item: Any) -> bool:
    content = item.get("content") if isinstance(item, dict) else None
    blocks = content if isinstance(content, list) else ()
    return any(isinstance(block, dict) and block.get("type") in _BLOCKS for block in blocks)
