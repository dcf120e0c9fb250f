"""Decode a Chat Completions request to our values.

Codes in a message's template: ``role`` is the provider's word (developer is decoded as system, function as tool),
``function_call`` is "call" if that old-style call is the message's only one; ``refusal`` and ``audio`` refer to a
Text and an Opaque part whose template or value has no ``type``; for all others see ``templates``. Images and
documents have their readers and writers here; those that could not be encoded to an equal part are kept whole as
Opaque parts.
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
from lading.wire.templates import (
    ABSENT,
    as_list,
    as_object,
    copy_json,
    fill,
    find_code,
    make_template,
    read_content,
    read_list,
    role_at,
    shape_error,
    text_at,
)
from lading.wire.translation import PartTypes, data_url, left_out_note, split_data_url

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
    if "reasoning_content" not in source:
        return ()
    value = source["reasoning_content"]
    codes["reasoning_content"] = find_code(value, f"{path}.reasoning_content")
    return () if value is None else (Reasoning(value),)


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


_FILE_CODES = {"file_data": "str", "file_id": "str", "filename": "str"}


def read_image(source: dict[str, Any], path: str) -> Image | Opaque:
    """Decode an ``image_url`` part."""
    holder = source.get("image_url")
    url = holder.get("url") if isinstance(holder, dict) else holder
    if not isinstance(url, str):
        return Opaque(copy_json(source, path))
    code = make_template(holder, {"url": "str"}, path=path) if isinstance(holder, dict) else "str"
    template = make_template(source, {"image_url": code}, path=path)
    inline = split_data_url(url)
    if inline is not None:
        return Image(media_type=inline[0], data=inline[1], template=template)
    return Opaque(copy_json(source, path)) if url.startswith("data:") else Image(url, template=template)


def write_image(image: Image, *, native: bool) -> dict[str, Any]:
    """Encode an image; ``native`` if its template is of this wire."""
    url = data_url(image.media_type or "image/png", image.data) if image.data else image.url
    if not native or image.template is None:
        return {"type": "image_url", "image_url": {"url": url}}
    code = image.template.get("image_url")
    return fill(image.template, {"image_url": fill(code, {"url": url}) if isinstance(code, dict) else url})


def read_file(source: dict[str, Any], path: str) -> File | Opaque:
    """Decode a ``file`` part: an inline PDF, or a file by its id."""
    holder = source.get("file")
    if not isinstance(holder, dict):
        return Opaque(copy_json(source, path))
    fields = {key: holder[key] for key in _FILE_CODES if key in holder}
    if not all(isinstance(value, str) and value for value in fields.values()):
        return Opaque(copy_json(source, path))
    data = fields.get("file_data", "")
    media_type, data = split_data_url(data) or ("", data)
    if media_type == "text/plain" or data.startswith("data:"):
        return Opaque(copy_json(source, path))
    return File(
        data=data,
        file_id=fields.get("file_id", ""),
        media_type=media_type,
        name=fields.get("filename", ""),
        template=make_template(source, {"file": make_template(holder, _FILE_CODES, path=path)}, path=path),
    )


def write_file(file: File, *, native: bool) -> dict[str, Any] | str:
    """Encode a document; a text file becomes plain text, and a note replaces one that this wire does not accept."""
    if native and file.template is not None:
        values = {
            "file_data": (data_url(file.media_type, file.data) if file.media_type else file.data) or ABSENT,
            "file_id": file.file_id or ABSENT,
            "filename": file.name or ABSENT,
        }
        return fill(file.template, {"file": fill(file.template.get("file"), values)})
    if file.media_type == "text/plain" and file.data:
        return file.data
    if file.data:
        inline = data_url(file.media_type or "application/pdf", file.data)
        return {"type": "file", "file": {"filename": file.name or "document", "file_data": inline}}
    return left_out_note(f"document {file.url or file.name or file.file_id}".rstrip())
