"""Decode a Chat Completions request to our values.

Codes in a message's template: ``role`` is the provider's word (developer is decoded as system, function as tool),
``function_call`` is "call" if that old-style call is the message's only one; ``refusal`` and ``audio`` refer to a
Text and an Opaque part whose template or value has no ``type``; a ``Reasoning`` part with the template
``IN_REASONING`` is the field ``reasoning``, any other ``reasoning_content``; for all others see ``templates``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from lading.messages import (
    Conversation,
    File,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    ResultPart,
    Role,
    Template,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from lading.models.card import Card
from lading.wire.openai_chat.media import read_file, read_image
from lading.wire.reasoning import find_issuer
from lading.wire.templates import (
    ABSENT,
    as_list,
    as_object,
    copy_json,
    find_code,
    make_template,
    read_content,
    read_list,
    role_at,
    shape_error,
    text_at,
)
from lading.wire.translation import PartTypes

NAME: Final = "openai_chat"

ROLES: Final[dict[str, Role]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}

NO_ARGUMENTS: Final[dict[str, Any]] = {"type": "object", "properties": {}}
"""The schema of a function without ``parameters``."""

IN_REASONING: Final = {"reasoning": "str"}
"""The template of a part that is the field ``reasoning``, of OpenRouter and vLLM."""

CALL_FIELDS: Final = {"function": "arguments", "custom": "input"}
"""The types of tool calls, each with the field for the arguments."""


def decode(body: Mapping[str, Any]) -> Conversation:
    """Decode a request body; ``encode`` gives the same body. Raises WireError."""
    if not isinstance(body, Mapping):
        raise shape_error("body", "an object", found=body)
    messages: list[Message] = []
    old_style_id = ""
    for index, item in enumerate(as_list(body.get("messages"), "messages")):
        source = as_object(item, f"messages.{index}")
        if isinstance(source.get("function_call"), dict):
            old_style_id = f"function_call_{index}"
        messages.append(_read_message(source, f"messages.{index}", old_style_id=old_style_id))
    tools, tools_code = read_list(body.get("tools"), "tools", read_item=_read_tool)
    codes = {"messages": "list", "tools": tools_code}
    return Conversation(
        messages=tuple(messages), tools=tools, origin=NAME, template=make_template(body, codes, path="body")
    )


def _read_message(source: dict[str, Any], path: str, *, old_style_id: str) -> Message:
    word = role_at(source, ROLES, path=path)
    role = ROLES[word]
    content, content_code = read_content(source.get("content"), f"{path}.content", read_part=read_part)
    codes: dict[str, Any] = {"role": word, "content": content_code}
    name = ""
    if "name" in source:
        codes["name"] = find_code(source["name"], f"{path}.name")
        name = source["name"] or ""
    parts: tuple[Part, ...] = content
    if role == "tool":
        call_id = old_style_id
        if word == "tool" or "tool_call_id" in source:
            call_id = text_at(source, "tool_call_id", path=path)
            codes["tool_call_id"] = "str"
        parts = (ToolResult(call_id, content, name=name),)
        name = ""
    elif role == "assistant":
        parts = (
            *_read_reasoning(source, path, codes),
            *content,
            *_read_fields_beside(source, codes, path),
            *_read_calls(source, path, codes, old_style_id=old_style_id),
        )
    return Message(role, parts, name=name, origin=NAME, template=make_template(source, codes, path=path))


def _read_reasoning(source: dict[str, Any], path: str, codes: dict[str, Any]) -> tuple[Part, ...]:
    parts: list[Part] = []
    if "reasoning_content" in source:
        value = source["reasoning_content"]
        codes["reasoning_content"] = find_code(value, f"{path}.reasoning_content")
        parts += [] if value is None else [Reasoning(value, provenance=find_issuer(NAME))]
    value = source.get("reasoning", ABSENT)
    if value is None or isinstance(value, str):
        codes["reasoning"] = find_code(value, f"{path}.reasoning")
        parts += [Reasoning(value, template=IN_REASONING, provenance=find_issuer(NAME))] if value else []
    return tuple(parts)


def _read_fields_beside(source: dict[str, Any], codes: dict[str, Any], path: str) -> Iterator[Part]:
    """Decode the parts of an assistant message in fields beside its content: the text of a refusal, and audio."""
    if isinstance(refusal := source.get("refusal"), str) and refusal:
        codes["refusal"] = "str"
        yield Text(refusal, {"refusal": "str"})
    if isinstance(source.get("audio"), dict):
        codes["audio"] = "object"
        yield Opaque({"audio": copy_json(source["audio"], path)})


def _read_calls(
    source: dict[str, Any], path: str, codes: dict[str, Any], *, old_style_id: str
) -> tuple[ToolCall, ...]:
    calls: tuple[ToolCall, ...] = ()
    if "tool_calls" in source:
        calls, codes["tool_calls"] = read_list(source["tool_calls"], f"{path}.tool_calls", read_item=_read_call)
    if source.get("function_call") is None or calls:
        return calls
    codes["function_call"] = "call"
    place = f"{path}.function_call"
    old_style = as_object(source["function_call"], place)
    name, arguments = text_at(old_style, "name", path=place), text_at(old_style, "arguments", path=place)
    template = make_template(old_style, {"name": "str", "arguments": "str"}, path=place)
    return (ToolCall(old_style_id, name, arguments, template=template),)


def _read_call(value: Any, path: str) -> ToolCall:
    source = as_object(value, path)
    kind = next((kind for kind in CALL_FIELDS if kind in source), "function")
    inner = as_object(source.get(kind), f"{path}.{kind}")
    written = CALL_FIELDS[kind]
    template: Template | None = None
    natural = kind == "function" and source.get("type") == kind
    if not natural or list(source) != ["id", "type", kind] or list(inner) != ["name", written]:
        codes = {"id": "str", kind: make_template(inner, {"name": "str", written: "str"}, path=path)}
        template = make_template(source, codes, path=path)
    return ToolCall(
        text_at(source, "id", path=path),
        text_at(inner, "name", path=f"{path}.{kind}"),
        text_at(inner, written, path=f"{path}.{kind}"),
        template=template,
    )


def read_part(value: Any, path: str) -> ResultPart:
    """Decode a content part. Raises WireError."""
    source = as_object(value, path)
    kind = text_at(source, "type", path=path)
    if kind == "text":
        text = text_at(source, "text", path=path)
        natural = list(source) == ["type", "text"]
        return Text(text, None if natural else make_template(source, {"text": "str"}, path=path))
    if kind == "refusal" and isinstance(source.get("refusal"), str):
        return Text(source["refusal"], make_template(source, {"refusal": "str"}, path=path))
    if kind == "image_url":
        return read_image(source, path)
    if kind == "file":
        return read_file(source, path)
    return Opaque(copy_json(value, path))


def _read_tool(value: Any, path: str) -> Tool:
    source = as_object(value, path)
    function = source.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return Tool(_read_tool_name(source), origin=NAME, template=copy_json(source, path))
    place = f"{path}.function"
    parameters = function.get("parameters")
    if parameters is not None:
        parameters = as_object(parameters, f"{place}.parameters")
    codes = {
        "name": "str",
        "description": find_code(function.get("description"), f"{place}.description"),
        "parameters": "null" if parameters is None else "object",
    }
    template = make_template(source, {"function": make_template(function, codes, path=place)}, path=path)
    return Tool(
        function["name"],
        function.get("description") or "",
        copy_json(NO_ARGUMENTS if parameters is None else parameters, f"{place}.parameters"),
        origin=NAME,
        template=template,
    )


def _read_tool_name(source: dict[str, Any]) -> str:
    """Return the name or type of a provider's own tool; empty if it has neither."""
    for holder in (source, source.get("custom")):
        if isinstance(holder, dict) and isinstance(holder.get("name"), str):
            return str(holder["name"])
    return str(source["type"]) if isinstance(source.get("type"), str) else ""


def carries(part: Part, card: Card, *, native: bool) -> bool:
    """Whether a part can be written in a message."""
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
