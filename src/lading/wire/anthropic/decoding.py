"""Decode a Messages request to our values.

The body's field ``system`` becomes the first message, whose template has the single key ``system``; a message of
role system among the messages keeps its ``role`` in its template. A call's ``input`` has the code "json" if the
arguments decode to an equal input; else (a NaN, a number as key, a bare string) ``{"raw": the input}``, which is
used while the arguments are unchanged. ``is_error`` is "bool" or "null"; for all other codes see ``templates``.
This module also writes images and documents; blocks of unknown types are kept whole as Opaque parts.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from lading.wire.arguments import read_arguments
from lading.wire.templates import (
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
    write_text,
)
from lading.wire.translation import left_out_note

NAME: Final = "anthropic"

ROLES: Final[dict[str, Role]] = {"user": "user", "assistant": "assistant", "system": "system"}


def decode(body: Mapping[str, Any]) -> Conversation:
    """Decode a request body; ``encode`` gives the same body. Raises WireError."""
    if not isinstance(body, Mapping):
        raise shape_error("body", "an object", found=body)
    messages = [
        _read_message(as_object(item, f"messages.{index}"), f"messages.{index}")
        for index, item in enumerate(as_list(body.get("messages"), "messages"))
    ]
    if body.get("system") is not None:
        parts, code = read_content(body["system"], "system", read_part=read_part)
        messages.insert(0, Message("system", parts, origin=NAME, template={"system": code}))
    tools, tools_code = read_list(body.get("tools"), "tools", read_item=_read_tool)
    system_code = "null" if body.get("system") is None else "system"
    codes = {"messages": "list", "system": system_code, "tools": tools_code}
    return Conversation(
        messages=tuple(messages), tools=tools, origin=NAME, template=make_template(body, codes, path="body")
    )


def _read_message(source: dict[str, Any], path: str) -> Message:
    if source.get("type") == "message":
        # An answer of the API as it came: its other fields are refused in a request.
        source = {key: source[key] for key in ("role", "content") if key in source}
    word = role_at(source, ROLES, path=path)
    parts, code = read_content(source.get("content"), f"{path}.content", read_part=read_part)
    template = make_template(source, {"role": word, "content": code}, path=path)
    return Message(ROLES[word], parts, origin=NAME, template=template)


def read_part(value: Any, path: str) -> Part:
    """Decode a content block. Raises WireError."""
    source = as_object(value, path)
    match text_at(source, "type", path=path):
        case "tool_use":
            return _read_call(source, path)
        case "tool_result":
            return _read_result(source, path)
        case "thinking":
            return _read_thinking(source, path)
        case "redacted_thinking":
            natural = list(source) == ["type", "data"]
            template = None if natural else make_template(source, {"data": "str"}, path=path)
            return Reasoning(data=text_at(source, "data", path=path), template=template, provenance=NAME)
        case "compaction":
            # Without content it is a compaction that failed.
            return Opaque(copy_json(source, path), is_summary=isinstance(source.get("content"), str))
        case _:
            return _read_result_part(source, path)


def _read_result_part(value: Any, path: str) -> ResultPart:
    """Decode a block that a tool result may contain; other types are kept whole there."""
    source = as_object(value, path)
    match text_at(source, "type", path=path):
        case "text":
            text = text_at(source, "text", path=path)
            natural = list(source) == ["type", "text"]
            return Text(text, None if natural else make_template(source, {"text": "str"}, path=path))
        case "image":
            return read_image(source, path)
        case "document":
            return read_document(source, path)
        case _:
            return Opaque(copy_json(source, path))


def _read_call(source: dict[str, Any], path: str) -> ToolCall:
    arguments, code = read_arguments(source.get("input", {}), f"{path}.input")
    natural = code == "json" and list(source) == ["type", "id", "name", "input"]
    codes = {"id": "str", "name": "str", "input": code}
    return ToolCall(
        text_at(source, "id", path=path),
        text_at(source, "name", path=path),
        arguments,
        template=None if natural else make_template(source, codes, path=path),
    )


def _read_result(source: dict[str, Any], path: str) -> ToolResult:
    parts, code = read_content(source.get("content"), f"{path}.content", read_part=_read_result_part)
    is_error = source.get("is_error")
    if is_error is not None and not isinstance(is_error, bool):
        raise shape_error(f"{path}.is_error", "true or false", found=is_error)
    codes = {"tool_use_id": "str", "content": code, "is_error": "null" if is_error is None else "bool"}
    return ToolResult(
        text_at(source, "tool_use_id", path=path),
        parts,
        is_error=bool(is_error),
        template=make_template(source, codes, path=path),
    )


def _read_thinking(source: dict[str, Any], path: str) -> Reasoning:
    codes = {"thinking": "str"}
    if "signature" in source:
        codes["signature"] = find_code(source["signature"], f"{path}.signature")
    natural = list(source) == ["type", "thinking", "signature"] and source["signature"] is not None
    return Reasoning(
        text_at(source, "thinking", path=path),
        signature=source.get("signature"),
        template=None if natural else make_template(source, codes, path=path),
        provenance=NAME,
    )


def _read_tool(value: Any, path: str) -> Tool:
    source = as_object(value, path)
    name, schema = source.get("name"), source.get("input_schema")
    if not isinstance(name, str) or not isinstance(schema, dict):
        known_as = name if isinstance(name, str) else ""
        return Tool(known_as, origin=NAME, template=copy_json(source, path))
    codes = {
        "name": "str",
        "description": find_code(source.get("description"), f"{path}.description"),
        "input_schema": "object",
    }
    return Tool(
        name,
        source.get("description") or "",
        copy_json(schema, f"{path}.input_schema"),
        origin=NAME,
        template=make_template(source, codes, path=path),
    )


_FIELDS = {"base64": ("media_type", "data"), "text": ("media_type", "data"), "url": ("url",), "file": ("file_id",)}
"""The fields of a source by its type."""


def read_image(source: dict[str, Any], path: str) -> Image | Opaque:
    """Decode an ``image`` block."""
    fields = _read_source(source.get("source"))
    if fields is None or fields["type"] not in ("base64", "url"):
        return Opaque(copy_json(source, path))
    return Image(
        url=fields.get("url", ""),
        data=fields.get("data", ""),
        media_type=fields.get("media_type", ""),
        template=_make_source_template(source, {}, path=path),
    )


def write_image(image: Image, *, native: bool) -> dict[str, Any] | str:
    """Encode an image; a text replaces one without data and URL."""
    if image.data:
        source = {"type": "base64", "media_type": image.media_type or "image/png", "data": image.data}
    elif image.url:
        source = {"type": "url", "url": image.url}
    else:
        return left_out_note("image")
    return _write_block("image", source, image.template if native else None, {})


def read_document(source: dict[str, Any], path: str) -> File | Opaque:
    """Decode a ``document`` block."""
    fields = _read_source(source.get("source"))
    if fields is None or (fields["type"] == "text") != (fields.get("media_type") == "text/plain"):
        return Opaque(copy_json(source, path))
    title = source.get("title")
    codes = {"title": find_code(title, f"{path}.title")}
    return File(
        url=fields.get("url", ""),
        data=fields.get("data", ""),
        file_id=fields.get("file_id", ""),
        media_type=fields.get("media_type", ""),
        name=title or "",
        template=_make_source_template(source, codes, path=path),
    )


def write_document(file: File, *, native: bool) -> dict[str, Any] | str:
    """Encode a document; a text replaces one that this wire does not accept."""
    if file.data and file.media_type == "text/plain":
        source = {"type": "text", "media_type": "text/plain", "data": file.data}
    elif file.data and (native or file.media_type in ("application/pdf", "")):
        source = {"type": "base64", "media_type": file.media_type or "application/pdf", "data": file.data}
    elif file.url:
        source = {"type": "url", "url": file.url}
    elif file.file_id and native:
        source = {"type": "file", "file_id": file.file_id}
    else:
        return left_out_note(f"document {file.name}".rstrip())
    template = file.template if native else None
    return _write_block(
        "document", source, template, {"title": write_text(file.name, (template or {}).get("title"))}
    )


def _read_source(source: Any) -> dict[str, str] | None:
    """Return type and known fields of a source; None unless all of them are non-empty strings."""
    kind = source.get("type") if isinstance(source, dict) else None
    if not isinstance(kind, str) or kind not in _FIELDS:
        return None
    fields = {key: source.get(key) for key in ("type", *_FIELDS[kind])}
    return fields if all(isinstance(value, str) and value for value in fields.values()) else None


def _make_source_template(source: dict[str, Any], codes: dict[str, Any], *, path: str) -> dict[str, Any]:
    holder = source["source"]
    known = dict.fromkeys(_FIELDS[holder["type"]], "str")
    return make_template(source, codes | {"source": make_template(holder, known, path=path)}, path=path)


def _write_block(
    kind: str, source: dict[str, str], template: dict[str, Any] | None, fields: dict[str, Any]
) -> dict[str, Any]:
    was = (template or {}).get("source", {})
    filled = fill(was, source) if was.get("type") == source["type"] else source
    return fill(template or {"type": kind}, {"source": filled} | fields)
