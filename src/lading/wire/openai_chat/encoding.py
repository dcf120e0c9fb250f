"""Encode our values as a Chat Completions request: the groups of messages, and their wire messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeGuard

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
    user_text,
)
from lading.models.card import Card
from lading.wire.openai_chat.decoding import CALL_FIELDS, IN_REASONING, NAME, NO_ARGUMENTS, ROLES
from lading.wire.openai_chat.media import write_file, write_image
from lading.wire.templates import ABSENT, Piece, copy_json, fill, merge, write_content, write_empty, write_text
from lading.wire.translation import left_out_note, make_legal_id, mark_system, translate_fields, type_of


def is_flat(card: Card) -> bool:
    """Whether the model's chat template accepts only strings as content, and only alternating roles (rule C11)."""
    return card.conduct.dialect in ("chat_template", "strict")


def is_movable(part: object) -> TypeGuard[Image | File]:
    """Whether a part is an image or file that a user message can contain but a tool message cannot."""
    inline_file = isinstance(part, File) and bool(part.data) and part.media_type != "text/plain"
    return isinstance(part, Image) or inline_file


def joins(group: Sequence[Message], after: Message, *, card: Card) -> bool:
    """Whether a group and the message after it are written as one group.

    Consecutive results are, unless all are of this format, so that their images can follow the last result; and a
    ``function_call`` with a result of another format, which is written in the same style. For a chat template, so
    are neighbours of one role, results with the user message after them, and a system message with its neighbours:
    ``split_runs`` finds whether it is in front.
    """
    if "system" in (group[-1].role, after.role) and is_flat(card):
        return True
    return _shares_message(group, after, card) or (is_old_style(group[-1]) and _is_foreign_result(after))


def _is_foreign_result(message: Message) -> bool:
    return bool(message.results) and not (message.origin == NAME and message.template)


def is_old_style(message: Message) -> bool:
    """Whether the message's call is a ``function_call``, which has no id and needs no answer."""
    return message.origin == NAME and (message.template or {}).get("function_call") == "call"


def split_runs(messages: Sequence[Message], card: Card) -> Sequence[Sequence[Message]]:
    """Split a group into runs, whose parts other than results share a wire message."""
    found: list[list[Message]] = []
    for message in _order_in_turn(messages) if is_flat(card) else messages:
        if found and _shares_message(found[-1], message, card):
            found[-1].append(message)
        else:
            found.append([message])
    return found


def _shares_message(run: Sequence[Message], after: Message, card: Card) -> bool:
    before = run[-1]
    if before.results and after.results:
        return after.origin != NAME or any(message.results and message.origin != NAME for message in run)
    if not is_flat(card) or before.calls or after.results:
        return False
    return after.role == ("user" if before.results else before.role)


def _order_in_turn(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with system messages that are not in front as user messages, never before results."""
    front = next((index for index, message in enumerate(messages) if message.role != "system"), len(messages))
    placed, notes = list(messages[:front]), []
    for message in messages[front:]:
        if message.role == "system":
            notes.append(user_text(mark_system(message.text)))
            continue
        if not message.results:
            placed, notes = placed + notes, []
        placed.append(message)
    return placed + notes


PARAMETERS = {"stop_sequences": "stop"} | {
    name: name
    for name in ("model", "max_tokens", "max_completion_tokens", "temperature", "top_p", "stop", "stream")
}
"""The fields of a foreign request that are carried over, and their names here."""

MAX_ID_CHARS = 40
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def envelope(conversation: Conversation) -> dict[str, Any]:
    """Encode the body with an empty list of messages."""
    native = conversation.origin == NAME
    template = conversation.template if native else translate_fields(conversation.template, PARAMETERS)
    tools = [item for tool in conversation.tools if (item := _write_tool(tool)) is not None]
    code = template.get("tools") if native and template else None
    return fill(template, {"tools": tools or write_empty(code, otherwise=ABSENT), "messages": []})


def encode_group(messages: Sequence[Message], card: Card) -> list[dict[str, Any]]:
    """Encode a group of joined messages."""
    items: list[dict[str, Any]] = []
    for run in split_runs(messages, card):
        called = items[-1].get("function_call") if items else None
        found = _write_run(run, card)
        items += [_answer_function(item, called) if called else item for item in found]
    return items


def _answer_function(item: dict[str, Any], called: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a ``function_call`` in its style: a tool message would need ``tool_calls`` (C2)."""
    if item["role"] != "tool":
        return item
    content = item.get("content")
    if isinstance(content, list):
        content = "\n".join(part.get("text", "") for part in content)
    return {"role": "function", "name": called["name"], "content": content or ""}


def extend(item: dict[str, Any], text: str, *, card: Card) -> dict[str, Any] | None:
    """Append a text to a message of the user if the model accepts only alternating roles."""
    if item["role"] != "user" or not is_flat(card):
        return None
    content = item.get("content")
    if isinstance(content, list):
        return {**item, "content": [*content, {"type": "text", "text": text}]}
    return {**item, "content": f"{content}\n\n{text}" if content else text}


def _write_run(messages: Sequence[Message], card: Card) -> list[dict[str, Any]]:
    """Encode a run: a wire message for each tool result, then one for all other parts."""
    items: list[dict[str, Any]] = []
    shown: list[Image | File] = []
    speakers: list[Message] = []
    for message in messages:
        results = message.results
        items += [_write_result(message, result) for result in results]
        if message.origin != NAME:
            shown += [part for result in results for part in result.parts if is_movable(part)]
        if len(results) < len(message.parts) or not message.parts:
            speakers.append(message)
    if speakers or shown:
        items.append(_write_speakers(speakers, shown, card))
    return items


def _write_result(message: Message, result: ToolResult) -> dict[str, Any]:
    template = _find_template(message, "tool") if len(message.parts) == 1 else {}
    native, old_style = message.origin == NAME, template.get("role") == "function"
    if native:
        pieces = [_write_piece(part, native=True, media=True) for part in result.parts]
    else:
        words = "\n".join(_write_result_text(part) for part in result.parts)
        pieces = [words] if words else []
    otherwise = ABSENT if template and "content" not in template else ""
    named = "name" in template or old_style
    with_id = "tool_call_id" in template or not old_style
    values = {
        "role": template.get("role", "tool"),
        "tool_call_id": _write_id(result.call_id, native) if with_id else ABSENT,
        "name": write_text(result.name, template.get("name")) if named else ABSENT,
        "content": write_content(pieces, template.get("content"), otherwise=otherwise),
    }
    return fill(template, values)


def _write_result_text(part: ResultPart) -> str:
    if is_movable(part):
        kind = "image" if isinstance(part, Image) else "document"
        return f"[{kind}: see the next user message]"
    piece = _write_piece(part, native=False, media=False)
    assert isinstance(piece, str)
    return piece


def _write_speakers(speakers: Sequence[Message], shown: Sequence[Image | File], card: Card) -> dict[str, Any]:
    """Encode one message of the speakers' role: the images and files of tool results, then the speakers' parts."""
    role = speakers[-1].role if speakers else "user"
    role = "user" if role == "tool" else role
    template = merge(_find_template(message, role) for message in speakers)
    pieces: list[Piece] = [_write_piece(part, native=False, media=True) for part in shown]
    for message in speakers:
        native = message.origin == NAME
        content = (part for part in message.parts if not isinstance(part, ToolCall | ToolResult | Reasoning))
        inside = [part for part in content if not (native and _find_field(part))]
        found = [_write_piece(part, native=native, media=native or role == "user") for part in inside]
        pieces += (piece for piece in found if native or piece)
    alone = len(speakers) == 1 and speakers[0].origin == NAME
    if not alone and is_flat(card) and all(isinstance(piece, str) for piece in pieces):
        pieces = ["\n\n".join(str(piece) for piece in pieces)] if pieces else []
    calls = [(message, call) for message in speakers for call in message.calls]
    beside = _write_fields_beside(speakers) if role == "assistant" else {}
    otherwise: Any = None if calls or any(value is not ABSENT for value in beside.values()) else ""
    if alone and template and "content" not in template:
        otherwise = ABSENT
    values = {
        "role": template.get("role", role),
        "name": _write_name(speakers, template),
        "content": write_content(pieces, template.get("content") if alone else None, otherwise=otherwise),
    }
    if role == "assistant":
        values |= _write_reasoning(speakers, template, card) | _write_calls(calls, template) | beside
    return fill(template, values)


def _find_field(part: Part) -> str:
    """Return the field of an assistant message for a part beside its content; empty for a part of the content."""
    if isinstance(part, Text) and part.template and "type" not in part.template:
        return "refusal"
    return "audio" if isinstance(part, Opaque) and part.value.keys() == {"audio"} else ""


def _write_fields_beside(speakers: Sequence[Message]) -> dict[str, Any]:
    """Encode the fields ``refusal`` and ``audio`` from the parts; those without a part any more are omitted."""
    fields: dict[str, Any] = {}
    for message in (speaker for speaker in speakers if speaker.origin == NAME):
        codes = {"refusal": "str", "audio": "object"}
        fields |= {key: ABSENT for key, code in codes.items() if (message.template or {}).get(key) == code}
        for part in message.parts:
            if isinstance(part, Text) and _find_field(part):
                before = fields.get("refusal", ABSENT)
                fields["refusal"] = part.text if before is ABSENT else f"{before}\n\n{part.text}"
            elif isinstance(part, Opaque) and _find_field(part):
                fields |= copy_json(part.value, "part")
    return fields


def _find_template(message: Message, role: str) -> Template:
    """Return the message's template if it is of this wire and for this role; else an empty one."""
    template = message.template if message.origin == NAME and message.template else {}
    return template if ROLES.get(template.get("role", "")) == role else {}


def _write_name(speakers: Sequence[Message], template: Template) -> Any:
    name = next((message.name for message in speakers if message.name), "")
    if "name" in template:
        return write_text(name, template["name"])
    return name if _NAME.fullmatch(name) else ABSENT


def _write_reasoning(speakers: Sequence[Message], template: Template, card: Card) -> dict[str, Any]:
    """Encode ``reasoning_content`` and ``reasoning`` of a message that had them, and the first of every message if
    the model requires it."""
    parts = [part for message in speakers for part in message.parts if isinstance(part, Reasoning)]
    beside = [part for part in parts if part.template == IN_REASONING]
    others = [part for part in parts if part.template != IN_REASONING]
    fields: dict[str, Any] = {"reasoning_content": ABSENT}
    if card.conduct.reasoning_echo == "reasoning_content":
        fields["reasoning_content"] = _join_reasoning(others)
    elif "reasoning_content" in template:
        empty = write_empty(template["reasoning_content"], otherwise=ABSENT)
        fields["reasoning_content"] = _join_reasoning(others) if others else empty
    if (code := template.get("reasoning")) in ("str", "empty", "null"):  # Else a value of its own, of any type.
        fields["reasoning"] = write_text(_join_reasoning(beside), code)
    return fields


def _join_reasoning(parts: Sequence[Reasoning]) -> str:
    return "\n\n".join(part.text for part in parts if part.text)


def _write_calls(calls: Sequence[tuple[Message, ToolCall]], template: Template) -> dict[str, Any]:
    old_style = template.get("function_call") == "call"
    items: list[Any] = []
    fields: dict[str, Any] = {"function_call": ABSENT} if old_style else {}
    if old_style and len(calls) == 1 and calls[0][0].origin == NAME:
        call = calls[0][1]
        fields["function_call"] = fill(call.template, {"name": call.name, "arguments": call.arguments})
    else:
        items = [_write_call(call, native=message.origin == NAME) for message, call in calls]
    return {"tool_calls": items or write_empty(template.get("tool_calls"), otherwise=ABSENT)} | fields


def _write_call(call: ToolCall, *, native: bool) -> dict[str, Any]:
    call_id = _write_id(call.id, native)
    kind = next((kind for kind in CALL_FIELDS if kind in (call.template or ())), None)
    if not native or call.template is None or kind is None:
        function = {"name": call.name, "arguments": call.arguments}
        return {"id": call_id, "type": "function", "function": function}
    inner = fill(call.template[kind], {"name": call.name, CALL_FIELDS[kind]: call.arguments})
    return fill(call.template, {"id": call_id, kind: inner})


def _write_id(call_id: str, native: bool) -> str:
    return call_id if native or len(call_id) <= MAX_ID_CHARS else make_legal_id(call_id)


def _write_piece(part: ResultPart, *, native: bool, media: bool) -> Piece:
    """Encode a part; a text replaces one that the message cannot contain."""
    match part:
        case Text():
            if not native or not part.template:
                return part.text
            return fill(part.template, {"refusal" if "refusal" in part.template else "text": part.text})
        case Image():
            return write_image(part, native=native) if media else left_out_note("image")
        case File():
            piece = write_file(part, native=native)
            return piece if media or isinstance(piece, str) else left_out_note("document")
        case _:
            return copy_json(part.value, "part") if native else left_out_note(type_of(part))


def _write_tool(tool: Tool) -> dict[str, Any] | None:
    """Encode the tool's declaration; None for another provider's own tool."""
    native = tool.origin == NAME
    if tool.schema is None:
        return copy_json(tool.template, "tool") if native and tool.template else None
    template = tool.template if native and tool.template else {}
    function: Template = template.get("function", {})
    schema: Any = copy_json(tool.schema, "tool")
    if template and schema == NO_ARGUMENTS and function.get("parameters") != "object":
        schema = None if "parameters" in function else ABSENT
    values = {
        "name": tool.name,
        "description": write_text(tool.description, function.get("description")),
        "parameters": schema,
    }
    return fill(template or {"type": "function"}, {"function": fill(function, values)})
