"""Whatever a caller hands in, as messages: our values, dicts of any wire, objects of a provider's SDK.

Cache marks on messages are taken off: they say where a request is to be cached, not what was said, and move
from call to call. The facade that makes the request sets them anew; ``wrap`` keeps those that do not move.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Set
from itertools import groupby, takewhile
from typing import Any, cast

from lading import jsonbytes
from lading.errors import IllegalRequest, InputError, WireError
from lading.messages import Message, Tool, user_text
from lading.wire import Wire, find_wire
from lading.wire.replies import Reply, SseEvent

MARK = "cache_control"
_DEEPEST = 32
_CHAT_ROLES = frozenset({"tool", "developer", "function"})
_CHAT_FIELDS = frozenset({"tool_calls", "function_call", "tool_call_id", "refusal", "audio"})
_CHAT_PARTS = frozenset({"image_url", "input_audio", "file", "refusal"})
_BLOCKS = frozenset({"image", "document", "search_result", "container_upload", "server_tool_use", "mcp_tool_use"})
_TOOL_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})
_CHAT_TOOLS = frozenset(
    {
        "mcp",
        "web_search",
        "web_search_preview",
        "file_search",
        "code_interpreter",
        "image_generation",
        "local_shell",
    }
)
"""Tools of OpenAI's servers."""
_DATED = re.compile(r"\w+_\d{8}")
"""The type of a tool that Anthropic defines."""


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


def messages_from(given: object, *, wire: Wire, leads: bool = True) -> list[Message]:
    """The messages that were handed in: a text (said by the user), one message, a list of them, or a body.

    A dict is read as the wire whose marks it bears, else as ``wire``. ``leads``: nothing stands before them.
    Raises InputError, WireError.
    """
    if isinstance(given, str):
        return [user_text(given)]
    messages: list[Message] = []
    if isinstance(given, Mapping) and isinstance(given.get("messages"), list | tuple):
        if given.get("system") is not None:
            system = unmarked({"content": plain(given["system"])})
            messages += find_wire("anthropic").decode({"messages": [], "system": system["content"]}).messages
        given = given["messages"]
    items = list(given) if isinstance(given, list | tuple) else [given]
    sources = [item if isinstance(item, Message) else _object(item) for item in items]
    # No wire that keeps its system elsewhere takes one in front: there it is meant as everybody writes it.
    start = len(list(takewhile(lambda source: _role(source) == "system", sources))) if leads else 0
    chosen = [_wire_of(source, wire, leads=at < start) for at, source in enumerate(sources)]
    # Neighbours are read together: an answer of the old style names its call by where it stands.
    for name, run in groupby(range(len(sources)), key=lambda at: chosen[at]):
        read = [sources[at] for at in run]
        messages += (
            find_wire(name).decode({"messages": list(map(unmarked, read))}).messages if name else cast(Any, read)
        )
    return messages


def tools_from(given: Iterable[object], *, wire: Wire) -> tuple[Tool, ...]:
    """The tools that were handed in: our values, or dicts of any wire. Raises InputError, WireError, IllegalRequest
    for a tool of another provider's own."""
    tools: list[Tool] = []
    for item in given:
        if isinstance(item, Tool):
            found: tuple[Tool, ...] = (item,)
        else:
            declaration = _object(item)
            chosen = find_wire(_wire_of_tool(declaration, wire))
            found = chosen.decode({"messages": [], "tools": [declaration]}).tools
        tools += found
    foreign = next((tool for tool in tools if tool.schema is None and tool.origin not in ("", wire.name)), None)
    if foreign is not None:
        raise IllegalRequest(
            f"The tool {foreign.name!r} is one of {foreign.origin}'s own, and {wire.name} has no form for it. "
            "Offer it as a function with a schema, or leave it out."
        )
    return tuple(tools)


def _wire_of_tool(declaration: dict[str, Any], wire: Wire) -> str:
    kind = declaration.get("type")
    if "function" in declaration or "custom" in declaration or kind in _CHAT_TOOLS:
        return "openai_chat"
    is_dated = isinstance(kind, str) and _DATED.fullmatch(kind)
    return "anthropic" if "input_schema" in declaration or is_dated or kind == "mcp_toolset" else wire.name


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


def unmarked(message: Any, *, place: tuple[int, ...] = (), kept: Set[tuple[int, ...]] = frozenset()) -> Any:
    """The message without cache marks on itself, its blocks and theirs; the same object where there are none.

    ``kept``: places (``place``, then the index of a block, then of a block in that) whose marks stay.
    """
    return _unmarked(message, place, kept, 3)


def _unmarked(value: Any, place: tuple[int, ...], kept: Set[tuple[int, ...]], levels: int) -> Any:
    if not isinstance(value, dict) or levels == 0:
        return value
    if MARK in value and place not in kept:
        value = {key: inner for key, inner in value.items() if key != MARK}
    content = value.get("content")
    if not isinstance(content, list):
        return value
    inner = [_unmarked(block, (*place, at), kept, levels - 1) for at, block in enumerate(content)]
    changed = any(new is not old for new, old in zip(inner, content, strict=True))
    return {**value, "content": inner} if changed else value


def _json(response: str | bytes) -> Any:
    try:
        return jsonbytes.load(response)
    except ValueError as error:
        raise WireError(f"The response is no JSON ({error}). Give the whole body.") from error


def _event(value: Any) -> SseEvent:
    """An event of an SDK's stream as the provider sent it."""
    if not isinstance(value, dict):
        raise WireError(f"A stream gave a {type(value).__name__} where an event is expected.")
    return SseEvent(b"", str(value.get("type", "")), jsonbytes.dump(value).decode())


def _object(item: object) -> dict[str, Any]:
    value = plain(item)
    if not isinstance(value, dict):
        raise InputError(
            f"A {type(item).__name__} was given where a message or tool is expected. Give a dict in the form "
            "of a provider, an object of its SDK, or a value of lading."
        )
    return value


def _role(source: Message | dict[str, Any]) -> object:
    return source.role if isinstance(source, Message) else source.get("role")


def _wire_of(source: Message | dict[str, Any], wire: Wire, *, leads: bool) -> str | None:
    """The name of the wire to read a message by; None for one of our values."""
    if isinstance(source, Message):
        return None
    content = source.get("content")
    blocks = content if isinstance(content, list) else []
    kinds = {str(block.get("type")) for block in blocks if isinstance(block, dict)}
    is_chat = source.get("role") in _CHAT_ROLES or not _CHAT_FIELDS.isdisjoint(source)
    has_parts, has_tools = not _CHAT_PARTS.isdisjoint(kinds), not _TOOL_BLOCKS.isdisjoint(kinds)
    has_blocks = has_tools or any(kind in _BLOCKS or kind.endswith("_tool_result") for kind in kinds)
    if wire.name != "openai_chat" and (leads or is_chat or (has_parts and not has_blocks)):
        return "openai_chat"
    if wire.name != "anthropic" and not is_chat and (has_tools or (has_blocks and not has_parts)):
        return "anthropic"
    return wire.name
