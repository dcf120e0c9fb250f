"""Anthropic's side of Messages: replies, streams and errors as it writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from lading.jsonbytes import dump
from lading.testing.answers import Form, Issue, Refusal
from lading.testing.openai_chat import split
from lading.testing.prompt_cache import Piece, piece

_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}

_EMPTY: dict[str, dict[str, Any]] = {
    "thinking": {"thinking": "", "signature": ""},
    "text": {"text": ""},
    "tool_use": {"input": {}},
}
"""How a block of a stream begins."""


def pieces(body: Mapping[str, Any]) -> list[Piece]:
    """Tools, system and messages, block by block. A mark at the top level stands for one on the last block."""
    found = [_piece(tool) for tool in body.get("tools") or ()]
    found += [_piece(block) for block in blocks(body.get("system"))]
    for message in body["messages"]:
        for index, block in enumerate(blocks(message.get("content"))):
            found.append(_piece(block, message["role"], messages=0 if index else 1))
    if body.get("cache_control") and found:
        found[-1] = replace(found[-1], marked=True)
    return found


def _piece(block: Any, role: str = "", *, messages: int = 0) -> Piece:
    return piece({"role": role, "of": _unmarked(block)}, marked=_is_marked(block), messages=messages)


def blocks(content: Any) -> list[Any]:
    """A content as blocks; a string is one of text."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content or []


def _inner(block: Any) -> list[Any]:
    content = block.get("content")
    return content if isinstance(content, list) else []


def _is_marked(block: Any) -> bool:
    return bool(block.get("cache_control")) or any(_is_marked(item) for item in _inner(block))


def _unmarked(block: Any) -> dict[str, Any]:
    bare = {field: value for field, value in block.items() if field != "cache_control"}
    return bare | {"content": [_unmarked(item) for item in bare["content"]]} if _inner(block) else bare


def thinks(body: Mapping[str, Any]) -> bool:
    """Whether the request turns thinking on."""
    return isinstance(body.get("thinking"), dict) and body["thinking"].get("type") in ("enabled", "adaptive")


def call_id(issue: Issue, index: int) -> str:
    """The id of a reply's call."""
    return f"toolu_01{issue.key(f'call {index}')}"


def content(issue: Issue) -> list[dict[str, Any]]:
    """The blocks of a reply."""
    found: list[dict[str, Any]] = []
    if issue.thinks:
        thinking = issue.say.thinking if issue.shows_thinking else ""
        found.append({"type": "thinking", "thinking": thinking, "signature": issue.signature})
    if issue.say.text:
        found.append({"type": "text", "text": issue.say.text})
    for index, use in enumerate(issue.say.calls):
        block = {"type": "tool_use", "id": call_id(issue, index), "name": use.name, "input": use.arguments}
        found.append(block)
    return found


def reply(issue: Issue) -> dict[str, Any]:
    """The response body."""
    return _message(issue) | {"content": content(issue)} | _ending(issue) | _usage(issue)


def events(issue: Issue, body: Mapping[str, Any]) -> list[bytes]:  # noqa: ARG001  every stream is alike here
    """The response as server-sent events."""
    start = _message(issue) | {"content": [], "stop_reason": None, "stop_sequence": None} | _usage(issue, output=1)
    found = [_event("message_start", message=start)]
    for index, block in enumerate(content(issue)):
        found += [_event(kind, index=index, **fields) for kind, fields in _block_events(block)]
        if index == 0:
            found.insert(2, _event("ping"))
    usage = {"usage": {"output_tokens": issue.output_tokens}} if issue.reports else {}
    return [*found, _event("message_delta", delta=_ending(issue), **usage), _event("message_stop")]


def _block_events(block: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    kind = block["type"]
    yield "content_block_start", {"content_block": block | _EMPTY[kind]}
    if kind == "thinking":
        for text in split(block["thinking"]):
            yield "content_block_delta", {"delta": {"type": "thinking_delta", "thinking": text}}
        yield "content_block_delta", {"delta": {"type": "signature_delta", "signature": block["signature"]}}
    elif kind == "text":
        for text in split(block["text"]):
            yield "content_block_delta", {"delta": {"type": "text_delta", "text": text}}
    else:
        for text in ("", *split(dump(block["input"]).decode())):
            yield "content_block_delta", {"delta": {"type": "input_json_delta", "partial_json": text}}
    yield "content_block_stop", {}


def refusal(why: Refusal) -> dict[str, Any]:
    """The error body."""
    kind = _KINDS.get(why.status, "invalid_request_error" if why.status < 500 else "api_error")
    text = f"{why.path}: {why.text}" if why.path else why.text
    return {"type": "error", "error": {"type": kind, "message": text}, "request_id": "req_lading"}


def too_long(tokens: int, window: int) -> Refusal:
    """The refusal of a prompt that does not fit."""
    return Refusal(400, f"prompt is too long: {tokens} tokens > {window} maximum")


def models(name: str) -> dict[str, Any]:
    """The list of models."""
    model = {"type": "model", "id": name, "display_name": name, "created_at": "2025-10-09T08:53:20Z"}
    return {"data": [model], "has_more": False, "first_id": name, "last_id": name}


def _message(issue: Issue) -> dict[str, Any]:
    return {"id": f"msg_01{issue.key('reply')}", "type": "message", "role": "assistant", "model": issue.model}


def _ending(issue: Issue) -> dict[str, Any]:
    stop = issue.say.stop or ("tool_use" if issue.say.calls else "end_turn")
    return {"stop_reason": stop, "stop_sequence": None}


def _usage(issue: Issue, *, output: int | None = None) -> dict[str, Any]:
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


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\n".encode() + b"data: " + dump({"type": kind, **fields}) + b"\n\n"


FORM = Form(
    wire="anthropic",
    pieces=pieces,
    thinks=thinks,
    call_id=call_id,
    reply=reply,
    events=events,
    refusal=refusal,
    models=models,
    too_long=too_long,
)
