"""Items of OpenAI's Responses form, as Codex logs them, read into roles and parts.

What this version does not know is kept whole as an Opaque part. An item's own id, its status and other marks of
its handling, which no model reads, are left behind.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from lading.messages import Image, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from lading.wire.shapes import as_list, as_object, copied, expected, role_at, text_at
from lading.wire.translation import split_data_url

Said: TypeAlias = tuple[Role, tuple[Part, ...]]
"""Who says what."""

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_TEXTS = ("input_text", "output_text", "summary_text", "reasoning_text", "text", "refusal")
_EXIT_ABOVE = re.compile(r"^(?:Exit code: |Process exited with code )(-?\d+)$", re.MULTILINE)
_EXIT_AROUND = re.compile(r'"exit_code":(-?\d+)')
"""How Codex tells the model how a command ended: in lines above its output, earlier in JSON around it."""
_EXIT_CHARS = 400


def decode_item(item: Mapping[str, Any]) -> Said:
    """The role and the parts of one item; no parts where it is a mark that no model is shown. Raises WireError."""
    kind = text_at(item, "type", path="item")
    reader = _READERS.get(kind)
    if reader is not None:
        return reader(item)
    return "assistant" if kind.endswith("_call") else "user", (_opaque(item),)


def is_item(value: Mapping[str, Any]) -> bool:
    """Whether an object is an item of this form rather than of another that also has a type."""
    kind, content = value.get("type"), value.get("content")
    if kind == "message":
        blocks = content if isinstance(content, list) else []
        return any(
            isinstance(block, dict) and block.get("type") in ("input_text", "output_text") for block in blocks
        )
    return isinstance(kind, str) and kind in _READERS and ("call_id" in value or "summary" in value)


def _message(item: Mapping[str, Any]) -> Said:
    role = _ROLES[role_at(item, _ROLES, path="item")]
    return role, tuple(_content(item.get("content"), "item.content"))


def _agent_message(item: Mapping[str, Any]) -> Said:
    """Another agent's words, told as ``lading.sources.agents`` tells them."""
    parts, author = list(_content(item.get("content"), "item.content")), item.get("author")
    if isinstance(author, str) and parts and isinstance(parts[0], Text):
        parts[0] = Text(f"{author}: {parts[0].text}")
    return "user", tuple(parts)


def _reasoning(item: Mapping[str, Any]) -> Said:
    shown = [*_content(item.get("summary"), "item.summary"), *_content(item.get("content"), "item.content")]
    words = "\n".join(part.text for part in shown if isinstance(part, Text))
    others = [part for part in shown if not isinstance(part, Text)]
    hidden = item.get("encrypted_content")
    return "assistant", (Reasoning(words, data=hidden if isinstance(hidden, str) else None), *others)


def _hidden(item: Mapping[str, Any]) -> Said:
    """A summary that only the provider can read."""
    hidden = item.get("encrypted_content")
    return "assistant", (Reasoning(data=hidden),) if isinstance(hidden, str) else ()


def _function_call(item: Mapping[str, Any]) -> Said:
    return _call(item, name=_name(item), arguments=item.get("arguments"))


def _custom_tool_call(item: Mapping[str, Any]) -> Said:
    return _call(item, name=_name(item), arguments=item.get("input"))


def _local_shell_call(item: Mapping[str, Any]) -> Said:
    return _call(item, name="local_shell", arguments=item.get("action"))


def _tool_search_call(item: Mapping[str, Any]) -> Said:
    return _call(item, name="tool_search", arguments=item.get("arguments"))


def _call(item: Mapping[str, Any], *, name: str, arguments: Any) -> Said:
    call_id = item.get("call_id") or item.get("id")
    if not isinstance(call_id, str):
        # The provider runs it by itself: nothing answers it.
        return "assistant", (_opaque(item),)
    written = arguments if isinstance(arguments, str) else _json(copied(arguments, "item.arguments"))
    return "assistant", (ToolCall(call_id, name, written),)


def _name(item: Mapping[str, Any]) -> str:
    name, space = text_at(item, "name", path="item"), item.get("namespace")
    if not isinstance(space, str) or not space:
        return name
    return f"{space}{'' if space.endswith('_') else '__'}{name}"


def _call_output(item: Mapping[str, Any]) -> Said:
    output, failed = item.get("output"), False
    if isinstance(output, Mapping):
        failed = output.get("success") is False
        output = output.get("content")
    result = ToolResult(
        text_at(item, "call_id", path="item"),
        tuple(_content(output, "item.output")),
        is_error=failed or (isinstance(output, str) and _failed(output)),
        name=item["name"] if isinstance(item.get("name"), str) else "",
    )
    return "tool", (result,)


def _failed(output: str) -> bool:
    if output.startswith('{"output":'):
        found = _EXIT_AROUND.search(output, max(len(output) - _EXIT_CHARS, 0))
    else:
        above, mark, _ = output[:_EXIT_CHARS].partition("\nOutput:")
        found = _EXIT_ABOVE.search(above) if mark else None
    return found is not None and int(found[1]) != 0


def _tool_search_output(item: Mapping[str, Any]) -> Said:
    if not isinstance(item.get("call_id"), str):
        return "user", (_opaque(item),)
    found = _json(copied(item.get("tools"), "item.tools"))
    return "tool", (ToolResult(item["call_id"], (Text(found),)),)


def _image_generation_call(item: Mapping[str, Any]) -> Said:
    data = item.get("result")
    about = _opaque({key: value for key, value in item.items() if key != "result"})
    return "assistant", (about, Image(data=data)) if isinstance(data, str) and data else (about,)


def _mark(item: Mapping[str, Any]) -> Said:  # noqa: ARG001 - one signature for all
    return "user", ()


def _content(value: Any, path: str) -> Iterator[Text | Image | Opaque]:
    if value is None or value == "":
        return
    if isinstance(value, str):
        yield Text(value)
        return
    for index, block in enumerate(as_list(value, path)):
        yield _block(as_object(block, f"{path}.{index}"), f"{path}.{index}")


def _block(block: Mapping[str, Any], path: str) -> Text | Image | Opaque:
    kind = block.get("type")
    if kind in _TEXTS:
        return Text(text_at(block, "refusal" if kind == "refusal" else "text", path=path))
    url = block.get("image_url")
    if kind == "input_image" and isinstance(url, str):
        inline = split_data_url(url)
        return Image(url) if inline is None else Image(media_type=inline[0], data=inline[1])
    return Opaque(copied(block, path))


def _opaque(item: Mapping[str, Any]) -> Opaque:
    return Opaque(copied(dict(item), "item"))


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise expected("item", "what JSON can hold", found=value) from error


_READERS: dict[str, Callable[[Mapping[str, Any]], Said]] = {
    "message": _message,
    "agent_message": _agent_message,
    "reasoning": _reasoning,
    "compaction": _hidden,
    "compaction_summary": _hidden,
    "context_compaction": _hidden,
    "function_call": _function_call,
    "custom_tool_call": _custom_tool_call,
    "local_shell_call": _local_shell_call,
    "tool_search_call": _tool_search_call,
    "function_call_output": _call_output,
    "custom_tool_call_output": _call_output,
    "local_shell_call_output": _call_output,
    "tool_search_output": _tool_search_output,
    "image_generation_call": _image_generation_call,
    "ghost_snapshot": _mark,
    "compaction_trigger": _mark,
}
