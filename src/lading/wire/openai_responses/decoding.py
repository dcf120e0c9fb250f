"""Decode a Responses request to our values.

Neighbouring items of the model become one assistant message. Codes in templates: ``reasoning`` of a message is the
number of its reasoning items; ``instructions`` marks the system message beside the items; a Text of the assistant
has its content block as ``block``, and the first one of an item has its item as ``item``. An item without parts of
ours is one Opaque part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
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
    Template,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from lading.models.card import Card
from lading.wire.layout import TEXT
from lading.wire.openai_responses.items import (
    CALL_FIELDS,
    HOSTED,
    HOSTED_OUTPUTS,
    NAME,
    OUTPUT_OF,
    REASONING,
    ROLES,
    SUMMARIES,
    TEXTS,
    USER_PARTS,
    read_role,
    read_type,
    spread,
)
from lading.wire.openai_responses.media import read_file, read_image
from lading.wire.templates import (
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

NO_ARGUMENTS: Final[dict[str, Any]] = {"type": "object", "properties": {}}
"""The schema of a function without ``parameters``."""


def decode(body: Mapping[str, Any]) -> Conversation:
    """Decode a request body; ``encode`` gives the same body. Raises WireError."""
    if not isinstance(body, Mapping):
        raise shape_error("body", "an object", found=body)
    given = body.get("input")
    codes = {
        "input": TEXT if isinstance(given, str) else "list",
        "instructions": find_code(body.get("instructions"), "instructions"),
    }
    messages = [*_read_instructions(body.get("instructions"))]
    items = as_list(spread(given) if isinstance(given, str) else given, "input")
    numbered = enumerate(as_object(item, f"input.{index}") for index, item in enumerate(items))
    position = 0
    for is_answer, group in groupby(numbered, key=lambda one: read_role(one[1]) == "assistant"):
        run = list(group)
        if is_answer:
            messages.append(_read_answer([item for _, item in run], position))
        else:
            messages += (_read_item(item, f"input.{index}") for index, item in run)
        position += len(run)
    tools, codes["tools"] = read_list(body.get("tools"), "tools", read_item=_read_tool)
    template = make_template(body, codes, path="body")
    return Conversation(messages=tuple(messages), tools=tools, origin=NAME, template=template)


def _read_instructions(text: str | None) -> Iterator[Message]:
    if text:
        yield Message("system", (Text(text),), origin=NAME, template={"instructions": "str"})


def _read_item(source: dict[str, Any], path: str) -> Message:
    """Decode an item that is not the model's, which is a message of its own."""
    kind = read_type(source)
    if kind == "message":
        word = role_at(source, ROLES, path=path)
        parts, code = read_content(source.get("content"), f"{path}.content", read_part=read_part)
        template = make_template(source, {"role": word, "content": code}, path=path)
        return Message(ROLES[word], parts, origin=NAME, template=template)
    role = read_role(source)
    if role not in ("system", "user", "tool"):
        raise shape_error(path, "an item", found=source)
    if kind in OUTPUT_OF.values() and isinstance(source.get("call_id"), str):
        return Message("tool", (_read_output(source, path),), origin=NAME)
    return Message("user" if role == "user" else role, (Opaque(copy_json(source, path)),), origin=NAME)  # type: ignore[arg-type]


def _read_output(source: dict[str, Any], path: str) -> ToolResult:
    parts, code = read_content(source.get("output"), f"{path}.output", read_part=read_part)
    natural = (
        code == "str"
        and list(source) == ["type", "call_id", "output"]
        and source["type"] == OUTPUT_OF["function_call"]
    )
    template = None if natural else make_template(source, {"call_id": "str", "output": code}, path=path)
    return ToolResult(source["call_id"], parts, template=template)


def _read_answer(items: list[dict[str, Any]], position: int) -> Message:
    """Decode neighbouring items of the model as one message."""
    parts = [part for at, item in enumerate(items, position) for part in _read_model_item(item, f"input.{at}")]
    reasoning = sum(isinstance(part, Reasoning) for part in parts)
    template = {"reasoning": reasoning} if reasoning else None
    return Message("assistant", tuple(parts), origin=NAME, template=template)


def _read_model_item(source: dict[str, Any], path: str) -> Iterator[Part]:
    kind = read_type(source)
    if kind == "message" and (texts := _read_texts(source, path)):
        yield from texts
    elif kind in CALL_FIELDS:
        yield _read_call(source, path, kind=kind)
    elif kind == REASONING:
        yield _read_reasoning(source, path)
    else:
        yield Opaque(copy_json(source, path), is_summary=kind in SUMMARIES)


def _read_texts(source: dict[str, Any], path: str) -> list[Text]:
    """Decode the texts of a message of the model; none where its content is anything else."""
    content = source.get("content")
    code = "str" if isinstance(content, str) else "list"
    item = make_template(source, {"content": code}, path=path)
    if isinstance(content, str):
        return [Text(content, {"item": item})] if content else []
    texts = []
    for index, block in enumerate(content if isinstance(content, list) else ()):
        field = TEXTS.get(str(block.get("type"))) if isinstance(block, dict) else None
        if field is None or not isinstance(block.get(field), str):
            return []
        shape = {"block": make_template(block, {field: "str"}, path=f"{path}.content.{index}")}
        texts.append(Text(block[field], shape if index else {"item": item} | shape))
    return texts


def _read_call(source: dict[str, Any], path: str, *, kind: str) -> ToolCall:
    field = CALL_FIELDS[kind]
    natural = kind == "function_call" and list(source) == ["type", "call_id", "name", field]
    codes = dict.fromkeys(("call_id", "name", field), "str")
    call_id, name, arguments = (text_at(source, key, path=path) for key in codes)
    return ToolCall(call_id, name, arguments, template=None if natural else make_template(source, codes, path=path))


def _read_reasoning(source: dict[str, Any], path: str) -> Reasoning:
    """Decode a reasoning item; its template has all of it but the encrypted content, to be sent back as it came."""
    blocks = [*_list_objects(source.get("summary")), *_list_objects(source.get("content"))]
    text = "\n\n".join(block["text"] for block in blocks if isinstance(block.get("text"), str))
    data = source.get("encrypted_content")
    encrypted = data if isinstance(data, str) else None
    codes = {} if encrypted is None else {"encrypted_content": "str"}
    template = make_template(source, codes, path=path)
    return Reasoning(text, data=encrypted, template=template, provenance=NAME)


def _list_objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def read_part(value: Any, path: str) -> ResultPart:
    """Decode a block of a content or an output. Raises WireError."""
    source = as_object(value, path)
    kind = text_at(source, "type", path=path)
    if (field := TEXTS.get(kind)) and isinstance(source.get(field), str):
        natural = kind == "input_text" and list(source) == ["type", "text"]
        return Text(source[field], None if natural else {"block": make_template(source, {field: "str"}, path=path)})
    if kind == "input_image":
        return read_image(source, path)
    if kind == "input_file":
        return read_file(source, path)
    return Opaque(copy_json(value, path))


def _read_tool(value: Any, path: str) -> Tool:
    source = as_object(value, path)
    name = source.get("name")
    if source.get("type") != "function" or not isinstance(name, str):
        named = next((found for found in (name, source.get("type")) if isinstance(found, str)), "")
        return Tool(named, origin=NAME, template=copy_json(source, path))
    parameters = source.get("parameters")
    if parameters is not None:
        parameters = as_object(parameters, f"{path}.parameters")
    codes = {
        "name": "str",
        "description": find_code(source.get("description"), f"{path}.description"),
        "parameters": "null" if parameters is None else "object",
    }
    return Tool(
        name,
        source.get("description") or "",
        copy_json(NO_ARGUMENTS if parameters is None else parameters, f"{path}.parameters"),
        origin=NAME,
        template=make_template(source, codes, path=path),
    )


def carries(part: Part, card: Card, *, native: bool) -> bool:
    """Whether a part can be written in a message. The provider verifies reasoning, so only its own goes back."""
    del card
    match part:
        case Reasoning():
            return native
        case Image() | File() if not native:
            return bool(part.data or part.url)
        case _:
            return True


PARTS = PartTypes(
    words={
        "text": "text",
        "image": "input_image",
        "file": "input_file",
        "tool_call": "function_call",
        "tool_result": "function_call_output",
        "reasoning": "reasoning",
    },
    takes={
        "system": frozenset({"text", "input_image", "input_file", "additional_tools", "configuration_update"}),
        "user": frozenset({"text", *USER_PARTS[1:], "function_call_output", "compaction_trigger"}),
        "assistant": frozenset(
            {"text", "message", "reasoning", "function_call", *HOSTED, *SUMMARIES, *HOSTED_OUTPUTS}
        ),
        "tool": frozenset({*OUTPUT_OF.values(), *HOSTED_OUTPUTS}),
        "result": frozenset({"text", "input_image", "input_file"}),
    },
    carries=carries,
    read=read_part,
)


def find_template(message: Message) -> Template:
    """Return the template of a message that was decoded from this format; an empty one for any other."""
    return message.template if message.origin == NAME and message.template else {}
