"""The strict provider's side of Responses: pieces of requests, replies, streams, errors and stored responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lading.jsonbytes import dump
from lading.testing.answers import ErrorResponse, Issue, ProviderFormat
from lading.testing.openai_chat import CREATED, make_call_id, split_text, write_error, write_models
from lading.testing.prompt_cache import Piece, make_piece


def split_pieces(body: Mapping[str, Any]) -> list[Piece]:
    """Split a request into tools, instructions and items. All are marked: the provider caches every prefix."""
    heads = [body[field] for field in ("tools", "instructions") if body.get(field)]
    pieces = [make_piece(head, marked=True) for head in heads]
    return pieces + [make_piece(item, marked=True, messages=1) for item in list_items(body)]


def list_items(body: Mapping[str, Any]) -> list[Any]:
    """List the items of a request; a text is one message of the user."""
    given = body.get("input") or []
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def requests_thinking(body: Mapping[str, Any]) -> bool:
    """Return whether the request asks for reasoning."""
    return isinstance(body.get("reasoning"), dict) and body["reasoning"].get("effort") != "none"


def write_items(issue: Issue) -> list[dict[str, Any]]:
    """Write the items of a reply. Each has an id, so that none may come back without the reasoning before it."""
    found: list[dict[str, Any]] = []
    if issue.thinks:
        summary = [{"type": "summary_text", "text": issue.say.thinking}] if issue.shows_thinking else []
        reasoning = {"id": f"rs_{issue.key('reasoning')}", "type": "reasoning", "summary": summary}
        found.append(reasoning | {"encrypted_content": issue.signature})
    done = {"status": "completed"}
    if issue.say.text or not issue.say.calls:
        block = {"type": "output_text", "annotations": [], "logprobs": [], "text": issue.say.text}
        message = {"id": f"msg_{issue.key('text')}", "type": "message", **done, "content": [block]}
        found.append(message | {"role": "assistant"})
    for index, use in enumerate(issue.say.calls):
        call = {"id": f"fc_{issue.key(f'item {index}')}", "type": "function_call", **done}
        found.append(call | {"arguments": use.written, "call_id": make_call_id(issue, index), "name": use.name})
    return found


def write_reply(issue: Issue) -> dict[str, Any]:
    """Write the response body."""
    ending = {"incomplete_details": {"reason": issue.say.stop}} if issue.say.stop else {}
    status = "incomplete" if issue.say.stop else "completed"
    return _start_response(issue) | {"status": status, "output": write_items(issue)} | ending | _write_usage(issue)


def write_events(issue: Issue, body: Mapping[str, Any]) -> list[bytes]:  # noqa: ARG001  no option changes a stream
    """Write the response as server-sent events."""
    whole = write_reply(issue)
    start = whole | {"status": "in_progress", "output": [], "usage": None}
    events: list[dict[str, Any]] = [
        {"type": f"response.{name}", "response": start} for name in ("created", "in_progress")
    ]
    for index, item in enumerate(whole["output"]):
        begun = {"response.output_item.added": _begin_item(item)}
        events += [{"type": kind, "output_index": index, "item": value} for kind, value in begun.items()]
        events += [event | {"item_id": item["id"], "output_index": index} for event in _stream_item(item)]
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
        if index == 0:
            events.append({"type": "keepalive"})
    events.append({"type": f"response.{whole['status']}", "response": whole})
    return [_encode_event(event | {"sequence_number": number}) for number, event in enumerate(events)]


def _begin_item(item: dict[str, Any]) -> dict[str, Any]:
    empty: dict[str, dict[str, Any]] = {
        "reasoning": {"summary": [], "encrypted_content": None},
        "message": {"content": [], "status": "in_progress"},
        "function_call": {"arguments": "", "status": "in_progress"},
    }
    return item | empty[item["type"]]


def _stream_item(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if item["type"] == "function_call":
        for text in split_text(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", "delta": text}
        done = {"arguments": item["arguments"], "name": item["name"]}
        yield {"type": "response.function_call_arguments.done"} | done
        return
    is_text = item["type"] == "message"
    part, text_of, place = (
        ("content_part", "output_text", "content_index")
        if is_text
        else ("reasoning_summary_part", "reasoning_summary_text", "summary_index")
    )
    for index, block in enumerate(item["content" if is_text else "summary"]):
        where: dict[str, Any] = {place: index}
        extra: dict[str, Any] = {"logprobs": []} if is_text else {}
        yield {"type": f"response.{part}.added", "part": block | {"text": ""}} | where
        for text in split_text(block["text"]):
            yield {"type": f"response.{text_of}.delta", "delta": text} | where | extra
        yield {"type": f"response.{text_of}.done", "text": block["text"]} | where | extra
        yield {"type": f"response.{part}.done", "part": block} | where


def refuse_long_prompt(tokens: int, window: int) -> ErrorResponse:
    """Make the error for a prompt that is longer than the window; this API names neither number."""
    del tokens, window
    text = "Your input exceeds the context window of this model. Please adjust your input and try again."
    return ErrorResponse(400, text, path="input", code="context_length_exceeded")


def _start_response(issue: Issue) -> dict[str, Any]:
    return {
        "id": f"resp_{issue.key('reply')}",
        "object": "response",
        "created_at": CREATED + issue.number,
        "status": "completed",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": issue.model,
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
    }


def _write_usage(issue: Issue) -> dict[str, Any]:
    if not issue.reports:
        return {"usage": None}
    tokens, output = issue.usage.tokens, issue.output_tokens
    return {
        "usage": {
            "input_tokens": tokens,
            "input_tokens_details": {"cached_tokens": issue.usage.read_tokens, "cache_write_tokens": 0},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": tokens + output,
        }
    }


def _encode_event(value: dict[str, Any]) -> bytes:
    return f"event: {value['type']}\n".encode() + b"data: " + dump(value) + b"\n\n"


class StoredResponses:
    """Histories by the id of their last response; a request that continues one has what is new."""

    def __init__(self) -> None:
        """Begin without any."""
        self._kept: dict[str, list[Any]] = {}
        self.replies: dict[str, Mapping[str, Any]] = {}
        """The stored responses by their ids."""

    def expand(self, body: Mapping[str, Any]) -> dict[str, Any] | ErrorResponse:
        """Return the request with the earlier items of its history, or an error if that is unknown."""
        rest = {key: value for key, value in body.items() if key != "previous_response_id"}
        if (previous := body.get("previous_response_id")) is None:
            return rest
        if not isinstance(previous, str) or previous not in self._kept:
            text = f"Previous response with id '{previous}' not found."
            return ErrorResponse(400, text, path="previous_response_id", code="previous_response_not_found")
        return rest | {"input": [*self._kept[previous], *list_items(body)]}

    def keep(self, body: Mapping[str, Any], whole: Mapping[str, Any], *, reply: Mapping[str, Any]) -> None:
        """Store the request and its reply, unless the request says otherwise."""
        if body.get("store") is not False:
            self._kept[reply["id"]] = [*list_items(whole), *reply["output"]]
            self.replies[reply["id"]] = reply


FORMAT = ProviderFormat(
    wire="openai_responses",
    split_pieces=split_pieces,
    requests_thinking=requests_thinking,
    make_call_id=make_call_id,
    write_reply=write_reply,
    write_events=write_events,
    write_error=write_error,
    write_models=write_models,
    refuse_long_prompt=refuse_long_prompt,
)
