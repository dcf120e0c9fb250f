"""Decode a generateContent request to our values.

The API takes each field in camelCase and in snake_case, and so does this module; a template keeps the spelling.
Neighbouring contents of the model are one message, as the SDK's chats send a streamed reply: its template has the
sizes of the ``contents``, and a Text that was several has their lengths as ``pieces``. A call or response without
an id gets one of its name (``UNNAMED``), which is not written. The body's ``systemInstruction`` becomes the first
message. Signatures stay in the template of the part that has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec.structs import replace

from lading.errors import WireError
from lading.messages import (
    UNNAMED,
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
from lading.wire.arguments import read_arguments
from lading.wire.layout import to_snake
from lading.wire.templates import (
    as_list,
    as_object,
    copy_json,
    find_code,
    make_template,
    merge,
    read_list,
    shape_error,
)

NAME: Final = "gemini"

ROLES: Final[dict[str, Role]] = {"user": "user", "model": "assistant", "function": "tool"}

ANSWERS: Final = ("output", "result", "error")
"""The fields of a response that is one text; ``error`` for a call that failed."""

SCHEMAS: Final = ("parametersJsonSchema", "parameters")
"""The fields of a declaration with the schema of the arguments; the second is written in OpenAPI's words."""

NO_ARGUMENTS: Final[dict[str, Any]] = {"type": "object", "properties": {}}
"""The schema of a function without parameters."""


def find_key(source: Mapping[str, Any], name: str) -> str:
    """Return a field's name as the object spells it: in camelCase unless only the other spelling is there."""
    return name if name in source or to_snake(name) not in source else to_snake(name)


def read_role(content: Any) -> Role | Literal[""]:
    """Return our role for a content; the user's if it names none, empty for anything else."""
    if not isinstance(content, Mapping):
        return ""
    word = content.get("role") or ("user" if "parts" in content else "")
    return ROLES.get(word, "") if isinstance(word, str) else ""


def unites(before: Any, after: Any) -> bool:
    """Whether two neighbouring contents are one message: both are the model's."""
    return read_role(before) == read_role(after) == "assistant"


def decode(body: Mapping[str, Any]) -> Conversation:
    """Decode a request body; ``encode`` gives the same body. Raises WireError."""
    if not isinstance(body, Mapping):
        raise shape_error("body", "an object", found=body)
    runs: list[list[tuple[str, Mapping[str, Any]]]] = []
    for index, item in enumerate(as_list(body.get("contents"), "contents")):
        placed = f"contents.{index}", as_object(item, f"contents.{index}")
        if runs and unites(runs[-1][-1][1], item):
            runs[-1].append(placed)
        else:
            runs.append([placed])
    messages = list(map(_read_run, runs))
    system = find_key(body, "systemInstruction")
    if body.get(system) is not None:
        source = as_object(body[system], system)
        parts, code = read_list(source.get("parts"), f"{system}.parts", read_item=read_part)
        kept = {"system": make_template(source, {"parts": code}, path=system)}
        messages.insert(0, Message("system", parts, origin=NAME, template=kept))
    tools, tools_code = _read_tools(body.get("tools"))
    codes = {"contents": "list", system: "null" if body.get(system) is None else "system", "tools": tools_code}
    return Conversation(tuple(messages), tools, NAME, make_template(body, codes, path="body"))


def _read_run(run: Sequence[tuple[str, Mapping[str, Any]]]) -> Message:
    parts: list[Part] = []
    templates: list[Template] = []
    sizes: list[int] = []
    if not (role := read_role(run[0][1])):
        raise WireError(f"{run[0][0]}: expected an object with parts, and the role user or model.")
    for path, source in run:
        read, code = read_list(source.get("parts"), f"{path}.parts", read_item=read_part)
        templates.append(make_template(source, {"parts": code}, path=path))
        sizes.append(len(read))
        parts += read
    template = templates[0]
    if len(run) > 1 or "contents" in template:
        contents = [{"size": size, "template": one} for size, one in zip(sizes, templates, strict=True)]
        template = {**merge(templates), "contents": contents}
    shown = _join_pieces(parts) if role == "assistant" else parts
    return Message(role, tuple(_number_calls(shown)), origin=NAME, template=template)


def _join_pieces(parts: Iterable[Part]) -> list[Part]:
    """Join neighbouring plain texts of the model, which a stream has cut anywhere."""
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, Text) and isinstance(last, Text) and part.template is None and _is_plain(last):
            pieces = (last.template or {"pieces": [len(last.text)]})["pieces"]
            joined[-1] = Text(last.text + part.text, {"pieces": [*pieces, len(part.text)]})
        else:
            joined.append(part)
    return joined


def _is_plain(text: Text) -> bool:
    return text.template is None or text.template.keys() == {"pieces"}


def _number_calls(parts: Iterable[Part]) -> Iterable[Part]:
    """Give calls and responses without an id one of their name and their place among those of that name."""
    seen: Counter[str] = Counter()
    for part in parts:
        if isinstance(part, ToolCall | ToolResult):
            own_id = part.id if isinstance(part, ToolCall) else part.call_id
            given = own_id or f"{UNNAMED}{part.name}_{seen[part.name]}"
            seen[part.name] += not own_id
            yield replace(part, id=given) if isinstance(part, ToolCall) else replace(part, call_id=given)
        else:
            yield part


def read_part(value: Any, path: str) -> Part:
    """Decode a part; one of a type or shape that is not known becomes an Opaque part. Raises WireError."""
    source = as_object(value, path)
    # SDKs write null for a field that is not there.
    kinds = [(kind, key) for kind in READERS if source.get(key := find_key(source, kind)) is not None]
    part = None
    if len(kinds) == 1 and "type" not in source:
        ((kind, key),) = kinds
        part = READERS[kind](source, key, path)
    return Opaque(copy_json(source, path)) if part is None else part


def _read_text(source: Mapping[str, Any], key: str, path: str) -> Part | None:
    if not isinstance(text := source[key], str):
        return None
    if source.get("thought") is True:
        return Reasoning(text, template=make_template(source, {key: "str"}, path=path), provenance=NAME)
    return Text(text, None if len(source) == 1 else make_template(source, {key: "str"}, path=path))


def _read_data(source: Mapping[str, Any], key: str, path: str) -> ResultPart | None:
    """Decode inline bytes: an image or a PDF."""
    inner = source[key] if isinstance(source[key], dict) else {}
    kind = find_key(inner, "mimeType")
    media_type, data = inner.get(kind), inner.get("data")
    if not isinstance(media_type, str) or not isinstance(data, str) or not data:
        return None
    template = make_template(
        source, {key: make_template(inner, {kind: "str", "data": "str"}, path=path)}, path=path
    )
    if media_type.startswith("image/"):
        return Image(data=data, media_type=media_type, template=template)
    return File(data=data, media_type=media_type, template=template) if media_type == "application/pdf" else None


def _read_file(source: Mapping[str, Any], key: str, path: str) -> File | None:
    inner = source[key] if isinstance(source[key], dict) else {}
    kind, place = find_key(inner, "mimeType"), find_key(inner, "fileUri")
    if not isinstance(uri := inner.get(place), str) or not uri:
        return None
    codes = {place: "str"}
    template = make_template(source, {key: make_template(inner, codes, path=path)}, path=path)
    media_type = inner.get(kind)
    return File(file_id=uri, media_type=media_type if isinstance(media_type, str) else "", template=template)


def _read_call(source: Mapping[str, Any], key: str, path: str) -> ToolCall:
    inner = as_object(source[key], f"{path}.{key}")
    arguments, code = read_arguments(inner.get("args", {}), f"{path}.{key}.args")
    call_id, name, codes = _read_names(inner, f"{path}.{key}")
    template = make_template(source, {key: make_template(inner, codes | {"args": code}, path=path)}, path=path)
    return ToolCall(call_id, name, arguments, template)


def _read_result(source: Mapping[str, Any], key: str, path: str) -> ToolResult:
    inner = as_object(source[key], f"{path}.{key}")
    call_id, name, codes = _read_names(inner, f"{path}.{key}")
    media, media_code = read_list(inner.get("parts"), f"{path}.{key}.parts", read_item=_read_result_part)
    texts, code = _read_response(inner.get("response"), f"{path}.{key}.response")
    codes |= {"response": code, "parts": media_code}
    template = make_template(source, {key: make_template(inner, codes, path=path)}, path=path)
    is_error = isinstance(code, dict) and "error" in code
    return ToolResult(call_id, (*texts, *media), is_error=is_error, name=name, template=template)


def _read_names(inner: Mapping[str, Any], path: str) -> tuple[str, str, dict[str, Any]]:
    """Return id and name of a call or response, empty where it has none, and their codes."""
    codes = {field: find_code(inner.get(field), f"{path}.{field}") for field in ("id", "name")}
    return inner.get("id") or "", inner.get("name") or "", codes


def _read_response(value: Any, path: str) -> tuple[tuple[Text, ...], Any]:
    """Return the text of a response and its code; the text of an object of other fields is its JSON."""
    if value is None:
        return (), "null"
    key = next(iter(value)) if isinstance(value, dict) and len(value) == 1 else ""
    if key in ANSWERS and isinstance(value[key], str):
        return (Text(value[key]),), {key: "str"}
    text, code = read_arguments(value, path)
    return (Text(text),), code


def _read_result_part(value: Any, path: str) -> ResultPart:
    part = read_part(value, path)
    return part if isinstance(part, Image | File) else Opaque(copy_json(value, path))


READERS: Final[dict[str, Callable[[Mapping[str, Any], str, str], Part | None]]] = {
    "text": _read_text,
    "inlineData": _read_data,
    "fileData": _read_file,
    "functionCall": _read_call,
    "functionResponse": _read_result,
    **dict.fromkeys(("executableCode", "codeExecutionResult", "toolCall", "toolResponse"), lambda *_: None),
}
"""The types of parts, each with its function; None: kept as it is."""


def _read_tools(value: Any) -> tuple[tuple[Tool, ...], str]:
    holders, code = read_list(value, "tools", read_item=lambda item, path: (as_object(item, path), path))
    return tuple(tool for at, (item, path) in enumerate(holders) for tool in _read_holder(item, path, at)), code


def _read_holder(source: dict[str, Any], path: str, at: int) -> list[Tool]:
    """Decode one object of ``tools``: the functions that it declares, or tools of the provider's own."""
    key = find_key(source, "functionDeclarations")
    declared = source.get(key)
    if isinstance(declared, list) and declared and all(map(_is_declaration, declared)):
        holder = {"at": at, "fields": make_template(source, {key: "list"}, path=path)}
        return [_read_declaration(item, f"{path}.{key}.{n}", holder) for n, item in enumerate(declared)]
    return [Tool(next(iter(source), ""), origin=NAME, template=copy_json(source, path))]


def _is_declaration(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("name"), str)


def _read_declaration(source: dict[str, Any], path: str, holder: Template) -> Tool:
    found = (key for name in SCHEMAS if isinstance(source.get(key := find_key(source, name)), dict))
    codes: dict[str, Any] = {"name": "str", "description": find_code(source.get("description"), path)}
    schema = NO_ARGUMENTS
    if key := next(found, ""):
        raw = copy_json(source[key], f"{path}.{key}")
        schema = lower_types(raw)
        codes[key] = "object" if schema == raw else {"raw": raw}
    template = {"holder": holder, "declaration": make_template(source, codes, path=path)}
    return Tool(
        source["name"], source.get("description") or "", copy_json(schema, path), origin=NAME, template=template
    )


def lower_types(schema: Any) -> Any:
    """Return a schema with its types in lower case, as JSON Schema has them: OpenAPI's are in capitals here."""
    if isinstance(schema, list):
        return list(map(lower_types, schema))
    if not isinstance(schema, dict):
        return schema
    return {
        key: value.lower() if key == "type" and isinstance(value, str) else lower_types(value)
        for key, value in schema.items()
    }
