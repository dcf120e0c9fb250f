"""Decode items of OpenAI's Responses format, as Codex logs them, into roles and parts.

Items of unknown types are kept whole as Opaque parts. An item's id, its status and other fields that no model reads
are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

from lading.messages import Image, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from lading.wire.openai_responses.items import NAME
from lading.wire.templates import as_list, as_object, copy_json, role_at, shape_error, text_at
from lading.wire.translation import split_data_url

DecodedItem: TypeAlias = tuple[Role, tuple[Part, ...]]
"""The role and the parts of an item."""

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_TEXTS = ("input_text", "output_text", "summary_text", "reasoning_text", "text", "refusal")
_EXIT_ABOVE = re.compile(r"^(?:Exit code: |Process exited with code )(-?\d+)$", re.MULTILINE)
_EXIT_AROUND = re.compile(r'"exit_code":(-?\d+)')
"""How Codex reports a command's exit code to the model: a line above the output, formerly JSON around it."""
_EXIT_CHARS = 400


def decode_item(item: Mapping[str, Any]) -> DecodedItem:
    """Decode one item; the parts are empty for an item that no model reads. Raises WireError."""
    kind = text_at(item, "type", path="item")
    decode = _DECODERS.get(kind)
    if decode is not None:
        return decode(item)
    return "assistant" if kind.endswith("_call") else "user", (_make_opaque(item),)


def is_item(value: Mapping[str, Any]) -> bool:
    """Whether an object with a type is an item of this format and not of another."""
    kind, content = value.get("type"), value.get("content")
    if kind == "message":
        blocks = content if isinstance(content, list) else []
        return any(isinstance(part, dict) and part.get("type") in ("input_text", "output_text") for part in blocks)
    return isinstance(kind, str) and kind in _DECODERS and ("call_id" in value or "summary" in value)


def _decode_message(item: Mapping[str, Any]) -> DecodedItem:
    role = _ROLES[role_at(item, _ROLES, path="item")]
    return role, tuple(_decode_content(item.get("content"), "item.content"))


def _decode_agent_message(item: Mapping[str, Any]) -> DecodedItem:
    """Decode another agent's message as user text, in the form of ``lading.sources.agents``."""
    parts, author = list(_decode_content(item.get("content"), "item.content")), item.get("author")
    if isinstance(author, str) and parts and isinstance(parts[0], Text):
        parts[0] = Text(f"{author}: {parts[0].text}")
    return "user", tuple(parts)


def _decode_reasoning(item: Mapping[str, Any]) -> DecodedItem:
    shown = [
        *_decode_content(item.get("summary"), "item.summary"),
        *_decode_content(item.get("content"), "item.content"),
    ]
    words = "\n".join(part.text for part in shown if isinstance(part, Text))
    others = [part for part in shown if not isinstance(part, Text)]
    encrypted = item.get("encrypted_content")
    return "assistant", (
        Reasoning(words, data=encrypted if isinstance(encrypted, str) else None, provenance=NAME),
        *others,
    )


def _decode_encrypted(item: Mapping[str, Any]) -> DecodedItem:
    """Decode a summary that only the provider can read."""
    encrypted = item.get("encrypted_content")
    return "assistant", (Reasoning(data=encrypted, provenance=NAME),) if isinstance(encrypted, str) else ()


def _decode_call(item: Mapping[str, Any], *, field: str, name: str = "") -> DecodedItem:
    name, call_id = name or _qualified_name(item), item.get("call_id") or item.get("id")
    if not isinstance(call_id, str):
        # The provider runs it: no result follows.
        return "assistant", (_make_opaque(item),)
    given = item.get(field)
    text = given if isinstance(given, str) else _dump_json(copy_json(given, "item.arguments"))
    return "assistant", (ToolCall(call_id, name, text),)


def _qualified_name(item: Mapping[str, Any]) -> str:
    name, space = text_at(item, "name", path="item"), item.get("namespace")
    if not isinstance(space, str) or not space:
        return name
    return f"{space}{'' if space.endswith('_') else '__'}{name}"


def _decode_call_output(item: Mapping[str, Any]) -> DecodedItem:
    output, failed = item.get("output"), False
    if isinstance(output, Mapping):
        failed = output.get("success") is False
        output = output.get("content")
    result = ToolResult(
        text_at(item, "call_id", path="item"),
        tuple(_decode_content(output, "item.output")),
        is_error=failed or (isinstance(output, str) and _has_failed(output)),
        name=item["name"] if isinstance(item.get("name"), str) else "",
    )
    return "tool", (result,)


def _has_failed(output: str) -> bool:
    if output.startswith('{"output":'):
        found = _EXIT_AROUND.search(output, max(len(output) - _EXIT_CHARS, 0))
    else:
        above, mark, _ = output[:_EXIT_CHARS].partition("\nOutput:")
        found = _EXIT_ABOVE.search(above) if mark else None
    return found is not None and int(found[1]) != 0


def _decode_search_output(item: Mapping[str, Any]) -> DecodedItem:
    if not isinstance(item.get("call_id"), str):
        return "user", (_make_opaque(item),)
    found = _dump_json(copy_json(item.get("tools"), "item.tools"))
    return "tool", (ToolResult(item["call_id"], (Text(found),)),)


def _decode_image_generation(item: Mapping[str, Any]) -> DecodedItem:
    data = item.get("result")
    about = _make_opaque({key: value for key, value in item.items() if key != "result"})
    return "assistant", (about, Image(data=data)) if isinstance(data, str) and data else (about,)


def _ignore_item(item: Mapping[str, Any]) -> DecodedItem:  # noqa: ARG001 - one signature for all
    return "user", ()


def _decode_content(value: Any, path: str) -> Iterator[Text | Image | Opaque]:
    if value is None or value == "":
        return
    if isinstance(value, str):
        yield Text(value)
        return
    for index, block in enumerate(as_list(value, path)):
        yield _decode_block(as_object(block, f"{path}.{index}"), f"{path}.{index}")


def _decode_block(block: Mapping[str, Any], path: str) -> Text | Image | Opaque:
    kind = block.get("type")
    if kind in _TEXTS:
        return Text(text_at(block, "refusal" if kind == "refusal" else "text", path=path))
    url = block.get("image_url")
    if kind == "input_image" and isinstance(url, str):
        inline = split_data_url(url)
        return Image(url) if inline is None else Image(media_type=inline[0], data=inline[1])
    return Opaque(copy_json(block, path))


def _make_opaque(item: Mapping[str, Any]) -> Opaque:
    return Opaque(copy_json(dict(item), "item"))


def _dump_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise shape_error("item", "what JSON can hold", found=value) from error


_DECODERS: dict[str, Callable[[Mapping[str, Any]], DecodedItem]] = {
    "message": _decode_message,
    "agent_message": _decode_agent_message,
    "reasoning": _decode_reasoning,
    "compaction": _decode_encrypted,
    "compaction_summary": _decode_encrypted,
    "context_compaction": _decode_encrypted,
    "function_call": partial(_decode_call, field="arguments"),
    "custom_tool_call": partial(_decode_call, field="input"),
    "local_shell_call": partial(_decode_call, field="action", name="local_shell"),
    "tool_search_call": partial(_decode_call, field="arguments", name="tool_search"),
    "function_call_output": _decode_call_output,
    "custom_tool_call_output": _decode_call_output,
    "local_shell_call_output": _decode_call_output,
    "tool_search_output": _decode_search_output,
    "image_generation_call": _decode_image_generation,
    "ghost_snapshot": _ignore_item,
    "compaction_trigger": _ignore_item,
}
