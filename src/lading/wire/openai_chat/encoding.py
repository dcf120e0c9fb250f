"""Our values to a Chat Completions request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from lading.messages import (
    Conversation,
    File,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    ResultPart,
    Template,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from lading.models.card import Card
from lading.wire.openai_chat.decoding import CALL_FIELDS, NAME, NO_ARGUMENTS, ROLES
from lading.wire.openai_chat.grouping import flat, is_native, movable, moved, runs
from lading.wire.openai_chat.media import write_file, write_image
from lading.wire.shapes import copied
from lading.wire.templates import ABSENT, Piece, empty, fill, merged, write_content, written
from lading.wire.translation import left_out, stand_in_id, translated, type_of

PARAMETERS = {
    "model": "model",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_completion_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "stop": "stop",
    "stop_sequences": "stop",
    "stream": "stream",
}
"""The fields of a foreign request that are carried over, and their names here."""

MAX_ID_CHARS = 40
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def envelope(conversation: Conversation) -> dict[str, Any]:
    """The body with an empty list of messages in its place."""
    native = conversation.origin == NAME
    template = conversation.template if native else translated(conversation.template, PARAMETERS)
    tools = [item for tool in conversation.tools if (item := _tool(tool)) is not None]
    code = template.get("tools") if native and template else None
    return fill(template, {"tools": tools or empty(code, otherwise=ABSENT), "messages": []})


def encode_group(messages: Sequence[Message], card: Card) -> list[dict[str, Any]]:
    """The wire messages of a group that joins."""
    return [item for run in runs(messages, card) for item in _run(run, card)]


def _run(messages: Sequence[Message], card: Card) -> list[dict[str, Any]]:
    """A run's tool results, then what else is said, in one message."""
    items = [_result(message, result) for message in messages for result in message.results]
    shown = [part for message in messages for part in moved(message)]
    speakers = [message for message in messages if not message.results or _says_more(message)]
    if speakers or shown:
        items.append(_spoken(speakers, shown, card))
    return items


def _says_more(message: Message) -> bool:
    return any(not isinstance(part, ToolResult) for part in message.parts)


def _result(message: Message, result: ToolResult) -> dict[str, Any]:
    template = _template(message, "tool") if len(message.parts) == 1 else {}
    native, old_style = is_native(message), template.get("role") == "function"
    if native:
        pieces = [_piece(part, native=True, media=True) for part in result.parts]
    else:
        words = "\n".join(_words(part) for part in result.parts)
        pieces = [words] if words else []
    otherwise = ABSENT if template and "content" not in template else ""
    named = "name" in template or old_style
    with_id = "tool_call_id" in template or not old_style
    values = {
        "role": template.get("role", "tool"),
        "tool_call_id": _id(result.call_id, native) if with_id else ABSENT,
        "name": written(result.name, template.get("name")) if named else ABSENT,
        "content": write_content(pieces, template.get("content"), otherwise=otherwise),
    }
    return fill(template, values)


def _words(part: ResultPart) -> str:
    if isinstance(part, Image | File) and movable(part):
        kind = "image" if isinstance(part, Image) else "document"
        return f"[{kind}: see the next user message]"
    piece = _piece(part, native=False, media=False)
    assert isinstance(piece, str)
    return piece


def _spoken(speakers: Sequence[Message], shown: Sequence[Image | File], card: Card) -> dict[str, Any]:
    """One message of the speakers' role: what is shown out of tool results, then their own parts."""
    role = speakers[-1].role if speakers else "user"
    role = "user" if role == "tool" else role
    template = merged(_template(message, role) for message in speakers)
    pieces: list[Piece] = [_piece(part, native=False, media=True) for part in shown]
    for message in speakers:
        native = is_native(message)
        said = (part for part in message.parts if not isinstance(part, ToolCall | ToolResult | Reasoning))
        inside = [part for part in said if not (native and _field(part))]
        found = [_piece(part, native=native, media=native or role == "user") for part in inside]
        pieces += (piece for piece in found if native or piece)
    alone = len(speakers) == 1 and is_native(speakers[0])
    if flat(card) and not alone and all(isinstance(piece, str) for piece in pieces):
        pieces = ["\n\n".join(str(piece) for piece in pieces)] if pieces else []
    calls = [(message, call) for message in speakers for call in message.calls]
    beside = _beside(speakers) if role == "assistant" else {}
    otherwise: Any = None if calls or any(value is not ABSENT for value in beside.values()) else ""
    if alone and template and "content" not in template:
        otherwise = ABSENT
    values = {
        "role": template.get("role", role),
        "name": _name(speakers, template),
        "content": write_content(pieces, template.get("content") if alone else None, otherwise=otherwise),
    }
    if role == "assistant":
        values["reasoning_content"] = _reasoning(speakers, template, card)
        values |= _calls(calls, template) | beside
    return fill(template, values)


def _field(part: Part) -> str:
    """The field of an assistant message that says the part beside its content; empty where the content does."""
    if isinstance(part, Text) and part.template and "type" not in part.template:
        return "refusal"
    return "audio" if isinstance(part, Opaque) and part.value.keys() == {"audio"} else ""


def _beside(speakers: Sequence[Message]) -> dict[str, Any]:
    """The fields ``refusal`` and ``audio``: as the parts have them, and left out where they are gone."""
    fields: dict[str, Any] = {}
    for message in filter(is_native, speakers):
        codes = {"refusal": "str", "audio": "object"}
        fields |= {key: ABSENT for key, code in codes.items() if (message.template or {}).get(key) == code}
        for part in message.parts:
            if isinstance(part, Text) and _field(part):
                said = fields.get("refusal", ABSENT)
                fields["refusal"] = part.text if said is ABSENT else f"{said}\n\n{part.text}"
            elif isinstance(part, Opaque) and _field(part):
                fields |= copied(part.value, "part")
    return fields


def _template(message: Message, role: str) -> Template:
    """The message's template where it is one of this wire and for this role."""
    template = message.template if is_native(message) and message.template else {}
    return template if ROLES.get(template.get("role", "")) == role else {}


def _name(speakers: Sequence[Message], template: Template) -> Any:
    name = next((message.name for message in speakers if message.name), "")
    if "name" in template:
        return written(name, template["name"])
    return name if _NAME.fullmatch(name) else ABSENT


def _reasoning(speakers: Sequence[Message], template: Template, card: Card) -> Any:
    """``reasoning_content``: on every message toward a model that wants it back, else only where it came."""
    parts = [part for message in speakers for part in message.parts if isinstance(part, Reasoning)]
    text = "\n\n".join(part.text for part in parts if part.text)
    if card.conduct.reasoning_echo == "reasoning_content":
        return text
    if "reasoning_content" in template:
        return text if parts else empty(template["reasoning_content"], otherwise=ABSENT)
    return ABSENT


def _calls(calls: Sequence[tuple[Message, ToolCall]], template: Template) -> dict[str, Any]:
    old_style = template.get("function_call") == "call"
    items: list[Any] = []
    fields: dict[str, Any] = {"function_call": ABSENT} if old_style else {}
    if old_style and len(calls) == 1 and is_native(calls[0][0]):
        call = calls[0][1]
        fields["function_call"] = fill(call.template, {"name": call.name, "arguments": call.arguments})
    else:
        items = [_call(call, native=is_native(message)) for message, call in calls]
    return {"tool_calls": items or empty(template.get("tool_calls"), otherwise=ABSENT)} | fields


def _call(call: ToolCall, *, native: bool) -> dict[str, Any]:
    call_id = _id(call.id, native)
    kind = next((kind for kind in CALL_FIELDS if kind in (call.template or ())), None)
    if not native or call.template is None or kind is None:
        function = {"name": call.name, "arguments": call.arguments}
        return {"id": call_id, "type": "function", "function": function}
    inner = fill(call.template[kind], {"name": call.name, CALL_FIELDS[kind]: call.arguments})
    return fill(call.template, {"id": call_id, kind: inner})


def _id(call_id: str, native: bool) -> str:
    return call_id if native or len(call_id) <= MAX_ID_CHARS else stand_in_id(call_id)


def _piece(part: ResultPart, *, native: bool, media: bool) -> Piece:
    """A part in this wire's form; words in its place where the message cannot hold it."""
    match part:
        case Text():
            if not native or not part.template:
                return part.text
            return fill(part.template, {"refusal" if "refusal" in part.template else "text": part.text})
        case Image():
            return write_image(part, native=native) if media else left_out("image")
        case File():
            piece = write_file(part, native=native)
            return piece if media or isinstance(piece, str) else left_out("document")
        case _:
            return copied(part.value, "part") if native else left_out(type_of(part))


def _tool(tool: Tool) -> dict[str, Any] | None:
    """The tool's declaration; None for another provider's own tool."""
    native = tool.origin == NAME
    if tool.schema is None:
        return copied(tool.template, "tool") if native and tool.template else None
    template = tool.template if native and tool.template else {}
    function: Template = template.get("function", {})
    schema: Any = copied(tool.schema, "tool")
    if template and schema == NO_ARGUMENTS and function.get("parameters") != "object":
        schema = None if "parameters" in function else ABSENT
    values = {
        "name": tool.name,
        "description": written(tool.description, function.get("description")),
        "parameters": schema,
    }
    return fill(template or {"type": "function"}, {"function": fill(function, values)})
