"""The strict provider's side of Gemini's generateContent: pieces of requests, replies, streams and errors."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any

from lading.jsonbytes import dump
from lading.testing.answers import ErrorResponse, Issue, ProviderFormat
from lading.testing.openai_chat import split_text
from lading.testing.prompt_cache import Piece, make_piece

PATH = re.compile(r"/v1(?:beta)?/models/([^/:]+):(generateContent|streamGenerateContent)")
MODELS = "/v1beta/models"

_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_WITHOUT_IDS = re.compile(r"gemini-[12]\b")
"""Models whose calls have no ids."""


def read_path(path: str) -> dict[str, Any] | None:
    """Read the model in a path, and whether the answer is streamed; None for another path."""
    found = PATH.fullmatch(path)
    return {"model": found[1], "stream": found[2].startswith("stream")} if found else None


def split_pieces(body: Mapping[str, Any]) -> list[Piece]:
    """Split a request into tools, instruction and parts. All are marked: every prefix is cached automatically."""
    found = [make_piece(value, marked=True) for key in ("tools", "systemInstruction") if (value := body.get(key))]
    for content in body["contents"]:
        for index, part in enumerate(content.get("parts") or ()):
            of = {"role": content.get("role"), "of": part}
            found.append(make_piece(of, marked=True, messages=0 if index else 1))
    return found


def requests_thinking(body: Mapping[str, Any]) -> bool:
    """Return whether the request asks for thoughts in the reply."""
    config = (body.get("generationConfig") or {}).get("thinkingConfig") or {}
    # Google's SDK writes the second form.
    return any(config.get(name) is True for name in ("includeThoughts", "include_thoughts"))


def make_call_id(issue: Issue, index: int) -> str:
    """Make the id of a reply's call; empty for a model whose calls have none."""
    return "" if _WITHOUT_IDS.match(issue.model) else f"fc_{issue.key(f'call {index}')}"


def write_parts(issue: Issue) -> list[dict[str, Any]]:
    """Write the parts of a reply: the first of parallel calls has the signature."""
    found: list[dict[str, Any]] = []
    if issue.thinks and issue.say.thinking:
        found.append({"text": issue.say.thinking, "thought": True})
    if issue.say.text:
        found.append({"text": issue.say.text})
    for index, use in enumerate(issue.say.calls):
        call: dict[str, Any] = {"name": use.name, "args": use.arguments}
        call_id = make_call_id(issue, index)
        part = {"functionCall": call | ({"id": call_id} if call_id else {})}
        found.append(part if index else part | {"thoughtSignature": issue.signature})
    return found


def write_reply(issue: Issue) -> dict[str, Any]:
    """Write the response body."""
    return _write_response(issue, write_parts(issue), stop=True) | _write_usage(issue, issue.output_tokens)


def write_events(issue: Issue, body: Mapping[str, Any]) -> list[bytes]:  # noqa: ARG001  no option changes a stream
    """Write the response as server-sent events; the last has the reason to finish."""
    parts = [piece for part in write_parts(issue) for piece in _split_part(part)] or [{"text": ""}]
    return [
        b"data: "
        + dump(
            _write_response(issue, [part], stop=at == len(parts) - 1)
            | _write_usage(issue, issue.output_tokens * (at + 1) // len(parts))
        )
        + b"\r\n\r\n"
        for at, part in enumerate(parts)
    ]


def _split_part(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "text" not in part:
        yield part
        return
    for text in split_text(part["text"]):
        yield part | {"text": text}


def _write_response(issue: Issue, parts: list[dict[str, Any]], *, stop: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}}
    candidate |= {"finishReason": issue.say.stop or "STOP"} if stop else {}
    candidate["index"] = 0
    return {"candidates": [candidate], "modelVersion": issue.model, "responseId": issue.key("reply")}


def _write_usage(issue: Issue, output: int) -> dict[str, Any]:
    if not issue.reports:
        return {}
    used = issue.usage
    prompt = used.read_tokens + used.written_tokens + used.fresh_tokens
    counts: dict[str, Any] = {"promptTokenCount": prompt, "candidatesTokenCount": output}
    counts |= {"cachedContentTokenCount": used.read_tokens} if used.read_tokens else {}
    return {"usageMetadata": counts | {"totalTokenCount": prompt + output}}


def write_error(why: ErrorResponse) -> dict[str, Any]:
    """Write the error body."""
    text = f"* GenerateContentRequest.{why.path}: {why.text}" if why.path else why.text
    return {"error": {"code": why.status, "message": text, "status": _STATUSES.get(why.status, "UNKNOWN")}}


def refuse_long_prompt(tokens: int, window: int) -> ErrorResponse:
    """Make the error for a prompt that is longer than the window, both in tokens."""
    text = f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window})."
    return ErrorResponse(400, text)


def write_models(name: str) -> dict[str, Any]:
    """Write the list of models, with the one of this name."""
    return {"models": [{"name": f"models/{name}", "supportedGenerationMethods": ["generateContent"]}]}


def read_signature(part: Mapping[str, Any]) -> bytes | None:
    """Read the signature of a part; the API takes it in both alphabets of base64. None without one."""
    text = part.get("thoughtSignature", part.get("thought_signature"))
    if not isinstance(text, str):
        return None
    plain = text.replace("-", "+").replace("_", "/").rstrip("=")
    return b64decode(plain + "=" * (-len(plain) % 4))


FORMAT = ProviderFormat(
    wire="gemini",
    split_pieces=split_pieces,
    requests_thinking=requests_thinking,
    make_call_id=make_call_id,
    write_reply=write_reply,
    write_events=write_events,
    write_error=write_error,
    write_models=write_models,
    refuse_long_prompt=refuse_long_prompt,
)
