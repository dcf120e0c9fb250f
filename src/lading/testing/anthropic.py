"""The strict provider's side of Anthropic Messages: pieces of requests, replies, streams and errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from lading.jsonbytes import dump
from lading.testing.answers import ErrorResponse, Issue, ProviderFormat
from lading.testing.openai_chat import split_text
from lading.testing.prompt_cache import Piece, make_piece

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}

_EMPTY_FIELDS: dict[str, dict[str, Any]] = {
    "thinking": {"thinking": "", "signature": ""},
    "text": {"text": ""},
    "tool_use": {"input": {}},
}
"""The fields with which a block of a stream begins, by its type."""


def split_pieces(body: Mapping[str, Any]) -> list[Piece]:
    """Split a request into tools, system blocks and message blocks. A top-level cache mark marks the last block."""
    found = [_make_piece(tool) for tool in body.get("tools") or ()]
    found += [_make_piece(block) for block in list_blocks(body.get("system"))]
    for message in body["messages"]:
        for index, block in enumerate(list_blocks(message.get("content"))):
            found.append(_make_piece(block, message["role"], messages=0 if index else 1))
    if body.get("cache_control") and found:
        found[-1] = replace(found[-1], marked=True)
    return found


def _make_piece(block: Any, role: str = "", *, messages: int = 0) -> Piece:
    return make_piece({"role": role, "of": _strip_marks(block)}, marked=_is_marked(block), messages=messages)


def list_blocks(content: Any) -> list[Any]:
    """List the blocks of a content; a string is one block of text."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content or []


def _list_inner(block: Any) -> list[Any]:
    content = block.get("content")
    return content if isinstance(content, list) else []


def _is_marked(block: Any) -> bool:
    return bool(block.get("cache_control")) or any(_is_marked(item) for item in _list_inner(block))


def _strip_marks(block: Any) -> dict[str, Any]:
    bare = {field: value for field, value in block.items() if field != "cache_control"}
    return bare | {"content": [_strip_marks(item) for item in bare["content"]]} if _list_inner(block) else bare


def requests_thinking(body: Mapping[str, Any]) -> bool:
    """Return whether the request turns thinking on."""
    return isinstance(body.get("thinking"), dict) and body["thinking"].get("type") in ("enabled", "adaptive")


def make_call_id(issue: Issue, index: int) -> str:
    """Make the id of a reply's call."""
    return f"toolu_01{issue.key(f'call {index}')}"


def write_blocks(issue: Issue) -> list[dict[str, Any]]:
    """Write the blocks of a reply."""
    found: list[dict[str, Any]] = []
    if issue.thinks:
        thinking = issue.say.thinking if issue.shows_thinking else ""
        found.append({"type": "thinking", "thinking": thinking, "signature": issue.signature})
    if issue.say.text:
        found.append({"type": "text", "text": issue.say.text})
    for index, use in enumerate(issue.say.calls):
        block = {"type": "tool_use", "id": make_call_id(issue, index), "name": use.name, "input": use.arguments}
        found.append(block)
    return found


def write_reply(issue: Issue) -> dict[str, Any]:
    """Write the response body."""
    return _start_message(issue) | {"content": write_blocks(issue)} | _write_stop(issue) | _write_usage(issue)


def write_events(issue: Issue, body: Mapping[str, Any]) -> list[bytes]:  # noqa: ARG001  no option changes a stream
    """Write the response as server-sent events."""
    empty: dict[str, Any] = {"content": [], "stop_reason": None, "stop_sequence": None}
    start = _start_message(issue) | empty | _write_usage(issue, output=1)
    found = [_encode_event("message_start", message=start)]
    for index, block in enumerate(write_blocks(issue)):
        found += [_encode_event(kind, index=index, **fields) for kind, fields in _stream_block(block)]
        if index == 0:
            found.insert(2, _encode_event("ping"))
    usage = {"usage": {"output_tokens": issue.output_tokens}} if issue.reports else {}
    found.append(_encode_event("message_delta", delta=_write_stop(issue), **usage))
    return [*found, _encode_event("message_stop")]


def _stream_block(block: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    kind = block["type"]
    yield "content_block_start", {"content_block": block | _EMPTY_FIELDS[kind]}
    if kind == "thinking":
        for text in split_text(block["thinking"]):
            yield "content_block_delta", {"delta": {"type": "thinking_delta", "thinking": text}}
        yield "content_block_delta", {"delta": {"type": "signature_delta", "signature": block["signature"]}}
    elif kind == "text":
        for text in split_text(block["text"]):
            yield "content_block_delta", {"delta": {"type": "text_delta", "text": text}}
    else:
        for text in ("", *split_text(dump(block["input"]).decode())):
            yield "content_block_delta", {"delta": {"type": "input_json_delta", "partial_json": text}}
    yield "content_block_stop", {}


def write_error(why: ErrorResponse) -> dict[str, Any]:
    """Write the error body."""
    kind = _ERROR_TYPES.get(why.status, "invalid_request_error" if why.status < 500 else "api_error")
    text = f"{why.path}: {why.text}" if why.path else why.text
    return {"type": "error", "error": {"type": kind, "message": text}, "request_id": "req_lading"}


def refuse_long_prompt(tokens: int, window: int) -> ErrorResponse:
    """Make the error for a prompt that is longer than the window, both in tokens."""
    return ErrorResponse(400, f"prompt is too long: {tokens} tokens > {window} maximum")


def write_models(name: str) -> dict[str, Any]:
    """Write the list of models, with the one of this name."""
    model = {"type": "model", "id": name, "display_name": name, "created_at": "2025-10-09T08:53:20Z"}
    return {"data": [model], "has_more": False, "first_id": name, "last_id": name}


def _start_message(issue: Issue) -> dict[str, Any]:
    return {"id": f"msg_01{issue.key('reply')}", "type": "message", "role": "assistant", "model": issue.model}


def _write_stop(issue: Issue) -> dict[str, Any]:
    stop = issue.say.stop or ("tool_use" if issue.say.calls else "end_turn")
    return {"stop_reason": stop, "stop_sequence": None}


def _write_usage(issue: Issue, *, output: int | None = None) -> dict[str, Any]:
    if not issue.reports:
        return {}
    return {
        "usage": {
            "input_tokens": issue.usage.fresh_tokens,
            "cache_creation_input_tokens": issue.usage.written_tokens,
            "cache_read_input_tokens": issue.usage.read_tokens,
            "output_tokens": issue.output_tokens if output is None else output,
            "service_tier": "standard",
        }
    }


def _encode_event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\n".encode() + b"data: " + dump({"type": kind, **fields}) + b"\n\n"


FORMAT = ProviderFormat(
    wire="anthropic",
    split_pieces=split_pieces,
    requests_thinking=requests_thinking,
    make_call_id=make_call_id,
    write_reply=write_reply,
    write_events=write_events,
    write_error=write_error,
    write_models=write_models,
    refuse_long_prompt=refuse_long_prompt,
)
