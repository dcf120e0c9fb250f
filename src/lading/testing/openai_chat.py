"""OpenAI's side of Chat Completions: replies, streams and errors as it writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lading.jsonbytes import dump
from lading.testing.answers import Form, Issue, Refusal
from lading.testing.prompt_cache import Piece, piece

CREATED = 1_760_000_000
"""Seconds since 1970 at which call 0 was: replies are the same at every run."""

_KINDS = {
    401: ("invalid_request_error", "invalid_api_key"),
    404: ("invalid_request_error", "unknown_url"),
    429: ("requests", "rate_limit_exceeded"),
}


def pieces(body: Mapping[str, Any]) -> list[Piece]:
    """The tools, then the messages; every prefix is cached without being asked for."""
    head = [piece(body["tools"], marked=True)] if body.get("tools") else []
    return head + [piece(message, marked=True, messages=1) for message in body["messages"]]


def call_id(issue: Issue, index: int) -> str:
    """The id of a reply's call."""
    return f"call_{issue.key(f'call {index}')}"


def reply(issue: Issue) -> dict[str, Any]:
    """The response body."""
    message: dict[str, Any] = {"role": "assistant", "content": issue.say.text or None, "refusal": None}
    message["annotations"] = []
    if issue.thinks:
        message["reasoning_content"] = issue.say.thinking
    if issue.say.calls:
        message["tool_calls"] = _calls(issue)
    elif message["content"] is None:
        message["content"] = ""
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _stop(issue)}
    usage = {"usage": _usage(issue)} if issue.reports else {}
    return _object(issue, "chat.completion") | {"choices": [choice]} | usage


def events(issue: Issue, body: Mapping[str, Any]) -> list[bytes]:
    """The response as server-sent events, ``[DONE]`` included."""
    options = body.get("stream_options")
    asked = isinstance(options, dict) and options.get("include_usage") is True and issue.reports
    extra = {"usage": None} if asked else {}
    head = _object(issue, "chat.completion.chunk")
    found: list[bytes] = []
    for delta in ({"role": "assistant", "content": "", "refusal": None}, *_deltas(issue), None):
        ending = _stop(issue) if delta is None else None
        choice = {"index": 0, "delta": delta or {}, "logprobs": None, "finish_reason": ending}
        found.append(_event(head | {"choices": [choice]} | extra))
    if asked:
        found.append(_event(head | {"choices": [], "usage": _usage(issue)}))
    return [*found, b"data: [DONE]\n\n"]


def _deltas(issue: Issue) -> Iterator[dict[str, Any]]:
    if issue.thinks:
        yield from ({"reasoning_content": text} for text in split(issue.say.thinking))
    yield from ({"content": text} for text in split(issue.say.text))
    for index, call in enumerate(_calls(issue)):
        function = call["function"]
        yield {"tool_calls": [{"index": index, **call, "function": function | {"arguments": ""}}]}
        for text in split(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": text}}]}


def split(text: str) -> list[str]:
    """A text in the pieces in which it streams: a word or two."""
    return re.findall(r"(?s).{1,12}", text)


def refusal(why: Refusal) -> dict[str, Any]:
    """The error body."""
    kind, code = _KINDS.get(why.status, ("invalid_request_error" if why.status < 500 else "server_error", None))
    param = re.sub(r"\.(\d+)", r".[\1]", why.path) or None
    return {"error": {"message": why.text, "type": kind, "param": param, "code": why.code or code}}


def too_long(tokens: int, window: int) -> Refusal:
    """The refusal of a prompt that does not fit."""
    text = (
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} "
        "tokens. Please reduce the length of the messages."
    )
    return Refusal(400, text, path="messages", code="context_length_exceeded")


def models(name: str) -> dict[str, Any]:
    """The list of models."""
    return {"object": "list", "data": [{"id": name, "object": "model", "created": CREATED, "owned_by": "lading"}]}


def _object(issue: Issue, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{issue.key('reply')}",
        "object": kind,
        "created": CREATED + issue.number,
        "model": issue.model,
        "service_tier": "default",
        "system_fingerprint": None,
    }


def _calls(issue: Issue) -> list[dict[str, Any]]:
    return [
        {"id": call_id(issue, index), "type": "function", "function": {"name": use.name, "arguments": use.written}}
        for index, use in enumerate(issue.say.calls)
    ]


def _stop(issue: Issue) -> str:
    return issue.say.stop or ("tool_calls" if issue.say.calls else "stop")


def _usage(issue: Issue) -> dict[str, Any]:
    prompt, completion = issue.usage.tokens, issue.output_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": issue.usage.read_tokens, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + dump(value) + b"\n\n"


FORM = Form(
    wire="openai_chat",
    pieces=pieces,
    thinks=lambda body: False,  # noqa: ARG005  the model's card says it, not the request
    call_id=call_id,
    reply=reply,
    events=events,
    refusal=refusal,
    models=models,
    too_long=too_long,
)
