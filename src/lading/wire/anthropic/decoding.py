"""A Messages request to our values.

The body's own ``system`` becomes the first message, and its template has the one key ``system``; a message
of role system inside the list keeps its ``role`` there. Codes of a call's ``input`` stand in ``inputs``;
``is_error`` is "bool" or "null"; everything else as in ``templates``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lading.messages import (
    Conversation,
    Message,
    Opaque,
    Part,
    Reasoning,
    ResultPart,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from lading.wire.anthropic.inputs import read_input
from lading.wire.anthropic.media import read_document, read_image
from lading.wire.shapes import as_list, as_object, copied, expected, role_at, text_at
from lading.wire.templates import code_of, read_content, read_list, template_of

NAME: Final = "anthropic"

ROLES: Final[dict[str, Role]] = {"user": "user", "assistant": "assistant", "system": "system"}


def decode(body: Mapping[str, Any]) -> Conversation:
    """The conversation of a request body; ``encode`` gives that body back. Raises WireError."""
    if not isinstance(body, Mapping):
        raise expected("body", "an object", found=body)
    messages = [
        _message(as_object(item, f"messages.{index}"), f"messages.{index}")
        for index, item in enumerate(as_list(body.get("messages"), "messages"))
    ]
    if body.get("system") is not None:
        messages.insert(0, _system(body["system"]))
    tools, tools_code = read_list(body.get("tools"), "tools", read_item=_tool)
    system_code = "null" if body.get("system") is None else "system"
    codes = {"messages": "list", "system": system_code, "tools": tools_code}
    return Conversation(
        messages=tuple(messages), tools=tools, origin=NAME, template=template_of(body, codes, path="body")
    )


def _system(value: Any) -> Message:
    parts, code = read_content(value, "system", read_part=read_part)
    return Message("system", parts, origin=NAME, template={"system": code})


def _message(source: dict[str, Any], path: str) -> Message:
    word = role_at(source, ROLES, path=path)
    parts, code = read_content(source.get("content"), f"{path}.content", read_part=read_part)
    template = template_of(source, {"role": word, "content": code}, path=path)
    return Message(ROLES[word], parts, origin=NAME, template=template)


def read_part(value: Any, path: str) -> Part:
    """A content block. Raises WireError."""
    source = as_object(value, path)
    match text_at(source, "type", path=path):
        case "tool_use":
            return _call(source, path)
        case "tool_result":
            return _result(source, path)
        case "thinking":
            return _thinking(source, path)
        case "redacted_thinking":
            natural = list(source) == ["type", "data"]
            template = None if natural else template_of(source, {"data": "str"}, path=path)
            return Reasoning(data=text_at(source, "data", path=path), template=template)
        case _:
            return _result_part(source, path)


def _result_part(value: Any, path: str) -> ResultPart:
    """A block that may also stand inside a tool result; others are kept whole there."""
    source = as_object(value, path)
    match text_at(source, "type", path=path):
        case "text":
            text = text_at(source, "text", path=path)
            natural = list(source) == ["type", "text"]
            return Text(text, None if natural else template_of(source, {"text": "str"}, path=path))
        case "image":
            return read_image(source, path)
        case "document":
            return read_document(source, path)
        case _:
            return Opaque(copied(source, path))


def _call(source: dict[str, Any], path: str) -> ToolCall:
    arguments, code = read_input(source.get("input", {}), f"{path}.input")
    natural = code == "json" and list(source) == ["type", "id", "name", "input"]
    codes = {"id": "str", "name": "str", "input": code}
    return ToolCall(
        text_at(source, "id", path=path),
        text_at(source, "name", path=path),
        arguments,
        template=None if natural else template_of(source, codes, path=path),
    )


def _result(source: dict[str, Any], path: str) -> ToolResult:
    parts, code = read_content(source.get("content"), f"{path}.content", read_part=_result_part)
    is_error = source.get("is_error")
    if is_error is not None and not isinstance(is_error, bool):
        raise expected(f"{path}.is_error", "true or false", found=is_error)
    codes = {"tool_use_id": "str", "content": code, "is_error": "null" if is_error is None else "bool"}
    return ToolResult(
        text_at(source, "tool_use_id", path=path),
        parts,
        is_error=bool(is_error),
        template=template_of(source, codes, path=path),
    )


def _thinking(source: dict[str, Any], path: str) -> Reasoning:
    codes = {"thinking": "str"}
    if "signature" in source:
        codes["signature"] = code_of(source["signature"], f"{path}.signature")
    natural = list(source) == ["type", "thinking", "signature"] and source["signature"] is not None
    return Reasoning(
        text_at(source, "thinking", path=path),
        signature=source.get("signature"),
        template=None if natural else template_of(source, codes, path=path),
    )


def _tool(value: Any, path: str) -> Tool:
    source = as_object(value, path)
    name, schema = source.get("name"), source.get("input_schema")
    if not isinstance(name, str) or not isinstance(schema, dict):
        known_as = name if isinstance(name, str) else ""
        return Tool(known_as, origin=NAME, template=copied(source, path))
    codes = {
        "name": "str",
        "description": code_of(source.get("description"), f"{path}.description"),
        "input_schema": "object",
    }
    return Tool(
        name,
        source.get("description") or "",
        copied(schema, f"{path}.input_schema"),
        origin=NAME,
        template=template_of(source, codes, path=path),
    )
