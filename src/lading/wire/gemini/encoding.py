"""Encode our values as a generateContent request: contents and their parts, tools, the body.

A response must name its function and is written without an id where its call has none. A message of another format
does not say either, so such results share a group with their call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

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
from lading.wire.arguments import parse_object, write_arguments
from lading.wire.gemini.decoding import ANSWERS, NAME, NO_ARGUMENTS, SCHEMAS, find_key, lower_types, read_part
from lading.wire.templates import ABSENT, copy_json, fill, merge, write_empty, write_text
from lading.wire.translation import PartTypes, left_out_note, mark_system, translate_fields, type_of

Body = dict[str, Any]

ANY_SIGNATURE = "skip_thought_signature_validator"
"""The signature that the API takes for a call that another model made, or none."""
EMPTY = "[empty message]"
"""Text of a content without parts, because the API accepts no empty one."""

_DOCUMENTS = ("application/pdf", "text/plain", "")
_SHOWN = frozenset({"text", "inlineData", "fileData"})
_SAID = frozenset({"functionCall", "thought", "executableCode", "codeExecutionResult", "toolCall", "toolResponse"})


def is_native(message: Message) -> bool:
    """Whether the message was decoded from this format."""
    return message.origin == NAME


def count_leading(messages: Sequence[Message]) -> int:
    """Count the first messages, which are written to the body's ``systemInstruction``."""
    return next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))


def joins(group: Sequence[Message], after: Message, *, card: Card) -> bool:
    """Whether a group and the message after it are written together: results with their calls, because those of
    other formats do not name their function, and neighbours of one side, unless both are of this format and the
    endpoint takes them apart."""
    before = group[-1]
    if after.results and (before.results or before.calls):
        return True
    if _is_models(before) != _is_models(after):
        return False
    return card.conduct.dialect in ("bedrock", "strict") or not (is_native(before) and is_native(after))


def _is_models(message: Message) -> bool:
    return message.role == "assistant"


def carries(part: Part, card: Card, *, native: bool) -> bool:
    """Whether a part can be written: media of other formats only inline, no reasoning of other models."""
    del card
    match part:
        case Reasoning():
            return native
        case Image() if not native:
            return bool(part.data)
        case File() if not native:
            return bool(part.data) and part.media_type in _DOCUMENTS
        case _:
            return True


PARTS = PartTypes(
    words={
        "text": "text",
        "image": "inlineData",
        "file": "fileData",
        "tool_call": "functionCall",
        "tool_result": "functionResponse",
        "reasoning": "thought",
    },
    takes={
        "system": frozenset({"text"}),
        "user": _SHOWN | {"functionResponse"},
        "assistant": _SHOWN | _SAID,
        "tool": frozenset({"functionResponse"}),
        "result": _SHOWN,
    },
    carries=carries,
    read=read_part,
)


def encode_group(messages: Sequence[Message], card: Card) -> list[Body]:
    """Encode a group of joined messages: a content of each side, or those that a message had."""
    calls = {call.id: (call, message) for message in messages for call in message.calls}
    items: list[Body] = []
    for _, run in groupby(messages, key=_is_models):
        items += _write_contents(list(run), calls, card)
    return items


def _write_contents(
    messages: Sequence[Message], calls: Mapping[str, tuple[ToolCall, Message]], card: Card
) -> list[Body]:
    parts = [part for message in messages for part in _write_parts(message, calls, card)]
    role = "model" if _is_models(messages[0]) else "user"
    first = messages[0]
    # A system message that does not lead the history has the template of another field.
    alone = first.template if len(messages) == 1 and is_native(first) and first.role != "system" else None
    if alone and isinstance(contents := alone.get("contents"), list):
        ends = [sum(one["size"] for one in contents[: at + 1]) for at in range(len(contents))]
        if ends[-1] == len(parts):
            spans = zip([0, *ends], ends, strict=False)
            return [
                fill(one["template"], {"parts": _list_parts(parts[start:end], one["template"])})
                for one, (start, end) in zip(contents, spans, strict=True)
            ]
    if alone and "contents" not in alone:
        return [fill(alone, {"parts": _list_parts(parts, alone)})]
    found = merge(message.template for message in messages if is_native(message) and message.template)
    template = {key: value for key, value in found.items() if key not in ("contents", "system", "role", "parts")}
    # Results first: the count of those right after the calls is checked.
    parts.sort(key=lambda part: find_key(part, "functionResponse") not in part)
    return [{"role": role, "parts": parts or [{"text": EMPTY}], **template}]


def _list_parts(parts: list[Body], template: Template) -> Any:
    return parts or write_empty(template.get("parts"), otherwise=ABSENT)


def _write_parts(message: Message, calls: Mapping[str, tuple[ToolCall, Message]], card: Card) -> Iterator[Body]:
    native, media = is_native(message), list[Body]()
    unsigned = card.conduct.reasoning_echo == "signed" and not native
    for part in message.parts:
        if isinstance(part, ToolResult):
            yield _write_result(part, calls.get(part.call_id), native=native)
            if part.template is None or not native:
                # Not every model takes media within a response.
                shown = (_write_plain(inner) for inner in part.parts if isinstance(inner, Image | File))
                media += [piece for piece in shown if "text" not in piece]
        elif isinstance(part, ToolCall):
            yield _write_call(part, native=native) | ({"thoughtSignature": ANY_SIGNATURE} if unsigned else {})
            unsigned = False
        elif isinstance(part, Text) and native and part.template and part.template.keys() == {"pieces"}:
            yield from _split_pieces(part)
        elif message.role == "system":
            yield {"text": mark_system(part.text)} if isinstance(part, Text) else _write_plain(part)
        elif native:
            yield _write_native(part)
        elif not isinstance(part, Reasoning) and not (isinstance(part, Text) and not part.text.strip()):
            yield _write_plain(part)
    yield from media


def _split_pieces(text: Text) -> Iterator[Body]:
    lengths = (text.template or {})["pieces"]
    if sum(lengths) != len(text.text):
        lengths = [len(text.text)]
    at = 0
    for length in lengths:
        yield {"text": text.text[at : at + length]}
        at += length


def _write_native(part: Part) -> Body:
    """Encode a part with its template; one without a template is plain."""
    if isinstance(part, Opaque):
        return dict(copy_json(part.value, "part"))
    if part.template is None:
        return {"text": part.text, "thought": True} if isinstance(part, Reasoning) else _write_plain(part)
    keys = (find_key(part.template, kind) for kind in _SHOWN)
    key = next((key for key in keys if part.template.get(key) is not None), "")
    match part:
        case Text() | Reasoning():
            return fill(part.template, {key or "text": part.text})
        case Image() | File() if key:
            inner = part.template[key]
            kind, place = find_key(inner, "mimeType"), find_key(inner, "fileUri")
            values = {place: part.file_id} if isinstance(part, File) and part.file_id else {"data": part.data}
            values |= {kind: part.media_type} if inner.get(kind) == "str" else {}
            return fill(part.template, {key: fill(inner, values)})
        case _:
            return _write_plain(part)


def _write_plain(part: Part) -> Body:
    """Encode a part of another format; a text replaces one that the API does not take."""
    match part:
        case Text():
            return {"text": part.text}
        case Image() if part.data:
            return {"inlineData": {"mimeType": part.media_type or "image/png", "data": part.data}}
        case File() if part.data and part.media_type == "text/plain":
            return {"text": part.data}
        case File() if part.data and part.media_type in _DOCUMENTS:
            return {"inlineData": {"mimeType": part.media_type or "application/pdf", "data": part.data}}
        case Image():
            return {"text": left_out_note(f"image {part.url}".rstrip())}
        case File():
            return {"text": left_out_note(f"document {part.url or part.name or part.file_id}".rstrip())}
        case _:
            return {"text": left_out_note(type_of(part) if isinstance(part, Opaque) else "part")}


def _find_inner(template: Template | None, kind: str) -> tuple[str, Template]:
    """Return the field of a call or response as it was spelled, and the template of its object."""
    key = find_key(template or {}, kind)
    return key, (template or {}).get(key) or {}


def _write_call(call: ToolCall, *, native: bool) -> Body:
    template = call.template if native else None
    key, inner = _find_inner(template, "functionCall")
    args = write_arguments(call.arguments, inner.get("args"))
    values = {
        "name": call.name,
        "args": ABSENT if inner and "args" not in inner and not args else args,
        "id": call.id if _has_id(call, native=native) else write_empty(inner.get("id"), otherwise=ABSENT),
    }
    return fill(template, {key: fill(inner, values)})


def _has_id(part: ToolCall | ToolResult, *, native: bool) -> bool:
    """Whether a call or response is written with its id: one of this format only if it came with one."""
    kind = "functionCall" if isinstance(part, ToolCall) else "functionResponse"
    inner = _find_inner(part.template if native else None, kind)[1]
    return not inner or inner.get("id") == "str"


def _write_result(result: ToolResult, asked: tuple[ToolCall, Message] | None, *, native: bool) -> Body:
    template = result.template if native else None
    key, inner = _find_inner(template, "functionResponse")
    with_id = _has_id(result, native=native)
    if asked and not inner:
        with_id = _has_id(asked[0], native=is_native(asked[1]))
    called = asked[0].name if asked else ""
    values = {
        "name": result.name or called or write_empty(inner.get("name"), otherwise="tool" if not inner else ABSENT),
        "response": _write_response(result, inner.get("response"), native=bool(inner)),
        "id": result.call_id if with_id else write_empty(inner.get("id"), otherwise=ABSENT),
    }
    if "parts" in inner:
        media = [_write_native(part) for part in result.parts if not isinstance(part, Text)]
        values["parts"] = media or write_empty(inner["parts"], otherwise=ABSENT)
    return fill(template, {key: fill(inner, values)})


def _write_response(result: ToolResult, code: Any, *, native: bool) -> Any:
    texts = [
        _write_plain(part)["text"]
        for part in result.parts
        if isinstance(part, Text) or (not native and _is_told(part))
    ]
    text = "\n".join(texts)
    if native and not texts and (code is None or code == "null"):
        return None if code else ABSENT
    if isinstance(code, dict) and (key := next(iter(code))) in ANSWERS:
        return {key: text}
    if code is not None and texts and (code != "json" or parse_object(text) is not None):
        written = write_arguments(text, code)
        if not isinstance(code, dict) or "raw_arguments" not in written:
            return written
    return {"error" if result.is_error else "output": text}


def _is_told(part: Part) -> bool:
    """Whether a part of a result of another format is written as a text."""
    return "text" in _write_plain(part)


PARAMETERS = {
    "max_tokens": "maxOutputTokens",
    "max_completion_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "stop": "stopSequences",
    "stop_sequences": "stopSequences",
}
"""The fields of a foreign request that are carried over, and their names in ``generationConfig``."""


def envelope(conversation: Conversation) -> Body:
    """Encode the body with its ``systemInstruction`` and no contents, without a model that only the path names."""
    template = conversation.template or {}
    if conversation.origin != NAME:
        config = translate_fields(template, PARAMETERS)
        if isinstance(stop := config.get("stopSequences"), str):
            config["stopSequences"] = [stop]
        template = {"generationConfig": config} if config else {}
    system = find_key(template, "systemInstruction")
    leading = conversation.messages[: count_leading(conversation.messages)]
    values: Body = {
        system: _write_system(leading, template.get(system)),
        "tools": _write_tools(conversation.tools) or write_empty(template.get("tools"), otherwise=ABSENT),
        "contents": [],
    }
    if not str(template.get("model", "")).startswith("models/"):
        values["model"] = ABSENT
    return fill(template, values)


def _write_system(messages: Sequence[Message], code: Any) -> Any:
    if not messages:
        return write_empty(code, otherwise=ABSENT)
    pieces = [
        _write_native(part) if is_native(message) else _write_plain(part)
        for message in messages
        for part in message.parts
    ]
    kept = (messages[0].template or {}).get("system") if is_native(messages[0]) else None
    if kept is not None and len(messages) == 1:
        return fill(kept, {"parts": _list_parts(pieces, kept)})
    return {"parts": pieces}


def _write_tools(tools: Sequence[Tool]) -> list[Body]:
    """Encode the declarations, those of one object together. Functions of other formats are in the first object
    with functions, because some endpoints take only one."""
    holders: dict[object, tuple[Template, list[Body]]] = {}
    for at, tool in enumerate(tools):
        template = tool.template if tool.origin == NAME else None
        if tool.schema is None:
            if template is not None:
                holders["own", at] = template, []
        elif template:
            holder = template["holder"]
            known, declared = holders.setdefault(holder["at"], ({}, []))
            holders[holder["at"]] = merge([known, holder["fields"]]), declared
            declared.append(_write_declaration(tool, template["declaration"]))
    others = [_write_declaration(tool, {}) for tool in tools if tool.schema is not None and tool.origin != NAME]
    functions = next((declared for _, declared in holders.values() if declared), None)
    if others and functions is not None:
        functions += others
    elif others:
        holders["others"] = {}, others
    return [_write_holder(*holder) for holder in holders.values()]


def _write_holder(template: Template, declared: list[Body]) -> Body:
    return fill(template, {find_key(template, "functionDeclarations"): declared} if declared else {})


def _write_declaration(tool: Tool, template: Template) -> Body:
    key = next((key for name in SCHEMAS if (key := find_key(template, name)) in template), SCHEMAS[0])
    code, schema = template.get(key), copy_json(tool.schema, "tool")
    if isinstance(code, dict) and lower_types(copy_json(code.get("raw"), "tool")) == schema:
        schema = copy_json(code["raw"], "tool")
    elif template and key not in template and schema == NO_ARGUMENTS:
        schema = ABSENT
    values = {
        "name": tool.name,
        "description": write_text(tool.description, template.get("description")),
        key: schema,
    }
    return fill(template, values)
