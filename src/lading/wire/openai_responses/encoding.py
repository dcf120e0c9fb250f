"""Encode our values as a Responses request: the items of a message, and the body beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from lading.messages import (
    Conversation,
    File,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Template,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from lading.models.card import Card
from lading.wire.openai_responses.decoding import NO_ARGUMENTS, find_template
from lading.wire.openai_responses.items import CALL_FIELDS, NAME, OUTPUT_OF, ROLES, TEXTS
from lading.wire.openai_responses.media import write_file, write_image
from lading.wire.templates import ABSENT, Piece, copy_json, fill, write_content, write_empty, write_text
from lading.wire.translation import left_out_note, make_legal_id, translate_fields, type_of

MAX_ID_CHARS: Final = 64
PARAMETERS: Final = {name: name for name in ("model", "temperature", "top_p", "stream", "max_output_tokens")} | {
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
}
"""The fields of a foreign request that are carried over, and their names here."""


def count_leading(messages: Sequence[Message]) -> int:
    """Count the first messages that are written to ``instructions``: system messages that were no items."""
    for index, message in enumerate(messages):
        is_item = message.origin == NAME and "instructions" not in find_template(message)
        is_item = is_item or any(not isinstance(part, Text) for part in message.parts)
        if message.role != "system" or is_item:
            return index
    return len(messages)


def joins(group: Sequence[Message], after: Message, *, card: Card) -> bool:
    """Whether a group and the message after it are written together: calls of custom tools, their results and what
    is between them, because the type of a result depends on its call."""
    del card
    custom = {call.id for one in group for call in one.calls if _read_call_type(call, one) != "function_call"}
    if not custom or after.results:
        return bool(custom)
    return not custom.issubset(result.call_id for one in group for result in one.results)


def envelope(conversation: Conversation) -> dict[str, Any]:
    """Encode the body with its ``instructions`` and an empty list of items."""
    native = conversation.origin == NAME
    template = conversation.template if native else translate_fields(conversation.template, PARAMETERS)
    codes: Mapping[str, Any] = (template or {}) if native else {}
    tools = [item for tool in conversation.tools if (item := _write_tool(tool)) is not None]
    leading = conversation.messages[: count_leading(conversation.messages)]
    values = {
        "instructions": write_text("\n\n".join(message.text for message in leading), codes.get("instructions")),
        "tools": tools or write_empty(codes.get("tools"), otherwise=ABSENT),
        "input": [],
    }
    return fill(template, values)


def encode_group(messages: Sequence[Message], card: Card) -> list[dict[str, Any]]:
    """Encode a group of joined messages."""
    del card
    kinds = {call.id: _read_call_type(call, message) for message in messages for call in message.calls}
    return [item for message in messages for item in _write_message(message, kinds)]


def _write_message(message: Message, kinds: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    if message.role == "assistant":
        yield from _AnswerWriter(message).items
        return
    native = message.origin == NAME
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    yield from (_write_output(result, kinds, native=native) for result in results)
    rest = [part for part in message.parts if not isinstance(part, ToolResult)]
    template = find_template(message)
    if native and "role" not in template and any(isinstance(part, Opaque) for part in rest):
        yield from (copy_json(part.value, "item") for part in rest if isinstance(part, Opaque))
    elif rest or not results:
        role = "user" if message.role == "tool" else message.role
        pieces = [_write_block(part, native=native, media=True) for part in rest]
        otherwise = ABSENT if template and "content" not in template else ""
        template = template if ROLES.get(template.get("role", "")) == role else {}
        content = _write_content(pieces, template.get("content"), otherwise=otherwise)
        yield fill(template, {"role": template.get("role", role), "content": content})


class _AnswerWriter:
    """Writes the items of an assistant message.

    An item that carries its id needs the reasoning before it (R5): without it, the ids go too. Reasoning needs the
    item after it (R4).
    """

    def __init__(self, message: Message) -> None:
        self.items: list[dict[str, Any]] = []
        self._blocks: list[Piece] = []
        """The content of the message item that is being written; empty: none is."""
        self._item: Template = {}
        parts, self._native = list(message.parts), message.origin == NAME
        reasoning = sum(isinstance(part, Reasoning) for part in parts)
        self._strips = find_template(message).get("reasoning", 0) > reasoning
        while parts and isinstance(parts[-1], Reasoning):
            del parts[-1]
        for part in parts:
            if isinstance(part, Text):
                self._add_text(part)
            else:
                self._close()
                self._add(part)
        self._close()
        if not message.parts:
            self.items.append({"role": "assistant", "content": ""})

    def _add_text(self, text: Text) -> None:
        template = text.template if self._native and text.template else {}
        if "item" in template or not self._blocks:
            self._close()
            self._item = template.get("item") or {"type": "message", "role": "assistant", "content": "list"}
        piece: Piece = text.text
        if "block" in template:
            piece = _fill_block(template["block"], text.text)
        elif self._item.get("content") != "str":
            piece = {"type": "output_text", "text": text.text}
        self._blocks.append(piece)

    def _close(self) -> None:
        if not self._blocks:
            return
        code = self._item.get("content")
        blocks = [{"type": "output_text", "text": it} if isinstance(it, str) else it for it in self._blocks]
        plain = self._blocks[0] if code == "str" and len(self._blocks) == 1 else blocks
        self.items.append(fill(self._item, self._strip({"content": plain})))
        self._blocks = []

    def _add(self, part: Part) -> None:
        native = self._native
        match part:
            case ToolCall():
                fields = {"call_id": _write_id(part.id, native=native), "name": part.name}
                kind = CALL_FIELDS[(part.template if native and part.template else {}).get("type", "function_call")]
                template = (part.template if native else None) or {"type": "function_call"}
                self.items.append(fill(template, self._strip(fields | {kind: part.arguments})))
            case Reasoning() if native:
                encrypted = {} if part.data is None else {"encrypted_content": part.data}
                self.items.append(fill(part.template or {"type": "reasoning", "summary": []}, encrypted))
            case Opaque() if native:
                is_call = type_of(part).endswith("_call")
                self.items.append(fill(part.value, self._strip({}) if is_call else {}))
            case Reasoning():
                pass
            case _:
                note = _write_block(part, native=False, media=False)
                self.items.append({"role": "assistant", "content": note})

    def _strip(self, fields: dict[str, Any]) -> dict[str, Any]:
        return fields | ({"id": ABSENT} if self._strips else {})


def _read_call_type(call: ToolCall, message: Message) -> str:
    template = call.template if message.origin == NAME and call.template else {}
    return str(template.get("type", "function_call"))


def _write_output(result: ToolResult, kinds: Mapping[str, str], *, native: bool) -> dict[str, Any]:
    template = result.template if native and result.template else {}
    kind = template.get("type") or OUTPUT_OF[kinds.get(result.call_id, "function_call")]
    pieces = [_write_block(part, native=native, media=True) for part in result.parts]
    words = [piece for piece in pieces if isinstance(piece, str)]
    if not native and words and len(words) == len(pieces):
        pieces = ["\n".join(words)]
    values = {
        "type": kind,
        "call_id": _write_id(result.call_id, native=native),
        "output": _write_content(
            pieces, template.get("output"), otherwise=ABSENT if template and "output" not in template else ""
        ),
    }
    return fill(template, values)


def _write_content(pieces: Sequence[Piece], code: Any, *, otherwise: Any) -> Any:
    if code == "list" or len(pieces) > 1:
        pieces = [{"type": "input_text", "text": piece} if isinstance(piece, str) else piece for piece in pieces]
    return write_content(pieces, code, otherwise=otherwise)


def _write_block(part: Part, *, native: bool, media: bool) -> Piece:
    """Encode a part of a content or output; a text replaces one that it cannot contain."""
    match part:
        case Text():
            block = part.template.get("block") if native and part.template else None
            return _fill_block(block, part.text) if block else part.text
        case Image():
            return write_image(part, native=native) if media or native else left_out_note("image")
        case File():
            piece = write_file(part, native=native)
            return piece if media or native or isinstance(piece, str) else left_out_note("document")
        case Opaque():
            return copy_json(part.value, "part") if native else left_out_note(type_of(part))
        case _:
            return left_out_note("part")


def _fill_block(block: Template, text: str) -> dict[str, Any]:
    return fill(block, {TEXTS[block["type"]]: text})


def _write_id(call_id: str, *, native: bool) -> str:
    return call_id if native or len(call_id) <= MAX_ID_CHARS else make_legal_id(call_id)


def _write_tool(tool: Tool) -> dict[str, Any] | None:
    """Encode the tool's declaration; None for another provider's own tool. Without ``strict: false`` the API would
    change the schema."""
    native = tool.origin == NAME
    if tool.schema is None:
        return copy_json(tool.template, "tool") if native and tool.template else None
    template = tool.template if native and tool.template else {}
    schema: Any = copy_json(tool.schema, "tool")
    if template and schema == NO_ARGUMENTS and template.get("parameters") != "object":
        schema = None if "parameters" in template else ABSENT
    values = {
        "name": tool.name,
        "description": write_text(tool.description, template.get("description")),
        "parameters": schema,
    }
    return fill(template, values) if template else fill({"type": "function"}, values | {"strict": False})
