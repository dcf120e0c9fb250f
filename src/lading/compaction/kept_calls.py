"""Read the calls of providers' own tools, which messages keep whole, as calls with results, so that a record and a
summary can tell of them: a shell, a patch, a screen, a search, code that runs at the provider.

They are read by their shape: a type that ends like a call's or a result's, an id that both share, and what is asked
as arguments, an input, an action, an operation or a field of its own. Gemini's parts have no type but a field that
is one; they are put into that shape first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lading import jsonbytes
from lading.messages import Image, Message, Opaque, Part, ResultPart, Text, ToolCall, ToolResult

_CALLS = ("_call", "_use", "_request")
_RESULTS = ("_output", "_result", "_response")
_IDS = ("call_id", "_use_id", "_request_id")
_ASKED = ("arguments", "input", "action", "operation")
_ALSO_ASKED = ("query", "queries", "code", "prompt")
"""The fields that a call has in place of these."""
_TEXTS = ("stdout", "stderr", "text", "logs", "title", "url", "reason", "error_code", "output")
"""Fields of an output that have words."""
_CODES = ("exit_code", "return_code")
_FAILED = ("failed", "incomplete", "timeout", "error", "outcome_failed")
_TIMED_OUT = -(2**31)
_MOST_DEPTH = 6
_CODE_EXECUTION = "code_execution"
_OF_GEMINI = {
    "executablecode": "_call",
    "codeexecutionresult": "_output",
    "toolcall": "_call",
    "toolresponse": "_output",
}
"""Fields, without capitals and underscores, and how the types of such parts end."""


def read_calls(message: Message) -> tuple[Sequence[ToolCall], Sequence[ToolResult]]:
    """Return the calls and results of a message, those that are kept whole included, each in order."""
    if not any(isinstance(part, Opaque) for part in message.parts):
        return message.calls, message.results
    parts = [*read_parts(message)]
    calls = [part for part in parts if isinstance(part, ToolCall)]
    return calls, [part for part in parts if isinstance(part, ToolResult)]


def read_parts(message: Message) -> Iterator[Part]:
    """Yield the parts of a message, with calls and results in the place of those that are kept whole."""
    for part in message.parts:
        value = _read_typed(part.value) if isinstance(part, Opaque) else None
        kind = str(value.get("type")) if isinstance(value, Mapping) else ""
        if not isinstance(value, Mapping) or not kind.endswith(_CALLS + _RESULTS):
            yield part
            continue
        if is_call := kind.endswith(_CALLS):
            yield _read_call(value, kind)
        # Some servers keep their results, or have them in the call.
        if not is_call or (kind.endswith("_call") and value.get("call_id") is None):
            yield _read_result(value, kind)


def _read_typed(value: object) -> object:
    """Return a part of Gemini with a type, an id and what other providers name alike; anything else as it is."""
    named = value.items() if isinstance(value, Mapping) and "type" not in value else ()
    for field, inner in named:
        ending = _OF_GEMINI.get(str(field).replace("_", "").lower())
        if not ending or not isinstance(inner, Mapping):
            continue
        name = str(inner.get("toolType") or inner.get("tool_type") or _CODE_EXECUTION).lower()
        # Code of older models has no id: its result is the next of its message.
        typed = {"type": name + ending, "call_id": inner.get("id") or name, "input": inner.get("args")}
        outcome = str(inner.get("outcome")).lower()
        late = [{"type": "timeout"}] if outcome.endswith("deadline_exceeded") else []
        said = [inner.get("output") or inner.get("response"), *late]
        return {**typed, "name": name, "code": inner.get("code"), "output": said, "status": outcome}
    return value


def _read_call(value: Mapping[str, Any], kind: str) -> ToolCall:
    name = value.get("name")
    name = name if isinstance(name, str) else kind.removesuffix("_call")
    asked = next((value[field] for field in _ASKED if value.get(field)), None)
    if isinstance(asked, str):
        return ToolCall(_find_id(value), name, asked)
    given = asked if isinstance(asked, Mapping) else {field: value.get(field) for field in _ALSO_ASKED}
    fields = {key: inner for key, inner in given.items() if inner not in (None, "", [], {})}
    commands = fields.pop("commands", None)
    if isinstance(commands, Sequence) and not isinstance(commands, str):
        fields = {"command": "; ".join(map(str, commands)), **fields}
    return ToolCall(_find_id(value), name, jsonbytes.dump(fields).decode())


def _read_result(value: Mapping[str, Any], kind: str) -> ToolResult:
    found = [value.get(field) for field in ("output", "outputs", "content", "tools", "error") if value.get(field)]
    words = [text for one in found for text in _list_texts(one)]
    code = next((code for one in found for code in _list_codes(one) if code), 0)
    if value.get("approve") is False:
        words = [": ".join(["not approved", *_list_texts(value.get("reason"))])]
    failed = value.get("status") in _FAILED or value.get("is_error") is True or value.get("approve") is False
    failed = failed or any(str(one.get("type")).endswith("_error") for one in found if isinstance(one, Mapping))
    failed = failed or code == _TIMED_OUT
    text = "\n".join([*words, "timed out"] if code == _TIMED_OUT else words)
    if code and code != _TIMED_OUT:
        text = jsonbytes.dump({"output": text, "exit_code": code}).decode()
    has_picture = any(isinstance(one, Mapping) and "image_url" in one for one in found)
    parts: list[ResultPart] = [Text(text), *([Image(url=kind)] if has_picture else [])]
    return ToolResult(_find_id(value), tuple(parts), is_error=failed)


def _find_id(value: Mapping[str, Any]) -> str:
    """Return the id that a call and its output share: of a call that has no other, its own."""
    named = (inner for field, inner in value.items() if field.endswith(_IDS))
    return next((id_ for id_ in (*named, value.get("id")) if isinstance(id_, str)), "")


def _list_texts(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the words of an output, none of pictures and encrypted contents."""
    if isinstance(value, str):
        yield from [value] if value.strip() else []
    elif isinstance(value, Mapping) and depth < _MOST_DEPTH and "image_url" not in value:
        for field in (*_TEXTS, "content", "name"):
            yield from _list_texts(value.get(field), depth + 1)
    elif isinstance(value, Sequence) and depth < _MOST_DEPTH:
        for inner in value:
            yield from _list_texts(inner, depth + 1)


def _list_codes(value: object, depth: int = 0) -> Iterator[int]:
    """Yield the codes with which commands ended; ``_TIMED_OUT`` for one that was stopped."""
    if isinstance(value, Mapping) and depth < _MOST_DEPTH:
        yield from (code for field in _CODES if isinstance(code := value.get(field), int))
        yield from [_TIMED_OUT] if value.get("type") == "timeout" else []
        yield from _list_codes(value.get("outcome"), depth + 1)
    elif isinstance(value, Sequence) and not isinstance(value, str) and depth < _MOST_DEPTH:
        for inner in value:
            yield from _list_codes(inner, depth + 1)
