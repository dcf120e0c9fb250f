"""The strict provider's side of Chat Completions: pieces of requests, replies, streams and errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lading.jsonbytes import dump
from lading.testing.answers import ErrorResponse, Issue, ProviderFormat
from lading.testing.prompt_cache import Piece, make_piece

CREATED = 1_760_000_000
"""Fixed time of call 0, in seconds since 1970, so that replies are the same in every run."""

_ERROR_TYPES = {
    401: ("invalid_request_error", "invalid_api_key"),
    404: ("invalid_request_error", "unknown_url"),
    429: ("requests", "rate_limit_exceeded"),
}


def split_pieces(body: Mapping[str, Any]) -> list[Piece]:
    """Split a request into tools and messages. All are marked: the provider caches every prefix automatically."""
    head = [make_piece(body["tools"], marked=True)] if body.get("tools") else []
    return head + [make_piece(message, marked=True, messages=1) for message in body["messages"]]


def make_call_id(issue: Issue, index: int) -> str:
    """Make the id of a reply's call."""
    return f"call_{issue.key(f'call {index}')}"


def write_reply(issue: Issue) -> dict[str, Any]:
    """Write the response body."""
    message: dict[str, Any] = {"role": "assistant", "content": issue.say.text or None, "refusal": None}
    message["annotations"] = []
    if issue.thinks:
        message["reasoning_content"] = issue.say.thinking
    if issue.say.calls:
        message["tool_calls"] = _write_calls(issue)
    elif message["content"] is None:
        message["content"] = ""
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _choose_stop(issue)}
    usage = {"usage": _write_usage(issue)} if issue.reports else {}
    return _start_object(issue, "chat.completion") | {"choices": [choice]} | usage


def write_events(issue: Issue, body: Mapping[str, Any]) -> list[bytes]:
    """Write the response as server-sent events, with ``[DONE]`` at the end."""
    options = body.get("stream_options")
    has_usage = isinstance(options, dict) and options.get("include_usage") is True and issue.reports
    extra = {"usage": None} if has_usage else {}
    head = _start_object(issue, "chat.completion.chunk")
    found: list[bytes] = []
    for delta in ({"role": "assistant", "content": "", "refusal": None}, *_stream_deltas(issue), None):
        ending = _choose_stop(issue) if delta is None else None
        choice = {"index": 0, "delta": delta or {}, "logprobs": None, "finish_reason": ending}
        found.append(_encode_event(head | {"choices": [choice]} | extra))
    if has_usage:
        found.append(_encode_event(head | {"choices": [], "usage": _write_usage(issue)}))
    return [*found, b"data: [DONE]\n\n"]


def _stream_deltas(issue: Issue) -> Iterator[dict[str, Any]]:
    if issue.thinks:
        yield from ({"reasoning_content": text} for text in split_text(issue.say.thinking))
    yield from ({"content": text} for text in split_text(issue.say.text))
    for index, call in enumerate(_write_calls(issue)):
        function = call["function"]
        yield {"tool_calls": [{"index": index, **call, "function": function | {"arguments": ""}}]}
        for text in split_text(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": text}}]}


def split_text(text: str) -> list[str]:
    """Split a text into the pieces in which it streams, of at most 12 characters."""
    return re.findall(r"(?s).{1,12}", text)


def write_error(why: ErrorResponse) -> dict[str, Any]:
    """Write the error body."""
    other = ("invalid_request_error" if why.status < 500 else "server_error", None)
    kind, code = _ERROR_TYPES.get(why.status, other)
    param = re.sub(r"\.(\d+)", r".[\1]", why.path) or None
    return {"error": {"message": why.text, "type": kind, "param": param, "code": why.code or code}}


def refuse_long_prompt(tokens: int, window: int) -> ErrorResponse:
    """Make the error for a prompt that is longer than the window, both in tokens."""
    text = (
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} "
        "tokens. Please reduce the length of the messages."
    )
    return ErrorResponse(400, text, path="messages", code="context_length_exceeded")


def write_models(name: str) -> dict[str, Any]:
    """Write the list of models, with the one of this name."""
    return {"object": "list", "data": [{"id": name, "object": "model", "created": CREATED, "owned_by": "lading"}]}


def _start_object(issue: Issue, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{issue.key('reply')}",
        "object": kind,
        "created": CREATED + issue.number,
        "model": issue.model,
        "service_tier": "default",
        "system_fingerprint": None,
    }


def _write_calls(issue: Issue) -> list[dict[str, Any]]:
    functions = [{"name": use.name, "arguments": use.written} for use in issue.say.calls]
    return [
        {"id": make_call_id(issue, index), "type": "function", "function": function}
        for index, function in enumerate(functions)
    ]


def _choose_stop(issue: Issue) -> str:
    return issue.say.stop or ("tool_calls" if issue.say.calls else "stop")


def _write_usage(issue: Issue) -> dict[str, Any]:
    prompt, completion = issue.usage.tokens, issue.output_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": issue.usage.read_tokens, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def _encode_event(value: dict[str, Any]) -> bytes:
    return b"data: " + dump(value) + b"\n\n"


FORMAT = ProviderFormat(
    wire="openai_chat",
    split_pieces=split_pieces,
    requests_thinking=lambda body: False,  # noqa: ARG005  the model's card decides, not the request
    make_call_id=make_call_id,
    write_reply=write_reply,
    write_events=write_events,
    write_error=write_error,
    write_models=write_models,
    refuse_long_prompt=refuse_long_prompt,
)
